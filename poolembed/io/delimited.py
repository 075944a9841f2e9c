"""CSV and TSV: a header, then rows of cells that are strings and nothing else.

Quotes are those of RFC 4180: a cell that begins with `"` ends at the next single `"`, a doubled one is a
quote, and line ends and delimiters in between belong to the cell. A quote within a bare cell is a
character like any other. Blank lines between rows are passed over.
"""

from collections.abc import Iterator
from typing import Any

from poolembed.errors import InputError
from poolembed.io.files import InputFile
from poolembed.io.json_rows import RowError, decoded
from poolembed.io.lines import MAX_LINE_BYTES, Line, numbered_lines
from poolembed.io.string_columns import StringColumns

QUOTE = '"'
_BROKEN = "broken_csv"


class DelimitedSource:
    """One file of delimited cells as records.

    Args:
        file: where it is.
        delimiter: what stands between cells; one character.
        max_bytes: a longer row is refused.

    Attributes:
        file: where it is.
        columns: those of the header; none where the file is empty.
        tells_rows: True: a cell may hold line ends.
        max_bytes: see there.

    Raises:
        InputError: the header cannot be read, or names a column twice.
    """

    tells_rows = True

    def __init__(self, file: InputFile, delimiter: str, max_bytes: int = MAX_LINE_BYTES) -> None:
        self.file = file
        self.max_bytes = max_bytes
        self._delimiter = delimiter
        self._names = self._header()
        self.columns = StringColumns(self._names)

    def _header(self) -> list[str]:
        line = next(self._lines(), None)
        if line is None:
            return []
        try:
            names = cells_of(decoded(line.data, replace=False), self._delimiter)
        except RowError as error:
            raise InputError(
                f"{self.file.label}:{line.number}: the header cannot be read: {error.message}"
            ) from error
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{self.file.label}: two columns are named {twice!r}", "rename one of them")
        return names

    def _lines(self) -> Iterator[Line]:
        lines = numbered_lines(self.file.label, self.file.open, self.max_bytes)
        framed = _framed(lines, self._delimiter, self.max_bytes)
        return (line for line in framed if line.data.strip(b"\r\n"))

    def records(self) -> Iterator[Line]:
        """Yield the bytes of every row after the header, under the number of its first line."""
        lines = self._lines()
        next(lines, None)
        return lines

    def parse(self, line: Line, *, exact: bool, replace: bool) -> tuple[dict[str, Any], frozenset[str]]:
        """Return the cells of `line` by column; `replace` as in `RecordSource`, `exact` is for numbers.

        Raises:
            RowError: they cannot be told apart, or are more or fewer than the header names.
        """
        text = decoded(line.data, replace=replace)
        cells = cells_of(text, self._delimiter)
        if len(cells) != len(self._names):
            raise RowError(
                "ragged_row", f"a row of {len(cells)} cells, where the header has {len(self._names)}"
            )
        changed = replace and "\ufffd" in text and text.encode() != line.data
        return dict(zip(self._names, cells, strict=True)), frozenset(self._names if changed else ())


def cells_of(text: str, delimiter: str) -> list[str]:
    """Return the cells of one row.

    Args:
        text: the row with its line end.
        delimiter: what stands between cells.

    Raises:
        RowError: a quote is not closed, or followed by text; or a bare cell holds a carriage return, which
            some programs take for the end of a row.
    """
    text = text.removesuffix("\n").removesuffix("\r")
    if QUOTE not in text:
        if "\r" in text:
            raise RowError(_BROKEN, "a carriage return stands outside of quotes")
        return text.split(delimiter)
    cells, start = [], 0
    while start <= len(text):
        cell, stop = _cell(text, start, delimiter)
        cells.append(cell)
        start = stop + len(delimiter)
    return cells


def _cell(text: str, start: int, delimiter: str) -> tuple[str, int]:
    """Return the cell that begins at `start`, and where it ends."""
    if not text.startswith(QUOTE, start):
        stop = text.find(delimiter, start)
        stop = len(text) if stop < 0 else stop
        if "\r" in text[start:stop]:
            raise RowError(_BROKEN, "a carriage return stands outside of quotes")
        return text[start:stop], stop
    close = _closing_quote(text, start + 1)
    if close < 0:
        raise RowError(_BROKEN, "a quote is opened and never closed")
    stop = close + 1
    if stop < len(text) and not text.startswith(delimiter, stop):
        raise RowError(_BROKEN, "text follows a closing quote")
    return text[start + 1 : close].replace(QUOTE * 2, QUOTE), stop


def _closing_quote(text: str, start: int) -> int:
    while (at := text.find(QUOTE, start)) >= 0 and text.startswith(QUOTE, at + 1):
        start = at + 2
    return at


def _framed(lines: Iterator[Line], delimiter: str, max_bytes: int) -> Iterator[Line]:
    """Yield the lines of each row as one; what is longer than `max_bytes` loses its rest."""
    # In Latin-1 a character is a byte, so that quotes are found without knowing what stands between.
    mark = delimiter.encode().decode("latin-1")
    first, data, whole = 0, bytearray(), True
    for line in lines:
        if not first and b'"' not in line.data:
            yield line
            continue
        inside = _ends_in_quotes(line.data.decode("latin-1"), mark, inside=first > 0)
        whole = whole and line.whole and len(data) + len(line.data) <= max_bytes
        if whole or not data:
            data += line.data
        first = first or line.number
        if not inside:
            yield Line(first, bytes(data), whole)
            first, data, whole = 0, bytearray(), True
    if first:
        yield Line(first, bytes(data), whole)


def _ends_in_quotes(line: str, delimiter: str, *, inside: bool) -> bool:
    """Return whether a line ends within quotes, given whether it begins there."""
    start = 0
    while True:
        if not inside and line.startswith(QUOTE, start):
            inside, start = True, start + 1
        if inside:
            start = _closing_quote(line, start) + 1
            if not start:
                return True
            inside = False
        start = line.find(delimiter, start) + len(delimiter)
        if start < len(delimiter):
            return False
