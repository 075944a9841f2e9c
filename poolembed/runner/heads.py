"""Heads of transformers models as plain functions of a hidden state, apart from the transformers below them.

A head is run by the code of its own architecture: the transformer below it is replaced by a stand-in
that returns given hidden states. No head is written again here, and none is known by name.
"""

from typing import Any

import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

from poolembed.runner.parts import Parts
from poolembed.runner.spec import ModelSpec


def take_apart(spec: ModelSpec, model: Any) -> Parts:  # noqa: ANN401 - a class of transformers
    """Separate a model of transformers into its transformer and its head.

    Args:
        spec: what the checkpoint declares.
        model: the model as loaded; it is changed.

    Returns:
        Both, and the output embeddings where they are used.
    """
    if spec.logit_head is not None:
        decoder = model.get_output_embeddings()
        return Parts(model.base_model, decoder=(decoder.weight, decoder.bias))
    if spec.kind == "sparse":
        transformer, decoder = model.base_model, detach_decoder(model)
        return Parts(transformer, ModelHead(model, with_pooler=False), (decoder.weight, decoder.bias))
    if spec.kind in ("classifier", "cross-encoder"):
        return Parts(model.base_model, ModelHead(model))
    if spec.kind == "token-classifier":
        return Parts(model.base_model, ModelHead(model, with_pooler=False))
    return Parts(model)


class ModelHead(nn.Module):
    """What a transformers model computes on top of its transformer, in float32.

    Args:
        model: a model with a head; its transformer is taken out of it.
        with_pooler: run the pooler of the transformer (BERT's dense layer and tanh), where it has one.
    """

    def __init__(self, model: Any, *, with_pooler: bool = True) -> None:  # noqa: ANN401
        super().__init__()
        transformer = model.base_model
        self._transformer_of = _StandIn(transformer, with_pooler=with_pooler)
        setattr(model, model.base_model_prefix, self._transformer_of)
        self.model = model.float()
        if model.config.get_text_config().pad_token_id is None:
            # Heads that look for the last token before the padding refuse to work without one.
            model.config.get_text_config().pad_token_id = 0
        self._some_id = 1 + int(model.config.get_text_config().pad_token_id)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Return what the head makes of each hidden state.

        Args:
            hidden_states: shape (num_vectors, hidden_size), float32.

        Returns:
            Logits, shape (num_vectors, num_outputs), float32.
        """
        self._transformer_of.hidden_states = hidden_states[:, None]
        ids = torch.full((len(hidden_states), 1), self._some_id, device=hidden_states.device)
        logits: torch.Tensor = self.model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        return logits.reshape(len(hidden_states), -1)


def detach_decoder(model: Any) -> nn.Linear:  # noqa: ANN401
    """Take the output embeddings out of a language model; its head then ends before them.

    Returns:
        The output embeddings: weight (vocabulary, width), bias (vocabulary,) or None.
    """
    decoder: nn.Linear = model.get_output_embeddings()
    name = next(name for name, module in model.named_modules() if module is decoder)
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, nn.Identity())
    return decoder


class _StandIn(nn.Module):
    """Returns the hidden states it was given, as a transformer would after computing them."""

    def __init__(self, transformer: Any, *, with_pooler: bool) -> None:  # noqa: ANN401
        super().__init__()
        self.hidden_states: torch.Tensor | None = None
        self.pooler = getattr(transformer, "pooler", None) if with_pooler else None
        # ALBERT's pooler is a bare linear layer on the first token, with its activation beside it.
        self.pooler_activation = getattr(transformer, "pooler_activation", None)

    def forward(self, *_: Any, **__: Any) -> BaseModelOutputWithPoolingAndCrossAttentions:  # noqa: ANN401
        hidden_states = self.hidden_states
        assert hidden_states is not None
        if self.pooler is None:
            pooled = hidden_states[:, 0]
        elif self.pooler_activation is not None:
            pooled = self.pooler_activation(self.pooler(hidden_states[:, 0]))
        else:
            pooled = self.pooler(hidden_states)
        return BaseModelOutputWithPoolingAndCrossAttentions(
            last_hidden_state=hidden_states, pooler_output=pooled
        )
