"""Small inputs, and whole inputs read at once."""

import json
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from poolembed.config import InputConfig
from poolembed.io import (
    Reject,
    RowChunk,
    Sink,
    Source,
    TextRole,
    open_job_folder,
    open_sink,
    open_source,
    plan_output,
    result_table,
    text_keys,
)

TEXT = TextRole("text", ("text",), only_string_column=True)


@dataclass
class Whole:
    """All chunks of an input put together."""

    chunks: list[RowChunk]
    schema: pa.Schema
    num_rows: int
    field: str

    @property
    def table(self) -> pa.Table:
        return (
            pa.concat_tables([chunk.table for chunk in self.chunks])
            if self.chunks
            else self.schema.empty_table()
        )

    @property
    def texts(self) -> list[str]:
        return [text for chunk in self.chunks for text in chunk.texts["text"]]

    @property
    def rejects(self) -> list[Reject]:
        return [reject for chunk in self.chunks for reject in chunk.rejects]

    @property
    def num_replaced(self) -> int:
        return sum(chunk.num_replaced for chunk in self.chunks)


@dataclass
class Writing:
    """An input and an output that are open."""

    source: Source
    sink: Sink
    results: list

    def write(self, chunk: RowChunk, data: dict) -> None:
        self.sink.write(chunk, result_table(self.results, data), text_keys(chunk.texts))


@contextmanager
def writing(inputs, output, results, metadata=None):
    """Open an input, and an output that gets results of all its rows."""
    with (
        open_job_folder(plan_output(output, inputs, "embed")) as folder,
        open_source(inputs, [TEXT]) as source,
    ):
        folder.check()
        folder.begin({}, results)
        with open_sink(folder, source.schema, results, metadata or {}) as sink:
            yield Writing(source, sink, results)


@pytest.fixture
def write(tmp_path):
    """Write a JSON Lines file: dicts as JSON, strings and bytes as they are."""

    def write(name: str, *lines: object) -> Path:
        data = b""
        for line in lines:
            text = line if isinstance(line, str | bytes) else json.dumps(line, ensure_ascii=False)
            data += (text if isinstance(text, bytes) else text.encode("utf-8")) + b"\n"
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return write


@pytest.fixture
def read():
    """Read whole inputs; keyword arguments are fields of InputConfig."""

    def read(*paths: Path | str, max_rows: int = 1000, max_bytes: int = 2**20, stdin=None, **config) -> Whole:
        inputs = InputConfig(paths=tuple(str(path) for path in paths), **config)
        with open_source(inputs, [TEXT], stdin) as source:
            chunks = list(source.chunks(max_rows, max_bytes))
            return Whole(chunks, source.schema, source.num_rows, source.fields["text"])

    return read
