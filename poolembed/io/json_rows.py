"""One line of JSON Lines to one record, strictly: JSON as its standard has it, in UTF-8.

Nothing is guessed and nothing is lost: numbers keep their digits where they become text.
"""

import json
import re
from collections.abc import Callable
from typing import Any, NoReturn

from poolembed.io.policy import INVALID_UTF8

MAX_DEPTH = 100
"""Deepest nesting that is taken."""

_INTEGER_DIGITS = 640
_REPLACEMENT = "\ufffd"
_SURROGATE = re.compile("[\ud800-\udfff]")
_KIND_NAMES = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
    list: "a list",
    dict: "an object",
}


class RowError(Exception):
    """A line that does not make a row.

    Args:
        code: the stable code of the reject.
        message: the reason in words.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class JsonNumber(str):
    """A number as it was written, kept where no type holds it exactly."""

    __slots__ = ()


_KIND_NAMES[JsonNumber] = "a number"


def kind_name(value: object) -> str:
    """Return what a JSON value is, for messages (`a number`)."""
    return _KIND_NAMES[type(value)]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise RowError("duplicate_key", f"the key {twice!r} stands twice in one object")
    return record


def _no_constant(name: str) -> NoReturn:
    raise RowError("broken_json", f"{name} is not JSON")


def _integer(digits: str) -> int | JsonNumber:
    return int(digits) if len(digits) <= _INTEGER_DIGITS else JsonNumber(digits)


_DECODE: Callable[[str], Any] = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant
).decode
_DECODE_LONG: Callable[[str], Any] = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_integer
).decode
_DECODE_EXACT: Callable[[str], Any] = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_no_constant, parse_int=JsonNumber, parse_float=JsonNumber
).decode


def decoded(data: bytes, *, replace: bool) -> str:
    """Return bytes as text.

    Args:
        data: UTF-8, as it should be.
        replace: put U+FFFD for bytes that are not UTF-8.

    Raises:
        RowError: there are such bytes and they are not replaced.
    """
    try:
        return data.decode("utf-8", "replace" if replace else "strict")
    except UnicodeDecodeError as error:
        position = error.start
        raise RowError(INVALID_UTF8, f"byte {position + 1}, {data[position]:#04x}, is not UTF-8") from error


def parse_row(data: bytes, *, exact: bool, replace: bool = False) -> tuple[dict[str, Any], frozenset[str]]:
    """Parse one line.

    Args:
        data: the line, in UTF-8.
        exact: give every number as `JsonNumber`; integers too long for Python are given so anyway.
        replace: put U+FFFD for bytes that are not UTF-8.

    Returns:
        The record, and the keys in or below which lone surrogates were replaced by U+FFFD; all keys
        where bytes were.

    Raises:
        RowError: the line is not UTF-8 or not a JSON object, a key stands twice, or it nests too deep.
    """
    text = decoded(data, replace=replace)
    record = _decoded(text, exact=exact)
    if type(record) is not dict:
        raise RowError("not_an_object", f"the line holds {kind_name(record)}, not a JSON object")
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(record) > MAX_DEPTH:
        raise RowError("too_deep", f"nested more than {MAX_DEPTH} levels deep")
    if "\\ud" in text or "\\uD" in text:
        record, changed = _without_surrogates(record)
    else:
        changed = frozenset[str]()
    if replace and _REPLACEMENT in text and text.encode() != data:
        changed = frozenset(record)
    return record, changed


def _decoded(text: str, *, exact: bool) -> object:
    try:
        return (_DECODE_EXACT if exact else _DECODE)(text)
    except json.JSONDecodeError as error:
        what = error.msg.removesuffix(" at").lower()
        raise RowError("broken_json", f"not valid JSON: {what} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise RowError("too_deep", f"nested more than {MAX_DEPTH} levels deep") from error
    except ValueError:
        # Python refuses to read integers of several thousand digits; as text they are welcome.
        return _DECODE_LONG(text)


def _depth(record: object) -> int:
    depth, level = 0, [record]
    while level:
        depth += 1
        below: list[object] = []
        for value in level:
            children = value.values() if type(value) is dict else value if type(value) is list else ()
            below += [child for child in children if type(child) in (dict, list)]
        level = below
    return depth


def _without_surrogates(record: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    repaired = {_repair(key): _repair(value) for key, value in record.items()}
    if len(repaired) != len(record):
        raise RowError("duplicate_key", "two keys are the same once lone surrogates are replaced")
    changed = [
        new
        for (old, value), (new, clean) in zip(record.items(), repaired.items(), strict=True)
        if old != new or value != clean
    ]
    return repaired, frozenset(changed)


def _repair(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if type(value) is str:
        return _SURROGATE.sub(_REPLACEMENT, value)
    if type(value) is list:
        return [_repair(item) for item in value]
    if type(value) is dict:
        return {_repair(key): _repair(item) for key, item in value.items()}
    return value


def json_text(value: object) -> str:
    """Return a JSON value as compact JSON text, numbers with the digits they were written with."""
    if type(value) is JsonNumber:
        return str(value)
    if type(value) is list:
        return f"[{','.join(map(json_text, value))}]"
    if type(value) is dict:
        return f"{{{','.join(f'{json_text(key)}:{json_text(item)}' for key, item in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)
