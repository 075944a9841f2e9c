"""poolembed: text in bulk to vectors, classes, scores and token outputs.

from poolembed import PoolingModel
vectors = PoolingModel().embed(["one text", "another"])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poolembed.config import LongTextConfig, ModelConfig, PairConfig, PoolerConfig
    from poolembed.model import Classification, Entity, PoolingModel, RankedDocument

__version__ = "0.1.0"

__all__ = [
    "Classification",
    "Entity",
    "LateChunkingParams",
    "LongTextConfig",
    "ModelConfig",
    "PairConfig",
    "PoolerConfig",
    "PoolingModel",
    "PoolingParams",
    "RankedDocument",
    "__version__",
]

_HOMES = {
    "Classification": "poolembed.model",
    "Entity": "poolembed.model",
    "LateChunkingParams": "poolembed.config",
    "LongTextConfig": "poolembed.config",
    "ModelConfig": "poolembed.config",
    "PairConfig": "poolembed.config",
    "PoolerConfig": "poolembed.config",
    "PoolingModel": "poolembed.model",
    "PoolingParams": "poolembed.config",
    "RankedDocument": "poolembed.model",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import poolembed` does not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'poolembed' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return __all__
