"""Operations on texts that a Python program hands over, chunk by chunk and checked."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from poolembed.config import ModelConfig, PoolerConfig, TaskConfig
from poolembed.errors import ConfigError, InputError
from poolembed.model.operation import Operation, Outcome
from poolembed.results import ColumnData

C = TypeVar("C", bound=ModelConfig | TaskConfig)

CHUNK_TEXTS = 8192
"""Texts held and sorted by length together."""


def chunks_of(texts: Iterable[str], max_texts: int = CHUNK_TEXTS) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first text, and the texts, of each chunk.

    Args:
        texts: any iterable of strings; a generator is used up as far as it is computed. Unpaired
            surrogates become U+FFFD.
        max_texts: most texts of a chunk.

    Raises:
        InputError: it is one string, or holds something that is no string.
    """
    if isinstance(texts, str):
        raise InputError("the texts are one string", "put it in a list: [text]")
    first, remaining = 0, iter(texts)
    while chunk := [_checked(first + row, text) for row, text in enumerate(islice(remaining, max_texts))]:
        yield first, chunk
        first += len(chunk)


def outcomes_of(
    operation: Operation, texts: Iterable[str], max_texts: int = CHUNK_TEXTS
) -> Iterator[Outcome]:
    """Yield the outcome of each chunk of texts.

    Args:
        operation: what is done; it reads the role `text`.
        texts: any iterable of strings.
        max_texts: most texts of a chunk.

    Raises:
        InputError: a text is no string, or has no result; its number is named.
    """
    for first, chunk in chunks_of(texts, max_texts):
        outcome = operation.compute(operation.tokenize({"text": chunk}))
        if outcome.failures:
            row = min(outcome.failures)
            raise InputError(f"text {first + row}: {outcome.failures[row].message}")
        yield outcome


def joined(empty: npt.NDArray[np.float32], parts: Iterable[ColumnData]) -> npt.NDArray[np.float32]:
    """Return float32 columns of consecutive chunks as one array.

    Args:
        empty: an array of the right shape without rows.
        parts: the columns, one value or vector a row.
    """
    return np.concatenate([empty, *(np.asarray(part, np.float32) for part in parts)])


def _checked(row: int, text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"text {row} is no string but {type(text).__name__}")
    # Tokenizers take UTF-8, which has no unpaired surrogates.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def checked(config: C) -> C:
    """Return `config`.

    Raises:
        ConfigError: its values contradict each other; lists every problem.
    """
    problems = config.check()
    if problems:
        raise ConfigError("; ".join(problems))
    return config


def with_task(pooler_config: PoolerConfig | None, task: str | None) -> PoolerConfig:
    """Return `pooler_config` with `task` in it; None leaves what it says.

    Raises:
        ConfigError: both name a task, and not the same.
    """
    config = pooler_config or PoolerConfig()
    if task is None:
        return config
    if config.task not in (None, task):
        raise ConfigError(f"task {task!r} and PoolerConfig(task={config.task!r}) contradict each other")
    return replace(config, task=task)
