"""Texts to vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from poolembed.model.operation import OnBatch, Outcome, Texts
from poolembed.results import ResultColumn
from poolembed.runner import PoolingParams, PoolingRunner, TokenizedRows


@dataclass(frozen=True, slots=True)
class Embed:
    """Gives each text one vector.

    Attributes:
        runner: the model.
        params: what is computed; its task is `embed`.
        prompt: text put before every text.
    """

    runner: PoolingRunner
    params: PoolingParams
    prompt: str

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`embedding`."""
        return (ResultColumn("embedding", "float32", self.runner.result_size(self.params)),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, and the prompt."""
        return self.runner.describe(self.params) | {"prompt": self.prompt}

    def tokenize(self, texts: Texts) -> TokenizedRows:
        """Tokenize the role `text`."""
        return self.runner.tokenizers.texts(self.prompt)(texts["text"])

    def compute(self, tokens: TokenizedRows, on_batch: OnBatch | None = None) -> Outcome:
        """Pool every row of `tokens`, see `Operation.compute`; `on_batch` hears of each batch."""
        pooled = self.runner.pool(tokens, self.params, on_batch)
        return Outcome(
            columns={"embedding": pooled.values},
            num_tokens=tokens.lengths.astype(np.int32),
            truncated=tokens.truncated,
            failures=pooled.failures,
        )
