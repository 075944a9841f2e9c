"""What a run leaves beside its output, so that a later one knows whose results stand there."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np

from poolembed.io.atomic import AtomicFile, translated
from poolembed.io.store.keys import KEY_TYPE, Keys

_TAIL_BYTES = 2**16
_FORMAT = 1
"""Raised when older records can no longer be read."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file of an output.

    Attributes:
        name: its name; parts stand in the directory of the output.
        num_rows: its rows.
        identity: size and hash of its end.
    """

    name: str
    num_rows: int
    identity: str


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """A finished output.

    Attributes:
        settings: all that decides a result beside the texts.
        files: its files, in the order of their rows.
    """

    settings: Mapping[str, str]
    files: tuple[FileRecord, ...]

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps({"format": _FORMAT, **asdict(self)}, ensure_ascii=False, indent=1)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read what `dump` wrote; None where it is of another version, or damaged."""
        try:
            found = json.loads(text)
            if found.pop("format") != _FORMAT:
                return None
            return cls(found["settings"], tuple(FileRecord(**file) for file in found["files"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def identity_of(path: Path) -> str:
    """Return what tells a finished output from every other.

    The end of a Parquet file holds the footer, with the places and statistics of all columns.

    Raises:
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        return f"{size}-{hashlib.blake2b(file.read(), digest_size=16).hexdigest()}"


def keys_of(path: Path, record: OutputRecord) -> Iterator[tuple[FileRecord, Keys]]:
    """Yield the files of an output with the keys of their rows; nothing where the keys are damaged.

    Args:
        path: the file of keys, 16 bytes a row.
        record: the output.
    """
    try:
        keys = np.fromfile(path, KEY_TYPE)
    except OSError:
        return
    if len(keys) != sum(file.num_rows for file in record.files):
        return
    start = 0
    for file in record.files:
        yield file, keys[start : start + file.num_rows]
        start += file.num_rows


def write_text(path: Path, text: str) -> None:
    """Write `text` to a small file, `path`, that is there whole or not at all.

    Raises:
        OutputError: it cannot be written.
    """
    file = AtomicFile(path, may_replace=True)
    try:
        with translated(path):
            file.handle.write(text.encode("utf-8", "surrogatepass"))
        file.finish()
        file.place()
    finally:
        file.discard()
