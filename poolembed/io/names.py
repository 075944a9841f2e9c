"""Names of files: which suffix holds what, and what outputs are called."""

from pathlib import Path, PurePath

from poolembed.config import InputFormat

STDIN = "-"
STDIN_LABEL = "<stdin>"

PARQUET_SUFFIX = ".parquet"
FORMAT_SUFFIXES: dict[InputFormat, tuple[str, ...]] = {
    "jsonl": (".jsonl", ".ndjson"),
    "parquet": (PARQUET_SUFFIX,),
    "arrow": (".arrow", ".feather", ".ipc"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "text": (".txt",),
}
COMPRESSION_SUFFIXES = (".gz", ".zst", ".bz2", ".xz")

REJECTS_SUFFIX = ".rejects.jsonl"
JOB_SUFFIX = ".job"
PARTS_PATTERN = "part-*"


def input_suffix(path: PurePath) -> str | None:
    """Return the suffix that says what a file holds, with that of its compression (`.jsonl.gz`), or None."""
    name = path.name.lower()
    packed = next((suffix for suffix in COMPRESSION_SUFFIXES if name.endswith(suffix)), "")
    bare = name.removesuffix(packed)
    suffixes = (suffix for known in FORMAT_SUFFIXES.values() for suffix in known)
    return next((suffix + packed for suffix in suffixes if bare.endswith(suffix)), None)


def format_of(path: PurePath) -> InputFormat | None:
    """Return the format that the name of a file stands for, or None."""
    suffix = input_suffix(path) or ""
    return next((name for name, known in FORMAT_SUFFIXES.items() if suffix.startswith(known)), None)


def stem(path: Path) -> str:
    """Return the name of an input file without its known suffix (`a.v2.jsonl.gz` -> `a.v2`)."""
    return path.name[: -len(input_suffix(path) or "")] or path.name


def rejects_path(output: Path) -> Path:
    """Return where the rejects of `output`, a file or a directory of parts, are written."""
    return output.with_name(output.name + REJECTS_SUFFIX)


def is_part(name: str) -> bool:
    """Return whether a file of this name may be a part of an output."""
    return name.startswith(PARTS_PATTERN.removesuffix("*"))


def part_name(index: int, suffix: str) -> str:
    """Return the name of the part that holds chunk `index`; it ends in `suffix`."""
    return f"part-{index:05d}{suffix}"
