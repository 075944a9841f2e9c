"""Positions that a model scales by the longest row of a call: dynamic and long RoPE.

Their authors' numbers are those of a row alone. So only rows of one length may share a call, one call at a
time, and what a longer row left behind is put back before it.
"""

from typing import Any

import torch

LONGROPE = "longrope"
DYNAMIC = "dynamic"


def scales_with_length(config: Any, max_length: int) -> bool:  # noqa: ANN401 - a config of transformers
    """Tell whether a row of up to `max_length` tokens can change how positions of a call are scaled.

    Args:
        config: the model's configuration.
        max_length: most tokens of a row.

    Returns:
        True where `config` declares dynamic or long RoPE and rows may be longer than it was trained for.
    """
    config = config.get_text_config()
    declared = getattr(config, "rope_parameters", None) or {}
    for parameters in (declared, *declared.values()):
        kind = str(parameters.get("rope_type", "")) if isinstance(parameters, dict) else ""
        if kind == LONGROPE or DYNAMIC in kind:
            trained = parameters.get("original_max_position_embeddings") or config.max_position_embeddings
            if max_length > trained:
                return True
    return False


def forget_length(model: torch.nn.Module) -> None:
    """Undo what the rows so far did to the scale of positions."""
    module: Any
    for module in model.modules():
        if hasattr(module, "max_seq_len_cached") and hasattr(module, "original_inv_freq"):
            module.inv_freq = module.original_inv_freq.clone()
            module.max_seq_len_cached = module.original_max_seq_len
