"""Texts to hidden states to pooled data: tokenizer, packing, loading, attention.

In: the name of a model, and texts. Out: pooled data by row, in host memory. Never: a file of rows, a
column, a word to a person; padding.
"""

from poolembed.poolers import PoolingParams
from poolembed.runner.load import load_runner
from poolembed.runner.packing import TokenizedRows
from poolembed.runner.pooling_runner import PoolingRunner
from poolembed.runner.results import PooledRows, RowFailure

__all__ = ["PooledRows", "PoolingParams", "PoolingRunner", "RowFailure", "TokenizedRows", "load_runner"]
