"""What the readers of all files agree on, and how each of them describes its columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import pyarrow as pa

from poolembed.errors import InputError
from poolembed.io.chunk import Reject
from poolembed.io.pieces import Piece
from poolembed.io.policy import RowPolicy, remedy


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What is read from every file.

    Attributes:
        schema: the kept columns, in order, with the types of the output.
        fields: role name -> column with its text.
        lists: the roles among them whose columns hold lists of texts.
        composed: whether the columns make up one text (a template), which is empty only where all are.
        id_column: the column with the name of each row; None where there is none.
        policy: what becomes of rows that are not as they should be.
    """

    schema: pa.Schema
    fields: dict[str, str]
    lists: frozenset[str] = frozenset()
    composed: bool = False
    id_column: str | None = None
    policy: RowPolicy = field(default_factory=RowPolicy)

    @property
    def columns(self) -> frozenset[str]:
        """Every column that must be read."""
        own = () if self.id_column is None else (self.id_column,)
        return frozenset((*self.schema.names, *self.fields.values(), *own))

    def texts_only(self) -> "ReadPlan":
        """Return the same plan without the columns that are only kept."""
        return replace(self, schema=pa.schema([]))

    def is_empty(self, texts: Sequence[str]) -> bool:
        """Return whether a row has nothing to compute.

        Args:
            texts: its texts, lists left out.
        """
        blank = [not text or text.isspace() for text in texts]
        return all(blank) if self.composed else any(blank)


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that one file, or all JSONL files together, can give.

    Attributes:
        label: name of the file in messages.
        schema: the columns; of type null where nothing but nulls was seen.
        texts: columns that hold strings and nothing else but nulls.
        usable: columns in which at least some value may be a text.
        lists: columns in which at least some value may be a list of texts.
        may_miss: whether a row, and so the whole file, may lack a column.
    """

    label: str
    schema: pa.Schema
    texts: frozenset[str]
    usable: frozenset[str]
    lists: frozenset[str]
    may_miss: bool


class Reader(Protocol):
    """A surveyed file: rows are counted, types are known, nothing is held in memory.

    Attributes:
        label: name of the file in messages.
        num_rows: rows it will yield, good or refused.
    """

    label: str
    num_rows: int

    def first_problem(self, plan: ReadPlan) -> Reject | None:
        """Return the first row that would stop the run, reading no more than needed to know."""
        ...

    def pieces(self, plan: ReadPlan) -> Iterator[Piece]:
        """Yield the rows in order."""
        ...


def refused(reject: Reject) -> InputError:
    """Return the error that stops the run for a row."""
    return InputError(
        f"{reject.file}:{reject.row}: {reject.message}",
        remedy(reject.code),
    )


def changed(label: str) -> InputError:
    """Return the error for a file that is no longer what the survey saw."""
    return InputError(
        f"{label}: changed while it was being read", "read a copy, or wait until it is complete"
    )
