"""Tokens are those of the whole text, at a cost that the text's size does not decide."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.errors import ConfigError
from poolembed.runner.bounded import MIN_CHARS, TEXTS_PER_CALL
from poolembed.runner.tokenizer import RowTokenizer

# WordPiece, byte-level BPE with and without special tokens, BPE of whole texts, Metaspace, Unigram.
KINDS = [
    "bert-mean",
    "modernbert-cls",
    "mistral-last",
    "qwen3-last",
    "gemma3-bidirectional",
    "gpt2-seqcls",
    "xlmroberta-cls",
    "t5-encoder-mean",
]

# What long texts are made of: words, runs without blanks that tokens divide from the left, scripts
# without blanks, white space of all sorts, marks that normalizers drop or join.
UNITS = [
    "the cat sat ",
    "a",
    "ab",
    "-",
    "=",
    "12",
    "...,",
    "日本",
    "ก็",
    "é",
    "e\u0301",
    "👩‍👩‍👧",
    "한국어",
    "ﬁ",
    "ß",
]
UNITS += [" ", "  ", "\n", "\t", "\n ", "\r\n", "\u00a0", "\u3000", "\x00", "\u200b", "[SEP]", "</s>", "<s> "]
LONG_TEXT = st.builds(
    lambda head, runs, tail: head + "".join(unit * count for unit, count in runs) + tail,
    st.text(max_size=5),
    st.lists(st.tuples(st.sampled_from(UNITS), st.integers(1, 3000)), min_size=1, max_size=3),
    st.text(max_size=5),
).map(lambda text: text.encode("utf-8", "replace").decode("utf-8"))


def whole(tokenizer, text, max_length, side="right"):
    """Ids and flag of the whole text, by the backend's own truncation."""
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.enable_truncation(max_length, direction=side)
    encoding = tokenizer.backend_tokenizer.encode(text)
    return encoding.ids, bool(encoding.overflowing)


@pytest.fixture(scope="module", params=KINDS)
def kind(request, tokenizer_of):
    return tokenizer_of(request.param)


@pytest.fixture(scope="module", params=["right", "left"])
def side(request):
    return request.param


@pytest.fixture(scope="module")
def row_tokenizer_of(kind, side):
    def make(max_length):
        kind.truncation_side = side
        return RowTokenizer(kind, max_length=max_length)

    return make


@settings(max_examples=15, deadline=None)
@given(text=LONG_TEXT, max_length=st.sampled_from([4, 16, 100]))
def test_a_cut_text_has_the_tokens_of_the_whole_text(kind, side, row_tokenizer_of, text, max_length):
    rows = row_tokenizer_of(max_length)([text])
    assert (rows.token_ids.tolist(), bool(rows.truncated[0])) == whole(kind, text, max_length, side)


@pytest.mark.no_cover  # most of the time, and the test above goes through the same lines
def test_a_text_of_one_unit_has_the_tokens_of_the_whole_text(kind, side, row_tokenizer_of):
    differing = []
    for unit in UNITS:
        text = "x" + unit * (5001 // len(unit)) + "y"
        # Not fewer tokens: the backend makes a record of every so many of them.
        rows = row_tokenizer_of(16)([text])
        if (rows.token_ids.tolist(), bool(rows.truncated[0])) != whole(kind, text, 16, side):
            differing.append(unit)
    assert differing == []


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(st.text(max_size=80), max_size=8))
def test_short_texts_have_the_tokens_that_transformers_gives(kind, texts):
    kind.truncation_side = "right"
    rows = RowTokenizer(kind, max_length=20)(texts)
    expected = [kind(text, truncation=True, max_length=20, padding=False)["input_ids"] for text in texts]
    assert rows.lengths.tolist() == [len(ids) for ids in expected]
    assert rows.token_ids.tolist() == [token for ids in expected for token in ids]


def test_the_rows_of_many_calls_to_the_backend_stay_in_order(tokenizer_of):
    tokenizer = tokenizer_of("bert-mean")
    texts = [f"number {number}" for number in range(TEXTS_PER_CALL + 3)]
    rows = RowTokenizer(tokenizer, max_length=32)(texts)
    ends = rows.lengths.cumsum()
    for row in (0, TEXTS_PER_CALL - 1, TEXTS_PER_CALL, len(texts) - 1):
        ids = rows.token_ids[ends[row] - rows.lengths[row] : ends[row]]
        assert ids.tolist() == tokenizer(texts[row])["input_ids"]


def test_no_texts_are_no_rows(tokenizer_of):
    rows = RowTokenizer(tokenizer_of("bert-mean"), max_length=32)([])
    assert (len(rows.token_ids), len(rows.lengths), len(rows.truncated)) == (0, 0, 0)


def test_a_tokenizer_without_special_tokens_gives_an_empty_text_no_tokens(tokenizer_of):
    rows = RowTokenizer(tokenizer_of("gpt2-seqcls"), max_length=32)(["", "word"])
    assert rows.lengths[0] == 0
    assert rows.lengths[1] > 0


def test_stored_padding_and_truncation_decide_nothing(tokenizer_of):
    tokenizer = tokenizer_of("bert-mean")
    tokenizer.backend_tokenizer.enable_padding(length=128)
    tokenizer.backend_tokenizer.enable_truncation(128)
    rows = RowTokenizer(tokenizer, max_length=256)(["short", "word " * 400])
    assert rows.lengths.tolist() == [len(whole(tokenizer, "short", 256)[0]), 256]
    assert rows.truncated.tolist() == [False, True]


@pytest.mark.parametrize("words", [253, 254, 255])
def test_a_text_is_truncated_when_it_has_a_token_too_many_and_not_before(tokenizer_of, words):
    rows = RowTokenizer(tokenizer_of("bert-mean"), max_length=256)([" ".join(["the"] * words)])
    assert rows.lengths.tolist() == [min(words + 2, 256)]
    assert rows.truncated.tolist() == [words > 254]


@pytest.mark.parametrize("max_length", [1, 2])
def test_a_length_without_room_for_text_is_refused(tokenizer_of, max_length):
    with pytest.raises(ConfigError, match="has no room for text beside 2 special tokens") as caught:
        RowTokenizer(tokenizer_of("bert-mean"), max_length=max_length)
    assert "at least 3" in str(caught.value)


def test_a_prompt_stands_before_every_text(tokenizer_of):
    tokenizer = tokenizer_of("bert-mean")
    rows = RowTokenizer(tokenizer, max_length=32, prompt="query: ")(["what is it", ""])
    expected = [tokenizer(text)["input_ids"] for text in ("query: what is it", "query: ")]
    assert rows.token_ids.tolist() == [token for ids in expected for token in ids]
    assert rows.prompt_lengths is None


@pytest.mark.parametrize(
    ("family", "special_before"),
    [("bert-mean", 1), ("qwen3-last", 0), ("gpt2-seqcls", 0), ("t5-encoder-mean", 0)],
)
def test_an_unpooled_prompt_is_counted_with_the_special_tokens_before_it(
    tokenizer_of, family, special_before
):
    tokenizer = tokenizer_of(family)
    rows = RowTokenizer(tokenizer, max_length=64, prompt="query: ", pools_prompt=False)(["one", "two three"])
    prompt_only = tokenizer("query: ", add_special_tokens=False)["input_ids"]
    assert rows.prompt_lengths is not None
    assert rows.prompt_lengths.tolist() == [special_before + len(prompt_only)] * 2


class CountingBackend:
    """One token a word; counts the characters it is given."""

    def __init__(self):
        self.characters = 0
        self.max_length = 0

    def no_padding(self):
        pass

    def enable_truncation(self, max_length, direction):
        self.max_length = max_length

    def encode_batch_fast(self, texts, add_special_tokens):
        assert add_special_tokens
        self.characters += sum(map(len, texts))
        return [self._encoding(list(range(len(text.split(" "))))) for text in texts]

    def _encoding(self, ids):
        kept, rest = ids[: self.max_length], ids[self.max_length :]
        over = [SimpleNamespace(ids=rest, special_tokens_mask=[0] * len(rest))] if rest else []
        return SimpleNamespace(ids=kept, special_tokens_mask=[0] * len(kept), overflowing=over)


def counting(max_length):
    backend = CountingBackend()
    tokenizer = SimpleNamespace(
        backend_tokenizer=backend,
        all_special_ids=[],
        truncation_side="right",
        num_special_tokens_to_add=lambda: 0,
    )
    return RowTokenizer(tokenizer, max_length=max_length), backend


def test_a_text_of_5_million_characters_costs_no_more_than_one_of_10_thousand():
    costs = []
    for size in (10_000, 5_000_000):
        tokenize, backend = counting(max_length=256)
        rows = tokenize(["word " * (size // 5)])
        assert rows.lengths.tolist() == [256]
        assert rows.truncated.tolist() == [True]
        costs.append(backend.characters)
    assert costs[0] == costs[1] <= MIN_CHARS


def test_a_text_of_long_words_is_looked_at_until_it_has_enough_tokens():
    tokenize, backend = counting(max_length=64)
    rows = tokenize([("w" * 999 + " ") * 5000])
    assert rows.lengths.tolist() == [64]
    # The pieces grow fourfold, so the last is at most four times what 64 + 64 words need.
    assert 128_000 <= backend.characters <= 128_000 * 4 * 4 / 3


def test_a_long_text_with_few_tokens_is_not_called_truncated():
    tokenize, _ = counting(max_length=64)
    rows = tokenize(["w" * 100_000 + " end"])
    assert rows.lengths.tolist() == [2]
    assert rows.truncated.tolist() == [False]
