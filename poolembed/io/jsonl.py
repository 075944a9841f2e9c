"""JSON Lines: one object a line, blank lines between them allowed."""

from collections.abc import Iterator
from typing import Any

from poolembed.io.files import InputFile
from poolembed.io.json_columns import JsonColumns
from poolembed.io.json_rows import parse_row
from poolembed.io.lines import MAX_LINE_BYTES, Line, numbered_lines


class JsonlSource:
    """One file of JSON Lines as records.

    Args:
        file: where it is.
        columns: what has been seen in all JSONL files; the survey adds to it.
        max_bytes: a longer line is refused.

    Attributes:
        file: where it is.
        columns: see there.
        tells_rows: False: a row is a line.
        max_bytes: see there.
    """

    tells_rows = False

    def __init__(self, file: InputFile, columns: JsonColumns, max_bytes: int = MAX_LINE_BYTES) -> None:
        self.file = file
        self.columns = columns
        self.max_bytes = max_bytes

    def records(self) -> Iterator[Line]:
        """Yield the lines that are not blank."""
        return numbered_lines(self.file.label, self.file.open, self.max_bytes, blank=False)

    def parse(self, line: Line, *, exact: bool, replace: bool) -> tuple[dict[str, Any], frozenset[str]]:
        """Return the JSON object in `line`; `exact` and `replace` are as in `parse_row`."""
        return parse_row(line.data, exact=exact, replace=replace)
