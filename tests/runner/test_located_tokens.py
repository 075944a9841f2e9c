"""Every token of a text is kept in exactly one window, with the characters it stands for."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolembed.errors import ConfigError
from poolembed.runner.located_tokens import LocatingTokenizer

FAMILIES = ("bert-tokencls", "roberta-tokencls", "xlmroberta-cls", "qwen3-last")
WORDS = st.lists(
    st.sampled_from(["Köln", "東京", "a", "O'Neil-Smith", "🙂", "ﬁne", "\n", "x" * 30]), max_size=25
)


@pytest.fixture(scope="session")
def locating(tokenizer_of):
    """Return a locating tokenizer of a family, and a tokenizer of it that nobody changes."""
    made = {}

    def make(family, **settings):
        if family not in made:
            made[family] = (tokenizer_of(family), tokenizer_of(family))
        mine, theirs = made[family]
        return LocatingTokenizer(mine, **settings), theirs

    return make


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(WORDS.map(" ".join), max_size=4), max_length=st.integers(6, 20), overlap=st.integers(0, 3)
)
def test_what_is_kept_is_the_text_token_by_token(family, locating, texts, max_length, overlap):
    tokenize, theirs = locating(family, max_length=max_length, overlap_tokens=overlap)
    located = tokenize(texts)
    windows = located.windows
    assert windows.kept.sum() == len(located.spans) == len(located.continues) == located.num_tokens.sum()
    assert (windows.lengths <= max_length).all()
    assert (located.num_windows >= 1).all()
    wanted = [theirs(text, add_special_tokens=False, return_offsets_mapping=True) for text in texts]
    assert windows.token_ids[windows.kept].tolist() == [i for one in wanted for i in one["input_ids"]]
    assert located.spans.tolist() == [list(span) for one in wanted for span in one["offset_mapping"]]
    assert located.num_tokens.tolist() == [len(one["input_ids"]) for one in wanted]


def test_a_text_that_fits_is_one_window_with_its_special_tokens(locating):
    tokenize, theirs = locating("bert-tokencls", max_length=64)
    located = tokenize(["Angela Merkel in Köln", "x"])
    assert located.num_windows.tolist() == [1, 1]
    assert located.windows.token_ids.tolist() == [
        *theirs("Angela Merkel in Köln")["input_ids"],
        *theirs("x")["input_ids"],
    ]
    assert not located.windows.truncated.any()


def test_tokens_that_go_on_with_a_word_are_told(locating):
    tokenize, theirs = locating("bert-tokencls", max_length=64)
    located = tokenize(["Angela Merkel"])
    tokens = theirs.convert_ids_to_tokens(located.windows.token_ids[located.windows.kept].tolist())
    assert located.continues.tolist() == [token.startswith("##") for token in tokens]


@pytest.mark.parametrize("family", ["roberta-tokencls", "xlmroberta-cls"])
def test_without_marks_in_the_vocabulary_a_word_goes_on_where_there_is_no_blank(family, locating):
    text = "Zoe  met\nJane at"
    tokenize, _ = locating(family, max_length=64)
    located = tokenize([text])
    for (start, _), continues in zip(located.spans.tolist(), located.continues.tolist(), strict=True):
        assert continues == (start > 0 and " " not in text[start - 1 : start + 1])


def test_a_quarter_of_a_window_overlaps_by_default(locating):
    assert locating("bert-tokencls", max_length=42)[0].overlap_tokens == 10


@pytest.mark.parametrize(
    ("max_length", "hint"), [(6, "--overlap-tokens must be below 4"), (2, "raise --max-length")]
)
def test_a_window_must_have_room_for_new_text(max_length, hint, locating):
    with pytest.raises(ConfigError, match="cannot overlap by 4") as caught:
        locating("bert-tokencls", max_length=max_length, overlap_tokens=4)
    assert caught.value.hint == hint


def test_no_texts_have_no_windows(locating):
    located = locating("bert-tokencls", max_length=8)[0]([])
    assert len(located.windows.lengths) == len(located.num_windows) == 0
    assert located.spans.shape == (0, 2)
    assert located.continues.dtype == np.bool_
