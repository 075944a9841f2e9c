"""What a model declares and how a run would use it, for a person to read."""

from dataclasses import dataclass
from typing import Any

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.runner import describe_model


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport:
    """A model's settings.

    Attributes:
        name: the model as the user called it.
        path: its folder.
        origin: where it was found.
        rows: (setting, value, source) for every setting that has a meaning for this model.
        warnings: what the user should know, one line each.
        settings: the settings as plain values.
    """

    name: str
    path: str
    origin: str
    rows: tuple[tuple[str, Any, str], ...]
    warnings: tuple[str, ...]
    settings: dict[str, object]

    def to_json(self) -> dict[str, object]:
        """Return the settings, and where the model was found."""
        return {
            **self.settings,
            "name": self.name,
            "path": self.path,
            "origin": self.origin,
            "sources": {name: source for name, _, source in self.rows},
            "warnings": list(self.warnings),
        }


def report_model(model: ModelConfig, pooler: PoolerConfig) -> ModelReport:
    """Read what `model` declares, with the changes of `pooler`; no weights are loaded.

    Raises:
        ConfigError: an option contradicts the model.
        ModelError: the model is not found, incomplete or not supported.
    """
    folder, spec = describe_model(model, pooler)
    return ModelReport(
        name=folder.name,
        path=str(folder.path),
        origin=folder.origin,
        rows=spec.rows(),
        warnings=spec.warnings,
        settings=spec.to_json(),
    )
