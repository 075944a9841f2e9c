"""Texts to rewards: one for the whole text, for each token, or for each step of a solution."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from typing import TYPE_CHECKING

import numpy as np

from poolembed.config import Level, RewardConfig
from poolembed.errors import ConfigError
from poolembed.model.operation import OnBatch, Outcome, Texts
from poolembed.model.prompted import Prompted
from poolembed.results import ColumnData, Ragged, ResultColumn
from poolembed.runner import ModelSpec, PooledRows, PoolingParams, TokenizedRows, request
from poolembed.tasks import PoolingTask

if TYPE_CHECKING:
    pass

GOOD = "good"
"""Label of the output that says that a step is right."""

_TASKS: dict[Level, PoolingTask] = {
    "sequence": "classify",
    "token": "token_classify",
    "step": "token_classify",
}


def levels_of(spec: ModelSpec) -> tuple[Level, ...]:
    """Return what a model can reward, what it is made for first; empty for other models."""
    if spec.kind == "process-reward" or (spec.kind == "reward" and spec.tok_pooling == "STEP"):
        return ("step",)
    if spec.kind == "reward":
        return ("sequence", "token") if "classify" in spec.tasks else ("token",)
    is_sequence_reward = spec.score_type == "cross-encoder" and spec.template is None
    return ("sequence",) if is_sequence_reward and spec.logit_head is None else ()


def level_of(spec: ModelSpec, config: RewardConfig) -> Level:
    """Return what is rewarded.

    Args:
        spec: what the model declares.
        config: what the user chose.

    Raises:
        ConfigError: the model gives no rewards, or none of that kind.
    """
    levels = levels_of(spec)
    if not levels:
        raise ConfigError(
            f"{spec.name} is a model of kind {spec.kind!r} and gives no rewards",
            "reward models do, and classifiers with a single output",
        )
    if config.level is not None and config.level not in levels:
        raise ConfigError(f"{spec.name} cannot reward by {config.level}", f"it can by {', '.join(levels)}")
    return config.level or levels[0]


@dataclass(frozen=True, slots=True)
class Reward(Prompted[RewardConfig]):
    """Gives each text its reward or rewards.

    Attributes:
        runner: the model.
        params: what is computed.
        prompt: text put before every text.
        config: what is rewarded.
    """

    @staticmethod
    def check(spec: ModelSpec, config: RewardConfig, given: PoolingParams | None = None) -> PoolingParams:
        """Return what every row asks for.

        Rewards of texts and tokens are raw unless an activation is asked for; steps are judged by
        probabilities unless it is refused.

        Args:
            spec: what the model declares.
            config: what is rewarded.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: the model gives no rewards, or none of that kind.
        """
        level = level_of(spec, config)
        if spec.tok_pooling == "STEP" and level != "step":
            raise ConfigError(
                f"{spec.name} rewards the whole text, so no steps can be picked", "leave out STEP"
            )
        params = PoolingParams() if given is None else given.clone()
        if params.use_activation is None and level != "step":
            params.use_activation = False
        return request(spec, _TASKS[level], params)

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`reward` of a text; or `rewards`, a number or one vector of outputs for each token or step."""
        if self.level == "sequence":
            return (ResultColumn("reward", "float32"),)
        return (ResultColumn("rewards", "float32", self._width, is_list=True),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, what is rewarded, and the outputs of the model."""
        labels = dumps(self.runner.spec.labels, ensure_ascii=False)
        own = {"prompt": self.prompt, "level": self.level, "labels": labels}
        if self.level == "step":
            own["step_tag_id"] = str(self.params.step_tag_id)
        return self.runner.describe(self.params) | own

    def tokenize(self, texts: Texts) -> TokenizedRows:
        """Tokenize the role `text`."""
        return self.runner.tokenizers.texts(self.prompt)(texts["text"])

    def compute(self, tokens: TokenizedRows, on_batch: OnBatch | None = None) -> Outcome:
        """Compute the rewards of every row."""
        pooled = self.runner.pool(tokens, self.params, on_batch)
        return Outcome(
            columns=self._content(pooled),
            num_tokens=tokens.lengths.astype(np.int32),
            truncated=tokens.truncated,
            failures=pooled.failures,
        )

    @property
    def level(self) -> Level:
        """What is rewarded."""
        return level_of(self.runner.spec, self.config)

    @property
    def _width(self) -> int | None:
        """Length of a reward that is a vector; None where it is a number."""
        is_number = self.runner.spec.num_labels == 1 or self._judges
        return None if is_number else self.runner.spec.num_labels

    @property
    def _judges(self) -> bool:
        """Whether a reward is the probability that a step is right."""
        return bool(self.level == "step" and self.params.use_activation and GOOD in self.runner.spec.labels)

    def _content(self, pooled: PooledRows) -> dict[str, ColumnData]:
        values = pooled.values
        if self._width is None:
            values = values[:, self.runner.spec.labels.index(GOOD) if self._judges else 0]
        if pooled.lengths is None:
            return {"reward": values}
        return {"rewards": Ragged(pooled.lengths, values)}
