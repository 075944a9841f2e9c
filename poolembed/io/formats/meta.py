"""`OUT.meta.json`: what an output says about itself where its own format has no room for it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from poolembed.io.formats.writer import META_SUFFIX


def write_meta(handle: BinaryIO, schema: pa.Schema, num_rows: int) -> None:
    """Write the number of rows, the Arrow type of each column, and the metadata of the schema.

    Args:
        handle: where the file is written.
        schema: the columns of the output.
        num_rows: its rows.
    """
    metadata = schema.metadata or {}
    content = {
        "num_rows": num_rows,
        "columns": {field.name: str(field.type) for field in schema},
        # Bytes that are not UTF-8 come only from the metadata of an input.
        "metadata": {_text(key): _text(value) for key, value in metadata.items()},
    }
    handle.write(json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")


def read_meta(path: Path) -> Mapping[bytes, bytes]:
    """Return the metadata that stands beside the output `path`.

    Raises:
        OSError: there is none.
        ValueError: it is not what `write_meta` writes.
    """
    content = json.loads(path.with_name(path.name + META_SUFFIX).read_text("utf-8"))
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        raise ValueError(f"{path.name}{META_SUFFIX} has no metadata")
    return {str(key).encode(): str(value).encode() for key, value in content["metadata"].items()}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "backslashreplace")
