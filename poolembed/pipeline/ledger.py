"""The account of a run's rows: none is lost, and no more are spoiled than the user allows."""

from collections import Counter
from collections.abc import Sequence

from poolembed.config import Budget, LimitConfig
from poolembed.errors import RejectBudgetError
from poolembed.io import Reject


class Ledger:
    """Counts rows as they come out, and stops the run as soon as a budget cannot be kept any more.

    A share is a share of all rows of the input, whose number is known, so it is judged as early as a
    count.

    Args:
        limits: the budgets; checked.
        num_rows: rows of the input.

    Attributes:
        num_rows: rows of the input.
        num_written: rows that came out with a result.
        num_rejected: rows that were refused.
        num_truncated: written rows that lost text.
    """

    def __init__(self, limits: LimitConfig, num_rows: int) -> None:
        self.num_rows = num_rows
        self._max_rejects = None if limits.max_rejects is None else Budget.parse(limits.max_rejects)
        self._max_truncated = None if limits.max_truncated is None else Budget.parse(limits.max_truncated)
        self._codes: Counter[str] = Counter()
        self._first: Reject | None = None
        self.num_written = self.num_rejected = self.num_truncated = 0

    @property
    def num_left(self) -> int:
        """Rows that have not come out yet."""
        return self.num_rows - self.num_written - self.num_rejected

    def add(self, num_written: int, rejects: Sequence[Reject], num_truncated: int) -> None:
        """Take the rows of a chunk.

        Args:
            num_written: rows with a result.
            rejects: the others.
            num_truncated: rows with a result that lost text.

        Raises:
            RejectBudgetError: more rows are rejected or truncated by now than all may be.
        """
        self.num_written += num_written
        self.num_rejected += len(rejects)
        self.num_truncated += num_truncated
        self._codes.update(reject.code for reject in rejects)
        self._first = self._first or next(iter(rejects), None)
        if self._max_rejects and not self._max_rejects.allows(self.num_rejected, self.num_rows):
            raise self._too_many_rejects(self._max_rejects)
        if self._max_truncated and not self._max_truncated.allows(self.num_truncated, self.num_rows):
            raise RejectBudgetError(
                f"{self.num_truncated:,} of {self.num_rows:,} rows lost text to the maximum length by now, "
                f"--max-truncated allows {self._max_truncated.text}",
                "choose a model that takes longer texts, --on-long windows, or another --max-truncated",
            )

    def close(self) -> None:
        """See that every row of the input came out or was refused.

        Raises:
            AssertionError: rows are missing or too many; a bug, so nothing may get its final name.
        """
        if self.num_left:
            raise AssertionError(
                f"{self.num_rows} rows in, but {self.num_written} rows out and {self.num_rejected} rejects"
            )

    def _too_many_rejects(self, budget: Budget) -> RejectBudgetError:
        assert self._first is not None
        codes = ", ".join(f"{count:,} {code}" for code, count in self._codes.most_common(3))
        first = self._first
        return RejectBudgetError(
            f"{self.num_rejected:,} of {self.num_rows:,} rows are rejected by now ({codes}), "
            f"--max-rejects allows {budget.text}",
            f"the first is {first.file}:{first.row}: {first.message}",
        )
