"""Heads for token outputs: the order of operations of `heads`, for the matrix of each row."""

from abc import ABC, abstractmethod
from collections.abc import Set

import torch
from torch import Tensor, nn

from poolembed.config.params import LateChunkingParams, PoolingParams
from poolembed.poolers.base import TensorFn, TokenPoolerOutput
from poolembed.poolers.heads import calibrate, check_num_rows, check_sigma, wants_activation
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.segments import segment_sums
from poolembed.tasks import PoolingTask


class TokenPoolerHead(nn.Module, ABC):
    """Turns the kept token vectors of each row into its result."""

    @abstractmethod
    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that the head serves."""

    def forward(self, pooled_data: TokenPoolerOutput, pooling_metadata: PoolingMetadata) -> TokenPoolerOutput:
        """Return the results.

        Args:
            pooled_data: the kept vectors of each row, shape (num_tokens, width); None for a row that
                is not finished.
            pooling_metadata: the rows.

        Returns:
            The result of each row, shape (num_tokens, out); None stays None.

        Raises:
            PoolingError: there are not as many entries as rows.
        """
        params = pooling_metadata.pooling_params
        check_num_rows(pooled_data, params)
        return [self.forward_chunk(row, param) for row, param in zip(pooled_data, params, strict=True)]

    @abstractmethod
    def forward_chunk(self, pooled_data: Tensor | None, pooling_param: PoolingParams) -> Tensor | None:
        """Return the result of one row, shape (num_tokens, out); None stays None.

        Args:
            pooled_data: hidden states of the row, shape (num_tokens, hidden_size); None while the
                row is not whole.
            pooling_param: what to compute for the row.
        """


class TokenEmbeddingPoolerHead(TokenPoolerHead):
    """Token vectors to token embeddings.

    Late chunking comes before all else: vectors are averaged in groups, which then stand for tokens.

    Args:
        projector: applied to (num_tokens, width); its weights have `head_dtype`. None applies none.
        head_dtype: what vectors are cast to first; None keeps their dtype.
        activation: applied last, for rows that do not refuse it; None applies none.

    Source:
        vLLM 0.33.0 `TokenEmbeddingPoolerHead`.
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
        """Return `token_embed`."""
        return {"token_embed"}

    def forward_chunk(self, pooled_data: Tensor | None, pooling_param: PoolingParams) -> Tensor | None:
        """Return the embeddings of one row; dimensions are cut before the activation."""
        if pooled_data is None:
            return None
        vectors = pooled_data
        if pooling_param.late_chunking_params is not None:
            vectors = chunk_means(vectors, pooling_param.late_chunking_params)
        # Means are float32; without a head dtype the row keeps the one it came with.
        vectors = vectors.to(pooled_data.dtype if self.head_dtype is None else self.head_dtype)
        if self.projector is not None:
            vectors = self.projector(vectors)
        vectors = vectors[..., : pooling_param.dimensions]
        if self.activation is not None and wants_activation(pooling_param):
            vectors = self.activation(vectors)
        return vectors


class TokenClassifierPoolerHead(TokenPoolerHead):
    """Token vectors to class probabilities: activation((logits - logit_mean) / logit_sigma).

    Args:
        classifier: gives logits (num_tokens, num_labels); its weights have `head_dtype`. None takes
            the vectors for logits.
        logit_mean: subtracted from the logits; None subtracts nothing.
        logit_sigma: divides what is left; None divides by nothing.
        head_dtype: what vectors are cast to first; None keeps their dtype.
        activation: applied last, for rows that do not refuse it; None applies none.

    Raises:
        PoolingError: `logit_sigma` is 0.

    Source:
        vLLM 0.33.0 `TokenClassifierPoolerHead`.
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
        """Return `token_classify`."""
        return {"token_classify"}

    def forward_chunk(self, pooled_data: Tensor | None, pooling_param: PoolingParams) -> Tensor | None:
        """Return the probabilities of one row, or logits when it refuses the activation."""
        if pooled_data is None:
            return None
        logits = pooled_data if self.head_dtype is None else pooled_data.to(self.head_dtype)
        if self.classifier is not None:
            logits = self.classifier(logits)
        logits = calibrate(logits, self.logit_mean, self.logit_sigma)
        if self.activation is not None and wants_activation(pooling_param):
            logits = self.activation(logits)
        return logits


def chunk_means(vectors: Tensor, params: LateChunkingParams) -> Tensor:
    """Return the means of consecutive groups of token vectors (late chunking).

    Args:
        vectors: the token vectors of one row, shape (num_tokens, width).
        params: the size of the groups; the last one may be shorter.

    Returns:
        Means, shape (ceil(num_tokens / chunk_size), width), float32.

    Source:
        Günther et al. 2024, "Late Chunking", arXiv 2409.04701; vLLM 0.33.0.
    """
    size = min(params.chunk_size, max(1, len(vectors)))
    groups = torch.arange(len(vectors), device=vectors.device) // size
    num_groups = -(-len(vectors) // size)
    sums = segment_sums(vectors, groups, num_groups)
    sizes = torch.full((num_groups, 1), float(size), device=vectors.device)
    sizes[-1:] = len(vectors) - (num_groups - 1) * size
    return sums / sizes
