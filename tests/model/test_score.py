"""Scores of pairs equal the reference's, whichever way a model scores; bad combinations are told early."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer

from poolembed.config import ModelConfig, PairConfig, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.model import encoded_pairs
from poolembed.model.score import make_score
from poolembed.model.score_check import check_score
from poolembed.runner import describe_model, load_runner

# MaxSim sums up to 300 products of float32; the others stay within 1e-5.
TOLERANCE = 1e-4

NO_PROMPTS = '{"prompts": false}'
FAMILIES = {
    "bert-mean": NO_PROMPTS,
    "bert-mean-nonorm": NO_PROMPTS,
    "bert-prompts": "{}",
    "qwen3-last": "{}",
    "bert-colbert": "{}",
    "modernbert-colbert": "{}",
    "bert-crossencoder": "{}",
    "bert-crossencoder-sigmoid": "{}",
    "bert-crossencoder-st5": "{}",
    "xlmroberta-crossencoder": "{}",
    "qwen3-causal-reranker": "{}",
    "qwen3-seqcls": "{}",
}


def scored(runner, queries, documents, on_batch=None, **pair):
    config = PairConfig(**pair)
    check_score(runner.spec, config, PoolerConfig())
    operation = make_score(runner, config)
    return operation.compute(operation.tokenize({"query": queries, "document": documents}), on_batch)


def spec_of(zoo, family, **pooler):
    model = ModelConfig(model=str(zoo / "models" / family))
    return describe_model(model, PoolerConfig(**pooler))[1]


@pytest.mark.parametrize(("family", "params"), FAMILIES.items())
def test_scores_are_those_of_the_reference(family, params, runner_of, inputs_of, expected):
    pairs = inputs_of("pairs")
    wanted = expected(family, "score", params)
    outcome = scored(runner_of(family), [p["query"] for p in pairs], [p["document"] for p in pairs])
    assert outcome.failures == {}
    assert len(wanted) >= 22
    for pair, score in zip(pairs, outcome.columns["score"].tolist(), strict=True):
        if pair["id"] in wanted:
            assert score == pytest.approx(wanted[pair["id"]][0], abs=TOLERANCE), pair["id"]


@pytest.mark.parametrize("family", ["bert-crossencoder-sigmoid", "qwen3-seqcls"])
def test_raw_scores_are_the_logits(family, zoo, inputs_of, expected):
    pairs = inputs_of("pairs")[:8]
    model = ModelConfig(model=str(zoo / "models" / family), device="cpu")
    runner = load_runner(model, PoolerConfig(use_activation=False), batch_tokens=512)
    outcome = scored(runner, [p["query"] for p in pairs], [p["document"] for p in pairs])
    wanted = expected(family, "score", '{"activation": "none"}')
    np.testing.assert_allclose(
        outcome.columns["score"], [wanted[pair["id"]][0] for pair in pairs], atol=TOLERANCE
    )
    assert make_score(runner, PairConfig()).metadata["activation"] == "none"


def test_a_cross_encoder_scores_as_sentence_transformers_does(zoo, runner_of, inputs_of):
    pairs = [(p["query"], p["document"]) for p in inputs_of("pairs")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CrossEncoder(str(zoo / "models" / "bert-crossencoder"), device="cpu", local_files_only=True)
        wanted = model.predict(pairs, show_progress_bar=False)
    outcome = scored(runner_of("bert-crossencoder"), *map(list, zip(*pairs, strict=True)))
    np.testing.assert_allclose(outcome.columns["score"], wanted, atol=TOLERANCE)


@pytest.mark.parametrize("similarity", ["dot", "euclidean", "manhattan"])
def test_a_bi_encoder_scores_by_the_similarity_it_declares(similarity, zoo, tmp_path, inputs_of):
    pairs = inputs_of("pairs")[:6]
    queries, documents = [p["query"] for p in pairs], [p["document"] for p in pairs]
    folder = str(zoo / "models" / "bert-mean-nonorm")
    model = ModelConfig(model=folder, device="cpu", overrides=(("similarity", similarity),))
    outcome = scored(load_runner(model, batch_tokens=512), queries, documents)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = SentenceTransformer(
            folder, device="cpu", similarity_fn_name=similarity, local_files_only=True
        )
        wanted = reference.similarity_pairwise(reference.encode(queries), reference.encode(documents))
    np.testing.assert_allclose(outcome.columns["score"], wanted.numpy(), rtol=1e-5)


def test_each_distinct_text_is_encoded_once(runner_of):
    runner = runner_of("bert-mean")
    counted = []
    texts = ["a river", "a bank", "a river", "a bank"]
    outcome = scored(runner, texts, texts[::-1], lambda rows, tokens: counted.append((rows, tokens)))
    lengths = runner.tokenizers.texts()(["a river", "a bank"]).lengths
    assert sum(tokens for _, tokens in counted) == lengths.sum()
    assert sum(rows for rows, _ in counted) == 4
    assert outcome.num_tokens.tolist() == [lengths.sum()] * 4


def test_one_text_in_both_roles_is_encoded_for_each_where_prompts_differ(runner_of):
    runner = runner_of("bert-prompts")
    counted = []
    outcome = scored(runner, ["a river"], ["a river"], lambda rows, tokens: counted.append(tokens))
    assert sum(counted) == outcome.num_tokens[0]
    assert outcome.columns["score"][0] < 0.999


def test_prompts_may_be_named(runner_of):
    runner = runner_of("bert-prompts")
    same = scored(
        runner, ["a river"], ["a river"], query_prompt_name="document", document_prompt_name="document"
    )
    assert same.columns["score"][0] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("family", ["bert-mean", "bert-colbert"])
def test_scores_do_not_depend_on_the_pairs_around(family, runner_of, inputs_of):
    runner = runner_of(family)
    pairs = inputs_of("pairs")[:6]
    together = scored(runner, [p["query"] for p in pairs], [p["document"] for p in pairs])
    for row, pair in enumerate(pairs):
        alone = scored(runner, [pair["query"]], [pair["document"]])
        assert alone.columns["score"][0] == pytest.approx(together.columns["score"][row], abs=1e-5)
        assert alone.num_tokens[0] == together.num_tokens[row]


def test_pairs_are_cut_in_blocks_of_bounded_size_without_changing_scores(runner_of, inputs_of):
    runner = runner_of("bert-colbert")
    pairs = inputs_of("pairs")[:9]
    operation = make_score(runner, PairConfig())
    [whole] = operation.tokenize(
        {"query": [p["query"] for p in pairs], "document": [p["document"] for p in pairs]}
    )
    blocks = list(encoded_pairs.blocks_of(whole.texts, whole.pairs, whole.texts.lengths, 200))
    assert len(blocks) > 2
    assert all(len(block.pairs) == 1 or block.texts.lengths.sum() <= 200 for block in blocks)
    np.testing.assert_allclose(
        operation.compute(tuple(blocks)).columns["score"],
        operation.compute((whole,)).columns["score"],
        atol=1e-5,
    )


def test_nothing_to_score_gives_nothing(runner_of):
    for family in ("bert-mean", "bert-colbert", "bert-crossencoder"):
        outcome = scored(runner_of(family), [], [])
        assert outcome.columns["score"].shape == (0,)
        assert outcome.columns["score"].dtype == np.float32


def test_a_pair_without_tokens_fails_and_says_which_text(runner_of):
    # This tokenizer adds no special tokens, so an empty text has none at all.
    runner = runner_of("gpt2-seqcls")
    operation = encoded_pairs.EncodedPairs(
        runner=runner,
        params=runner.params("classify"),
        tokenize_queries=runner.tokenizers.texts(),
        tokenize_documents=runner.tokenizers.texts(),
        compare=lambda pooled, pairs: pooled.values[pairs.query_of, 0],
        settings={},
    )
    outcome = operation.compute(operation.tokenize({"query": ["a", "", "a"], "document": ["b", "b", ""]}))
    assert {row: failure.code for row, failure in outcome.failures.items()} == {
        1: "no_tokens",
        2: "no_tokens",
    }
    assert outcome.failures[1].message == "the query: the text has no tokens"
    assert outcome.failures[2].message == "the document: the text has no tokens"
    assert outcome.columns["score"].shape == (3,)


def test_a_document_of_which_every_token_is_left_out_has_no_score(runner_of):
    runner = runner_of("bert-colbert")
    documents = runner.tokenizers.role("document")

    def without_the_first(texts):
        tokens = documents(texts)
        kept = np.arange(len(tokens.token_ids)) >= tokens.lengths[0]
        return replace(tokens, kept=kept)

    operation = replace(make_score(runner, PairConfig()), tokenize_documents=without_the_first)
    outcome = operation.compute(operation.tokenize({"query": ["a", "a"], "document": ["b", "c"]}))
    assert {row: failure.message for row, failure in outcome.failures.items()} == {
        0: "the document: every token of the text is left out"
    }


def test_limits_of_one_text_cut_it_alone(runner_of):
    runner = runner_of("bert-crossencoder")
    query, document = "one two three four five", "six seven eight nine ten"
    cut = scored(runner, [query], [document], max_query_tokens=2, max_document_tokens=3)
    words = scored(runner, ["one two"], ["six seven eight"])
    assert cut.truncated.tolist() == [True]
    assert cut.num_tokens[0] < scored(runner, [query], [document]).num_tokens[0]
    assert words.truncated.tolist() == [False]


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("bert-seqcls", "bert-seqcls has 3 labels, so it gives no single score to a pair"),
        ("bert-tokencls", "is a model of kind 'token-classifier' and scores no pairs"),
        ("qwen2-prm", "is a model of kind 'process-reward' and scores no pairs"),
    ],
)
def test_a_model_that_scores_no_pairs_says_so_before_it_is_loaded(family, message, zoo):
    with pytest.raises(ConfigError, match=message):
        check_score(spec_of(zoo, family), PairConfig(), PoolerConfig())


@pytest.mark.parametrize(
    ("family", "pair", "pooler", "message"),
    [
        ("bert-mean", {"max_query_tokens": 3}, {}, "--max-query-tokens is for cross-encoders"),
        ("bert-mean", {"instruction": "x"}, {}, "--instruction is for cross-encoders"),
        ("bert-mean", {}, {"use_activation": False}, "--raw is for cross-encoders"),
        ("bert-colbert", {}, {"use_activation": False}, "--raw is for cross-encoders"),
        ("bert-mean", {"query_prompt_name": "nope"}, {}, "declares no prompt 'nope'"),
        ("bert-colbert", {"query_prompt_name": "query"}, {}, "--query-prompt-name is for bi-encoders"),
        ("bert-crossencoder", {"document_prompt_name": "x"}, {}, "--document-prompt-name is for bi-encoders"),
        ("bert-crossencoder", {"max_document_tokens": 512}, {}, "must be below the 512 tokens"),
        ("bert-crossencoder", {"instruction": "x"}, {}, "has no prompt that takes an instruction"),
    ],
)
def test_what_a_model_has_no_use_for_is_refused(family, pair, pooler, message, zoo):
    with pytest.raises(ConfigError, match=message):
        check_score(spec_of(zoo, family, **pooler), PairConfig(**pair), PoolerConfig(**pooler))


def test_limits_below_one_are_refused():
    problems = PairConfig(max_query_tokens=0, max_document_tokens=-1).check()
    assert problems == [
        "--max-query-tokens must be at least 1, got 0",
        "--max-document-tokens must be at least 1, got -1",
    ]


def test_an_instruction_changes_the_score_of_a_reranker_with_a_prompt(runner_of):
    runner = runner_of("qwen3-seqcls")
    plain = scored(runner, ["a river"], ["a bank"])
    asked = scored(runner, ["a river"], ["a bank"], instruction="Find synonyms")
    assert plain.columns["score"][0] != pytest.approx(asked.columns["score"][0], abs=1e-6)


def test_the_metadata_tell_how_pairs_were_scored(runner_of):
    metadata = make_score(runner_of("bert-prompts"), PairConfig()).metadata
    assert metadata["score_type"] == "bi-encoder"
    assert metadata["similarity"] == "cosine"
    assert metadata["query_prompt"] == runner_of("bert-prompts").spec.prompts["query"]
    limited = make_score(runner_of("bert-crossencoder"), PairConfig(max_query_tokens=7)).metadata
    assert limited["score_type"] == "cross-encoder"
    assert limited["max_query_tokens"] == "7"
    assert make_score(runner_of("bert-colbert"), PairConfig()).metadata["similarity"] == "MaxSim"
