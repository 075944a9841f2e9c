"""`PoolingModel`: a model in memory, for programs that have their texts at hand."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import overload

import numpy as np
import numpy.typing as npt

from poolembed.config import (
    Aggregation,
    ClassifyConfig,
    EmbedConfig,
    EntityConfig,
    Level,
    LongTextConfig,
    PairConfig,
    RewardConfig,
    Role,
    SparseConfig,
    TokenEmbedConfig,
)
from poolembed.errors import ConfigError
from poolembed.model.calls import checked, joined, outcomes_of
from poolembed.model.classify import Classify
from poolembed.model.embed import Embed
from poolembed.model.encode import Encode
from poolembed.model.loaded_model import LoadedModel
from poolembed.model.pair_calls import Entity, RankedDocument, entities_of, rank_texts, score_texts
from poolembed.model.per_text import Given, results_of
from poolembed.model.records import Classification, classifications, column_of, weights_by_token
from poolembed.model.reward import Reward, level_of
from poolembed.model.sparse import Sparse
from poolembed.model.token_embed import TokenEmbed, refuse_prompt
from poolembed.runner import PoolingParams

Array = npt.NDArray[np.float32]
TRUNCATE = LongTextConfig()
NO_LIMITS = PairConfig()


class PoolingModel(LoadedModel):
    """A loaded model: texts in, arrays and small records out, in the order of the texts.

    Every method takes any iterable of strings, computes it in chunks of 8192, and keeps only results.
    `pooling_params` is one record for all texts, or a list with one for each; texts that ask for the same are
    computed together. It
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

    @overload
    def embed(
        self,
        texts: Iterable[str],
        pooling_params: PoolingParams | None = None,
        prompt_name: str | None = None,
        long_texts: LongTextConfig = TRUNCATE,
    ) -> Array: ...

    @overload
    def embed(
        self,
        texts: Iterable[str],
        pooling_params: Sequence[PoolingParams],
        prompt_name: str | None = None,
        long_texts: LongTextConfig = TRUNCATE,
    ) -> list[Array]: ...

    def embed(
        self,
        texts: Iterable[str],
        pooling_params: Given = None,
        prompt_name: str | None = None,
        long_texts: LongTextConfig = TRUNCATE,
    ) -> Array | list[Array]:
        """Return a vector for each text.

        Args:
            texts: the texts.
            pooling_params: `use_activation`, `dimensions`.
            prompt_name: a prompt that the model declares; None takes its default.
            long_texts: what becomes of texts over the maximum length.

        Returns:
            Shape (num_texts, size), float32; (0, size) where there are no texts. With a list of
            `pooling_params` one array a text, shape (size,).
        """
        config = checked(EmbedConfig(**self._of_texts(long_texts)))
        make = partial(Embed.of, self.runner, self._prompt_of(prompt_name), config)
        if isinstance(pooling_params, Sequence):
            return results_of(make, column_of("embedding"), texts, pooling_params)
        operation = make(pooling_params)
        empty = np.zeros((0, self.runner.result_size(operation.params)), np.float32)
        return joined(empty, (outcome.columns["embedding"] for outcome in outcomes_of(operation, texts)))

    def classify(
        self,
        texts: Iterable[str],
        pooling_params: Given = None,
        threshold: float | None = None,
        long_texts: LongTextConfig = TRUNCATE,
    ) -> list[Classification]:
        """Return the class of each text; a regression is read by `encode(texts, "classify")`.

        Args:
            texts: the texts.
            pooling_params: `use_activation`.
            threshold: models of several labels: probability from which a class counts; None takes 0.5.
            long_texts: what becomes of texts over the maximum length.

        Raises:
            ConfigError: the model has no classes, or an argument does not fit it.
        """
        config = checked(ClassifyConfig(threshold=threshold, **self._of_texts(long_texts)))
        make = partial(Classify.of, self.runner, self._prompt_of(None), config)
        if self.runner.spec.problem_type == "regression":
            raise ConfigError(
                f"{self.runner.spec.name} gives values, not classes (regression)",
                'read them with encode(texts, "classify")',
            )
        return results_of(make, classifications, texts, pooling_params)

    def sparse(
        self,
        texts: Iterable[str],
        top_k: int | None = None,
        pooling_params: Given = None,
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
        make = partial(Sparse.of, self.runner, self._prompt_of(prompt_name), config)
        return results_of(make, weights_by_token, texts, pooling_params)

    def score(
        self,
        data_1: str | Iterable[str],
        data_2: str | Iterable[str],
        pooling_params: Given = None,
        pairs: PairConfig = NO_LIMITS,
    ) -> Array:
        """Return the score of each pair: one text with each of several, or as many with as many.

        Args:
            data_1: queries.
            data_2: documents; shape and order of the result, float32, are theirs.
            pooling_params: `use_activation`, `dimensions`; for each pair where it is a list.
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
        pooling_params: Given = None,
        prompt_name: str | None = None,
        role: Role | None = None,
    ) -> list[Array]:
        """Return a vector for each token of each text, shape (num_tokens, size), float32.

        Args:
            texts: the texts.
            pooling_params: `use_activation`, `dimensions`, `late_chunking_params`.
            prompt_name: a prompt that the model declares; None takes its default.
            role: `query` or `document`, for models of late interaction; None takes `document`.
        """
        config = checked(TokenEmbedConfig(role=role))
        refuse_prompt(self.runner.spec, prompt_name)
        make = partial(TokenEmbed.of, self.runner, self._prompt_of(prompt_name), config)
        return results_of(make, column_of("embeddings"), texts, pooling_params)

    def reward(
        self,
        texts: Iterable[str],
        pooling_params: Given = None,
        level: Level | None = None,
    ) -> Array | list[Array]:
        """Return the reward of each text, or of each of its tokens or steps.

        Args:
            texts: whole conversations or solutions, as the model's card writes them.
            pooling_params: `use_activation`. Raw by default, but for steps.
            level: `sequence`, `token` or `step`; None takes what the model is made for.

        Returns:
            `sequence`: shape (num_texts,), float32. Else one array a text, shape (num_rewards,), or
            (num_rewards, num_labels) where no output means `good`.
        """
        config = checked(RewardConfig(level=level))
        make = partial(Reward.of, self.runner, self._prompt_of(None), config)
        if level_of(self.runner.spec, config) == "sequence":
            return np.asarray(results_of(make, column_of("reward"), texts, pooling_params), np.float32)
        return results_of(make, column_of("rewards"), texts, pooling_params)

    def encode(
        self,
        texts: Iterable[str],
        pooling_task: str | None = None,
        pooling_params: Given = None,
        prompt_name: str | None = None,
    ) -> Array | list[Array]:
        """Return what the pooler of a task gives, as it is.

        Args:
            texts: the texts; of late-interaction models they are tokenized without marks of a role.
            pooling_task: one of the model's tasks (`runner.spec.tasks`).
            pooling_params: what the task understands.
            prompt_name: a prompt that the model declares; None takes its default.

        Returns:
            Tasks of a text: shape (num_texts, size), float32; with a list of `pooling_params` one array a
            text, shape (size,). Tasks of tokens: one array a text, shape (num_tokens, size).
        """
        make = partial(Encode.of, self.runner, self._prompt_of(prompt_name), pooling_task)
        if not isinstance(pooling_params, Sequence):
            operation = make(pooling_params)
            if operation.gives_rows:
                empty = np.zeros((0, self.runner.result_size(operation.params)), np.float32)
                return joined(empty, (found.columns["data"] for found in outcomes_of(operation, texts)))
        return results_of(make, column_of("data"), texts, pooling_params)
