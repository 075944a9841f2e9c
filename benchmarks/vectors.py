"""How far two contestants' vectors are apart."""

import numpy as np
import numpy.typing as npt


def difference(vectors: npt.NDArray[np.float32], reference: npt.NDArray[np.float32]) -> dict[str, float]:
    """Return the largest absolute difference, and the least and mean cosine where rows are vectors.

    Args:
        vectors: one row a text, shape (num_texts, size), or scores, shape (num_texts,).
        reference: the same by somebody else.

    Raises:
        ValueError: the shapes differ, so the two did not do the same work.
    """
    if vectors.shape != reference.shape:
        raise ValueError(f"shape {vectors.shape}, not {reference.shape}")
    left, right = vectors.astype(np.float64), reference.astype(np.float64)
    found = {"max_difference": float(f"{np.abs(left - right).max():.3g}")}
    if vectors.ndim == 2 and vectors.shape[1] > 1:
        norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        cosines = (left * right).sum(axis=1) / norms
        found |= {
            "min_cosine": round(float(cosines.min()), 7),
            "mean_cosine": round(float(cosines.mean()), 7),
        }
    return found
