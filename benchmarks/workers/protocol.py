"""The pipe between the harness and a worker; needs numpy and nothing else."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = list[Any]
"""Texts, or [query, document] lists."""

Compute = Callable[[Rows, int | None], Any]
"""Rows and a batch size (None: the library decides) to vectors, or what `as_array` makes vectors of."""


def arguments() -> argparse.Namespace:
    """Return what the harness says at the start, as text."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--kind", choices=["embed", "pairs"], default="embed")
    parser.add_argument("--backend", default="torch")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--cache", type=Path, required=True)
    return parser.parse_args()


def rows_of(path: str) -> Rows:
    """Return the rows of a JSON Lines file: its texts, or its pairs where it has queries."""
    with Path(path).open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    if records and "query" in records[0]:
        return [[record["query"], record["document"]] for record in records]
    return [record["text"] for record in records]


def serve(
    load: Callable[[], tuple[Compute, dict[str, str]]], as_array: Callable[[Any], Any] = np.asarray
) -> None:
    """Load, say so, and time runs until standard input ends.

    Args:
        load: returns what is timed, and what the harness shall write down about it.
        as_array: makes an array of what `load`'s function returns; not timed.
    """
    # What a library prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields: Any) -> None:  # noqa: ANN401 - plain values of JSON
        answers.write(json.dumps(fields) + "\n")
        answers.flush()

    started = time.monotonic()
    compute, about = load()
    answer(load_s=time.monotonic() - started, about=about)
    known: dict[str, Rows] = {}
    for line in sys.stdin:
        request = json.loads(line)
        if request["rows"] not in known:
            known[request["rows"]] = rows_of(request["rows"])
        rows = known[request["rows"]][: request["limit"]]
        started = time.perf_counter()
        made = compute(rows, request["batch_size"])
        seconds = time.perf_counter() - started
        if request["vectors"]:
            vectors: npt.NDArray[np.float32] = np.asarray(as_array(made), dtype=np.float32)
            np.save(request["vectors"], vectors)
        answer(seconds=seconds)
