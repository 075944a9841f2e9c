"""What every call of a model in memory needs: the runner, and the prompt of its texts."""

import logging
from dataclasses import replace
from typing import Any

from poolembed.config import DEFAULT_MODEL, Device, DType, LongTextConfig, ModelConfig, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.model.calls import checked, with_task
from poolembed.runner import PoolingRunner, load_runner, named_prompt

_log = logging.getLogger("poolembed")


class LoadedModel:
    """A model that was loaded as `PoolingModel` is told to.

    Attributes:
        runner: the loaded model with what it declares (`runner.spec`).
    """

    def __init__(
        self,
        model: str | ModelConfig = DEFAULT_MODEL,
        task: str | None = None,
        pooler_config: PoolerConfig | None = None,
        device: Device = "auto",
        dtype: DType = "auto",
    ) -> None:
        config = ModelConfig(model=model) if isinstance(model, str) else model
        config = replace(
            config,
            device=config.device if device == "auto" else device,
            dtype=config.dtype if dtype == "auto" else dtype,
        )
        checked(config)
        self._prompt, self._prompt_name = config.prompt, config.prompt_name
        self.runner: PoolingRunner = load_runner(config, with_task(pooler_config, task))
        for warning in self.runner.warnings:
            _log.warning(warning)

    def _prompt_of(self, name: str | None) -> str:
        if name is None and self._prompt is not None:
            return self._prompt
        return named_prompt(self.runner.spec, name or self._prompt_name)

    def _of_texts(self, long_texts: LongTextConfig) -> dict[str, Any]:
        """Return the settings of a policy for long texts that gives one result a text.

        Raises:
            ConfigError: it gives several.
        """
        if long_texts.on_long == "window-rows":
            raise ConfigError("--on-long window-rows is for files", "`windows` gives one result a text")
        return {"on_long": long_texts.on_long, "overlap_tokens": long_texts.overlap_tokens}
