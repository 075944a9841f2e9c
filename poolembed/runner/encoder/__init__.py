"""Encoders of our own: BERT and its kin, from the same weights as transformers' and with the same numbers.

Most models that embed, score or classify are of this family, and are small. Leaving transformers' modelling
code out saves most of the start and of the memory of a run with them; the packed forward is theirs without
what training, caching and other ways of attention need. What these layers do not cover is left to transformers.
"""

from poolembed.runner.encoder.load import load_encoder
from poolembed.runner.encoder.model import EncoderModel

__all__ = ["EncoderModel", "load_encoder"]
