"""How many tokens a row may have: the position table, the tokenizer, sentence-transformers, the user."""

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import UNDECLARED, USER, Declared
from poolembed.runner.spec.families import OFFSET_ENCODERS, RELATIVE_ENCODERS, T5_ENCODERS
from poolembed.runner.spec.tokenizer import usable_length

FALLBACK_TOKENS = 2048
"""Limit where nothing declares one, as in the reference."""

_POSITION_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length")
_SELF_SCALED_ROPE = frozenset({"yarn", "longrope", "llama3", "su", "default", "proportional", "mrope"})
_DEFAULT_PADDING_INDEX = 1


def read_max_positions(checkpoint: Checkpoint) -> Declared[int] | None:
    """Return how many positions the model has room for; None where positions are relative.

    RoBERTa and its kin count from `pad_token_id + 1`, so 514 rows hold 512 tokens. Linear and dynamic
    rope scaling multiply the limit; the other kinds have it in the number already.

    Raises:
        ModelError: the table has no usable row.
    """
    family = checkpoint.model_type
    if family in RELATIVE_ENCODERS | T5_ENCODERS:
        return None
    config = checkpoint.config
    table = next(
        (found for key in _POSITION_KEYS if (found := config.integer(key)) and found.value > 0), None
    )
    if table is None:
        return None
    size, source = table.value, table.source
    if family in OFFSET_ENCODERS and not _is_rotary(checkpoint):
        padding = config.integer("pad_token_id")
        index = _DEFAULT_PADDING_INDEX if padding is None or family == "mpnet" else padding.value
        size, source = size - index - 1, f"{source} less pad_token_id + 1"
    factor = _rope_factor(checkpoint)
    if factor != 1.0:
        size, source = int(size * factor), f"{source} times the factor of rope scaling"
    if size < 1:
        raise ModelError(f"{source}: no position is left for a token", "correct config.json")
    return Declared(size, source)


def read_max_length(
    checkpoint: Checkpoint, positions: Declared[int] | None, warnings: list[str]
) -> Declared[int]:
    """Return the most tokens of a row, special tokens included.

    The user wins, then sentence-transformers' `max_seq_length`, which replaces all else, then the
    smaller of position table and tokenizer.

    Args:
        checkpoint: the model.
        positions: the limit of its positions.
        warnings: gets a line when a declared length has to be cut or nothing declares one.

    Raises:
        ConfigError: the user asks for more tokens than there are positions, or for less than one.
    """
    chosen = checkpoint.user.integer("max_length")
    if chosen:
        return _check_choice(chosen, positions)
    library = _library_length(checkpoint)
    if library:
        if positions and library.value > positions.value:
            warnings.append(
                f"{library.source} is {library.value}, but {positions.source} leaves {positions.value}; "
                f"rows are cut at {positions.value} tokens"
            )
            return positions
        return library
    tokenizer = usable_length(checkpoint.tokenizer_config)
    limits = [limit for limit in (positions, tokenizer, _soft_limit(checkpoint)) if limit]
    if limits:
        return min(limits, key=lambda limit: limit.value)
    warnings.append(f"nothing declares a maximum length; rows are cut at {FALLBACK_TOKENS} tokens")
    return Declared(FALLBACK_TOKENS, UNDECLARED)


def _check_choice(chosen: Declared[int], positions: Declared[int] | None) -> Declared[int]:
    if chosen.value < 1:
        raise ConfigError(f"maximum length {chosen.value}: a row has at least one token")
    if positions and chosen.value > positions.value:
        raise ConfigError(
            f"maximum length {chosen.value} is more than the model's {positions.value} positions "
            f"({positions.source})",
            f"choose at most {positions.value}",
        )
    return Declared(chosen.value, USER)


def _library_length(checkpoint: Checkpoint) -> Declared[int] | None:
    settings = checkpoint.transformer
    per_call = settings.section("processing_kwargs").section("text").integer("max_length")
    return per_call or settings.integer("max_seq_length")


def _soft_limit(checkpoint: Checkpoint) -> Declared[int] | None:
    """Return the length that a relative model was trained for, which is no hard limit."""
    if checkpoint.model_type in RELATIVE_ENCODERS | T5_ENCODERS:
        found = checkpoint.config.integer("max_position_embeddings") or checkpoint.config.integer(
            "n_positions"
        )
        return found if found and found.value > 0 else None
    return None


def _is_rotary(checkpoint: Checkpoint) -> bool:
    kind = checkpoint.config.text("position_embedding_type")
    return kind is not None and kind.value == "rotary"


def _rope_factor(checkpoint: Checkpoint) -> float:
    for key in ("rope_scaling", "rope_parameters"):
        rope = checkpoint.config.section(key)
        kind = rope.text("rope_type") or rope.text("type")
        factor = rope.data.get("factor")
        if kind and kind.value not in _SELF_SCALED_ROPE and isinstance(factor, (int, float)):
            return float(factor)
    return 1.0
