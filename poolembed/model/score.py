"""Pairs of a query and a document to scores, by what the model is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from poolembed.config import PairConfig
from poolembed.model.encoded_pairs import EncodedPairs
from poolembed.model.operation import OnBatch, Operation, Outcome, Texts
from poolembed.model.score_check import limits_of
from poolembed.results import ResultColumn
from poolembed.runner import (
    ModelSpec,
    PairTokenizer,
    PoolingParams,
    PoolingRunner,
    TemplateTokenizer,
    TokenizedRows,
    maxsim_scores,
    named_prompt,
    similarities,
)

# As sentence-transformers' `encode_query` and `encode_document` choose.
QUERY_PROMPTS = ("query",)
DOCUMENT_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedPairs(Operation):
    """Gives each pair the output of a model that reads both texts together (cross-encoder).

    Attributes:
        runner: the model.
        params: what is computed; its task is `classify`.
        tokenizer: queries and documents to tokens.
        settings: what decides a score beside the texts and what the runner says.
    """

    runner: PoolingRunner
    params: PoolingParams
    tokenizer: PairTokenizer | TemplateTokenizer
    settings: Mapping[str, str]

    @property
    def columns(self) -> Sequence[ResultColumn]:
        """`score`."""
        return (ResultColumn("score", "float32"),)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the runner says, and the settings."""
        return {**self.runner.describe(self.params), **self.settings}

    def tokenize(self, texts: Texts) -> TokenizedRows:
        """Tokenize the roles `query` and `document` together."""
        return self.tokenizer(texts["query"], texts["document"])

    def compute(self, tokens: TokenizedRows, on_batch: OnBatch | None = None) -> Outcome:
        """Score every pair."""
        pooled = self.runner.pool(tokens, self.params, on_batch)
        return Outcome(
            columns={"score": pooled.values[:, 0]},
            num_tokens=tokens.lengths.astype(np.int32),
            truncated=tokens.truncated,
            failures=pooled.failures,
        )


def make_score(runner: PoolingRunner, pair: PairConfig, given: PoolingParams | None = None) -> Operation:
    """Return the operation that scores pairs with a model.

    Args:
        runner: the model; it and `pair` passed `check_score`.
        pair: the user's limits and prompts.
        given: what the user asks of the pooler.
    """
    score_type = runner.spec.score_type
    settings = {"score_type": str(score_type)}
    if score_type == "cross-encoder":
        tokenizer = runner.tokenizers.pairs(
            max_query_tokens=pair.max_query_tokens,
            max_document_tokens=pair.max_document_tokens,
            instruction=pair.instruction,
        )
        params = runner.params("classify", given)
        settings |= {"activation": runner.spec.activation if params.use_activation else "none"}
        settings |= {name: str(value) for name, value in limits_of(pair)}
        return JoinedPairs(runner=runner, params=params, tokenizer=tokenizer, settings=settings)
    if runner.spec.late_interaction is not None:
        return EncodedPairs(
            runner=runner,
            params=runner.params("token_embed", given),
            tokenize_queries=runner.tokenizers.role("query"),
            tokenize_documents=runner.tokenizers.role("document"),
            compare=partial(maxsim_scores, device=runner.backbone.device),
            settings=settings | {"similarity": "MaxSim"},
        )
    params = runner.params("embed" if score_type == "bi-encoder" else "token_embed", given)
    return _of_prompted_texts(runner, params, pair, settings)


def _of_prompted_texts(
    runner: PoolingRunner, params: PoolingParams, pair: PairConfig, settings: Mapping[str, str]
) -> EncodedPairs:
    query_prompt = _prompt(runner.spec, pair.query_prompt_name, QUERY_PROMPTS)
    document_prompt = _prompt(runner.spec, pair.document_prompt_name, DOCUMENT_PROMPTS)
    tokenize_queries = runner.tokenizers.texts(query_prompt)
    is_alike = query_prompt == document_prompt
    is_bi_encoder = params.task == "embed"
    similarity = runner.spec.similarity if is_bi_encoder else "MaxSim"
    return EncodedPairs(
        runner=runner,
        params=params,
        tokenize_queries=tokenize_queries,
        tokenize_documents=tokenize_queries if is_alike else runner.tokenizers.texts(document_prompt),
        compare=partial(similarities, similarity)
        if is_bi_encoder
        else partial(maxsim_scores, device=runner.backbone.device),
        settings={
            **settings,
            "similarity": similarity,
            "query_prompt": query_prompt,
            "document_prompt": document_prompt,
        },
    )


def _prompt(spec: ModelSpec, name: str | None, candidates: Sequence[str]) -> str:
    if name is None:
        name = next((candidate for candidate in candidates if candidate in spec.prompts), None)
    return named_prompt(spec, name)
