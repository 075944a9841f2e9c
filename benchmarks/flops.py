"""Floating-point operations that a model asks for, from its config.json and the lengths of rows."""

from collections.abc import Iterable, Mapping
from typing import Any

GATED = frozenset(
    ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "modernbert", "nomic_bert", "new")
)
"""Families whose feed-forward part multiplies by three matrices instead of two."""

CAUSAL = frozenset(("llama", "mistral", "qwen2", "qwen3", "gpt2"))
"""Families in which a token attends to half of the row, on average."""

PLAIN = frozenset(("bert", "roberta", "xlm-roberta", "distilbert", "electra", "mpnet", "camembert", "gpt2"))


def flops(config: Mapping[str, Any], lengths: Iterable[int]) -> float:
    """Return the operations of one pass over rows: a multiplication and an addition are two.

    Linear layers of the transformer and the two products of attention; no embedding, norm or head, which
    together are below a hundredth.

    Args:
        config: a config.json.
        lengths: number of tokens of each row, special tokens included.

    Raises:
        ValueError: a family of which it is not known how its layers look.
    """
    family = config["model_type"]
    if family not in GATED | CAUSAL | PLAIN:
        raise ValueError(f"model type {family!r}: how its layers look is not known to the benchmarks")
    layers = _first(config, "num_hidden_layers", "n_layers", "n_layer")
    hidden = _first(config, "hidden_size", "dim", "n_embd")
    inner = config.get("intermediate_size") or config.get("hidden_dim") or 4 * hidden
    heads = _first(config, "num_attention_heads", "n_heads", "n_head")
    width = heads * (config.get("head_dim") or hidden // heads)
    keys = width * (config.get("num_key_value_heads") or heads) // heads
    attention_weights = hidden * (width + 2 * keys) + width * hidden
    weights = attention_weights + (3 if family in GATED else 2) * hidden * inner
    seen = 0.5 if family in CAUSAL else 1.0
    return float(sum(layers * (2 * weights * n + 4 * seen * width * n * n) for n in lengths))


def _first(config: Mapping[str, Any], *names: str) -> int:
    return int(next(config[name] for name in names if config.get(name)))
