"""How hidden states become pooled data, where the user overrides what the model declares."""

from dataclasses import dataclass, fields
from difflib import get_close_matches
from math import isfinite
from typing import Self

from poolembed.errors import ConfigError
from poolembed.tasks import check_task

REMOVED_POOLER_FIELDS: dict[str, str] = {
    "normalize": "use 'use_activation'",
    "softmax": "use 'use_activation'",
    "activation": "use 'use_activation'",
    "logit_bias": "use 'logit_mean'",
    "logit_scale": "use 'logit_sigma' (its reciprocal)",
}
"""Pooler settings of earlier releases of the reference, with what replaced them."""

SEQ_POOLING_TYPES = ("CLS", "LAST", "MEAN", "MAX", "MEAN_SQRT_LEN", "WEIGHTED_MEAN")
TOK_POOLING_TYPES = ("ALL", "STEP")


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolerConfig:
    """How hidden states become pooled data, where the user overrides what the model declares.

    Names and meaning are those of the reference layer; None leaves the model's declaration.

    Attributes:
        task: the pooling task to perform.
        pooling_type: fills `seq_pooling_type` or `tok_pooling_type`, whichever knows the name, and is
            None afterwards; names of other packages must be given to one of the two directly.
        seq_pooling_type: `CLS`, `LAST`, `MEAN`, `MAX`, `MEAN_SQRT_LEN`, `WEIGHTED_MEAN`, a registered
            name, or several joined by `+`, whose vectors are concatenated in that order.
        tok_pooling_type: `ALL`, `STEP`, or a registered name.
        use_activation: apply the model's output activation (for embeddings: L2 normalisation).
        dimensions: keep the first so many dimensions (matryoshka), before the activation.
        enable_chunked_processing: cut texts over the maximum length in pieces and average them.
        max_embed_len: most tokens of a text that is processed in pieces.
        logit_mean: subtracted from the logits before the activation.
        logit_sigma: divides the logits after `logit_mean`; not zero.
        step_tag_id: token id that ends a step (pooling `STEP`).
        returned_token_ids: columns kept of every token's output (pooling `STEP`).
        enable_flash_late_interaction: choice of kernel for late interaction; results are the same.

    Raises:
        ConfigError: a removed or unknown name, a value of the wrong type or range, or `pooling_type`
            together with one of the two it fills; every problem is listed.
    """

    task: str | None = None
    pooling_type: str | None = None
    seq_pooling_type: str | None = None
    tok_pooling_type: str | None = None
    use_activation: bool | None = None
    dimensions: int | None = None
    enable_chunked_processing: bool = False
    max_embed_len: int | None = None
    logit_mean: float | None = None
    logit_sigma: float | None = None
    step_tag_id: int | None = None
    returned_token_ids: tuple[int, ...] | None = None
    enable_flash_late_interaction: bool = True

    def __new__(cls, **values: object) -> Self:
        """Refuse names that are no fields, with a pointer to what replaces or resembles them."""
        known = [field.name for field in fields(cls)]
        problems = []
        for name in values:
            if name in REMOVED_POOLER_FIELDS:
                problems.append(f"{name!r} was removed: {REMOVED_POOLER_FIELDS[name]}")
            elif name not in known:
                near = "".join(f", did you mean {n!r}?" for n in get_close_matches(name, known, n=1))
                problems.append(f"unknown pooler setting {name!r}{near}")
        if problems:
            raise ConfigError("; ".join(problems), f"known settings: {', '.join(known)}")
        return object.__new__(cls)

    def __post_init__(self) -> None:
        """Check every value and let `pooling_type` fill the field that knows it."""
        ids: object = self.returned_token_ids
        if isinstance(ids, list):  # as a TOML or JSON file gives them
            object.__setattr__(self, "returned_token_ids", tuple(ids))
        problems = self._type_problems() or self._value_problems()
        if problems:
            raise ConfigError("; ".join(problems))
        if self.pooling_type is not None:
            target = "tok_pooling_type" if self.pooling_type in TOK_POOLING_TYPES else "seq_pooling_type"
            object.__setattr__(self, target, self.pooling_type)
            object.__setattr__(self, "pooling_type", None)

    def get_seq_pooling_type(self) -> str:
        """Return `seq_pooling_type`; a ConfigError while it is unset."""
        if self.seq_pooling_type is None:
            raise ConfigError("seq_pooling_type is not set", "declare it in the model or pass it")
        return self.seq_pooling_type

    def get_tok_pooling_type(self) -> str:
        """Return `tok_pooling_type`; a ConfigError while it is unset."""
        if self.tok_pooling_type is None:
            raise ConfigError("tok_pooling_type is not set", "declare it in the model or pass it")
        return self.tok_pooling_type

    def _type_problems(self) -> list[str]:
        problems = []
        for names, kinds, text in _POOLER_TYPES:
            for name in names:
                value = getattr(self, name)
                unset = value is None and name not in _POOLER_SWITCHES
                # True is an int to Python, but no count and no token id.
                if not unset and type(value) not in kinds:
                    problems.append(f"{name} must be {text}, got {value!r}")
        ids = self.returned_token_ids
        if ids is not None and not (type(ids) is tuple and all(type(token) is int for token in ids)):
            problems.append(f"returned_token_ids must be a tuple of token ids, got {ids!r}")
        return problems

    def _value_problems(self) -> list[str]:
        problems = []
        if self.task is not None:
            try:
                check_task(self.task)
            except ConfigError as error:
                problems.append(str(error))
        problems += [
            f"{name} must be at least 1, got {value}"
            for name in ("dimensions", "max_embed_len")
            if (value := getattr(self, name)) is not None and value < 1
        ]
        problems += [
            f"{name} must be finite, got {value}"
            for name in ("logit_mean", "logit_sigma")
            if (value := getattr(self, name)) is not None and not isfinite(value)
        ]
        if self.logit_sigma == 0:
            problems.append("logit_sigma must not be 0, it divides the logits")
        return problems + self._pooling_type_problems()

    def _pooling_type_problems(self) -> list[str]:
        if self.pooling_type is None:
            return []
        problems = [
            f"'pooling_type' and {name!r} exclude each other"
            for name in ("seq_pooling_type", "tok_pooling_type")
            if getattr(self, name) is not None
        ]
        if self.pooling_type in TOK_POOLING_TYPES or set(self.pooling_type.split("+")) <= set(
            SEQ_POOLING_TYPES
        ):
            return problems
        known = ", ".join(SEQ_POOLING_TYPES + TOK_POOLING_TYPES)
        return [
            *problems,
            f"unknown pooling_type {self.pooling_type!r}, known are {known} and sums like CLS+MEAN",
        ]


_POOLER_SWITCHES = ("enable_chunked_processing", "enable_flash_late_interaction")
_POOLER_TYPES: tuple[tuple[tuple[str, ...], tuple[type, ...], str], ...] = (
    (("task", "pooling_type", "seq_pooling_type", "tok_pooling_type"), (str,), "a name"),
    (("use_activation", *_POOLER_SWITCHES), (bool,), "true or false"),
    (("dimensions", "max_embed_len", "step_tag_id"), (int,), "a whole number"),
    (("logit_mean", "logit_sigma"), (int, float), "a number"),
)
