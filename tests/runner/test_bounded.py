"""Without truncation too, the wanted tokens of a long text are those of the whole text."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from poolembed.runner.bounded import MIN_CHARS, BoundedEncoder

# A token of one, two, four and eight dashes each, so that where a run begins decides how it is divided.
VOCABULARY = {token: number for number, token in enumerate(["-", "--", "----", "--------", "a", "b"])}
MERGES = [("-", "-"), ("--", "--"), ("----", "----")]


@pytest.fixture
def backend():
    tokenizer = Tokenizer(models.BPE(VOCABULARY, MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def wanted(ids, max_tokens, from_left):
    return ids[-max_tokens:] if from_left else ids[:max_tokens]


@pytest.mark.parametrize("from_left", [False, True])
@pytest.mark.parametrize("length", range(20_000, 20_008))
def test_a_run_that_is_divided_from_its_beginning(backend, from_left, length):
    text = "-" * length
    encode = BoundedEncoder(backend, 10, from_left=from_left)
    ((encoding, was_cut),) = encode([text], add_special_tokens=True)
    assert wanted(encoding.ids, 10, from_left) == wanted(backend.encode(text).ids, 10, from_left)
    # From its beginning a run may be cut anywhere; from its end it must be seen whole.
    assert was_cut is not from_left


@pytest.mark.parametrize("from_left", [False, True])
def test_words_are_cut_between_them(backend, from_left):
    text = "-------- ab --- " * 5000
    encode = BoundedEncoder(backend, 10, from_left=from_left)
    ((encoding, was_cut),) = encode([text], add_special_tokens=False)
    assert was_cut
    assert 10 < len(encoding.ids) <= MIN_CHARS
    assert wanted(encoding.ids, 10, from_left) == wanted(backend.encode(text).ids, 10, from_left)


def test_texts_short_and_long_come_in_their_order(backend):
    texts = ["a", "-" * 50_000, "b", "a " * 10_000, ""]
    got = list(BoundedEncoder(backend, 4)(texts, add_special_tokens=False))
    assert [encoding.ids[:4] for encoding, _ in got] == [backend.encode(text).ids[:4] for text in texts]
    assert [was_cut for _, was_cut in got] == [False, True, False, True, False]
