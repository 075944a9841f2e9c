"""What `token-classify` must know."""

from dataclasses import dataclass
from typing import Literal

from poolembed.config.tasks import TaskConfig

Aggregation = Literal["none", "simple", "first", "average", "max"]

AGGREGATIONS: tuple[Aggregation, ...] = ("none", "simple", "first", "average", "max")


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityConfig(TaskConfig):
    """What `token-classify` must know.

    Attributes:
        aggregation: how the classes of tokens become entities; see `poolembed.model.entity_groups`.
        overlap_tokens: tokens of text that a window of a long text repeats from the one before; None takes
            a quarter of a window.
    """

    aggregation: Aggregation = "simple"
    overlap_tokens: int | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = []
        if self.aggregation not in AGGREGATIONS:
            known = ", ".join(AGGREGATIONS)
            problems.append(f"--aggregation must be one of {known}, got {self.aggregation!r}")
        if self.overlap_tokens is not None and self.overlap_tokens < 0:
            problems.append(f"--overlap-tokens must be at least 0, got {self.overlap_tokens}")
        return problems
