import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec.document import Declared, Document, read_document

DOCUMENT = Document(
    "config.json",
    {
        "yes": True,
        "size": 8,
        "whole": 512.0,
        "half": 0.5,
        "name": "bert",
        "names": ["a", "b"],
        "sizes": [1, 2],
        "nothing": None,
        "nested": {"inner": 1},
        "objects": [{"id": 1}],
    },
)


@pytest.mark.parametrize(
    ("getter", "key", "value"),
    [
        ("flag", "yes", True),
        ("integer", "size", 8),
        ("integer", "whole", 512),
        ("text", "name", "bert"),
        ("strings", "names", ("a", "b")),
        ("integers", "sizes", (1, 2)),
        ("declared", "half", 0.5),
    ],
)
def test_a_value_of_the_right_type_comes_with_its_source(getter, key, value):
    assert getattr(DOCUMENT, getter)(key) == Declared(value, f"config.json: {key}")


@pytest.mark.parametrize("getter", ["flag", "integer", "text", "strings", "integers", "declared"])
@pytest.mark.parametrize("key", ["nothing", "absent"])
def test_null_counts_as_absent(getter, key):
    assert getattr(DOCUMENT, getter)(key) is None


@pytest.mark.parametrize(
    ("getter", "key"),
    [
        ("flag", "size"),
        ("integer", "yes"),
        ("integer", "half"),
        ("integer", "name"),
        ("text", "size"),
        ("strings", "sizes"),
        ("strings", "name"),
        ("integers", "names"),
        ("integers", "size"),
        ("section", "names"),
        ("entries", "names"),
        ("entries", "name"),
    ],
)
def test_a_value_of_the_wrong_type_is_an_error_with_file_and_key(getter, key):
    with pytest.raises(ModelError, match=rf"config\.json: {key} is .*expected"):
        getattr(DOCUMENT, getter)(key)


def test_a_section_keeps_the_path_of_its_keys():
    assert DOCUMENT.section("nested").integer("inner") == Declared(1, "config.json: nested: inner")
    assert DOCUMENT.section("absent").data == {}
    assert [entry.integer("id").value for entry in DOCUMENT.entries("objects")] == [1]
    assert DOCUMENT.entries("absent") == []


def test_changed_values_carry_their_origin_even_inside_a_section():
    changed = DOCUMENT.updated({"size": 9, "nested": {"inner": 2}}, "user")
    assert changed.integer("size") == Declared(9, "user")
    assert changed.section("nested").integer("inner") == Declared(2, "user")
    assert changed.text("name") == Declared("bert", "config.json: name")
    assert DOCUMENT.integer("size").value == 8


def test_a_missing_file_is_an_empty_document(tmp_path):
    assert read_document(tmp_path, "config.json").data == {}


@pytest.mark.parametrize("content", ["{", "", '{"a": }', "\ufeff{", "[" * 100_000])
def test_a_damaged_file_is_an_error_with_its_name(tmp_path, content):
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=r"^config\.json cannot be read as JSON"):
        read_document(tmp_path, "config.json")


def test_bytes_that_are_no_text_are_an_error(tmp_path):
    (tmp_path / "config.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ModelError, match=r"^config\.json cannot be read: "):
        read_document(tmp_path, "config.json")


def test_a_byte_order_mark_is_no_damage(tmp_path):
    (tmp_path / "config.json").write_text('\ufeff{"a": 1}', encoding="utf-8")
    assert read_document(tmp_path, "config.json").data == {"a": 1}


def test_a_file_that_holds_no_object_is_an_error(tmp_path):
    (tmp_path / "config.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(ModelError, match=r"config\.json holds no JSON object"):
        read_document(tmp_path, "config.json")
