"""Whether a model scores pairs as it is told, from what it declares alone: neither weights nor torch."""

from collections.abc import Iterator

from poolembed.config import PairConfig, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner import ModelSpec, named_prompt, request
from poolembed.tasks import SCORE_TYPE_MAP, PoolingTask, ScoreType

TASK_OF: dict[ScoreType, PoolingTask] = {score_type: task for task, score_type in SCORE_TYPE_MAP.items()}
"""What the texts of a pair are computed to."""


def check_score(spec: ModelSpec, pair: PairConfig, pooler: PoolerConfig) -> None:
    """See that a model scores pairs, and that it has a use for what it is told; needs no weights.

    Args:
        spec: what the model declares.
        pair: the user's limits and prompts.
        pooler: the user's changes to the output.

    Raises:
        ConfigError: it cannot, or has not; lists every problem.
    """
    if spec.score_type is None:
        raise _no_score(spec)
    problems = list(_pair_problems(spec, pair, pooler))
    if problems:
        raise ConfigError("; ".join(problems))
    for name in (pair.query_prompt_name, pair.document_prompt_name):
        named_prompt(spec, name)
    request(spec, TASK_OF[spec.score_type])


def _no_score(spec: ModelSpec) -> ConfigError:
    if spec.kind in ("classifier", "cross-encoder"):
        return ConfigError(
            f"{spec.name} has {spec.num_labels} labels, so it gives no single score to a pair",
            "score takes models with one label; `poolembed classify` gives the probability of each label",
        )
    return ConfigError(
        f"{spec.name} is a model of kind {spec.kind!r} and scores no pairs",
        "score takes embedding models, cross-encoders, and late-interaction models",
    )


def _pair_problems(spec: ModelSpec, pair: PairConfig, pooler: PoolerConfig) -> Iterator[str]:
    limits = [name for name, _ in limits_of(pair)]
    prompts = [name for name in ("query_prompt_name", "document_prompt_name") if getattr(pair, name)]
    if spec.score_type != "cross-encoder":
        raw = ["raw"] if pooler.use_activation is False else []
        yield from (_foreign(spec, name, "cross-encoders") for name in (*limits, *raw))
    else:
        yield from _limit_problems(spec, pair)
        if pooler.dimensions is not None:
            yield f"--dimensions is for models that encode each text, and {spec.name} is a cross-encoder"
    if spec.score_type == "cross-encoder" or spec.late_interaction is not None:
        yield from (_foreign(spec, name, "bi-encoders") for name in prompts)


def _foreign(spec: ModelSpec, name: str, kind: str) -> str:
    return f"--{name.replace('_', '-')} is for {kind}, and {spec.name} is a {spec.score_type}"


def _limit_problems(spec: ModelSpec, pair: PairConfig) -> Iterator[str]:
    for name, value in limits_of(pair):
        if isinstance(value, int) and value >= spec.max_length:
            option = name.replace("_", "-")
            yield f"--{option} must be below the {spec.max_length} tokens of a row, got {value}"
    if pair.instruction is not None and spec.template is None:
        yield f"--instruction: {spec.name} has no prompt that takes an instruction"


def limits_of(pair: PairConfig) -> Iterator[tuple[str, str | int]]:
    """Yield what is set in `pair` of what is for cross-encoders alone, as (field, value)."""
    for name in ("max_query_tokens", "max_document_tokens", "instruction"):
        value = getattr(pair, name)
        if value is not None:
            yield name, value
