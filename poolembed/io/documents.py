"""The documents of one row: a list of strings, or of objects with a text and perhaps an id."""

from poolembed.io.json_rows import JsonNumber, RowError, kind_name

TEXT_KEY = "text"
ID_KEY = "id"


def documents_of(value: object, column: str) -> list[tuple[str, str]]:
    """Return (id, text) of each document; one without an id is called by its place, from 0.

    Args:
        value: what stands in the row.
        column: where, for messages.

    Raises:
        RowError: it is no list, or one of its elements has no text.
    """
    if value is None:
        raise RowError("null_text", f"the list in {column!r} is null")
    if not isinstance(value, list):
        raise RowError("not_a_list", f"{column!r} holds {kind_name(value)}, not a list of texts")
    return [_document(element, place, column) for place, element in enumerate(value)]


def _document(element: object, place: int, column: str) -> tuple[str, str]:
    name: object = None
    text = element
    if isinstance(element, dict):
        name, text = element.get(ID_KEY), element.get(TEXT_KEY)
    if type(text) is not str:
        raise RowError("not_a_string", f"document {place} in {column!r} has {kind_name(text)} for its text")
    if name is None:
        return str(place), text
    if not _is_id(name):
        raise RowError("bad_id", f"document {place} in {column!r} has an id that is no string and no integer")
    return str(name), text


def _is_id(name: object) -> bool:
    if isinstance(name, JsonNumber):
        return name.removeprefix("-").isdigit()
    return isinstance(name, str | int) and not isinstance(name, bool)
