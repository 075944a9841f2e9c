"""What comes out of a chunk: pooled data by row, and the rows that have none."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class RowFailure:
    """Why a row has no result.

    Attributes:
        code: a stable name: `no_tokens`, `too_large` or `non_finite`.
        message: what happened, in words.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class PooledRows:
    """Pooled data of a chunk, in the order of its rows, in host memory.

    Attributes:
        values: sequence tasks: shape (num_rows, size); token tasks: (sum of lengths, size); float32.
            A failed row of a sequence task has zeros.
        lengths: token tasks: values of each row, shape (num_rows,), 0 for a failed row; else None.
        failures: the rows without a result, by row number.
    """

    values: npt.NDArray[np.float32]
    lengths: npt.NDArray[np.int64] | None = None
    failures: dict[int, RowFailure] = field(default_factory=dict)
