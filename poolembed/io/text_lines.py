"""Plain text: a row for every line, so that row and line have the same number; blank lines are rows."""

from collections.abc import Iterator
from typing import Any

from poolembed.io.files import InputFile
from poolembed.io.json_rows import decoded
from poolembed.io.lines import MAX_LINE_BYTES, Line, numbered_lines
from poolembed.io.string_columns import StringColumns

TEXT_COLUMN = "text"


class TextSource:
    """One file of plain text as records of one column.

    Args:
        file: where it is.
        max_bytes: a longer line is refused.

    Attributes:
        file: where it is.
        columns: the column `text`.
        tells_rows: False: a row is a line.
        max_bytes: see there.
    """

    tells_rows = False

    def __init__(self, file: InputFile, max_bytes: int = MAX_LINE_BYTES) -> None:
        self.file = file
        self.columns = StringColumns([TEXT_COLUMN])
        self.max_bytes = max_bytes

    def records(self) -> Iterator[Line]:
        """Yield every line."""
        return numbered_lines(self.file.label, self.file.open, self.max_bytes)

    def parse(self, line: Line, *, exact: bool, replace: bool) -> tuple[dict[str, Any], frozenset[str]]:
        """Return `line` without its end, which is a line feed with or without a carriage return.

        `replace` is as in `RecordSource`, `exact` is for numbers.
        """
        text = decoded(line.data.removesuffix(b"\n").removesuffix(b"\r"), replace=replace)
        changed = replace and "\ufffd" in text and text.encode() not in line.data
        return {TEXT_COLUMN: text}, frozenset([TEXT_COLUMN] if changed else [])
