"""Texts to hidden states to pooled data: tokenizer, packing, loading, attention.

In: the name of a model, and texts. Out: pooled data by row, in host memory. Never: a file of rows, a
column, a word to a person; padding.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poolembed.poolers import PoolingParams
    from poolembed.runner.describe import describe_model
    from poolembed.runner.load import load_runner
    from poolembed.runner.locate import ModelFolder
    from poolembed.runner.packing import TokenizedRows
    from poolembed.runner.pooling_request import named_prompt, request
    from poolembed.runner.pooling_runner import PoolingRunner
    from poolembed.runner.results import PooledRows, RowFailure
    from poolembed.runner.spec import ModelSpec
    from poolembed.runner.windows import Windows

__all__ = [
    "ModelFolder",
    "ModelSpec",
    "PooledRows",
    "PoolingParams",
    "PoolingRunner",
    "RowFailure",
    "TokenizedRows",
    "Windows",
    "describe_model",
    "load_runner",
    "named_prompt",
    "request",
]

# Imported on first use: what a model declares can be read without the seconds that torch takes.
_HOMES = {
    "ModelFolder": "poolembed.runner.locate",
    "ModelSpec": "poolembed.runner.spec",
    "PooledRows": "poolembed.runner.results",
    "PoolingParams": "poolembed.poolers",
    "PoolingRunner": "poolembed.runner.pooling_runner",
    "RowFailure": "poolembed.runner.results",
    "TokenizedRows": "poolembed.runner.packing",
    "Windows": "poolembed.runner.windows",
    "describe_model": "poolembed.runner.describe",
    "load_runner": "poolembed.runner.load",
    "named_prompt": "poolembed.runner.pooling_request",
    "request": "poolembed.runner.pooling_request",
}


def __getattr__(name: str) -> object:
    """Import a public name from where it is defined."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
