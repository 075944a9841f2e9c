"""Texts to a vector for each token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from poolembed.config import Role, TokenEmbedConfig
from poolembed.errors import ConfigError
from poolembed.model.operation import OnBatch, Outcome, Texts
from poolembed.model.prompted import Prompted
from poolembed.results import ColumnData, Ragged, ResultColumn
from poolembed.runner import LateChunkingParams, ModelSpec, PooledRows, PoolingParams, TokenizedRows, request

if TYPE_CHECKING:
    from poolembed.runner import PoolingRunner

SPAN = (ResultColumn("start", "int32"), ResultColumn("end", "int32"))
"""Characters of a text: the first, and the one behind the last."""

Offsets = npt.NDArray[np.int64]


def refuse_prompt(spec: ModelSpec, *chosen: str | None) -> None:
    """Refuse a prompt for a model that marks queries and documents by tokens.

    Args:
        spec: what the model declares.
        chosen: prompts, or names of prompts, that the user chose; None where none was.

    Raises:
        ConfigError: the model has roles, and a prompt was chosen.
    """
    if spec.late_interaction is not None and any(choice is not None for choice in chosen):
        raise ConfigError(f"{spec.name} marks queries and documents by tokens, not by a prompt", "use --role")


@dataclass(frozen=True, slots=True)
class TokenEmbed(Prompted[TokenEmbedConfig]):
    """Gives each text a vector for each token, or for each group of tokens.

    Attributes:
        runner: the model.
        params: what is computed; its task is `token_embed`.
        prompt: text put before every text; for models without roles.
        config: what is given.
        vocabulary: tokens by id, where tokens are given; None where they are not.
    """

    vocabulary: Sequence[str] | None = None

    @staticmethod
    def check(spec: ModelSpec, config: TokenEmbedConfig, given: PoolingParams | None = None) -> PoolingParams:
        """Return what every row asks for.

        Args:
            spec: what the model declares.
            config: what the user wants to see.
            given: what the user asks of the pooler.

        Raises:
            ConfigError: the model gives no token vectors, or not as asked.
        """
        params = PoolingParams() if given is None else given.clone()
        if config.chunk_tokens is not None:
            params.late_chunking_params = LateChunkingParams(config.chunk_tokens)
        checked = request(spec, "token_embed", params)
        if checked.late_chunking_params is not None and spec.late_interaction is not None:
            raise ConfigError(
                f"{spec.name} compares token by token, so its vectors cannot be averaged in groups",
                "leave out --chunk-tokens",
            )
        if config.role is not None and spec.late_interaction is None:
            raise ConfigError(
                f"{spec.name} is a model of kind {spec.kind!r}, which has no roles",
                "leave out --role; a prompt may be what you want (--prompt-name)",
            )
        return checked

    @staticmethod
    def extras(runner: "PoolingRunner", params: PoolingParams, config: TokenEmbedConfig) -> dict[str, Any]:
        """Return the vocabulary of `runner` where `config` wants tokens; `params` change nothing."""
        del params
        tokenizers = runner.tokenizers
        return {"vocabulary": tokenizers.vocabulary(tokenizers.num_tokens) if config.tokens else None}

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`embeddings`, and on request `tokens` and `offsets`."""
        size = self.runner.result_size(self.params)
        columns = [ResultColumn("embeddings", "float32", size, is_list=True)]
        if self.vocabulary is not None:
            columns.append(ResultColumn("tokens", "str", is_list=True))
        if self.config.offsets:
            columns.append(ResultColumn("offsets", is_list=True, fields=SPAN))
        return columns

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, role or prompt, and the size of groups."""
        described = self.runner.describe(self.params)
        if self._role is None:
            described["prompt"] = self.prompt
        else:
            described["role"] = self._role
        if self._group_size is not None:
            described["chunk_tokens"] = str(self._group_size)
        return described

    def tokenize(self, texts: Texts) -> TokenizedRows:
        """Tokenize the role `text`."""
        tokenizers, offsets = self.runner.tokenizers, self.config.offsets
        if self._role is None:
            return tokenizers.texts(self.prompt, with_offsets=offsets)(texts["text"])
        return tokenizers.role(self._role, with_offsets=offsets)(texts["text"])

    def compute(self, tokens: TokenizedRows, on_batch: OnBatch | None = None) -> Outcome:
        """Compute the vectors of every row."""
        pooled = self.runner.pool(tokens, self.params, on_batch)
        return Outcome(
            columns=self._content(tokens, pooled),
            num_tokens=tokens.lengths.astype(np.int32),
            truncated=tokens.truncated,
            failures=pooled.failures,
        )

    @property
    def _role(self) -> Role | None:
        return None if self.runner.spec.late_interaction is None else self.config.role or "document"

    @property
    def _group_size(self) -> int | None:
        groups = self.params.late_chunking_params
        return None if groups is None else groups.chunk_size

    def _content(self, tokens: TokenizedRows, pooled: PooledRows) -> dict[str, ColumnData]:
        assert pooled.lengths is not None
        content: dict[str, ColumnData] = {"embeddings": Ragged(pooled.lengths, pooled.values)}
        if self._group_size is not None:
            if tokens.offsets is not None:
                spans = group_spans(tokens.offsets, tokens.lengths, self._group_size)
                content["offsets"] = _spans(spans, -(-tokens.lengths // self._group_size))
            return content
        has = self.runner.has_output(tokens, self.params)
        owners = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths)[has]
        lengths = np.bincount(owners, minlength=len(tokens.lengths))
        if self.vocabulary is not None:
            names = [self.vocabulary[token_id] for token_id in tokens.token_ids[has].tolist()]
            content["tokens"] = Ragged(lengths, names)
        if tokens.offsets is not None:
            content["offsets"] = _spans(tokens.offsets[has], lengths)
        return content


def group_spans(offsets: Offsets, lengths: npt.NDArray[np.int64], size: int) -> Offsets:
    """Return the characters that each group of consecutive tokens stands for.

    Args:
        offsets: characters of every token, shape (num_tokens, 2); (0, 0) where it has none.
        lengths: tokens of each row, shape (num_rows,).
        size: tokens of a group; the last group of a row may be shorter.

    Returns:
        From the first character of any of its tokens to the end of the last, shape (num_groups, 2);
        (0, 0) for groups of special tokens alone.
    """
    spans = np.zeros((int((-(-lengths // size)).sum()), 2), np.int64)
    group = start = 0
    for length in lengths.tolist():
        for first in range(start, start + length, size):
            own = offsets[first : min(first + size, start + length)]
            own = own[own[:, 1] > own[:, 0]]
            if len(own):
                spans[group] = own[:, 0].min(), own[:, 1].max()
            group += 1
        start += length
    return spans


def _spans(spans: Offsets, lengths: npt.NDArray[np.int64]) -> Ragged:
    narrow = spans.astype(np.int32)
    return Ragged(lengths, {"start": narrow[:, 0], "end": narrow[:, 1]})
