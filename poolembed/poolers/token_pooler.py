"""Poolers that give one matrix a row: a token method, then a head."""

from collections.abc import Callable, Set

import torch
from torch import Tensor

from poolembed.config import PoolerConfig
from poolembed.poolers.act_fn import HasHfConfig, resolve_classifier_act_fn
from poolembed.poolers.activations import PoolerNormalize
from poolembed.poolers.base import Pooler, PoolingParamsUpdate, TensorFn, TokenPoolerOutput, narrow_tasks
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.methods.base import TokenPoolingMethod
from poolembed.poolers.methods.registry import get_tok_pooling_method
from poolembed.poolers.token_heads import TokenClassifierPoolerHead, TokenEmbeddingPoolerHead, TokenPoolerHead
from poolembed.tasks import PoolingTask

TokenPoolingFn = Callable[[Tensor, PoolingMetadata], TokenPoolerOutput]
"""Stands for a method: packed hidden states and metadata to one matrix a row."""

TokenHeadFn = Callable[[TokenPoolerOutput, PoolingMetadata], TokenPoolerOutput]
"""Stands for a head: one matrix a row and metadata to one result a row."""


class TokenPooler(Pooler):
    """A token method followed by a head.

    Args:
        pooling: a method, or a callable in its place, which serves every task.
        head: a head, or a callable in its place, which serves every task; None gives the vectors of
            the method.
    """

    def __init__(
        self, pooling: TokenPoolingMethod | TokenPoolingFn, head: TokenPoolerHead | TokenHeadFn | None = None
    ) -> None:
        super().__init__()
        self.pooling = pooling
        self.head = head

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that method and head both serve."""
        return narrow_tasks(self.pooling, self.head)

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what the method needs."""
        if isinstance(self.pooling, TokenPoolingMethod):
            return self.pooling.get_pooling_updates(task)
        return PoolingParamsUpdate()

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> TokenPoolerOutput:
        """Return one result a row, see `Pooler.forward`; None for a row that is not finished."""
        rows: TokenPoolerOutput = self.pooling(hidden_states, pooling_metadata)
        return rows if self.head is None else self.head(rows, pooling_metadata)


def pooler_for_token_embed(
    pooler_config: PoolerConfig,
    projector: TensorFn | None = None,
    head_dtype: torch.dtype | None = torch.float32,
) -> TokenPooler:
    """Return the pooler of task `token_embed`: the configured method, then projector, cut and L2.

    Args:
        pooler_config: names the method.
        projector: the model's dense or late-interaction layers, in `head_dtype`.
        head_dtype: what token vectors are cast to; None keeps the model's dtype.

    Raises:
        ConfigError: no token method is configured.
        UnknownPoolingError: the configured method does not exist.
    """
    method = get_tok_pooling_method(pooler_config.get_tok_pooling_type())
    return TokenPooler(method, TokenEmbeddingPoolerHead(projector, head_dtype, PoolerNormalize()))


def pooler_for_token_classify(
    pooler_config: PoolerConfig,
    *,
    model_config: HasHfConfig,
    pooling: TokenPoolingMethod | TokenPoolingFn | None = None,
    classifier: TensorFn | None = None,
    act_fn: TensorFn | None = None,
    head_dtype: torch.dtype | None = torch.float32,
) -> TokenPooler:
    """Return the pooler of task `token_classify`.

    Args:
        pooler_config: names the method where `pooling` is None; holds logit_mean and logit_sigma.
        model_config: names the activation where `act_fn` is None.
        pooling: the method, or a callable in its place.
        classifier: gives the logits, in `head_dtype`.
        act_fn: the activation.
        head_dtype: what token vectors are cast to; None keeps the model's dtype.

    Raises:
        ConfigError: no token method is given or configured.
        UnknownPoolingError: the configured method does not exist.
        PoolingError: the model names an activation that is none of torch's own.
    """
    if pooling is None:
        pooling = get_tok_pooling_method(pooler_config.get_tok_pooling_type())
    head = TokenClassifierPoolerHead(
        classifier=classifier,
        logit_mean=pooler_config.logit_mean,
        logit_sigma=pooler_config.logit_sigma,
        head_dtype=head_dtype,
        activation=resolve_classifier_act_fn(model_config, static_num_labels=False, act_fn=act_fn),
    )
    return TokenPooler(pooling, head)
