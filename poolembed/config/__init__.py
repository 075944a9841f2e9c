"""What a run is: frozen records of plain values, which hash, compare and serialise.

In: values of options. Out: records that are checked. Never: a file, a default read from the environment.
"""

from poolembed.config.job import (
    DEFAULT_MODEL,
    DTYPES,
    ON_ERROR,
    DType,
    InputConfig,
    JobConfig,
    ModelConfig,
    OnError,
    OutputConfig,
    RunConfig,
)
from poolembed.config.pooler import (
    REMOVED_POOLER_FIELDS,
    SEQ_POOLING_TYPES,
    TOK_POOLING_TYPES,
    PoolerConfig,
)

__all__ = [
    "DEFAULT_MODEL",
    "DTYPES",
    "ON_ERROR",
    "REMOVED_POOLER_FIELDS",
    "SEQ_POOLING_TYPES",
    "TOK_POOLING_TYPES",
    "DType",
    "InputConfig",
    "JobConfig",
    "ModelConfig",
    "OnError",
    "OutputConfig",
    "PoolerConfig",
    "RunConfig",
]
