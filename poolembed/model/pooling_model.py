"""`PoolingModel`: a model in memory, for programs that have their texts at hand."""

import logging
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from poolembed.config import (
    DEFAULT_MODEL,
    Aggregation,
    ClassifyConfig,
    Device,
    DType,
    EmbedConfig,
    EntityConfig,
    Level,
    LongTextConfig,
    ModelConfig,
    PairConfig,
    PoolerConfig,
    RewardConfig,
    Role,
    SparseConfig,
    TokenEmbedConfig,
)
from poolembed.errors import ConfigError
from poolembed.model.calls import checked, joined, outcomes_of, with_task
from poolembed.model.classify import Classify
from poolembed.model.embed import Embed
from poolembed.model.encode import Encode
from poolembed.model.pair_calls import Entity, RankedDocument, entities_of, rank_texts, score_texts
from poolembed.model.records import Classification, classifications, matrices, weights_by_token
from poolembed.model.reward import Reward
from poolembed.model.sparse import Sparse
from poolembed.model.token_embed import TokenEmbed, refuse_prompt
from poolembed.runner import PoolingParams, PoolingRunner, load_runner, named_prompt

Array = npt.NDArray[np.float32]
TRUNCATE = LongTextConfig()
NO_LIMITS = PairConfig()

_log = logging.getLogger("poolembed")


class PoolingModel:
    """A loaded model: texts in, arrays and small records out, in the order of the texts.

    Every method takes any iterable of strings, computes it in chunks of 8192, and keeps only results. It
    raises a ConfigError where the model cannot do what is asked, and an InputError that names the number
    of a text that is no string or has no result.

        from poolembed import PoolingModel
        model = PoolingModel()
        vectors = model.embed(["one text", "another"])

    Args:
        model: a model folder or a hub name; or a `ModelConfig`, for all that the other arguments lack.
        task: the pooling task that counts as the model's own; None leaves that to the model.
        pooler_config: changes to what the model declares.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`; goes before that of a `ModelConfig` unless `auto`.
        dtype: precision of the transformer; likewise.

    Attributes:
        runner: the loaded model with what it declares (`runner.spec`).

    Raises:
        ConfigError: arguments contradict each other or the model.
        ModelError: the model is not found, incomplete or not supported.
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

    def embed(
        self,
        texts: Iterable[str],
        pooling_params: PoolingParams | None = None,
        prompt_name: str | None = None,
        long_texts: LongTextConfig = TRUNCATE,
    ) -> Array:
        """Return a vector for each text.

        Args:
            texts: the texts.
            pooling_params: `use_activation`, `dimensions`; one for all texts.
            prompt_name: a prompt that the model declares; None takes its default.
            long_texts: what becomes of texts over the maximum length.

        Returns:
            Shape (num_texts, size), float32; (0, size) where there are no texts.
        """
        _refuse_window_rows(long_texts)
        config = checked(EmbedConfig(on_long=long_texts.on_long, overlap_tokens=long_texts.overlap_tokens))
        operation = Embed.of(self.runner, self._prompt_of(prompt_name), config, pooling_params)
        empty = np.zeros((0, self.runner.result_size(operation.params)), np.float32)
        return joined(empty, (outcome.columns["embedding"] for outcome in outcomes_of(operation, texts)))

    def classify(
        self,
        texts: Iterable[str],
        pooling_params: PoolingParams | None = None,
        threshold: float | None = None,
        long_texts: LongTextConfig = TRUNCATE,
    ) -> list[Classification]:
        """Return the class of each text; a regression is read by `encode(texts, "classify")`.

        Args:
            texts: the texts.
            pooling_params: `use_activation`; one for all texts.
            threshold: models of several labels: probability from which a class counts; None takes 0.5.
            long_texts: what becomes of texts over the maximum length.

        Raises:
            ConfigError: the model has no classes, or an argument does not fit it.
        """
        _refuse_window_rows(long_texts)
        config = checked(
            ClassifyConfig(
                threshold=threshold, on_long=long_texts.on_long, overlap_tokens=long_texts.overlap_tokens
            )
        )
        operation = Classify.of(self.runner, self._prompt_of(None), config, pooling_params)
        if operation.gives_values:
            raise ConfigError(
                f"{self.runner.spec.name} gives values, not classes (regression)",
                'read them with encode(texts, "classify")',
            )
        return [record for outcome in outcomes_of(operation, texts) for record in classifications(outcome)]

    def sparse(
        self,
        texts: Iterable[str],
        top_k: int | None = None,
        pooling_params: PoolingParams | None = None,
        prompt_name: str | None = None,
    ) -> list[dict[str, float]]:
        """Return the weight of every token that matters to a text, heaviest first.

        Args:
            texts: the texts.
            top_k: keep the heaviest only; at least 1.
            pooling_params: nothing in it has a meaning but the task.
            prompt_name: a prompt that the model declares; None takes its default.
        """
        config = checked(SparseConfig(top_k=top_k))
        operation = Sparse.of(self.runner, self._prompt_of(prompt_name), config, pooling_params)
        return [weights for outcome in outcomes_of(operation, texts) for weights in weights_by_token(outcome)]

    def score(
        self,
        data_1: str | Iterable[str],
        data_2: str | Iterable[str],
        pooling_params: PoolingParams | None = None,
        pairs: PairConfig = NO_LIMITS,
    ) -> Array:
        """Return the score of each pair: one text with each of several, or as many with as many.

        Args:
            data_1: queries.
            data_2: documents; shape and order of the result, float32, are theirs.
            pooling_params: `use_activation`, `dimensions`; one for all pairs.
            pairs: limits and prompts.
        """
        return score_texts(self.runner, data_1, data_2, checked(pairs), pooling_params)

    def rerank(
        self, query: str, documents: Iterable[str], top_k: int | None = None, pairs: PairConfig = NO_LIMITS
    ) -> list[RankedDocument]:
        """Return the documents, best first; of equal scores the one given first goes first.

        Args:
            query: what is looked for.
            documents: where.
            top_k: give the best only; None gives all.
            pairs: limits and prompts.
        """
        return rank_texts(self.runner, query, documents, checked(pairs), top_k)

    def token_classify(
        self, texts: Iterable[str], aggregation: Aggregation = "simple", overlap_tokens: int | None = None
    ) -> list[list[Entity]]:
        """Return the entities of each text; long ones are read in windows that overlap.

        Args:
            texts: the texts.
            aggregation: how tokens become entities: `none`, `simple`, `first`, `average` or `max`.
            overlap_tokens: tokens that neighbouring windows share; None takes a quarter of a window.
        """
        config = checked(EntityConfig(aggregation=aggregation, overlap_tokens=overlap_tokens))
        return list(entities_of(self.runner, texts, config))

    def token_embed(
        self,
        texts: Iterable[str],
        pooling_params: PoolingParams | None = None,
        prompt_name: str | None = None,
        role: Role | None = None,
    ) -> list[Array]:
        """Return a vector for each token of each text, shape (num_tokens, size), float32.

        Args:
            texts: the texts.
            pooling_params: `use_activation`, `dimensions`, `late_chunking_params`; one for all texts.
            prompt_name: a prompt that the model declares; None takes its default.
            role: `query` or `document`, for models of late interaction; None takes `document`.
        """
        config = checked(TokenEmbedConfig(role=role))
        refuse_prompt(self.runner.spec, prompt_name)
        operation = TokenEmbed.of(self.runner, self._prompt_of(prompt_name), config, pooling_params)
        return [
            matrix for outcome in outcomes_of(operation, texts) for matrix in matrices(outcome, "embeddings")
        ]

    def reward(
        self,
        texts: Iterable[str],
        pooling_params: PoolingParams | None = None,
        level: Level | None = None,
    ) -> Array | list[Array]:
        """Return the reward of each text, or of each of its tokens or steps.

        Args:
            texts: whole conversations or solutions, as the model's card writes them.
            pooling_params: `use_activation`; one for all texts. Raw by default, but for steps.
            level: `sequence`, `token` or `step`; None takes what the model is made for.

        Returns:
            `sequence`: shape (num_texts,), float32. Else one array a text, shape (num_rewards,), or
            (num_rewards, num_labels) where no output means `good`.
        """
        config = checked(RewardConfig(level=level))
        operation = Reward.of(self.runner, self._prompt_of(None), config, pooling_params)
        outcomes = outcomes_of(operation, texts)
        if operation.level == "sequence":
            return joined(np.zeros(0, np.float32), (outcome.columns["reward"] for outcome in outcomes))
        return [rewards for outcome in outcomes for rewards in matrices(outcome, "rewards")]

    def encode(
        self,
        texts: Iterable[str],
        pooling_task: str | None = None,
        pooling_params: PoolingParams | None = None,
        prompt_name: str | None = None,
    ) -> Array | list[Array]:
        """Return what the pooler of a task gives, as it is.

        Args:
            texts: the texts; of late-interaction models they are tokenized without marks of a role.
            pooling_task: one of the model's tasks (`runner.spec.tasks`).
            pooling_params: what the task understands; one for all texts.
            prompt_name: a prompt that the model declares; None takes its default.

        Returns:
            Tasks of a text: shape (num_texts, size), float32. Tasks of tokens: one array a text, shape
            (num_tokens, size).
        """
        operation = Encode.of(self.runner, self._prompt_of(prompt_name), pooling_task, pooling_params)
        outcomes = outcomes_of(operation, texts)
        if operation.gives_rows:
            empty = np.zeros((0, self.runner.result_size(operation.params)), np.float32)
            return joined(empty, (outcome.columns["data"] for outcome in outcomes))
        return [matrix for outcome in outcomes for matrix in matrices(outcome, "data")]

    def _prompt_of(self, name: str | None) -> str:
        if name is None and self._prompt is not None:
            return self._prompt
        return named_prompt(self.runner.spec, name or self._prompt_name)


def _refuse_window_rows(long_texts: LongTextConfig) -> None:
    if long_texts.on_long == "window-rows":
        raise ConfigError("--on-long window-rows is for files", "`windows` gives one result a text")
