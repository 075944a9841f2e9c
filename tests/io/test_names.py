"""Names of files."""

from pathlib import Path

import pytest

from poolembed.io.names import input_suffix, part_name, rejects_path, stem


@pytest.mark.parametrize(
    ("name", "suffix", "base"),
    [
        ("corpus.jsonl", ".jsonl", "corpus"),
        ("corpus.v2.jsonl.gz", ".jsonl.gz", "corpus.v2"),
        ("corpus.NDJSON", ".ndjson", "corpus"),
        ("corpus.ndjson.gz", ".ndjson.gz", "corpus"),
        ("corpus.parquet", ".parquet", "corpus"),
        ("corpus.txt", ".txt", "corpus"),
        ("corpus.md", None, "corpus.md"),
        ("corpus.gz", None, "corpus.gz"),
        ("corpus.CSV.zst", ".csv.zst", "corpus"),
        ("corpus.feather.xz", ".feather.xz", "corpus"),
        (".jsonl", ".jsonl", ".jsonl"),
    ],
)
def test_suffix_and_stem(name, suffix, base):
    assert input_suffix(Path("folder.jsonl") / name) == suffix
    assert stem(Path("folder.jsonl") / name) == base


def test_parts_sort_by_name_in_the_order_of_chunks():
    assert [part_name(index, ".parquet") for index in (0, 9, 10, 99_999)] == sorted(
        part_name(index, ".parquet") for index in (0, 9, 10, 99_999)
    )


def test_rejects_stand_beside_the_output():
    assert rejects_path(Path("a/b.parquet")) == Path("a/b.parquet.rejects.jsonl")
    assert rejects_path(Path("a/parts/")) == Path("a/parts.rejects.jsonl")
