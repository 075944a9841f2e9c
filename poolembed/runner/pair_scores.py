"""Scores of pairs from the pooled data of their texts: similarities of vectors, and MaxSim."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from poolembed.poolers import compute_maxsim_score_batched
from poolembed.runner.packing import IntArray
from poolembed.runner.results import PooledRows

# As torch's `normalize`: a vector shorter than this has no direction, and cosine 0 with every other.
MIN_NORM = 1e-12

# Numbers of a block of vectors that are brought side by side at once.
MAX_BLOCK_NUMBERS = 16_000_000

Scores = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which texts each pair is made of; a text may be in any number of them.

    Attributes:
        query_of: number of each pair's query among the texts, shape (num_pairs,), int64.
        document_of: number of each pair's document among the texts, shape (num_pairs,), int64.
    """

    query_of: IntArray
    document_of: IntArray

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.query_of)


def similarities(name: str, texts: PooledRows, pairs: Pairs) -> Scores:
    """Return the similarity of each pair's vectors; more is closer.

    Args:
        name: `cosine`, `dot`, `euclidean` or `manhattan`; the last two are distances with a minus.
        texts: one vector a text.
        pairs: which of them belong together.

    Returns:
        Shape (num_pairs,), float32, in the order of the pairs.

    Source:
        sentence-transformers 6.2 `similarity_pairwise`.
    """
    vectors = _normalized(texts.values) if name == "cosine" else texts.values
    scores = np.empty(len(pairs), np.float32)
    step = max(1, MAX_BLOCK_NUMBERS // max(1, vectors.shape[1]))
    for start in range(0, len(pairs), step):
        block = slice(start, start + step)
        left, right = vectors[pairs.query_of[block]], vectors[pairs.document_of[block]]
        if name == "euclidean":
            scores[block] = -np.linalg.norm(left - right, axis=1)
        elif name == "manhattan":
            scores[block] = -np.abs(left - right).sum(axis=1)
        else:
            scores[block] = np.einsum("ij,ij->i", left, right)
    return scores


def maxsim_scores(texts: PooledRows, pairs: Pairs, device: torch.device) -> Scores:
    """Return the MaxSim score of each pair.

    Args:
        texts: one matrix a text, with a token at least.
        pairs: which of them belong together.
        device: where it is computed.

    Returns:
        Shape (num_pairs,), float32, in the order of the pairs.
    """
    assert texts.lengths is not None
    matrices = torch.from_numpy(texts.values).to(device).split(texts.lengths.tolist())
    # Neighbours of one size are scored together without padding.
    order = np.lexsort((texts.lengths[pairs.document_of], texts.lengths[pairs.query_of]))
    found = compute_maxsim_score_batched(
        [matrices[text] for text in pairs.query_of[order].tolist()],
        [matrices[text] for text in pairs.document_of[order].tolist()],
    )
    scores = np.empty(len(pairs), np.float32)
    if found:
        scores[order] = torch.stack(found).cpu().numpy()
    return scores


def _normalized(vectors: Scores) -> Scores:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalized: Scores = vectors / np.maximum(norms, MIN_NORM)
    return normalized
