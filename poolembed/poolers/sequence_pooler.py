"""Poolers that give one vector a row: a sequence method, then a head."""

from collections.abc import Callable, Set

import torch
from torch import Tensor

from poolembed.config import PoolerConfig
from poolembed.poolers.act_fn import HasHfConfig, resolve_classifier_act_fn
from poolembed.poolers.activations import PoolerNormalize
from poolembed.poolers.base import Pooler, PoolingParamsUpdate, SequencePoolerOutput, TensorFn, narrow_tasks
from poolembed.poolers.heads import ClassifierPoolerHead, EmbeddingPoolerHead, SequencePoolerHead
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.methods.base import SequencePoolingMethod
from poolembed.poolers.methods.registry import get_seq_pooling_method
from poolembed.tasks import PoolingTask

SequencePoolingFn = Callable[[Tensor, PoolingMetadata], Tensor | list[Tensor]]
"""Stands for a method: packed hidden states and metadata to one vector a row."""

SequenceHeadFn = Callable[[Tensor | list[Tensor], PoolingMetadata], SequencePoolerOutput]
"""Stands for a head: one vector a row and metadata to one result a row."""


class SequencePooler(Pooler):
    """A sequence method followed by a head.

    Args:
        pooling: a method, or a callable in its place, which serves every task.
        head: a head, or a callable in its place, which serves every task.
    """

    def __init__(
        self, pooling: SequencePoolingMethod | SequencePoolingFn, head: SequencePoolerHead | SequenceHeadFn
    ) -> None:
        super().__init__()
        self.pooling = pooling
        self.head = head

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that method and head both serve."""
        return narrow_tasks(self.pooling, self.head)

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what the method needs."""
        if isinstance(self.pooling, SequencePoolingMethod):
            return self.pooling.get_pooling_updates(task)
        return PoolingParamsUpdate()

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> SequencePoolerOutput:
        """Return one result a row, see `Pooler.forward`."""
        return self.head(self.pooling(hidden_states, pooling_metadata), pooling_metadata)


def pooler_for_embed(
    pooler_config: PoolerConfig,
    projector: TensorFn | None = None,
    head_dtype: torch.dtype | None = torch.float32,
) -> SequencePooler:
    """Return the pooler of task `embed`: the configured method, then projector, cut and L2.

    Args:
        pooler_config: names the method.
        projector: the model's dense layers, in `head_dtype`.
        head_dtype: what pooled vectors are cast to; None keeps the model's dtype.

    Raises:
        ConfigError: no sequence method is configured.
        UnknownPoolingError: the configured method does not exist.
    """
    method = get_seq_pooling_method(pooler_config.get_seq_pooling_type())
    return SequencePooler(method, EmbeddingPoolerHead(projector, head_dtype, PoolerNormalize()))


def pooler_for_classify(
    pooler_config: PoolerConfig,
    *,
    model_config: HasHfConfig,
    pooling: SequencePoolingMethod | SequencePoolingFn | None = None,
    classifier: TensorFn | None = None,
    act_fn: TensorFn | None = None,
    head_dtype: torch.dtype | None = torch.float32,
) -> SequencePooler:
    """Return the pooler of task `classify`.

    Args:
        pooler_config: names the method where `pooling` is None; holds logit_mean and logit_sigma.
        model_config: names the activation where `act_fn` is None.
        pooling: the method, or a callable in its place.
        classifier: gives the logits, in `head_dtype`.
        act_fn: the activation.
        head_dtype: what pooled vectors are cast to; None keeps the model's dtype.

    Raises:
        ConfigError: no sequence method is given or configured.
        UnknownPoolingError: the configured method does not exist.
        PoolingError: the model names an activation that is none of torch's own.
    """
    if pooling is None:
        pooling = get_seq_pooling_method(pooler_config.get_seq_pooling_type())
    head = ClassifierPoolerHead(
        classifier=classifier,
        logit_mean=pooler_config.logit_mean,
        logit_sigma=pooler_config.logit_sigma,
        head_dtype=head_dtype,
        activation=resolve_classifier_act_fn(model_config, static_num_labels=False, act_fn=act_fn),
    )
    return SequencePooler(pooling, head)
