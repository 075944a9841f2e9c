"""What one row asks of its pooler, and the check of that against what the model can do.

Nothing is computed here. Names, defaults and the order of the checks are those of the reference's
`PoolingParams`; what only a server needs (caches, cached late interaction) is left out.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol, Self

from poolembed.config.pooler import PoolerConfig
from poolembed.errors import ConfigError
from poolembed.tasks import PoolingTask, check_task

TASK_PARAMETERS: dict[PoolingTask, tuple[str, ...]] = {
    "embed": ("use_activation", "dimensions"),
    "classify": ("use_activation",),
    "token_embed": ("use_activation", "dimensions", "late_chunking_params"),
    "token_classify": ("use_activation",),
}
"""The parameters each task understands; tasks that are not listed take whatever they are given."""

STEP_PARAMETERS = ("step_tag_id", "returned_token_ids")
"""Understood by both token tasks, but only where the model's token pooling is `STEP`."""

REMOVED_PARAMETERS: dict[str, str] = {
    "normalize": "use 'use_activation'",
    "softmax": "use 'use_activation'",
    "activation": "use 'use_activation'",
    "truncate_prompt_tokens": "use 'max_length' of the model",
}
"""Parameters of earlier releases of the reference, with what replaced them."""


class PoolingSpec(Protocol):
    """What `PoolingParams.verify` must know of a model; any object with these attributes will do."""

    @property
    def pooler_config(self) -> PoolerConfig | None:
        """Defaults for parameters that a row leaves open; None knows none."""

    @property
    def is_matryoshka(self) -> bool:
        """Whether the model was trained so that the first dimensions stand alone."""

    @property
    def matryoshka_dimensions(self) -> Sequence[int] | None:
        """The dimensions it was trained for; None or empty when only the fact is known."""

    @property
    def embedding_size(self) -> int:
        """Width of the full embedding."""


@dataclass(frozen=True, slots=True)
class LateChunkingParams:
    """How token vectors are averaged in groups (late chunking).

    Attributes:
        chunk_size: consecutive tokens of a group, in [1, 2**63); the last group may be shorter.

    Raises:
        ConfigError: `chunk_size` is no whole number or out of range.
    """

    chunk_size: int

    def __post_init__(self) -> None:
        """Refuse what is no count; True is an int to Python, but no count."""
        if type(self.chunk_size) is not int or not 0 < self.chunk_size < 2**63:
            raise ConfigError(f"chunk_size must be a whole number of at least 1, got {self.chunk_size!r}")


@dataclass(slots=True, kw_only=True)
class PoolingParams:
    """What one row asks of its pooler; None leaves the choice to the model.

    Attributes:
        use_activation: apply the output activation (L2 for embeddings); None means yes.
        dimensions: keep the first so many dimensions of an embedding.
        late_chunking_params: average token vectors in groups (task `token_embed`).
        step_tag_id: keep the rows of tokens with this id (token pooling `STEP`).
        returned_token_ids: keep these columns of every token's output (token pooling `STEP`).
        task: the pooling task; poolers refuse rows without one.
        requires_token_ids: the pooler needs the token ids of the row; set by the pooler itself.

    Raises:
        ConfigError: the task is unknown or was removed, a removed parameter is given, or a number is none.

    Source:
        vLLM 0.33.0, `pooling_params.py`.
    """

    use_activation: bool | None = None
    dimensions: int | None = None
    late_chunking_params: LateChunkingParams | None = None
    step_tag_id: int | None = None
    returned_token_ids: Sequence[int] | None = None
    task: PoolingTask | None = None
    requires_token_ids: bool = False

    def __new__(cls, **values: object) -> Self:
        """Refuse removed parameters with a pointer to their replacement."""
        problems = [f"{n!r} was removed: {why}" for n, why in REMOVED_PARAMETERS.items() if n in values]
        if problems:
            raise ConfigError("; ".join(problems))
        return object.__new__(cls)

    def __post_init__(self) -> None:
        """Refuse unknown and removed tasks, and numbers that are none."""
        if self.task is not None:
            self.task = check_task(self.task)
        for name in ("dimensions", "step_tag_id"):
            value = getattr(self, name)
            if value is not None and type(value) is not int:
                raise ConfigError(f"{name} must be a whole number, got {value!r}")

    def clone(self) -> Self:
        """Return an independent copy."""
        return deepcopy(self)

    def verify(self, model_config: PoolingSpec) -> None:
        """Fill open parameters from the model and refuse what task or model do not understand.

        Args:
            model_config: what the model declares.

        Raises:
            ConfigError: a parameter does not belong to the task, or `dimensions` is not one the model
                was trained for.
        """
        if self.late_chunking_params is not None and self.task != "token_embed":
            raise ConfigError(f"late chunking needs task 'token_embed', not {self.task!r}")
        if self.task not in TASK_PARAMETERS:
            return
        if model_config.pooler_config is not None:
            self._merge_defaults(self.task, model_config.pooler_config)
            self._merge_step_parameters(self.task, model_config.pooler_config)
        if self.use_activation is None:
            self.use_activation = True
        if self.dimensions is not None and "dimensions" in TASK_PARAMETERS[self.task]:
            self._check_dimensions(self.dimensions, model_config)
        self._refuse_foreign_parameters(self.task)
        if self.late_chunking_params is not None and self.step_tag_id is not None:
            raise ConfigError("late chunking averages rows that 'step_tag_id' would pick", "use one of them")

    def _merge_defaults(self, task: PoolingTask, pooler_config: PoolerConfig) -> None:
        for name in TASK_PARAMETERS[task]:
            if getattr(self, name) is None:
                setattr(self, name, getattr(pooler_config, name, None))

    def _merge_step_parameters(self, task: PoolingTask, pooler_config: PoolerConfig) -> None:
        if task.startswith("token_") and pooler_config.tok_pooling_type == "STEP":
            for name in STEP_PARAMETERS:
                if getattr(self, name) is None:
                    setattr(self, name, getattr(pooler_config, name))
            return
        given = [name for name in STEP_PARAMETERS if getattr(self, name) is not None]
        if given:
            raise ConfigError(
                f"task {task!r} does not understand {', '.join(given)} here",
                "they need a token task and the token pooling STEP",
            )

    def _check_dimensions(self, dimensions: int, model_config: PoolingSpec) -> None:
        if not model_config.is_matryoshka:
            raise ConfigError(
                f"dimensions={dimensions}: the model declares no matryoshka dimensions",
                f"leave 'dimensions' out to get all {model_config.embedding_size}",
            )
        if not 1 <= dimensions <= model_config.embedding_size:
            raise ConfigError(f"dimensions={dimensions} is outside [1, {model_config.embedding_size}]")
        trained = model_config.matryoshka_dimensions
        if trained and dimensions not in trained:
            raise ConfigError(
                f"dimensions={dimensions} is not one the model was trained for",
                f"trained are {', '.join(map(str, trained))}",
            )

    def _refuse_foreign_parameters(self, task: PoolingTask) -> None:
        valid = TASK_PARAMETERS[task]
        known = dict.fromkeys(name for names in TASK_PARAMETERS.values() for name in names)
        invalid = [name for name in known if name not in valid and getattr(self, name) is not None]
        if invalid:
            raise ConfigError(
                f"task {task!r} does not understand {', '.join(invalid)}",
                f"it understands {', '.join(valid)}",
            )
