"""The type of a JSON column is declared by all its values, and holds every one of them exactly."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io.json_rows import parse_row
from poolembed.io.json_types import MAX_STRUCT_DEPTH, MAX_STRUCT_KEYS, JsonShape

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def column(*values: str) -> pa.Array:
    """Survey values given as JSON text and build their column, as a run does it."""
    shape = JsonShape()
    for value in values:
        shape.observe(parse_row(f'{{"v": {value}}}'.encode(), exact=False)[0]["v"])
    exact = shape.writes_numbers()
    convert = shape.converter(exact=exact) or (lambda value: value)
    parsed = [parse_row(f'{{"v": {value}}}'.encode(), exact=exact)[0]["v"] for value in values]
    return pa.array([convert(value) for value in parsed], shape.arrow_type())


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["true", "null", "false"], pa.bool_(), [True, None, False]),
        (["1", "-9223372036854775808"], pa.int64(), [1, -(2**63)]),
        (["1", "18446744073709551615"], pa.uint64(), [1, 2**64 - 1]),
        (["-1", "18446744073709551615"], pa.string(), ["-1", "18446744073709551615"]),
        (["7", "18446744073709551616"], pa.string(), ["7", "18446744073709551616"]),
        (["1.5", "2"], pa.float64(), [1.5, 2.0]),
        (["1.5", "9007199254740992"], pa.float64(), [1.5, 2.0**53]),
        (["1.50", "9007199254740993"], pa.string(), ["1.50", "9007199254740993"]),
        (["1.5", "1e999"], pa.string(), ["1.5", "1e999"]),
        (["null", "null"], pa.string(), [None, None]),
        (['"2024-01-01"', '"2023-05-06 07:08:09"'], pa.string(), ["2024-01-01", "2023-05-06 07:08:09"]),
        (['"1"', "2", "2.50", "true", "null"], pa.string(), ["1", "2", "2.50", "true", None]),
        (["true", "1"], pa.string(), ["true", "1"]),
        (["[]", "null"], pa.list_(pa.string()), [[], None]),
        (["[1]", "[2.5, null]"], pa.list_(pa.float64()), [[1.0], [2.5, None]]),
        (['[1, "a"]', "[[2]]"], pa.list_(pa.string()), [["1", "a"], ["[2]"]]),
        (["[1]", "2"], pa.string(), ["[1]", "2"]),
        (['{"a": 1}', "[1]", '"x"'], pa.string(), ['{"a":1}', "[1]", "x"]),
        (
            ['{"a": 1}', '{"b": "x"}'],
            pa.struct([("a", pa.int64()), ("b", pa.string())]),
            [{"a": 1, "b": None}, {"a": None, "b": "x"}],
        ),
        (["{}", "null"], pa.string(), ["{}", None]),
        (['{"a": {}}'], pa.struct([("a", pa.string())]), [{"a": "{}"}]),
        (
            ['[{"a": 1.10}, {"a": "x"}]'],
            pa.list_(pa.struct([("a", pa.string())])),
            [[{"a": "1.10"}, {"a": "x"}]],
        ),
        (
            ['{"a": 1, "b": [1]}', '{"a": "x", "b": null}', "null"],
            pa.struct([("a", pa.string()), ("b", pa.list_(pa.int64()))]),
            [{"a": "1", "b": [1]}, {"a": "x", "b": None}, None],
        ),
    ],
)
def test_types_follow_the_values(values, kind, expected):
    array = column(*values)
    assert array.type == kind
    assert array.to_pylist() == expected


def test_more_keys_than_a_struct_takes_become_json_text():
    values = [json.dumps({f"user-{number}": number}) for number in range(MAX_STRUCT_KEYS + 1)]
    array = column(*values)
    assert array.type == pa.string()
    assert [json.loads(text) for text in array.to_pylist()] == [json.loads(value) for value in values]


def test_as_many_keys_as_a_struct_takes_stay_a_struct():
    assert pa.types.is_struct(
        column(*[json.dumps({f"k{number}": 1}) for number in range(MAX_STRUCT_KEYS)]).type
    )


def test_objects_nested_very_deep_become_json_text_there():
    value = '{"k": ' * (MAX_STRUCT_DEPTH + 2) + "1.50" + "}" * (MAX_STRUCT_DEPTH + 2)
    inner = column(value).to_pylist()[0]
    for _ in range(MAX_STRUCT_DEPTH + 1):
        inner = inner["k"]
    assert inner == '{"k":1.50}'


def same(value, stored) -> bool:
    """Whether a stored value says the same as the JSON value, whichever type its column got."""
    if isinstance(stored, str) and not isinstance(value, str):
        return json.loads(stored) == value
    if isinstance(value, list):
        return len(value) == len(stored) and all(map(same, value, stored))
    if isinstance(value, dict):
        return all(same(item, stored[key]) for key, item in value.items()) and all(
            stored[key] is None for key in stored.keys() - value.keys()
        )
    return stored == value


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_whatever_the_values_nothing_is_lost(values):
    stored = column(*[json.dumps(value) for value in values]).to_pylist()
    assert all(map(same, values, stored))


def test_null_and_text_are_told_apart():
    shape = JsonShape()
    assert shape.is_null
    shape.observe(None)
    assert shape.is_null
    assert not shape.is_text
    shape.observe("x")
    assert shape.is_text
    shape.observe(1)
    assert not shape.is_text
