"""A loaded checkpoint taken apart."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True, slots=True)
class Parts:
    """A transformer, and what its checkpoint has on top of it.

    Attributes:
        transformer: tokens to hidden states, of `transformers` or of `encoder`.
        head: hidden states, shape (num_vectors, hidden_size), float32, to logits, or to what the output
            embeddings of a masked language model take; None where there is none.
        decoder: output embeddings of a language model, where they are used: weight, shape
            (vocab_size, width), and bias, shape (vocab_size,), or None.
    """

    transformer: Any
    head: nn.Module | None = None
    decoder: tuple[torch.Tensor, torch.Tensor | None] | None = None
