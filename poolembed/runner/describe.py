"""What a model is, without loading it: neither torch nor transformers is imported."""

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.runner.locate import ModelFolder, locate_model
from poolembed.runner.spec import ModelSpec, read_spec


def describe_model(model: ModelConfig, pooler: PoolerConfig | None = None) -> tuple[ModelFolder, ModelSpec]:
    """Find a model and read what it declares, without loading it.

    Args:
        model: which model, and the user's limits.
        pooler: the user's changes to what the model declares.

    Returns:
        Where the model is, and what it declares.

    Raises:
        ConfigError: an option contradicts the model.
        ModelError: the model is not found, incomplete or not supported.
    """
    folder = locate_model(model.model, model.revision)
    spec = read_spec(
        folder.path,
        model_name=folder.name,
        pooler_config=pooler,
        max_length=model.max_length,
        overrides=dict(model.overrides),
        trust_remote_code=model.trust_remote_code,
    )
    return folder, spec
