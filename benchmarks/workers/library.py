"""poolembed as a library: `PoolingModel`, warm, in this process."""

import numpy as np
import numpy.typing as npt

import poolembed
from benchmarks.workers.protocol import Compute, Rows, arguments, serve
from poolembed import ModelConfig, PoolingModel


def load() -> tuple[Compute, dict[str, str]]:
    """Return a model's `embed` or `score`; batches are its own choice."""
    told = arguments()
    model = PoolingModel(ModelConfig(model=str(told.model), device="cpu", dtype=told.dtype))

    def compute(rows: Rows, batch_size: int | None) -> npt.NDArray[np.float32]:
        del batch_size
        if told.kind == "pairs":
            return model.score([query for query, _ in rows], [document for _, document in rows])
        return model.embed(rows)

    return compute, {"poolembed": poolembed.__version__}


if __name__ == "__main__":
    serve(load)
