"""Texts to hidden states to pooled data: tokenizer, packing, loading, attention.

In: the name of a model, and texts. Out: pooled data by row, in host memory. Never: a file of rows, a
column, a word to a person; padding.
"""

from poolembed.poolers import LateChunkingParams, PoolingParams
from poolembed.runner.load import describe_model, load_runner
from poolembed.runner.locate import ModelFolder
from poolembed.runner.packing import TokenizedRows
from poolembed.runner.pooling_runner import PoolingRunner
from poolembed.runner.request import named_prompt, request
from poolembed.runner.results import PooledRows, RowFailure
from poolembed.runner.spec import ModelSpec
from poolembed.runner.windows import Windows

__all__ = [
    "LateChunkingParams",
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
