"""Names of files: which suffix holds what, and what outputs are called."""

from pathlib import Path

STDIN = "-"
STDIN_LABEL = "<stdin>"

JSONL_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
PARQUET_SUFFIX = ".parquet"
SUPPORTED_SUFFIXES = (*JSONL_SUFFIXES, PARQUET_SUFFIX)

REJECTS_SUFFIX = ".rejects.jsonl"
JOB_SUFFIX = ".job"
PARTS_PATTERN = "part-*"


def input_suffix(path: Path) -> str | None:
    """Return the supported suffix that `path` ends in (`.jsonl.gz`), or None."""
    name = path.name.lower()
    return next((suffix for suffix in SUPPORTED_SUFFIXES if name.endswith(suffix)), None)


def stem(path: Path) -> str:
    """Return the name of an input file without its supported suffix (`a.v2.jsonl.gz` -> `a.v2`)."""
    return path.name[: -len(input_suffix(path) or "")] or path.name


def rejects_path(output: Path) -> Path:
    """Return where the rejects of `output`, a file or a directory of parts, are written."""
    return output.with_name(output.name + REJECTS_SUFFIX)


def part_name(index: int, suffix: str) -> str:
    """Return the name of the part that holds chunk `index`; it ends in `suffix`."""
    return f"part-{index:05d}{suffix}"
