"""Texts to hidden states to pooled data: tokenizer, packing, loading, attention.

In: the name of a model, and texts. Out: pooled data by row, in host memory. Never: a file of rows, a
column, a word to a person; padding.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from poolembed.config import LateChunkingParams, PoolingParams
    from poolembed.runner.describe import describe_model
    from poolembed.runner.load import load_runner
    from poolembed.runner.locate import ModelFolder
    from poolembed.runner.located_tokens import LocatedTokens, LocatingTokenizer
    from poolembed.runner.packing import IntArray, TokenizedRows, joined
    from poolembed.runner.pair_scores import Pairs, maxsim_scores, similarities
    from poolembed.runner.pair_tokenizer import PairTokenizer, TemplateTokenizer
    from poolembed.runner.pooling_request import named_prompt, request
    from poolembed.runner.pooling_runner import PoolingRunner
    from poolembed.runner.results import PooledRows, RowFailure
    from poolembed.runner.spec import ModelSpec
    from poolembed.runner.windows import Windows

__all__ = [
    "IntArray",
    "LateChunkingParams",
    "LocatedTokens",
    "LocatingTokenizer",
    "ModelFolder",
    "ModelSpec",
    "PairTokenizer",
    "Pairs",
    "PooledRows",
    "PoolingParams",
    "PoolingRunner",
    "RowFailure",
    "TemplateTokenizer",
    "TokenizedRows",
    "Windows",
    "describe_model",
    "joined",
    "load_runner",
    "maxsim_scores",
    "named_prompt",
    "request",
    "similarities",
]

# Imported on first use: what a model declares can be read without the seconds that torch takes.
_HOMES = {
    "IntArray": "poolembed.runner.packing",
    "LateChunkingParams": "poolembed.config",
    "LocatedTokens": "poolembed.runner.located_tokens",
    "LocatingTokenizer": "poolembed.runner.located_tokens",
    "ModelFolder": "poolembed.runner.locate",
    "ModelSpec": "poolembed.runner.spec",
    "PairTokenizer": "poolembed.runner.pair_tokenizer",
    "Pairs": "poolembed.runner.pair_scores",
    "PooledRows": "poolembed.runner.results",
    "PoolingParams": "poolembed.config",
    "PoolingRunner": "poolembed.runner.pooling_runner",
    "RowFailure": "poolembed.runner.results",
    "TemplateTokenizer": "poolembed.runner.pair_tokenizer",
    "TokenizedRows": "poolembed.runner.packing",
    "Windows": "poolembed.runner.windows",
    "describe_model": "poolembed.runner.describe",
    "joined": "poolembed.runner.packing",
    "load_runner": "poolembed.runner.load",
    "maxsim_scores": "poolembed.runner.pair_scores",
    "named_prompt": "poolembed.runner.pooling_request",
    "request": "poolembed.runner.pooling_request",
    "similarities": "poolembed.runner.pair_scores",
}


def __getattr__(name: str) -> object:
    """Import a public name from where it is defined."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
