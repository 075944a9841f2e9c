"""What rows ask of a model, checked against what it declares; no weights are needed for that."""

from poolembed.config import PoolingParams
from poolembed.errors import ConfigError
from poolembed.runner.spec import ModelSpec
from poolembed.tasks import PoolingTask


def request(spec: ModelSpec, task: PoolingTask, given: PoolingParams | None = None) -> PoolingParams:
    """Return the parameters of a task, with what is left open filled in from the model.

    Args:
        spec: what the model declares, and the user overrode.
        task: the pooling task.
        given: what the user asks for; it is not changed.

    Raises:
        ConfigError: the model cannot do the task, or cannot do it as asked, or `given` is for another task.
    """
    if task not in spec.tasks:
        raise ConfigError(
            f"{spec.name} is a model of kind {spec.kind!r} and cannot {task}",
            f"it can {', '.join(spec.tasks)}",
        )
    params = PoolingParams() if given is None else given.clone()
    if params.task not in (None, task):
        raise ConfigError(
            f"the parameters are for the task {params.task!r}, but {task!r} was called",
            "leave their task out",
        )
    params.task = task
    params.verify(spec)
    return params


def named_prompt(spec: ModelSpec, name: str | None) -> str:
    """Return a prompt of the model.

    Args:
        spec: what the model declares.
        name: the prompt's name; None returns the one that the model puts before every row.

    Raises:
        ConfigError: the model declares no prompt of that name.
    """
    if name is None:
        return spec.default_prompt
    if name not in spec.prompts:
        raise ConfigError(
            f"{spec.name} declares no prompt {name!r}",
            f"its prompts: {', '.join(spec.prompts) or 'none'}; or use --prompt TEXT",
        )
    return spec.prompts[name]
