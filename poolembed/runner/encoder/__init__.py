"""Encoders of our own: BERT and its kin, from the same weights as transformers' and with the same numbers.

Most models that embed, score or classify are of this kind, and small: importing transformers' modelling code
takes longer than many a run with them, and more memory than their weights. What these layers do not cover is
left to it.
"""

from poolembed.runner.encoder.load import load_encoder
from poolembed.runner.encoder.model import EncoderModel

__all__ = ["EncoderModel", "load_encoder"]
