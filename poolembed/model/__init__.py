"""Models in memory: texts to results, without files.

In: texts. Out: numpy arrays and small records, in the order of the texts. Never: a path of rows, Arrow, a
word to a person.
"""

from poolembed.model.operation import Operation, Outcome, Texts

__all__ = ["Operation", "Outcome", "Texts"]
