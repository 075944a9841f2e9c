"""Heads: what becomes of pooled vectors, in a fixed order of operations.

    embedding       cast -> projector  -> keep dimensions          -> activation
    classification  cast -> classifier -> minus mean, over sigma   -> activation

The cast comes first and is to float32 by default, so that everything after it is computed in it.
What a row asks for (dimensions, activation or not) is looked up row by row.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set

import torch
from torch import Tensor, nn

from poolembed.config.params import PoolingParams
from poolembed.errors import PoolingError
from poolembed.poolers.base import SequencePoolerOutput, TensorFn
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.tasks import PoolingTask


class SequencePoolerHead(nn.Module, ABC):
    """Turns one pooled vector a row into its result."""

    @abstractmethod
    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that the head serves."""

    @abstractmethod
    def forward(
        self, pooled_data: Tensor | list[Tensor], pooling_metadata: PoolingMetadata
    ) -> SequencePoolerOutput:
        """Return the results.

        Args:
            pooled_data: pooled vectors, shape (num_rows, width), or a list of (width,).
            pooling_metadata: the rows.

        Returns:
            Shape (num_rows, out), or a list of (out,) where rows ask for different things.

        Raises:
            PoolingError: there are not as many vectors as rows.
        """


class EmbeddingPoolerHead(SequencePoolerHead):
    """Pooled vectors to embeddings.

    Args:
        projector: applied to (num_rows, width); its weights have `head_dtype`. None applies none.
        head_dtype: what vectors are cast to first; None keeps their dtype.
        activation: applied last, for rows that do not refuse it; None applies none.

    Source:
        vLLM 0.33.0 `EmbeddingPoolerHead`.
    """

    def __init__(
        self,
        projector: TensorFn | None = None,
        head_dtype: torch.dtype | None = None,
        activation: TensorFn | None = None,
    ) -> None:
        super().__init__()
        self.projector = projector
        self.head_dtype = head_dtype
        self.activation = activation

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return `embed`."""
        return {"embed"}

    def forward(
        self, pooled_data: Tensor | list[Tensor], pooling_metadata: PoolingMetadata
    ) -> SequencePoolerOutput:
        """Return the embeddings; dimensions are cut before the activation."""
        params = pooling_metadata.pooling_params
        vectors = _cast(_stack(pooled_data, params), self.head_dtype)
        if self.projector is not None:
            vectors = self.projector(vectors)
        return _activate(_keep_dimensions(vectors, params), params, self.activation)


class ClassifierPoolerHead(SequencePoolerHead):
    """Pooled vectors to class probabilities: activation((logits - logit_mean) / logit_sigma).

    Args:
        classifier: gives logits (num_rows, num_labels); its weights have `head_dtype`. None takes the
            pooled vectors for logits.
        logit_mean: subtracted from the logits; None subtracts nothing.
        logit_sigma: divides what is left; None divides by nothing.
        head_dtype: what vectors are cast to first; None keeps their dtype.
        activation: applied last, for rows that do not refuse it; None applies none.

    Raises:
        PoolingError: `logit_sigma` is 0.

    Source:
        vLLM 0.33.0 `ClassifierPoolerHead`.
    """

    def __init__(
        self,
        classifier: TensorFn | None = None,
        logit_mean: float | None = None,
        logit_sigma: float | None = None,
        head_dtype: torch.dtype | None = None,
        activation: TensorFn | None = None,
    ) -> None:
        super().__init__()
        self.classifier = classifier
        self.logit_mean = logit_mean
        self.logit_sigma = check_sigma(logit_sigma)
        self.head_dtype = head_dtype
        self.activation = activation

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return `classify`."""
        return {"classify"}

    def forward(
        self, pooled_data: Tensor | list[Tensor], pooling_metadata: PoolingMetadata
    ) -> SequencePoolerOutput:
        """Return the probabilities, or logits for rows that refuse the activation."""
        params = pooling_metadata.pooling_params
        logits = _cast(_stack(pooled_data, params), self.head_dtype)
        if self.classifier is not None:
            logits = self.classifier(logits)
        logits = calibrate(logits, self.logit_mean, self.logit_sigma)
        return _activate(logits, params, self.activation)


def check_sigma(logit_sigma: float | None) -> float | None:
    """Return `logit_sigma`; a PoolingError when it is 0."""
    if logit_sigma == 0:
        raise PoolingError("logit_sigma must not be 0, it divides the logits")
    return logit_sigma


def calibrate(logits: Tensor, logit_mean: float | None, logit_sigma: float | None) -> Tensor:
    """Return (`logits` - `logit_mean`) / `logit_sigma`, each part where it is given."""
    if logit_mean is not None:
        logits = logits - logit_mean
    if logit_sigma is not None:
        logits = logits / logit_sigma
    return logits


def check_num_rows(pooled_data: Sequence[Tensor | None] | Tensor, params: Sequence[PoolingParams]) -> None:
    """Raise a PoolingError unless `pooled_data` has one entry for each of `params`."""
    if len(pooled_data) != len(params):
        raise PoolingError(f"{len(pooled_data)} pooled entries for {len(params)} rows")


def wants_activation(params: PoolingParams) -> bool:
    """Return whether the row takes the activation; open means yes."""
    return params.use_activation is not False


def _stack(pooled_data: Tensor | list[Tensor], params: Sequence[PoolingParams]) -> Tensor:
    check_num_rows(pooled_data, params)
    if isinstance(pooled_data, Tensor):
        return pooled_data
    if not pooled_data:
        raise PoolingError("an empty list of vectors has no width", "pass a tensor of shape (0, width)")
    return torch.stack(pooled_data)


def _cast(vectors: Tensor, head_dtype: torch.dtype | None) -> Tensor:
    return vectors if head_dtype is None else vectors.to(head_dtype)


def _keep_dimensions(vectors: Tensor, params: Sequence[PoolingParams]) -> SequencePoolerOutput:
    wanted = {param.dimensions for param in params}
    if wanted <= {None}:
        return vectors
    if len(wanted) == 1:
        return vectors[..., : wanted.pop()]
    return [vector[..., : param.dimensions] for vector, param in zip(vectors, params, strict=True)]


def _activate(
    vectors: SequencePoolerOutput, params: Sequence[PoolingParams], activation: TensorFn | None
) -> SequencePoolerOutput:
    flags = [wants_activation(param) for param in params]
    if activation is None or (flags and not any(flags)):
        return vectors
    if all(flags) and isinstance(vectors, Tensor):
        return activation(vectors)
    return [activation(v) if flag else v for v, flag in zip(vectors, flags, strict=True)]
