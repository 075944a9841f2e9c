"""Outputs of this tool, known by the metadata they carry, so that a run does not read its own results."""

import pyarrow as pa

from poolembed.io.arrow import arrow_schema
from poolembed.io.files import InputFile, is_packed
from poolembed.io.formats import META_SUFFIX
from poolembed.io.names import REJECTS_SUFFIX
from poolembed.io.parquet import METADATA_PREFIX, ParquetBatches


def is_own_output(file: InputFile) -> bool:
    """Return whether a file was written by this tool: its rejects, or what has its metadata, in it or beside.

    Raises:
        InputError: it is not the kind of file that its name says, or damaged.
    """
    if file.label.endswith(REJECTS_SUFFIX):
        return True
    if file.path is not None and file.path.with_name(file.path.name + META_SUFFIX).exists():
        return True
    schema = _schema_of(file)
    return schema is not None and any(key.startswith(METADATA_PREFIX) for key in schema.metadata or {})


def _schema_of(file: InputFile) -> pa.Schema | None:
    # This tool compresses columns, never a whole file.
    if file.format not in ("parquet", "arrow") or is_packed(file):
        return None
    return ParquetBatches(file).schema if file.format == "parquet" else arrow_schema(file)
