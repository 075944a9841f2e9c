"""Texts to vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from poolembed.config import RANGED_DTYPES, EmbedConfig
from poolembed.errors import ConfigError, InputError
from poolembed.model.long_text import LongTexts, Tokens
from poolembed.model.operation import OnBatch, Outcome, Texts
from poolembed.model.prompted import Prompted
from poolembed.model.quantize import Ranges, check_size, quantize, stored_type
from poolembed.results import ResultColumn
from poolembed.runner import ModelSpec, PoolingParams, RowFailure, request

if TYPE_CHECKING:
    pass

CALIBRATION_ROWS = 1024
"""First rows of a run, from which the bounds of int8 and uint8 are taken."""


@dataclass(frozen=True, slots=True)
class Embed(Prompted[EmbedConfig]):
    """Gives each text one vector.

    Attributes:
        runner: the model.
        params: what is computed; its task is `embed`.
        prompt: text put before every text.
        config: what is given.
        ranges: bounds of each dimension, for types that need them; None where there are no rows.
    """

    ranges: Ranges | None = None

    @staticmethod
    def check(spec: ModelSpec, config: EmbedConfig, given: PoolingParams | None = None) -> PoolingParams:
        """Return what every row asks for.

        Args:
            spec: what the model declares.
            config: what the user wants to see.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: the model gives no dense vectors, or none of the dimensions or type asked for.
        """
        if spec.kind == "sparse":
            raise ConfigError(
                f"{spec.name} gives a weight for every token of its vocabulary, not a dense vector",
                "use `poolembed sparse`, in Python `.sparse(texts)`",
            )
        checked = request(spec, "embed", given)
        check_size(checked.dimensions or spec.embedding_size, config.output_dtype)
        return checked

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`embedding`, and what the policy for long texts adds."""
        dtype, length = stored_type(self.runner.result_size(self.params), self.config.output_dtype)
        return self._texts.declared(ResultColumn("embedding", dtype, length))

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, prompt and policy, and how vectors are stored."""
        described = self.runner.describe(self.params) | self._texts.metadata
        described["output_dtype"] = self.config.output_dtype
        if self.ranges is not None:
            described["ranges"] = self.ranges.dump()
        return described

    def tokenize(self, texts: Texts) -> Tokens:
        """Tokenize the role `text`."""
        return self._texts.tokenize(texts["text"])

    def compute(self, tokens: Tokens, on_batch: OnBatch | None = None) -> Outcome:
        """Pool every row of `tokens`, see `Operation.compute`; `on_batch` hears of each batch."""
        pooled = self._texts.pool(tokens, on_batch)
        stored = quantize(pooled.values, self.config.output_dtype, self.ranges)
        overflows = {int(pooled.owners[row]): failure for row, failure in _overflows(stored).items()}
        return Outcome(
            columns=pooled.with_columns({"embedding": stored}),
            num_tokens=pooled.num_tokens,
            truncated=pooled.truncated,
            failures={**overflows, **pooled.failures},
        )

    @property
    def explodes(self) -> bool:
        """Whether each window becomes a row."""
        return self._texts.gives_windows

    def calibrated(self, texts: Texts) -> "Embed":
        """Return the same operation with the bounds of some texts, for types that need bounds.

        Args:
            texts: at least one text a role.

        Raises:
            InputError: none of them has a vector.
        """
        if self.config.output_dtype not in RANGED_DTYPES or self.ranges is not None:
            return self
        pooled = self._texts.pool(self.tokenize(texts))
        vectors = pooled.values[~np.isin(pooled.owners, sorted(pooled.failures))]
        if not len(vectors):
            raise InputError(
                f"none of the first {len(texts['text'])} rows has a vector to take the bounds of int8 from",
                "take bounds from another output with --ranges-from",
            )
        return replace(self, ranges=Ranges.of(vectors))

    @property
    def _texts(self) -> LongTexts:
        return LongTexts(self.runner, self.params, self.prompt, self.config)


def _overflows(stored: npt.NDArray[np.generic]) -> dict[int, RowFailure]:
    """Find rows whose numbers are too large for the type they are stored in."""
    if not np.issubdtype(stored.dtype, np.floating):
        return {}
    failure = RowFailure("non_finite", f"the vector does not fit {stored.dtype}")
    return {row: failure for row in np.flatnonzero(~np.isfinite(stored).all(axis=1)).tolist()}
