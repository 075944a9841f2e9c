"""Models in memory: texts to results, without files.

In: texts. Out: numpy arrays and small records, in the order of the texts. Never: a path of rows, Arrow, a
word to a person.
"""

from poolembed.model.operation import Operation, Outcome, Texts
from poolembed.model.pair_calls import Entity, RankedDocument
from poolembed.model.pooling_model import PoolingModel
from poolembed.model.records import Classification

__all__ = [
    "Classification",
    "Entity",
    "Operation",
    "Outcome",
    "PoolingModel",
    "RankedDocument",
    "Texts",
]
