"""When a run must end, and how much may go wrong in it."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Self

from poolembed.errors import ConfigError

_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_BUDGET = re.compile(r"(\d+)|(\d+(?:\.\d+)?)%")


@dataclass(frozen=True, slots=True)
class Budget:
    """How many rows may be spoiled.

    Attributes:
        text: as the user wrote it: `100`, `0.5%`.
        count: at most so many rows; None where it is a share.
        share: at most so large a part of all rows, in [0, 1]; None where it is a count.
    """

    text: str
    count: int | None
    share: Fraction | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a budget.

        Args:
            text: `N` or `P%`.

        Raises:
            ConfigError: it is neither, or over 100 %.
        """
        found = _BUDGET.fullmatch(text)
        if found is None:
            raise ConfigError(f"{text!r} is neither a number of rows nor a percentage (100, 0.5%)")
        if found[1] is not None:
            return cls(text, int(found[1]), None)
        share = Fraction(found[2]) / 100
        if share > 1:
            raise ConfigError(f"{text!r} is more than all rows")
        return cls(text, None, share)

    def allows(self, num_spoiled: int, num_rows: int) -> bool:
        """Return whether `num_spoiled` of the `num_rows` rows of the input may be spoiled."""
        if self.count is not None:
            return num_spoiled <= self.count
        assert self.share is not None
        return num_spoiled <= self.share * num_rows


def parse_deadline(text: str, now: datetime) -> datetime:
    """Return the moment that a deadline means.

    Args:
        text: `HH:MM`, the next such time of the clock of `now`; or a duration from `now` on, in hours,
            minutes and seconds (`90m`, `2h30m`, `45s`).
        now: the present, local time.

    Raises:
        ConfigError: it is neither, or a duration of nothing.
    """
    if clock := _TIME.fullmatch(text):
        today = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        return today if today > now else today + timedelta(days=1)
    found = _DURATION.fullmatch(text)
    hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    if not (hours or minutes or seconds):
        raise ConfigError(f"{text!r} is neither a time nor a duration (06:00, 90m, 2h30m, 45s)")
    try:
        return now + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError as error:
        raise ConfigError(f"{text!r} is later than any calendar goes") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitConfig:
    """When a run must end, and how much may go wrong in it; none of it changes a result.

    Attributes:
        max_rejects: most rows that may be rejected, `N` or `P%` of all rows.
        max_truncated: most rows that may lose text to the maximum length, likewise.
        deadline: when to stop with what is done, `HH:MM` or a duration.
    """

    max_rejects: str | None = None
    max_truncated: str | None = None
    deadline: str | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = []
        for option, text in (("--max-rejects", self.max_rejects), ("--max-truncated", self.max_truncated)):
            if text is not None:
                try:
                    Budget.parse(text)
                except ConfigError as error:
                    problems.append(f"{option}: {error.message}")
        if self.deadline is not None:
            try:
                parse_deadline(self.deadline, datetime(2000, 1, 1))
            except ConfigError as error:
                problems.append(f"--deadline: {error.message}")
        return problems
