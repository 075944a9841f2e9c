"""Models in memory: texts to results, without files.

In: texts. Out: numpy arrays and small records, in the order of the texts. Never: a path of rows, Arrow, a
word to a person.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

# Imported on first use: what a model cannot do is known without the seconds that torch takes.
_HOMES = {
    "Classification": "poolembed.model.records",
    "Entity": "poolembed.model.pair_calls",
    "Operation": "poolembed.model.operation",
    "Outcome": "poolembed.model.operation",
    "PoolingModel": "poolembed.model.pooling_model",
    "RankedDocument": "poolembed.model.pair_calls",
    "Texts": "poolembed.model.operation",
}


def __getattr__(name: str) -> object:
    """Import a public name from where it is defined."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
