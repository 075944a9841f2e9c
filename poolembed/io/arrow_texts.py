"""Arrow arrays of strings of every kind, and texts that may not be UTF-8 in them."""

import pyarrow as pa


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of an Arrow type are strings."""
    if isinstance(kind, pa.BaseExtensionType):
        return is_text(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def plain(array: pa.Array) -> pa.Array:
    """Return an array of texts of any kind as large_string; all nulls for the null type."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_string())


def is_utf8(array: pa.Array) -> bool:
    """Return whether every value of an array of texts is UTF-8."""
    try:
        plain(array).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def texts_of(array: pa.Array, errors: str = "strict") -> list[str | None]:
    """Return the values of an array of texts.

    Args:
        array: strings of any kind.
        errors: what becomes of bytes that are not UTF-8, as in `bytes.decode`.

    Raises:
        UnicodeDecodeError: there are such bytes and `errors` is `strict`.
    """
    if errors == "strict":
        return list(plain(array).to_pylist())
    values = plain(array).cast(pa.large_binary()).to_pylist()
    return [None if value is None else value.decode("utf-8", errors) for value in values]


def replaced(array: pa.Array) -> pa.Array:
    """Return an array of texts of the same type, in which bytes that are not UTF-8 are U+FFFD."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, replaced(array.storage))
    texts = pa.array(texts_of(array, errors="replace"), pa.large_string())
    if pa.types.is_dictionary(kind):
        return texts.dictionary_encode().cast(kind)
    return texts.cast(kind)
