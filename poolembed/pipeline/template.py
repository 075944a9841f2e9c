r"""Texts made of several columns: `{title}\n{text}`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Self

from poolembed.errors import ConfigError
from poolembed.io import TextRole

_ESCAPES = {r"\n": "\n", r"\t": "\t"}


@dataclass(frozen=True, slots=True)
class Template:
    r"""Columns and the text between them.

    Attributes:
        text: as the user wrote it.
        parts: text before each column, and the column; the last part may have no column.
    """

    text: str
    parts: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        r"""Read a template.

        Args:
            text: text with names of columns in braces; `\n` and `\t` stand for line end and tabulator,
                `{{` and `}}` for braces.

        Raises:
            ConfigError: braces do not match, or something but a name stands between them.
        """
        unescaped = text
        for written, meant in _ESCAPES.items():
            unescaped = unescaped.replace(written, meant)
        try:
            parsed = list(Formatter().parse(unescaped))
        except ValueError as error:
            raise ConfigError(f"--template {text!r}: {error}", "braces in the text are {{ and }}") from error
        for _, name, form, conversion in parsed:
            if name == "" or form or conversion:
                raise ConfigError(
                    f"--template {text!r}: between braces stands the name of a column and nothing else"
                )
        template = cls(text, tuple((before, name) for before, name, _, _ in parsed))
        if not template.roles:
            raise ConfigError(f"--template {text!r} names no column", "write it as {column}")
        return template

    @property
    def roles(self) -> tuple[TextRole, ...]:
        """The columns, each once, as texts that every row must bring."""
        names = dict.fromkeys(name for _, name in self.parts if name is not None)
        return tuple(TextRole(name, (name,), is_column=True) for name in names)

    def fill(self, texts: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the text of every row.

        Args:
            texts: the columns of `roles`, all of one length.
        """
        num_rows = len(next(iter(texts.values())))
        return [
            "".join(before + ("" if name is None else texts[name][row]) for before, name in self.parts)
            for row in range(num_rows)
        ]
