"""Workers and the pipe to them, with the one that needs no model to be fast: `tokenizer`."""

import json
from contextlib import closing

import numpy as np
import pytest

from benchmarks.child import Child, Request, WorkerError, last_words
from benchmarks.settings import Settings


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": "word " * number}) + "\n" for number in range(1, 6)))
    return path


@pytest.fixture
def words(models, tmp_path):
    return ["--model", str(models / "bert-mean"), "--threads", "1", "--cache", str(tmp_path)]


@pytest.mark.slow
def test_a_worker_times_what_it_is_asked_and_writes_its_array(rows, words, tmp_path):
    settings, path = Settings(), tmp_path / "lengths.npy"
    with closing(Child(settings, "poolembed", "tokenizer", words, tmp_path / "log")) as child:
        answer = child.measure(Request(rows=rows, vectors=path))
        child.measure(Request(rows=rows, limit=2, vectors=tmp_path / "two.npy"))
        assert child.peak_mb() > 1
    assert answer["seconds"] > 0
    lengths = np.load(path)
    assert len(lengths) == 5
    # [CLS] and [SEP] beside the tokens of one word, as often as the word is there.
    assert np.diff(lengths).tolist() == [lengths[0] - 2] * 4
    assert np.load(tmp_path / "two.npy").tolist() == lengths[:2].tolist()


@pytest.mark.slow
def test_a_worker_that_does_not_start_says_why(words, tmp_path):
    words[1] = str(tmp_path)
    with pytest.raises(WorkerError, match=r"tokenizer\.json|No such file"):
        Child(Settings(), "poolembed", "tokenizer", words, tmp_path / "log")


def test_the_last_words_are_the_exception_and_not_what_follows_it():
    assert (
        last_words("loading\nValueError: no such model\nCPU: registered at\n") == "ValueError: no such model"
    )
    assert last_words("loading\nkilled\n") == "killed"
    assert last_words("") == "it ended without a word"
