"""The sustained rate of float32 matrix products: the better of MKL and prepacked oneDNN, in FLOP/s.

Square products, which no library does faster at other shapes here, and the shapes of the model's own layers.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.workers.protocol import Compute, Rows, arguments, serve

SECONDS = 0.25
"""Seconds for each product by each library; the rate is that of all of them, not of the luckiest call."""


def shapes(folder: Path) -> list[tuple[int, int, int]]:
    """Return (rows, inputs, outputs) of products: a large square and a model's layers on many tokens."""
    config = json.loads((folder / "config.json").read_text("utf-8"))
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    return [(1024, 1024, 1024), (2048, hidden, 3 * hidden), (2048, hidden, inner), (2048, inner, hidden)]


def fastest(rows: int, inputs: int, outputs: int) -> float:
    """Return the best rate of one product in FLOP/s, by either library."""
    tokens, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs)
    transposed, out = weight.t().contiguous(), torch.empty(rows, outputs)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, rows)

    def mkl() -> None:
        torch.mm(tokens, transposed, out=out)

    def onednn() -> None:
        torch.ops.mkldnn._linear_pointwise(tokens, packed, None, "none", [], "")

    return 2 * rows * inputs * outputs * max(calls_per_second(mkl), calls_per_second(onednn))


def calls_per_second(product: Callable[[], None]) -> float:
    """Return the sustained rate of a product."""
    product()
    started, calls = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - started) < SECONDS:
        product()
        calls += 1
    return calls / elapsed


def load() -> tuple[Compute, dict[str, str]]:
    """Return the measurement; it looks at no row."""
    told = arguments()
    torch.set_num_threads(told.threads)
    products = shapes(told.model)

    def compute(rows: Rows, batch_size: int | None) -> npt.NDArray[np.float64]:
        del rows, batch_size
        with torch.inference_mode():
            return np.asarray([fastest(*shape) for shape in products])

    return compute, {"torch": torch.__version__}


if __name__ == "__main__":
    serve(load)
