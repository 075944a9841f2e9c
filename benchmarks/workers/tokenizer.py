"""The raw rate of `tokenizers`: `encode_batch` and nothing else. Its array is the rows' numbers of tokens."""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from benchmarks.workers.protocol import Compute, Rows, arguments, serve


def max_length(folder: Path) -> int:
    """Return the most tokens of a row: what sentence-transformers was told, else the model's positions."""
    for name, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("config.json", "max_position_embeddings"),
    ):
        path = folder / name
        value = json.loads(path.read_text("utf-8")).get(key) if path.is_file() else None
        if value:
            return int(value)
    raise ValueError(f"{folder} does not say how long a row may be")


def load() -> tuple[Compute, dict[str, str]]:
    """Return `encode_batch` with the model's truncation and without padding."""
    told = arguments()
    tokenizer = Tokenizer.from_file(str(told.model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length(told.model))

    def compute(rows: Rows, batch_size: int | None) -> list[Any]:
        del batch_size
        encodings: list[Any] = tokenizer.encode_batch(
            [tuple(row) if told.kind == "pairs" else row for row in rows]
        )
        return encodings

    return compute, {"tokenizers": version("tokenizers")}


def as_array(encodings: list[Any]) -> npt.NDArray[np.int64]:
    """Return the number of tokens of each row."""
    return np.asarray([len(encoding) for encoding in encodings], dtype=np.int64)


if __name__ == "__main__":
    serve(load, as_array)
