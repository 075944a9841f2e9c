"""The trial at load that decides how a model is run: packed, or only rows of equal length together.

Random rows of unequal length go through packed attention in one batch, and one at a time through the
model's own attention. No list of model names takes part in the decision.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from poolembed.errors import ModelError
from poolembed.runner.attention import PackingError
from poolembed.runner.backbone import Backbone, ForwardPath
from poolembed.runner.packing import TokenizedRows, pack, positions_in_rows
from poolembed.runner.precision import in_precision

# Largest error of a row's hidden states, relative to their norm. Packed and single runs differ by the
# order of sums inside matrix products (float32: 1e-6 seen over the zoo); rows that see each other, or
# positions that are off by one, by 1e-2 and more.
TOLERANCES = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 3e-2}

# The same in float64, where only what an architecture computes in float32 by itself is left.
FLOAT64_TOLERANCE = 1e-6

# A model may amplify rounding: all-mpnet-base-v2 gives some random rows with an error of 2e-4 in float32, in
# transformers as well. Up to so many tolerances, and up to so many bytes of weights, float64 decides.
DOUBTFUL = 100
MAX_FLOAT64_BYTES = 4 << 30

# Two rows of one length stand for neighbours that are stacked, the others for unequal ones.
LENGTHS = (130, 64, 33, 33, 7, 2)
SEED = 20_240_229

# A prefix that rows share in the trial, and what each has behind it.
SHARED_TOKENS = 40
OWN_LENGTHS = (7, 7, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """What the trial found.

    Attributes:
        path: how batches are run from now on.
        max_difference: largest relative error of a row; None where packing did not run at all. Where it is
            above the tolerance and rows are packed all the same, there is none in float64.
        reason: why the packed path was refused; None where it was not.
        shares_prefixes: whether rows that begin with the same tokens compute them once.
    """

    path: ForwardPath
    max_difference: float | None
    reason: str | None
    shares_prefixes: bool = False


def self_check(backbone: Backbone, rows: TokenizedRows) -> SelfCheck:
    """Try packed attention against the model's own and set `backbone.path` accordingly.

    Args:
        backbone: the loaded model; its path is changed.
        rows: what is tried, see `random_rows`.

    Returns:
        The path chosen, the difference seen and, where packing was refused, why.

    Raises:
        ModelError: the model's own attention gives numbers that are not finite.
    """
    reference = _one_at_a_time(backbone, rows)
    if not all(torch.isfinite(row).all() for row in reference):
        raise ModelError(
            "the model gives numbers that are not finite for random tokens",
            "the weights are damaged, or the precision is too low: try --dtype float32",
        )
    difference, reason = _try_packed(backbone, rows, reference)
    if backbone.scales_with_length:
        # Too short, these rows cannot show it.
        reason = "the longest row of a call scales the positions of all"
    path: ForwardPath = "packed" if reason is None else "equal-length"
    backbone.use_path(path)
    return SelfCheck(path=path, max_difference=difference, reason=reason)


def can_share_prefixes(backbone: Backbone, rows: TokenizedRows) -> bool:
    """Tell whether rows behind a shared prefix get the hidden states that they get when packed whole.

    Args:
        backbone: the checked model.
        rows: where tokens are taken from, see `random_rows`.

    Returns:
        Whether they do, within the tolerance of the self-check; never where the model is not packed.
    """
    num_shared = min(SHARED_TOKENS, int(rows.lengths[0]) - max(OWN_LENGTHS))
    if backbone.path != "packed" or num_shared < 1:
        return False
    prefix, rest = np.split(rows.token_ids[: num_shared + sum(OWN_LENGTHS)], [num_shared])
    own = np.split(rest, np.cumsum(OWN_LENGTHS)[:-1])
    whole = TokenizedRows(
        token_ids=np.concatenate([part for tokens in own for part in (prefix, tokens)]),
        lengths=num_shared + np.asarray(OWN_LENGTHS, np.int64),
        truncated=np.zeros(len(OWN_LENGTHS), np.bool_),
    )
    every = np.arange(len(OWN_LENGTHS))
    try:
        found = backbone.forward(pack(replace(whole, shared_lengths=np.full_like(every, num_shared)), every))
    except (PackingError, TypeError, ValueError, RuntimeError, IndexError):
        return False
    is_own = positions_in_rows(whole.lengths) >= num_shared
    expected = backbone.forward(pack(whole, every))[torch.from_numpy(is_own).to(found.device)]
    pairs = zip(found.split(OWN_LENGTHS), expected.split(OWN_LENGTHS), strict=True)
    return all(relative_error(*pair) <= TOLERANCES[found.dtype] for pair in pairs)


def random_rows(vocab_size: int, max_length: int, special_ids: frozenset[int]) -> TokenizedRows:
    """Return rows of random tokens, the same at every call.

    Args:
        vocab_size: entries of the model's vocabulary.
        max_length: most tokens that a row of this model may have.
        special_ids: token ids that stand for no text, left out.
    """
    allowed = np.setdiff1d(np.arange(vocab_size), np.fromiter(special_ids, np.int64, len(special_ids)))
    lengths = np.minimum(np.asarray(LENGTHS, np.int64), max_length)
    return TokenizedRows(
        token_ids=np.random.default_rng(SEED).choice(allowed, int(lengths.sum())),
        lengths=lengths,
        truncated=np.zeros(len(lengths), np.bool_),
    )


def _one_at_a_time(backbone: Backbone, rows: TokenizedRows) -> list[torch.Tensor]:
    backbone.use_path("equal-length")
    return [backbone.forward(pack(rows, np.asarray([row]))) for row in range(len(rows.lengths))]


def _try_packed(
    backbone: Backbone, rows: TokenizedRows, reference: list[torch.Tensor]
) -> tuple[float | None, str | None]:
    try:
        difference, num_calls = _difference(backbone, rows, reference)
    except (PackingError, TypeError, ValueError, RuntimeError, IndexError) as error:
        # Models refuse packed input in their own ways; all of them mean the same here.
        return None, str(error).splitlines()[0] if str(error) else type(error).__name__
    if num_calls == 0:
        return difference, "the model never calls a replaceable attention function"
    tolerance = TOLERANCES[reference[0].dtype]
    if difference <= tolerance or (difference <= DOUBTFUL * tolerance and _agree_in_float64(backbone, rows)):
        return difference, None
    return difference, f"packed rows differ from single rows by {difference:.1e}, more than {tolerance:.0e}"


def _difference(backbone: Backbone, rows: TokenizedRows, reference: list[torch.Tensor]) -> tuple[float, int]:
    """Return the largest error of a packed row, and how many layers went through the packed attention."""
    batch = pack(rows, np.arange(len(rows.lengths)))
    backbone.use_path("packed")
    hidden_states, num_calls = backbone.count_packed_calls(batch)
    pairs = zip(hidden_states.split(batch.lengths.tolist()), reference, strict=True)
    return max(relative_error(packed, single) for packed, single in pairs), num_calls


def _agree_in_float64(backbone: Backbone, rows: TokenizedRows) -> bool:
    num_weights = sum(weight.numel() for weight in backbone.model.parameters())
    if backbone.device.type == "mps" or 8 * num_weights > MAX_FLOAT64_BYTES:
        return False
    with in_precision(backbone.model, torch.float64):
        difference, _ = _difference(backbone, rows, _one_at_a_time(backbone, rows))
    return difference <= FLOAT64_TOLERANCE


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the norm of `found` minus `expected`, relative to that of `expected`, in float32."""
    found, expected = found.float(), expected.float()
    return float((found - expected).norm() / expected.norm().clamp_min(1e-12))
