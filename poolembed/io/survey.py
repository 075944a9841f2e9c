"""The first look at all files: which reader is for which, how many rows, which columns of which types."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from poolembed.config import InputConfig, InputFormat
from poolembed.errors import ConfigError
from poolembed.io.arrow import ArrowBatches
from poolembed.io.delimited import DelimitedSource
from poolembed.io.files import InputFile, unpacked
from poolembed.io.json_columns import JsonColumns
from poolembed.io.jsonl import JsonlSource
from poolembed.io.parquet import ParquetBatches
from poolembed.io.plan import Columns, Reader
from poolembed.io.policy import RowPolicy
from poolembed.io.records import RecordReader
from poolembed.io.table_reader import BatchFile, TableReader
from poolembed.io.text_lines import TextSource

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_BATCHES: dict[InputFormat, Callable[[InputFile], BatchFile]] = {
    "parquet": ParquetBatches,
    "arrow": ArrowBatches,
}


def survey(
    files: Sequence[InputFile], config: InputConfig, opened: ExitStack
) -> tuple[list[Reader], list[Columns]]:
    """Look at all files, as far as the limit of rows goes.

    Args:
        files: the files in reading order; standard input is spooled.
        config: how they are read.
        opened: what closes copies of compressed files.

    Returns:
        A surveyed reader of each file, and the columns: those of all JSON Lines files together, where the
        first of these stands, and those of each other file.

    Raises:
        InputError: a file cannot be read, or a row stops the run.
        ConfigError: a delimiter is chosen and no file has one.
    """
    if config.delimiter is not None and all(file.format not in _DELIMITERS for file in files):
        raise ConfigError("--delimiter is for CSV and TSV, and no input is one", "say --input-format csv")
    policy = RowPolicy.of(config)
    json_columns = JsonColumns()
    readers: list[Reader] = []
    parts: list[Columns | None] = []
    json_label = None
    left = config.limit
    for file in files:
        if left == 0:
            break
        reader: Reader
        if file.format in _BATCHES:
            tables = _tables(file, left, opened)
            reader = tables
            parts.append(tables.describe())
        elif file.format == "jsonl":
            reader = _surveyed(RecordReader(JsonlSource(file, json_columns)), left, policy)
            if json_label is None:
                json_label = file.label
                parts.append(None)
        else:
            source = _strings(file, config)
            reader = _surveyed(RecordReader(source), left, policy)
            parts.append(source.columns.describe(file.label))
        readers.append(reader)
        left = None if left is None else left - reader.num_rows
    return readers, [json_columns.describe(json_label or "") if part is None else part for part in parts]


def _tables(file: InputFile, limit: int | None, opened: ExitStack) -> TableReader:
    file = unpacked(file, opened)
    return TableReader(file, _BATCHES[file.format](file), limit)


def _strings(file: InputFile, config: InputConfig) -> TextSource | DelimitedSource:
    if file.format == "text":
        return TextSource(file)
    return DelimitedSource(file, config.delimiter or _DELIMITERS[file.format])


def _surveyed(reader: RecordReader, limit: int | None, policy: RowPolicy) -> RecordReader:
    reader.survey(limit, policy)
    return reader
