"""Texts to classes: the best one, probabilities, and for models of several labels those above a threshold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from poolembed.config import ClassifyConfig
from poolembed.errors import ConfigError
from poolembed.model.long_text import LongTexts, Tokens
from poolembed.model.operation import OnBatch, Outcome, Texts
from poolembed.model.prompted import Prompted
from poolembed.results import ColumnData, Ragged, ResultColumn
from poolembed.runner import ModelSpec, PoolingParams, request

if TYPE_CHECKING:
    pass

DEFAULT_THRESHOLD = 0.5

Numbers = npt.NDArray[np.float32]


def is_multi_label(spec: ModelSpec) -> bool:
    """Tell whether several classes may hold at once, each with a probability of its own."""
    return spec.problem_type == "multi_label_classification" or (
        spec.problem_type is None and spec.activation == "sigmoid" and spec.num_labels > 1
    )


@dataclass(frozen=True, slots=True)
class Classify(Prompted[ClassifyConfig]):
    """Gives each text its class, with all probabilities or the best few.

    Attributes:
        runner: the model.
        params: what is computed; its task is `classify`.
        prompt: text put before every text.
        config: what is given.
    """

    @staticmethod
    def check(spec: ModelSpec, config: ClassifyConfig, given: PoolingParams | None = None) -> PoolingParams:
        """Return what every row asks for.

        Args:
            spec: what the model declares.
            config: what the user wants to see.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: the model has no classes, or not such that the configuration makes sense.
        """
        checked = request(spec, "classify", given)
        problems = []
        if config.threshold is not None:
            if not is_multi_label(spec):
                problems.append(f"--threshold is for models of several labels; {spec.name} chooses one")
            if not checked.use_activation:
                problems.append("--threshold is for probabilities, which --no-activation leaves out")
        if config.top_k is not None and spec.problem_type == "regression":
            problems.append(f"--top-k is for classes; {spec.name} gives values (regression)")
        if problems:
            raise ConfigError("; ".join(problems))
        return checked

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`label`, `score`, `labels`, `probs` or `logits`, `top`; `values` of a regression."""
        return self._texts.declared(*self._own_columns())

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, the labels in the order of `probs`, and the threshold."""
        described = self.runner.describe(self.params) | self._texts.metadata
        described["labels"] = dumps(self.runner.spec.labels, ensure_ascii=False)
        if self._gives_labels:
            described["threshold"] = str(self._threshold)
        return described

    def tokenize(self, texts: Texts) -> Tokens:
        """Tokenize the role `text`."""
        return self._texts.tokenize(texts["text"])

    def compute(self, tokens: Tokens, on_batch: OnBatch | None = None) -> Outcome:
        """Classify every row."""
        pooled = self._texts.pool(tokens, on_batch)
        return Outcome(
            columns=pooled.with_columns(self._content(pooled.values)),
            num_tokens=pooled.num_tokens,
            truncated=pooled.truncated,
            failures=pooled.failures,
        )

    @property
    def explodes(self) -> bool:
        """Whether each window becomes a row."""
        return self._texts.gives_windows

    @property
    def _texts(self) -> LongTexts:
        return LongTexts(self.runner, self.params, self.prompt, self.config)

    @property
    def gives_values(self) -> bool:
        """Whether results are the numbers of a regression."""
        return self.runner.spec.problem_type == "regression"

    @property
    def _gives_labels(self) -> bool:
        return bool(is_multi_label(self.runner.spec) and self.params.use_activation and not self.explodes)

    @property
    def _threshold(self) -> float:
        return DEFAULT_THRESHOLD if self.config.threshold is None else self.config.threshold

    @property
    def _vector(self) -> str:
        return "probs" if self.params.use_activation else "logits"

    def _own_columns(self) -> Sequence[ResultColumn]:
        size = self.runner.spec.num_labels
        if self.gives_values:
            return (ResultColumn("values", "float32", size),)
        label, score = ResultColumn("label", "str"), ResultColumn("score", "float32")
        labels = (ResultColumn("labels", "str", is_list=True),) if self._gives_labels else ()
        if self.config.top_k is None:
            return (label, score, *labels, ResultColumn(self._vector, "float32", size))
        return (label, score, *labels, ResultColumn("top", is_list=True, fields=(label, score)))

    def _content(self, values: Numbers) -> dict[str, ColumnData]:
        if self.gives_values:
            return {"values": values}
        names = self.runner.spec.labels
        best = values.argmax(axis=1)
        content: dict[str, ColumnData] = {
            "label": [names[index] for index in best.tolist()],
            "score": np.take_along_axis(values, best[:, None], axis=1)[:, 0],
        }
        if self._gives_labels:
            content["labels"] = _above(values, self._threshold, names)
        if self.config.top_k is None:
            content[self._vector] = values
        else:
            content["top"] = _largest(values, self.config.top_k, names)
        return content


def _above(values: Numbers, threshold: float, names: Sequence[str]) -> Ragged:
    """Return the names of the classes from the threshold up, in the order of the classes."""
    wanted = values >= threshold
    return Ragged(wanted.sum(axis=1), [names[index] for index in np.nonzero(wanted)[1].tolist()])


def _largest(values: Numbers, top_k: int, names: Sequence[str]) -> Ragged:
    """Return the classes with the largest values, largest first; of equal ones the first class."""
    order = np.argsort(-values, axis=1, kind="stable")[:, :top_k]
    lengths = np.full(len(values), order.shape[1], np.int64)
    scores = np.take_along_axis(values, order, axis=1).ravel()
    return Ragged(lengths, {"label": [names[index] for index in order.ravel().tolist()], "score": scores})
