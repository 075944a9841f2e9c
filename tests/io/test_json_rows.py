"""One line to one record: strict JSON, exact numbers, no lone surrogates."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.io.json_rows import MAX_DEPTH, JsonNumber, RowError, json_text, kind_name, parse_row

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def parse(text: str | bytes, *, exact: bool = False):
    return parse_row(text if isinstance(text, bytes) else text.encode(), exact=exact)


def code_of(text: str | bytes) -> str:
    with pytest.raises(RowError) as caught:
        parse(text)
    assert caught.value.message
    return caught.value.code


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=5), st.booleans())
def test_any_record_is_parsed_as_the_standard_library_does(record, ascii_only):
    line = json.dumps(record, ensure_ascii=ascii_only).encode("utf-8")
    assert parse(line) == (json.loads(line), frozenset())


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=5))
def test_json_text_of_an_exact_record_reads_back_as_the_record(record):
    parsed, _ = parse(json.dumps(record), exact=True)
    assert json.loads(json_text(parsed)) == record


@pytest.mark.parametrize(
    "number", ["1.10", "1E5", "-0", "0.1000000000000000055", "123456789012345678901234567890"]
)
def test_exact_numbers_keep_their_digits(number):
    record, _ = parse(f'{{"a": {number}, "b": [{{"c": {number}}}]}}', exact=True)
    assert record["a"] == JsonNumber(number)
    assert json_text(record["b"]) == f'[{{"c":{number}}}]'


def test_json_text_keeps_other_scripts_readable():
    assert json_text({"k": ["ü", None, True, "\u2028"]}) == '{"k":["ü",null,true,"\u2028"]}'


def test_an_integer_too_long_for_python_keeps_its_digits_and_leaves_the_others_alone():
    digits = "7" * 5000
    record, _ = parse(f'{{"huge": {digits}, "id": 12, "x": 1.5}}')
    assert record == {"huge": digits, "id": 12, "x": 1.5}
    assert type(record["huge"]) is JsonNumber
    assert type(record["id"]) is int


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 01}',
        '{"a": .5}',
        '{"a": 1} {"b": 2}',
        '{"a": "\x01"}',
        "nonsense",
        '{"a": "\\x"}',
    ],
)
def test_broken_json_is_told_with_its_place(line):
    with pytest.raises(RowError, match=r"at character \d+") as caught:
        parse(line)
    assert caught.value.code == "broken_json"


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_constants_that_only_python_knows_are_broken_json(constant):
    assert code_of(f'{{"a": [{constant}]}}') == "broken_json"


@pytest.mark.parametrize("line", ["1", '"text"', "[1]", "null", "true", "1.5"])
def test_a_line_that_is_no_object_says_what_it_is(line):
    with pytest.raises(RowError, match=kind_name(json.loads(line))) as caught:
        parse(line)
    assert caught.value.code == "not_an_object"


def test_a_key_that_stands_twice_is_not_settled_silently():
    assert code_of('{"a": 1, "b": {"x": 1, "y": 2, "x": 3}}') == "duplicate_key"


@pytest.mark.parametrize("data", [b'{"a": "\xff"}', b'{"a": "\xed\xa0\x80"}', b'{"a": "\xc3', b"\xe4\n"])
def test_bytes_that_are_not_utf_8_are_told_with_their_place(data):
    with pytest.raises(RowError, match=r"byte \d+, 0x") as caught:
        parse(data)
    assert caught.value.code == "invalid_utf8"


def test_nesting_is_taken_up_to_the_limit_and_refused_beyond():
    inner = MAX_DEPTH - 1
    assert parse('{"a": ' + "[" * inner + "]" * inner + "}")
    assert code_of('{"a": ' + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "}") == "too_deep"


def test_nesting_too_deep_for_the_parser_is_refused_alike():
    assert code_of('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}") == "too_deep"


def test_many_brackets_side_by_side_are_not_deep():
    record, _ = parse(json.dumps({"a": [[] for _ in range(1000)], "b": "[" * 1000}))
    assert len(record["a"]) == 1000


def test_lone_surrogates_are_replaced_everywhere_and_their_columns_named():
    record, repaired = parse(
        r'{"text": "a\ud800b", "n": {"k\uDC00": ["\udfff", 1]}, "ok": "c", "x\ud801": 1}'
    )
    assert record == {"text": "a\ufffdb", "n": {"k\ufffd": ["\ufffd", 1]}, "ok": "c", "x\ufffd": 1}
    assert repaired == {"text", "n", "x\ufffd"}


def test_a_pair_of_surrogates_is_one_character():
    assert parse(r'{"text": "\ud83d\ude00"}') == ({"text": "😀"}, frozenset())


def test_a_pair_in_the_wrong_order_is_two_lone_surrogates():
    assert parse(r'{"text": "\ude00\ud83d"}')[0] == {"text": "\ufffd\ufffd"}


def test_an_escaped_backslash_before_ud800_is_text():
    assert parse(r'{"text": "\\ud800"}') == ({"text": r"\ud800"}, frozenset())


def test_keys_that_become_equal_by_replacing_are_refused():
    assert code_of(r'{"\ud800": 1, "\ud801": 2}') == "duplicate_key"
