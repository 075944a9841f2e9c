"""Keys tell different texts apart, and the index finds what a dictionary finds."""

import hashlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io.store.keys import KEY_TYPE, NO_KEY, KeyIndex, first_of_each, text_keys

TEXTS = st.lists(st.text(alphabet="ab\x00\ud800é", max_size=4), max_size=30)
# Few values with zeros at both ends: a fixed-width string of numpy drops the zeros behind it.
KEYS = st.lists(
    st.binary(min_size=1, max_size=2).map(lambda end: bytes(14) + end.rjust(2, b"\0")), max_size=40
)


@given(TEXTS)
def test_equal_texts_and_no_others_have_equal_keys(texts):
    keys = text_keys({"text": texts}).tolist()
    assert len(set(keys)) == len(set(texts))
    assert [keys.index(key) for key in keys] == [texts.index(text) for text in texts]


def test_the_border_between_roles_and_items_counts():
    pairs = {"query": ["ab", "a", "", "s1:a"], "document": ["c", "bc", "abc", ""]}
    assert len(set(text_keys(pairs).tolist())) == 4
    lists = [[("1", "a"), ("2", "b")], [("1", "a")], [("1", "a"), ("2", "")], [], [("1", "a2"), ("", "b")]]
    assert len(set(text_keys({"query": ["q"] * 5, "documents": lists}).tolist())) == 5


def test_a_key_is_a_hash_of_128_bits():
    (key,) = text_keys({"text": ["é"]})
    assert key == hashlib.blake2b(b"l1:s2:\xc3\xa9", digest_size=16).digest()


def test_no_rows_have_no_keys():
    keys = text_keys({"text": []})
    assert (keys.dtype, keys.shape) == (KEY_TYPE, (0,))


@given(st.lists(KEYS, max_size=8), KEYS)
def test_the_index_finds_what_a_dictionary_finds(groups, wanted):
    index, known = KeyIndex(), {}
    for group in groups:
        new = [key for key in dict.fromkeys(group) if key not in known]
        places = np.arange(len(known), len(known) + len(new))
        index.add(np.array(new, KEY_TYPE), places)
        known |= dict(zip(new, places.tolist(), strict=True))
    found = index.find(np.array(wanted, KEY_TYPE))
    assert found.tolist() == [known.get(key, -1) for key in wanted]


def test_an_index_of_many_small_additions_stays_quick_to_search():
    index = KeyIndex()
    for start in range(0, 4096, 4):
        keys = text_keys({"text": [str(number) for number in range(start, start + 4)]})
        index.add(keys, np.arange(start, start + 4))
    assert len(index._runs) <= 13
    assert index.find(text_keys({"text": ["77", "4095", "x"]})).tolist() == [77, 4095, -1]


@given(KEYS)
def test_the_first_row_of_each_key(keys):
    expected = [row for row, key in enumerate(keys) if key not in keys[:row]]
    assert first_of_each(np.array(keys, KEY_TYPE)).tolist() == expected


def test_the_key_of_rows_without_text_is_none_of_a_text():
    assert NO_KEY not in text_keys({"text": ["", "\0" * 16]}).tolist()
