"""The rows of workloads."""

import collections

from tokenizers import Tokenizer

from benchmarks import corpora
from benchmarks.settings import Settings


def test_every_row_comes_twice():
    rows = corpora.duplicated({"text": str(number)} for number in range(20))
    assert set(collections.Counter(row["text"] for row in rows).values()) == {2}


def test_a_marked_copy_is_another_text_with_the_same_tokens(models):
    tokenizer = Tokenizer.from_file(str(models / "bert-mean" / "tokenizer.json"))
    rows = corpora.duplicated([{"text": "one text"}, {"text": "another"}], " ")
    assert len({row["text"] for row in rows}) == 4
    assert len({tuple(tokenizer.encode(row["text"]).ids) for row in rows}) == 2


def test_numbered_rows_are_distinct(shared):
    texts = [row["text"] for row in corpora.numbered(Settings(shared=shared), 1000)]
    assert len(set(texts)) == 1000
