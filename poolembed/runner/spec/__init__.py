"""What a checkpoint declares, read from its files.

In: a model folder and the user's choices. Out: a `ModelSpec`, every value with its source, or an error that
names file and key. Never: loads weights, imports torch or transformers, guesses without saying so.
"""

from poolembed.runner.spec.dense import DenseSpec
from poolembed.runner.spec.late_interaction import LateInteraction
from poolembed.runner.spec.read import read_spec
from poolembed.runner.spec.record import BgeM3Heads, ModelSpec
from poolembed.runner.spec.rerank import LogitHead
from poolembed.runner.spec.settings import CONFIG_KEYS, KINDS, SETTINGS
from poolembed.runner.spec.templates import PairTemplate
from poolembed.runner.spec.tokenizer import TokenizerSpec

__all__ = [
    "CONFIG_KEYS",
    "KINDS",
    "SETTINGS",
    "BgeM3Heads",
    "DenseSpec",
    "LateInteraction",
    "LogitHead",
    "ModelSpec",
    "PairTemplate",
    "TokenizerSpec",
    "read_spec",
]
