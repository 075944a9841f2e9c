"""Arrow values as JSON: read back by Python's own parser, every value is the one that went in."""

import base64
import datetime
import decimal
import json
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io.formats.json_text import json_texts


def parsed(array):
    return [json.loads(line) for line in json_texts(array).to_pylist()]


@given(st.lists(st.integers(0, 2**32 - 1)))
def test_every_float32_is_read_back_as_the_very_same(bits):
    numbers = np.asarray(bits, np.uint32).view(np.float32)
    numbers = numbers[np.isfinite(numbers)]
    back = np.asarray(parsed(pa.array(numbers)), np.float32)
    assert all(isinstance(value, float) for value in parsed(pa.array(numbers)))
    assert back.tobytes() == numbers.tobytes()


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_every_float64_is_read_back_as_the_very_same(numbers):
    back = np.asarray(parsed(pa.array(numbers, pa.float64())), np.float64)
    assert back.tobytes() == np.asarray(numbers, np.float64).tobytes()


def test_every_float16_is_read_back_as_the_very_same():
    numbers = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = numbers[np.isfinite(numbers)]
    assert np.asarray(parsed(pa.array(numbers)), np.float16).tobytes() == numbers.tobytes()


@given(st.lists(st.text(st.characters(codec="utf-8")) | st.none()))
def test_every_text_is_read_back(texts):
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        assert parsed(pa.array(texts, kind)) == texts


def test_text_stands_as_it_is_and_not_as_escapes():
    assert json_texts(pa.array(["größer\n☃"])).to_pylist() == ['"größer\\n☃"']


def test_bytes_that_are_no_text_are_kept_as_escapes():
    column = pa.array([b"a\xffb"], pa.binary()).view(pa.string())
    (value,) = parsed(column)
    assert value.encode("utf-8", "surrogateescape") == b"a\xffb"


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([2**63, None], pa.uint64()), [2**63, None]),
        (pa.array([-(2**63)], pa.int64()), [-(2**63)]),
        (pa.array([True, False, None]), [True, False, None]),
        (pa.array([None, None]), [None, None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array([[1, 2], [], None], pa.list_(pa.int8())), [[1, 2], [], None]),
        (pa.array([[1, 2], [3], None], pa.large_list(pa.int8())).slice(1), [[3], None]),
        (pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2)), [[1, 2], None, [3, None]]),
        (pa.array([{"a": 1, "b": {"c": None}}, None]), [{"a": 1, "b": {"c": None}}, None]),
        (pa.array([{}, None], pa.struct([])), [{}, None]),
        (
            pa.array([[("x", 1)], None, []], pa.map_(pa.string(), pa.int8())).slice(0),
            [[{"key": "x", "value": 1}], None, []],
        ),
        (pa.array([math.inf, -math.inf, math.nan, None, 1.0]), ["Infinity", "-Infinity", "NaN", None, 1.0]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_keep_their_shape(array, expected):
    assert parsed(array) == expected


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(3), pa.binary_view()])
def test_bytes_are_base64(kind):
    values = [b"\x00\xff\n", None, b"abc"]
    back = [None if text is None else base64.b64decode(text) for text in parsed(pa.array(values, kind))]
    assert back == values


def test_dates_times_and_decimals_are_read_back():
    moments = [datetime.datetime(2024, 2, 29, 23, 59, 58, 123456), None, datetime.datetime(1, 1, 1)]
    texts = parsed(pa.array(moments, pa.timestamp("us")))
    assert [None if text is None else datetime.datetime.fromisoformat(text) for text in texts] == moments
    days = [datetime.date(2024, 2, 29), None]
    for kind in (pa.date32(), pa.date64()):
        texts = parsed(pa.array(days, kind))
        assert [None if text is None else datetime.date.fromisoformat(text) for text in texts] == days
    times = [datetime.time(1, 2, 3, 4)]
    assert [datetime.time.fromisoformat(text) for text in parsed(pa.array(times))] == times
    numbers = [decimal.Decimal("-12345678901234567890.10"), None]
    texts = parsed(pa.array(numbers, pa.decimal128(38, 2)))
    assert [None if text is None else decimal.Decimal(text) for text in texts] == numbers


def test_an_instant_is_in_utc_whatever_its_zone():
    moment = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)
    (text,) = parsed(pa.array([moment], pa.timestamp("ns", "Europe/Berlin")))
    assert text.endswith("Z")
    assert datetime.datetime.fromisoformat(text) == moment


def test_a_duration_is_a_number_of_its_unit():
    assert parsed(pa.array([datetime.timedelta(seconds=90), None], pa.duration("ms"))) == [90_000, None]


@pytest.mark.parametrize("kind", [pa.month_day_nano_interval(), pa.list_(pa.month_day_nano_interval())])
def test_a_type_without_a_form_is_told_without_any_value(kind):
    with pytest.raises(TypeError, match="month_day_nano_interval has no form in JSON"):
        json_texts(pa.array([], kind))
