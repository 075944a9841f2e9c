"""What a run is: frozen records of plain values, which hash, compare and serialise.

No file is opened here and no default is read from the environment: that is the command line's part.
"""

from poolembed.config.entities import AGGREGATIONS, Aggregation, EntityConfig
from poolembed.config.job import (
    DEFAULT_MODEL,
    DTYPES,
    ON_ERROR,
    Device,
    DType,
    InputConfig,
    JobConfig,
    ModelConfig,
    OnError,
    OutputConfig,
    RunConfig,
)
from poolembed.config.pairs import PairConfig, RerankConfig
from poolembed.config.params import LateChunkingParams, PoolingParams, PoolingSpec
from poolembed.config.pooler import (
    REMOVED_POOLER_FIELDS,
    SEQ_POOLING_TYPES,
    TOK_POOLING_TYPES,
    PoolerConfig,
)
from poolembed.config.tasks import (
    LEVELS,
    ON_LONG,
    OUTPUT_DTYPES,
    RANGED_DTYPES,
    ROLES,
    ClassifyConfig,
    EmbedConfig,
    Level,
    LongTextConfig,
    OnLong,
    OutputDType,
    RewardConfig,
    Role,
    SparseConfig,
    TaskConfig,
    TokenEmbedConfig,
)

__all__ = [
    "AGGREGATIONS",
    "DEFAULT_MODEL",
    "DTYPES",
    "LEVELS",
    "ON_ERROR",
    "ON_LONG",
    "OUTPUT_DTYPES",
    "RANGED_DTYPES",
    "REMOVED_POOLER_FIELDS",
    "ROLES",
    "SEQ_POOLING_TYPES",
    "TOK_POOLING_TYPES",
    "Aggregation",
    "ClassifyConfig",
    "DType",
    "Device",
    "EmbedConfig",
    "EntityConfig",
    "InputConfig",
    "JobConfig",
    "LateChunkingParams",
    "Level",
    "LongTextConfig",
    "ModelConfig",
    "OnError",
    "OnLong",
    "OutputConfig",
    "OutputDType",
    "PairConfig",
    "PoolerConfig",
    "PoolingParams",
    "PoolingSpec",
    "RerankConfig",
    "RewardConfig",
    "Role",
    "RunConfig",
    "SparseConfig",
    "TaskConfig",
    "TokenEmbedConfig",
]
