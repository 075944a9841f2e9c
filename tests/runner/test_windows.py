"""Long texts in windows: nothing lost, nothing repeated but the overlap, every window a whole row."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolembed.errors import ConfigError
from poolembed.runner.tokenizer import RowTokenizer
from poolembed.runner.windows import WindowTokenizer

WORDS = st.lists(st.sampled_from(["one", "apples", "?", "naïve", "日本", "[SEP]"]), max_size=60)
SLOWLY = [HealthCheck.function_scoped_fixture]


def rows_of(tokens):
    return [row.tolist() for row in np.split(tokens.token_ids, np.cumsum(tokens.lengths)[:-1])]


@pytest.mark.parametrize("family", ["bert-mean", "qwen3-last", "llama-last", "gpt2-seqcls"])
@settings(deadline=None, suppress_health_check=SLOWLY, max_examples=30)
@given(words=WORDS, prompt=st.sampled_from(["", "query: "]), overlap=st.integers(0, 3))
def test_windows_are_the_text_cut_in_pieces_each_with_special_tokens_and_prompt(
    family, words, prompt, overlap, tokenizer_of
):
    text = " ".join(words)
    tokenizer = tokenizer_of(family)
    whole = RowTokenizer(tokenizer, max_length=10_000, prompt=prompt)([text]).token_ids.tolist()
    windows = WindowTokenizer(tokenizer, max_length=16, overlap_tokens=overlap, prompt=prompt)([text])
    rows = rows_of(windows.tokens)
    assert windows.num_windows.tolist() == [len(rows)]
    assert max(map(len, rows)) <= 16
    if len(whole) <= 16:
        assert rows == [whole]
        return
    # What all windows begin and end with is found from the first and the last of them.
    num_text = windows.num_text_tokens.tolist()
    end = num_special_at_end(tokenizer)
    begin = len(rows[0]) - num_text[0] - end
    texts = [row[begin : len(row) - end] for row in rows]
    assert [len(part) for part in texts] == num_text
    assert all(row[:begin] == whole[:begin] for row in rows)
    assert all(row[len(row) - end :] == whole[len(whole) - end :] for row in rows)
    joined = texts[0] + [token for part in texts[1:] for token in part[overlap:]]
    assert joined == whole[begin : len(whole) - end]


def num_special_at_end(tokenizer):
    mask = tokenizer.backend_tokenizer.encode("one").special_tokens_mask
    return len(mask) - 1 - max(place for place, special in enumerate(mask) if not special)


def test_texts_keep_their_own_windows(tokenizer_of):
    windows = WindowTokenizer(tokenizer_of("bert-mean"), max_length=8)(["one", "one " * 20, ""])
    assert windows.num_windows.tolist() == [1, 4, 1]
    assert len(windows.tokens.lengths) == 6
    assert windows.num_text_tokens[-1] == 0


@pytest.mark.parametrize("family", ["bert-mean", "qwen3-last", "llama-last"])
def test_spans_are_the_characters_between_the_first_and_the_last_token(family, tokenizer_of):
    text = " " + "naïve apples, 日本 one? " * 9
    make = WindowTokenizer(
        tokenizer_of(family), max_length=16, overlap_tokens=2, prompt="query: ", with_spans=True
    )
    windows = make([text, "", "one"])
    spans = windows.spans[: windows.num_windows[0]].tolist()
    assert len(spans) > 3
    assert spans[0][0] <= 1
    assert spans[-1][1] >= len(text.rstrip())
    for (start, end), (next_start, next_end) in pairwise(spans):
        assert start < next_start < end < next_end <= len(text)
    assert windows.spans[windows.num_windows[0] :].tolist() == [[0, 0], [0, 3]]


@pytest.mark.parametrize(("max_length", "overlap"), [(2, 0), (8, 6)])
def test_windows_without_room_are_refused(max_length, overlap, tokenizer_of):
    with pytest.raises(ConfigError, match="have room for"):
        WindowTokenizer(tokenizer_of("bert-mean"), max_length=max_length, overlap_tokens=overlap)


def test_a_prompt_that_is_not_pooled_is_told_for_every_window(tokenizer_of):
    tokenizer = tokenizer_of("bert-mean")
    plain = RowTokenizer(tokenizer, max_length=64, prompt="one one ", pools_prompt=False)(["apples"])
    make = WindowTokenizer(tokenizer, max_length=12, prompt="one one ", pools_prompt=False)
    windows = make(["apples " * 30])
    assert set(windows.tokens.prompt_lengths.tolist()) == set(plain.prompt_lengths.tolist())
