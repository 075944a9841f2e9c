"""Texts to hidden states to pooled data: tokenizer, packing, loading, attention.

In: the name of a model, and texts. Out: pooled data by row, in host memory. Never: a file of rows, a
column, a word to a person; padding.
"""

from poolembed.poolers import PoolingParams
from poolembed.runner.load import describe_model, load_runner
from poolembed.runner.locate import ModelFolder
from poolembed.runner.located_tokens import LocatedTokens, LocatingTokenizer
from poolembed.runner.packing import IntArray, TokenizedRows, joined
from poolembed.runner.pair_scores import Pairs, maxsim_scores, similarities
from poolembed.runner.pair_tokenizer import PairTokenizer, TemplateTokenizer
from poolembed.runner.pooling_runner import PoolingRunner
from poolembed.runner.request import named_prompt, request
from poolembed.runner.results import PooledRows, RowFailure
from poolembed.runner.spec import ModelSpec
from poolembed.runner.windows import Windows

__all__ = [
    "IntArray",
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
