"""What becomes of rows that are not as they should be: the user's choices, by the code of the reason."""

from dataclasses import dataclass
from typing import Self

from poolembed.config import InputConfig, OnBadText, OnEmpty, OnError, OnNull

NULL_TEXT = "null_text"
MISSING_FIELD = "missing_field"
EMPTY_TEXT = "empty_text"
LONE_SURROGATE = "lone_surrogate"
INVALID_UTF8 = "invalid_utf8"
DUPLICATE_ID = "duplicate_id"

_OPTION_OF = {
    NULL_TEXT: "on_null",
    MISSING_FIELD: "on_null",
    EMPTY_TEXT: "on_empty",
    LONE_SURROGATE: "on_bad_text",
    INVALID_UTF8: "on_bad_text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPolicy:
    """The user's choices; attributes as in `InputConfig`."""

    on_error: OnError = "fail"
    on_null: OnNull | None = None
    on_empty: OnEmpty = "embed"
    on_bad_text: OnBadText | None = None

    @classmethod
    def of(cls, config: InputConfig) -> Self:
        """Return the choices among all that `config` says of the input."""
        return cls(
            on_error=config.on_error,
            on_null=config.on_null,
            on_empty=config.on_empty,
            on_bad_text=config.on_bad_text,
        )

    @property
    def may_stop(self) -> bool:
        """Whether some kind of row stops the run."""
        return self.on_error == "fail" or "fail" in (self.on_null, self.on_empty, self.on_bad_text)

    @property
    def refuses_whole_texts(self) -> bool:
        """Whether a row is refused though its text is a string: for what the string holds."""
        return self.on_empty in ("fail", "reject") or self.on_bad_text in ("fail", "reject")

    @property
    def replaces_bytes(self) -> bool:
        """Whether bytes that are not UTF-8 become U+FFFD."""
        return self.on_bad_text == "replace"

    @property
    def refuses_surrogates(self) -> bool:
        """Whether a row with a lone surrogate is refused."""
        return self.on_bad_text in ("fail", "reject")

    def stops(self, code: str) -> bool:
        """Return whether a row refused with `code` stops the run; else it goes to the rejects."""
        if code == DUPLICATE_ID:
            return False
        name = _OPTION_OF.get(code)
        choice = None if name is None else getattr(self, name)
        return choice == "fail" if choice is not None else self.on_error == "fail"


def remedy(code: str) -> str:
    """Return what a user can do about a row refused with `code`."""
    name = _OPTION_OF.get(code)
    other = "" if name is None else f" (--{name.replace('_', '-')} is for this kind alone)"
    return f"correct the row, or let --on-error skip set such rows aside{other}"
