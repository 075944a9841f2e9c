"""The trial at load that a head computes what its own architecture computes.

The model as a whole runs on random rows before it is taken apart; afterwards its transformer and pooler
must give the same logits.
"""

from typing import Any

import numpy as np
import torch

from poolembed.errors import ModelError
from poolembed.poolers import PoolingParams
from poolembed.runner.packing import TokenizedRows
from poolembed.runner.pooling_runner import PoolingRunner
from poolembed.runner.self_check import TOLERANCES, relative_error


def own_logits(model: Any, rows: TokenizedRows) -> list[torch.Tensor]:  # noqa: ANN401
    """Return what a model with a head gives for each row alone.

    Args:
        model: the model as it was loaded.
        rows: random rows.

    Returns:
        Logits of each row, shape (num_labels,) or (num_tokens, num_labels).
    """
    device = next(model.parameters()).device
    with torch.inference_mode():
        return [
            model(input_ids=ids[None], attention_mask=torch.ones_like(ids[None])).logits[0]
            for ids in torch.from_numpy(rows.token_ids).to(device).split(rows.lengths.tolist())
        ]


def check_head(runner: PoolingRunner, rows: TokenizedRows, expected: list[torch.Tensor]) -> None:
    """Compare transformer and pooler with the logits of the whole model.

    Args:
        runner: the loaded model.
        rows: the rows that `expected` was computed from.
        expected: what `own_logits` gave.

    Raises:
        ModelError: they differ by more than the precision allows.
    """
    config = runner.spec.pooler_config
    scale, shift = config.logit_sigma or 1.0, config.logit_mean or 0.0
    params = PoolingParams(task=runner.spec.task, use_activation=False)
    pooled = runner.pool(rows, params)
    lengths = np.ones(len(rows.lengths), np.int64) if pooled.lengths is None else pooled.lengths
    found = torch.from_numpy(pooled.values).split(lengths.tolist())
    tolerance = TOLERANCES[runner.backbone.model.dtype]
    for row, logits in zip(found, expected, strict=True):
        error = relative_error((row * scale + shift).reshape(logits.shape), logits.cpu())
        if not error <= tolerance:
            raise ModelError(
                f"the head of {runner.spec.architecture} does not give the model's own logits "
                f"(relative difference {error:.1e}, allowed {tolerance:.0e})",
                "this architecture is not supported yet",
            )
