"""Vectors to fewer bits.

Whole bytes are steps between a lower and an upper bound of each dimension, which are the same for a whole
run; bits are signs.
"""

from dataclasses import dataclass
from json import JSONDecodeError, dumps, loads
from typing import Any

import numpy as np
import numpy.typing as npt

from poolembed.config import RANGED_DTYPES, OutputDType
from poolembed.errors import ConfigError

NUM_STEPS = 255
_PACKED: dict[OutputDType, str] = {"binary": "int8", "ubinary": "uint8"}

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ranges:
    """Bounds of each dimension.

    Attributes:
        bounds: lower bounds, then upper bounds, shape (2, size), float32.
    """

    bounds: Vectors

    @classmethod
    def of(cls, vectors: Vectors) -> "Ranges":
        """Return the smallest bounds that hold some vectors, shape (num_vectors, size), at least one."""
        return cls(np.stack([vectors.min(axis=0), vectors.max(axis=0)]))

    @classmethod
    def parse(cls, text: str, size: int) -> "Ranges":
        """Return the bounds that `dump` wrote.

        Args:
            text: what `dump` returned.
            size: how many dimensions there must be.

        Raises:
            ConfigError: it is something else, or of another size.
        """
        try:
            bounds: Any = np.asarray(loads(text), np.float32)
        except (JSONDecodeError, ValueError, TypeError) as error:
            raise ConfigError(f"the bounds of the dimensions cannot be read: {error}") from error
        if bounds.shape != (2, size):
            raise ConfigError(
                f"the bounds have the shape {bounds.shape}, not {(2, size)}",
                "take an output of the same model and dimensions",
            )
        return cls(bounds)

    def dump(self) -> str:
        """Return the bounds as JSON, from which the same float32 numbers come back."""
        return dumps(self.bounds.astype(np.float64).tolist())


def check_size(size: int, dtype: OutputDType) -> None:
    """Refuse vectors that do not fill whole bytes.

    Args:
        size: dimensions of a vector.
        dtype: type that they are to be stored in.

    Raises:
        ConfigError: eight dimensions go into a byte, and `size` is no multiple of 8.
    """
    if dtype in _PACKED and size % 8:
        raise ConfigError(
            f"--output-dtype {dtype} needs a multiple of 8 dimensions; these vectors have {size}",
            "choose another type, or --dimensions where the model allows it",
        )


def stored_type(size: int, dtype: OutputDType) -> tuple[str, int]:
    """Return numpy type and length of a stored vector of `size` dimensions, stored as `dtype` says."""
    return (_PACKED[dtype], size // 8) if dtype in _PACKED else (dtype, size)


def quantize(vectors: Vectors, dtype: OutputDType, ranges: Ranges | None) -> npt.NDArray[np.generic]:
    """Return vectors in the type that they are stored in.

    Args:
        vectors: shape (num_vectors, size), finite.
        dtype: `float16` rounds; `int8` and `uint8` count steps between the bounds, values outside are
            put on them; `binary` and `ubinary` keep one bit a dimension, 1 for positive, first dimension
            in the highest bit.
        ranges: bounds of the dimensions; needed for `int8` and `uint8`.

    Returns:
        Shape (num_vectors, length) as `stored_type` says. A float16 may be infinite.

    Source:
        sentence-transformers 6.2, `quantize_embeddings`.
    """
    if dtype in _PACKED:
        bits = np.packbits(vectors > 0, axis=-1)
        # int8 holds the same bits read as 0 to 255, less 128.
        return bits if dtype == "ubinary" else (bits ^ np.uint8(128)).view(np.int8)
    if dtype in RANGED_DTYPES:
        assert ranges is not None
        return _steps(vectors, ranges, dtype)
    with np.errstate(over="ignore"):  # told by the caller, row by row
        return vectors.astype(dtype)


def _steps(vectors: Vectors, ranges: Ranges, dtype: OutputDType) -> npt.NDArray[np.generic]:
    lower, upper = ranges.bounds
    width = (upper - lower) / np.float32(NUM_STEPS)
    # A dimension that never changes has no width, and every value of it is step 0.
    width = np.where(width == 0, np.float32(1), width)
    with np.errstate(over="ignore"):  # beyond a range as narrow as floats can be: infinite, the last step
        steps = np.clip(np.floor((vectors - lower) / width), 0, NUM_STEPS)
    if dtype == "int8":
        steps -= 128
    stored: npt.NDArray[np.generic] = steps.astype(dtype)
    return stored
