"""One JSON file of a checkpoint, read with the type of every value checked and its source remembered.

A wrong type is an error that names file and key; nothing is coerced, nothing has a default here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from poolembed.errors import ModelError

T_co = TypeVar("T_co", covariant=True)

USER = "user"
"""Source of whatever the user chose: option, environment, configuration file or `--set`."""

UNDECLARED = "architecture default (nothing declared)"
"""Source of what no file of the checkpoint says."""


@dataclass(frozen=True, slots=True)
class Declared(Generic[T_co]):
    """A value and who says so.

    Attributes:
        value: the value.
        source: `user`, `FILE: KEY`, or a default named as such.
    """

    value: T_co
    source: str


@dataclass(frozen=True, slots=True)
class Document:
    """The JSON object of one file; empty when the file does not exist.

    Attributes:
        name: the file relative to the model folder, as shown in messages and sources.
        data: its keys and values, with the user's changes already in place.
        origins: source of the keys that come from elsewhere, such as the user.
    """

    name: str
    data: Mapping[str, object]
    origins: Mapping[str, str] = field(default_factory=dict)

    def source(self, key: str) -> str:
        """Return who declares `key`."""
        return self.origins.get(key, f"{self.name}: {key}")

    def updated(self, values: Mapping[str, object], origin: str) -> "Document":
        """Return a copy in which `values` replace what the file says, on the word of `origin`."""
        return Document(self.name, {**self.data, **values}, {**self.origins, **dict.fromkeys(values, origin)})

    def declared(self, key: str) -> Declared[object] | None:
        """Return the value of `key` whatever its type; None when absent or null."""
        value = self.data.get(key)
        return None if value is None else Declared(value, self.source(key))

    def flag(self, key: str) -> Declared[bool] | None:
        """Return a boolean.

        Raises:
            ModelError: the value is something else.
        """
        found = self.declared(key)
        if found is None:
            return None
        if isinstance(found.value, bool):
            return Declared(found.value, found.source)
        raise self.mistyped(key, "true or false")

    def integer(self, key: str) -> Declared[int] | None:
        """Return a whole number; `512.0` counts as one, `true` does not.

        Raises:
            ModelError: the value is something else.
        """
        found = self.declared(key)
        if found is None:
            return None
        value = found.value
        if isinstance(value, float) and value.is_integer():
            return Declared(int(value), found.source)
        if isinstance(value, int) and not isinstance(value, bool):
            return Declared(value, found.source)
        raise self.mistyped(key, "a whole number")

    def text(self, key: str) -> Declared[str] | None:
        """Return a string.

        Raises:
            ModelError: the value is something else.
        """
        found = self.declared(key)
        if found is None:
            return None
        if isinstance(found.value, str):
            return Declared(found.value, found.source)
        raise self.mistyped(key, "a string")

    def strings(self, key: str) -> Declared[tuple[str, ...]] | None:
        """Return a list of strings.

        Raises:
            ModelError: the value is something else.
        """
        found = self.declared(key)
        if found is None:
            return None
        if isinstance(found.value, list) and all(isinstance(item, str) for item in found.value):
            return Declared(tuple(found.value), found.source)
        raise self.mistyped(key, "a list of strings")

    def integers(self, key: str) -> Declared[tuple[int, ...]] | None:
        """Return a list of whole numbers.

        Raises:
            ModelError: the value is something else.
        """
        found = self.declared(key)
        if found is None:
            return None
        if isinstance(found.value, list) and all(type(item) is int for item in found.value):
            return Declared(tuple(found.value), found.source)
        raise self.mistyped(key, "a list of whole numbers")

    def section(self, key: str) -> "Document":
        """Return a nested object; an empty document when it is absent or null.

        Raises:
            ModelError: the value is something else.
        """
        found = self.declared(key)
        if found is None:
            return Document(f"{self.name}: {key}", {})
        if not isinstance(found.value, dict):
            raise self.mistyped(key, "an object")
        inherited = dict.fromkeys(found.value, self.origins[key]) if key in self.origins else {}
        return Document(self.source(key), found.value, inherited)

    def entries(self, key: str) -> list["Document"]:
        """Return a list of objects, one document each; empty when it is absent or null.

        Raises:
            ModelError: the value is something else.
        """
        found = self.declared(key)
        if found is None:
            return []
        if isinstance(found.value, list) and all(isinstance(item, dict) for item in found.value):
            return [Document(self.source(key), item) for item in found.value]
        raise self.mistyped(key, "a list of objects")

    def mistyped(self, key: str, expected: str) -> ModelError:
        """Return the error for a value of the wrong type.

        Args:
            key: the key, which the document has.
            expected: what the value should be, in words.
        """
        return ModelError(
            f"{self.source(key)} is {self.data[key]!r}, expected {expected}",
            "correct the file, or override the key with --set",
        )


def read_json(path: Path, name: str) -> object:
    """Return the parsed content of a JSON file.

    Args:
        path: the file.
        name: its name in messages.

    Raises:
        ModelError: the file cannot be read or is not JSON.
    """
    try:
        return json.loads(read_text(path, name))
    except (json.JSONDecodeError, RecursionError) as error:
        raise ModelError(
            f"{name} cannot be read as JSON: {error}", "download the model again, the file may be cut"
        ) from error


def read_text(path: Path, name: str) -> str:
    """Return the content of a UTF-8 text file, without a byte order mark.

    Args:
        path: the file.
        name: its name in messages.

    Raises:
        ModelError: the file cannot be read or is no UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(
            f"{name} cannot be read: {error}", "check its permissions, or download the model again"
        ) from error


def read_document(folder: Path, name: str) -> Document:
    """Return the JSON object in `folder / name`; an empty document when there is no such file.

    Args:
        folder: the model folder.
        name: path of the file in it; also its name in messages.

    Raises:
        ModelError: the file is not JSON or not an object.
    """
    path = folder / name
    if not path.is_file():
        return Document(name, {})
    content = read_json(path, name)
    if not isinstance(content, dict):
        raise ModelError(f"{name} holds no JSON object", "download the model again, the file may be cut")
    return Document(name, content)
