"""The values of a spec while it is put together."""

from dataclasses import dataclass, field
from typing import Any

from poolembed.runner.spec.document import Declared


@dataclass(slots=True)
class Draft:
    """The values of a spec while it is put together, and who declared each.

    Attributes:
        values: by field of ModelSpec.
        sources: by setting.
        warnings: what the user should know.
    """

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def put(self, name: str, declared: Declared[Any], setting: str | None = None) -> None:
        """Store a value under a field's name, and its source under the name of the setting.

        Args:
            name: field of ModelSpec.
            declared: value and source.
            setting: name of the setting in reports; None where it is that of the field.
        """
        self.values[name] = declared.value
        self.sources[setting or name] = declared.source
