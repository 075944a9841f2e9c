"""transformers' configuration of a model folder."""

from typing import Any

from transformers import AutoConfig

from poolembed.runner.spec import ModelSpec


def load_config(spec: ModelSpec, *, trust_remote_code: bool = False) -> Any:  # noqa: ANN401 - one for each family
    """Return the configuration that `spec` describes, with the changes it asks for.

    Args:
        spec: what the folder declares.
        trust_remote_code: run Python code of the folder.
    """
    config = AutoConfig.from_pretrained(spec.folder / spec.subfolder, trust_remote_code=trust_remote_code)
    for key, value in spec.config_overrides.items():
        setattr(config, key, value)
    return config
