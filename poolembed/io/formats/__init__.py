"""The formats of output, one file for each.

In: tables of one schema, in order. Out: bytes on handles that somebody else opens, syncs and renames.
Never: a name of a file decided, a type changed without a word in docs/output.md.
"""

from pathlib import Path

from poolembed.io.formats import arrow, jsonl, npy, parquet, trec
from poolembed.io.formats.writer import META_SUFFIX, ROWS_SUFFIX, Format, TableWriter

FORMATS: dict[str, Format] = {
    each.name: each
    for each in (parquet.PARQUET, arrow.ARROW, jsonl.JSONL, jsonl.JSONL_GZ, npy.NPY, trec.TREC)
}
"""The formats by name; the first is the default."""


def format_of(path: Path) -> Format | None:
    """Return the format that the name of a file says, or None."""
    name = path.name.lower()
    return next((kind for kind in FORMATS.values() if name.endswith(kind.suffixes)), None)


__all__ = ["FORMATS", "META_SUFFIX", "ROWS_SUFFIX", "Format", "TableWriter", "format_of"]
