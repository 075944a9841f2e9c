"""Arrow columns as the text of JSON values, without loss and without a Python object for each number.

What JSON has no form for becomes a string: dates and times in ISO 8601 (instants in UTC, ending in Z),
decimals with their digits, bytes in base64, and numbers that are not finite as `NaN`, `Infinity` and
`-Infinity`. Durations are whole numbers of their unit; maps are lists of `{"key": ..., "value": ...}`.
"""

import base64
import json
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

TEXT = pa.large_string()
Encoder = Callable[[pa.Array], pa.Array]


def json_texts(array: pa.Array) -> pa.Array:
    """Return each value as JSON, large_string without nulls.

    A float is the shortest decimal that its own type reads back as the very same number.

    Args:
        array: values of any type that has a form in JSON.

    Raises:
        TypeError: the type has none; also for an array without values.
    """
    if isinstance(array.type, pa.BaseExtensionType):
        return json_texts(array.storage)
    if pa.types.is_null(array.type):
        return pa.array(["null"] * len(array), TEXT)
    for fits, encode in _ENCODERS:
        if fits(array.type):
            return pc.fill_null(encode(array), text("null"))
    raise TypeError(f"{array.type} has no form in JSON")


def text(value: str) -> pa.Scalar:
    """Return a scalar of the type that `json_texts` gives."""
    return pa.scalar(value, TEXT)


def joined(*parts: pa.Array | pa.Scalar) -> pa.Array:
    """Return the texts of each row one after the other; null where one of them is."""
    return pc.binary_join_element_wise(*parts, text(""))


def _plain(array: pa.Array) -> pa.Array:
    return pc.cast(array, TEXT)


def _quoted(texts: pa.Array) -> pa.Array:
    return joined(text('"'), texts, text('"'))


def _floats(array: pa.Array) -> pa.Array:
    # Half precision has no text of its own in Arrow; as float32 it is the same number.
    values = pc.cast(array, pa.float32()) if pa.types.is_float16(array.type) else array
    texts = _plain(values)
    # "1" and "-0" would be read as integers, which have no sign of zero.
    is_whole = pc.invert(pc.match_substring_regex(texts, "[.en]"))
    texts = pc.if_else(is_whole, joined(texts, text(".0")), texts)
    finite = pc.is_finite(values)
    if pc.all(finite, min_count=0).as_py():
        return texts
    words = pc.if_else(pc.is_nan(values), text('"NaN"'), text('"Infinity"'))
    words = pc.if_else(pc.less(values, 0), text('"-Infinity"'), words)
    return pc.if_else(finite, texts, words)


def _strings(array: pa.Array) -> pa.Array:
    # As bytes, because text in a Parquet file need not be UTF-8; stray bytes become escapes of surrogates.
    values = pc.cast(array, TEXT).cast(pa.large_binary()).to_pylist()
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return pa.array(
        [
            None
            if value is None
            else encode(value.decode("utf-8", "surrogateescape")).encode("utf-8", "backslashreplace")
            for value in values
        ],
        TEXT,
    )


def _bytes(array: pa.Array) -> pa.Array:
    values = array.to_pylist()
    return _quoted(
        pa.array([None if value is None else base64.b64encode(value).decode() for value in values], TEXT)
    )


def _instants(array: pa.Array) -> pa.Array:
    texts = pc.replace_substring(_plain(pc.cast(array, pa.timestamp(array.type.unit))), " ", "T")
    return _quoted(texts if array.type.tz is None else joined(texts, text("Z")))


def _days(array: pa.Array) -> pa.Array:
    return _quoted(_plain(pc.cast(array, pa.date32())))


def _durations(array: pa.Array) -> pa.Array:
    return _plain(pc.cast(array, pa.int64()))


def _values(array: pa.Array) -> pa.Array:
    return json_texts(pc.cast(array, array.type.value_type))


def _objects(array: pa.Array) -> pa.Array:
    parts: list[pa.Array | pa.Scalar] = []
    for index, values in enumerate(array.flatten()):
        key = json.dumps(array.type.field(index).name, ensure_ascii=False)
        parts += [text(f"{',' if index else '{'}{key}:"), json_texts(values)]
    whole = joined(*parts, text("}")) if parts else pa.array(["{}"] * len(array), TEXT)
    return pc.if_else(array.is_valid(), whole, pa.scalar(None, TEXT))


def _fixed_lists(array: pa.Array) -> pa.Array:
    return _lists(pc.cast(array, pa.large_list(array.type.value_field)))


def _maps(array: pa.Array) -> pa.Array:
    entry = pa.struct([("key", array.type.key_type), ("value", array.type.item_type)])
    return _lists(pc.cast(array, pa.list_(entry)))


def _lists(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    values = json_texts(array.flatten())
    inside = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), values), text(","))
    return pc.if_else(array.is_valid(), joined(text("["), inside, text("]")), pa.scalar(None, TEXT))


_ENCODERS: tuple[tuple[Callable[[pa.DataType], bool], Encoder], ...] = (
    (pa.types.is_dictionary, _values),
    (lambda kind: pa.types.is_integer(kind) or pa.types.is_boolean(kind), _plain),
    (pa.types.is_floating, _floats),
    (lambda kind: kind in (pa.string(), TEXT, pa.string_view()), _strings),
    (
        lambda kind: (
            kind in (pa.binary(), pa.large_binary(), pa.binary_view()) or pa.types.is_fixed_size_binary(kind)
        ),
        _bytes,
    ),
    (pa.types.is_timestamp, _instants),
    (pa.types.is_date, _days),
    (lambda kind: pa.types.is_time(kind) or pa.types.is_decimal(kind), lambda array: _quoted(_plain(array))),
    (pa.types.is_duration, _durations),
    (pa.types.is_struct, _objects),
    (pa.types.is_fixed_size_list, _fixed_lists),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), _lists),
    (pa.types.is_map, _maps),
)
