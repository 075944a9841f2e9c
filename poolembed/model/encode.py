"""Texts to the pooled data of any task, as the pooler gives it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from poolembed.errors import ConfigError
from poolembed.model.operation import OnBatch, Operation, Outcome, Texts
from poolembed.results import Ragged, ResultColumn
from poolembed.runner import PoolingParams, TokenizedRows
from poolembed.tasks import check_task

if TYPE_CHECKING:
    from poolembed.runner import PoolingRunner


@dataclass(frozen=True, slots=True)
class Encode(Operation):
    """Gives each text the pooled data of a task.

    Attributes:
        runner: the model.
        params: what is computed.
        prompt: text put before every text.
    """

    runner: "PoolingRunner"
    params: PoolingParams
    prompt: str

    @classmethod
    def of(cls, runner: "PoolingRunner", prompt: str, task: str | None, given: PoolingParams | None) -> Self:
        """Return the operation, checked against what the model declares.

        Args:
            runner: the model.
            prompt: text put before every text.
            task: the pooling task.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: no task is named, or one that the model cannot do as asked.
        """
        if task is None:
            raise ConfigError("pooling_task is missing", f"one of {', '.join(runner.spec.tasks)}")
        return cls(runner, runner.params(check_task(task), given), prompt)

    @property
    def gives_rows(self) -> bool:
        """Whether a text has one result, and not one for each of its tokens."""
        return self.params.task in ("embed", "classify")

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`data`: a vector, or a list of them."""
        size = self.runner.result_size(self.params)
        return (ResultColumn("data", "float32", size, is_list=not self.gives_rows),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, and the prompt."""
        return self.runner.describe(self.params) | {"prompt": self.prompt}

    def tokenize(self, texts: Texts) -> TokenizedRows:
        """Tokenize the role `text`."""
        return self.runner.tokenizers.texts(self.prompt)(texts["text"])

    def compute(self, tokens: TokenizedRows, on_batch: OnBatch | None = None) -> Outcome:
        """Pool every row."""
        pooled = self.runner.pool(tokens, self.params, on_batch)
        data = pooled.values if pooled.lengths is None else Ragged(pooled.lengths, pooled.values)
        return Outcome(
            columns={"data": data},
            num_tokens=tokens.lengths.astype(np.int32),
            truncated=tokens.truncated,
            failures=pooled.failures,
        )
