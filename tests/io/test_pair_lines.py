"""Pairs of ids as lines of text."""

import gzip

import pytest

from poolembed.io.chunk import Reject
from poolembed.io.pair_lines import CandidateRow, is_lines, pair_lines


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.tsv", True),
        ("a.run", True),
        ("a.TREC.gz", True),
        ("a.b.qrels", True),
        ("a.jsonl", False),
        ("a.jsonl.gz", False),
        ("a.parquet", False),
        ("a", False),
    ],
)
def test_the_name_says_what_is_read_as_lines(name, expected):
    assert is_lines(name) is expected


def test_lines_are_numbered_as_an_editor_does_and_may_be_compressed(tmp_path):
    path = tmp_path / "c.tsv.gz"
    path.write_bytes(gzip.compress("\ufeffqid\tdocid\r\n\r\nq 1\td 1\r\nq2\td2\textra\n".encode()))
    first, second = pair_lines(str(path), frozenset({"qid"}))
    assert first == CandidateRow("q 1", ("d 1",), str(path), 3)
    assert isinstance(second, Reject)
    assert (second.code, second.row, second.excerpt) == ("not_a_pair", 4, "q2\td2\textra")


def test_a_line_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_bytes(b"a b\nc \xff\n")
    _, second = pair_lines(str(path), frozenset())
    assert isinstance(second, Reject)
    assert second.code == "invalid_utf8"


def test_a_judgement_between_lines_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "c.trec"
    path.write_text("q Q0 d 1 2.5 tag\nq X d 1 2.5 tag\n")
    _, second = pair_lines(str(path), frozenset())
    assert isinstance(second, Reject)
    assert second.code == "not_a_pair"


def test_an_empty_file_has_no_candidates(tmp_path):
    (tmp_path / "c.tsv").touch()
    assert list(pair_lines(str(tmp_path / "c.tsv"), frozenset())) == []
