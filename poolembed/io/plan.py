"""What the readers of all files agree on, and how each of them describes its columns."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from poolembed.errors import InputError
from poolembed.io.chunk import Reject
from poolembed.io.pieces import Piece


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """What is read from every file.

    Attributes:
        schema: the kept columns, in order, with the types of the output.
        fields: role name -> column with its text.
        lists: the roles among them whose columns hold lists of texts.
    """

    schema: pa.Schema
    fields: dict[str, str]
    lists: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that one Parquet file, or all JSONL files together, can give.

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
        """Return the first row that the plan would refuse, reading no more than needed to know."""
        ...

    def pieces(self, plan: ReadPlan) -> Iterator[Piece]:
        """Yield the rows in order."""
        ...


def refused(reject: Reject) -> InputError:
    """Return the error that stops the run for a row."""
    return InputError(
        f"{reject.file}:{reject.row}: {reject.message}",
        "correct the row, or let --on-error skip set such rows aside",
    )


def changed(label: str) -> InputError:
    """Return the error for a file that is no longer what the survey saw."""
    return InputError(
        f"{label}: changed while it was being read", "read a copy, or wait until it is complete"
    )
