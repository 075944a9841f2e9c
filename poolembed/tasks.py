"""Pooling tasks, score types and the removed names that older tools used for them."""

from typing import Literal, get_args

from poolembed.errors import ConfigError

PoolingTask = Literal["embed", "classify", "token_embed", "token_classify", "plugin", "embed&token_classify"]
ScoreType = Literal["bi-encoder", "cross-encoder", "late-interaction"]

POOLING_TASKS: tuple[PoolingTask, ...] = get_args(PoolingTask)

SCORE_TYPE_MAP: dict[PoolingTask, ScoreType] = {
    "embed": "bi-encoder",
    "classify": "cross-encoder",
    "token_embed": "late-interaction",
}
"""How two texts are scored by a model, from the task the model performs."""

REMOVED_TASKS: dict[str, str] = {
    "score": "use 'classify'",
    "encode": "use 'token_embed' or 'token_classify'",
}
"""Task names of earlier releases of the reference, with what replaced them."""


def check_task(name: str) -> PoolingTask:
    """Return `name` as a pooling task.

    Args:
        name: one of `POOLING_TASKS`.

    Raises:
        ConfigError: the name is unknown, or was removed (the message names its replacement).
    """
    if name in REMOVED_TASKS:
        raise ConfigError(f"pooling task {name!r} was removed", REMOVED_TASKS[name])
    for task in POOLING_TASKS:
        if name == task:
            return task
    raise ConfigError(f"unknown pooling task {name!r}", f"known tasks: {', '.join(POOLING_TASKS)}")
