"""Pairs of ids as lines of text: two columns, judgements (qrels) as BEIR and TREC write them, TREC runs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from poolembed.errors import InputError
from poolembed.io.chunk import EXCERPT_CHARACTERS, Reject
from poolembed.io.files import InputFile
from poolembed.io.lines import Line, numbered_lines
from poolembed.io.names import COMPRESSION_SUFFIXES

LINE_SUFFIXES = (".tsv", ".txt", ".run", ".trec", ".qrels")

_KINDS: Mapping[int, tuple[str, int]] = {
    2: ("pairs", 1),
    3: ("BEIR judgements", 1),
    4: ("TREC judgements", 2),
    6: ("a TREC run", 2),
}
"""Fields of a line -> what the file is, and the place of the document's id; the query's id is first."""

_FILLERS = ("0", "Q0")
"""What TREC's formats have between the two ids."""


class CandidateRow(NamedTuple):
    """What one row says: these documents may fit that query.

    Attributes:
        query: id of the query.
        documents: ids of the documents, in order.
        file: where the row stands.
        row: its number there.
    """

    query: str
    documents: tuple[str, ...]
    file: str
    row: int


def is_lines(path: str) -> bool:
    """Return whether a file is read as lines of text, by its name."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSION_SUFFIXES:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in LINE_SUFFIXES


def pair_lines(path: str, header: frozenset[str]) -> Iterator[CandidateRow | Reject]:
    """Yield the pairs of a file; what is between ids are tabs, or any white space where a line has no tab.

    The first line decides what the file holds:

        QUERY DOCUMENT                       pairs
        QUERY DOCUMENT SCORE                 BEIR's judgements
        QUERY 0 DOCUMENT RELEVANCE           TREC's judgements
        QUERY Q0 DOCUMENT RANK SCORE TAG     a TREC run

    Judgements count as pairs whatever they say, and order is that of the lines whatever ranks say.

    Args:
        path: the file; compressed or not.
        header: names of columns of ids; a first line that begins with one is no pair.

    Raises:
        InputError: the file cannot be read, or its first line is nothing of the kind.
    """
    file = InputFile(Path(path))
    reader: _LineReader | None = None
    for line in numbered_lines(file.label, file.open, blank=False):
        fields = _fields(line)
        if reader is None:
            reader = _LineReader.of(file.label, line, fields)
            if fields is not None and fields[0] in header:
                continue
        yield reader.row(line, fields)


@dataclass(frozen=True, slots=True)
class _LineReader:
    """Lines of one kind.

    Attributes:
        label: the file.
        num_fields: fields of every line.
    """

    label: str
    num_fields: int

    @classmethod
    def of(cls, label: str, line: Line, fields: list[str] | None) -> "_LineReader":
        reader = cls(label, len(fields or ()))
        if fields is None or reader.num_fields not in _KINDS or not reader.is_filled(fields):
            raise InputError(
                f"{label}:{line.number}: neither a pair of ids, nor judgements (qrels), nor a TREC run",
                "a line is QUERY DOCUMENT; or QUERY DOCUMENT SCORE; or QUERY 0 DOCUMENT RELEVANCE; or "
                "QUERY Q0 DOCUMENT RANK SCORE TAG",
            )
        return reader

    def is_filled(self, fields: list[str]) -> bool:
        """Whether a line has what TREC's formats have between the ids."""
        return self.num_fields < 4 or fields[1] in _FILLERS

    def row(self, line: Line, fields: list[str] | None) -> CandidateRow | Reject:
        """Return what a line says, or why it says nothing."""
        kind, place = _KINDS[self.num_fields]
        if fields is None:
            return self._reject(line, "invalid_utf8", "the line is too long, or not UTF-8")
        if len(fields) != self.num_fields or not self.is_filled(fields):
            message = f"the line has {len(fields)} fields and is no line of {kind}"
            return self._reject(line, "not_a_pair", message)
        query, document = fields[0], fields[place]
        if not query or not document:
            return self._reject(line, "null_id", "an id is empty")
        return CandidateRow(query, (document,), self.label, line.number)

    def _reject(self, line: Line, code: str, message: str) -> Reject:
        start = line.data[: 4 * EXCERPT_CHARACTERS].decode("utf-8", "replace").strip()
        return Reject(self.label, line.number, code, message, start[:EXCERPT_CHARACTERS])


def _fields(line: Line) -> list[str] | None:
    """Return the fields of a line; None where it is too long or not UTF-8."""
    try:
        text = line.data.decode("utf-8") if line.whole else None
    except UnicodeDecodeError:
        return None
    if text is None:
        return None
    if "\t" in text:
        return [field.strip() for field in text.rstrip("\r\n").split("\t")]
    return text.split()
