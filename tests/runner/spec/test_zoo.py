"""Every checkpoint of the zoo is read as its authors meant it."""

import json

import pytest

from poolembed.runner.spec import read_spec
from tests.runner.spec.folders import FAMILIES, ZOO

pytestmark = pytest.mark.skipif(
    not FAMILIES, reason="the shared zoo of checkpoints is not there (POOLEMBED_SHARED)"
)


def expectation(family):
    expect = json.loads((ZOO / "expected" / f"{family}.json").read_text(encoding="utf-8"))["expect"]
    # Both are about the zoo itself: its own name, and what a tokenizer library gets wrong.
    del expect["family"], expect["tokenizer"]["tokenizer_json_differs_on"]
    return expect


@pytest.mark.parametrize("family", FAMILIES)
def test_inspection_says_what_the_zoo_expects(family):
    expect = expectation(family)
    spec = read_spec(ZOO / "models" / family).to_json()
    assert {key: spec.get(key, "missing") for key in expect} == expect


@pytest.mark.parametrize("family", FAMILIES)
def test_inspection_is_json_and_every_source_has_its_row(family):
    spec = read_spec(ZOO / "models" / family)
    assert json.loads(json.dumps(spec.to_json()))["kind"] == spec.kind
    rows = spec.rows()
    assert [(name, source) for name, _, source in rows] == list(spec.sources.items())
    assert all(source for _, _, source in rows)


def test_only_a_model_without_sentence_transformers_files_is_warned_about():
    warned = {family for family in FAMILIES if read_spec(ZOO / "models" / family).warnings}
    assert warned == {"bert-plain"}


@pytest.mark.parametrize(
    ("family", "setting", "source"),
    [
        ("bert-mean", "max_length", "sentence_bert_config.json: max_seq_length"),
        ("bert-mean", "pooling", "1_Pooling/config.json: pooling_mode_mean_tokens"),
        ("bert-mean", "activation", "modules.json"),
        ("qwen2-last", "pooling", "1_Pooling/config.json: pooling_mode"),
        ("qwen2-last", "max_length", "config.json: max_position_embeddings"),
        ("roberta-seqcls", "max_length", "config.json: max_position_embeddings less pad_token_id + 1"),
        ("bert-crossencoder", "activation", "config.json: sentence_transformers: activation_fn"),
        ("bert-crossencoder-st5", "activation", "config_sentence_transformers.json: activation_fn"),
        ("bert-seqcls", "activation", "config.json: problem_type"),
        ("bert-seqcls", "labels", "config.json: id2label"),
        ("bert-plain", "pooling", "architecture default (nothing declared)"),
        ("bert-prompts", "prompts", "config_sentence_transformers.json: prompts"),
        ("bert-colbert", "query_length", "artifact.metadata: query_maxlen"),
        ("modernbert-colbert", "document_prefix", "config_sentence_transformers.json: document_prefix"),
        ("qwen2-prm", "step_tag_id", "tokenizer.json: <extra_0>"),
        ("qwen3-causal-reranker", "token_ids", "1_LogitScore/config.json: true_token_id"),
        ("qwen3-seqcls", "template", "tokenizer_config.json: chat_template"),
        ("gemma3-bidirectional", "is_causal", "config.json: use_bidirectional_attention"),
        ("qwen3-last", "padding_side", "tokenizer_config.json: padding_side"),
    ],
)
def test_every_value_names_who_declares_it(family, setting, source):
    assert read_spec(ZOO / "models" / family).sources[setting] == source


def test_bge_m3_brings_its_extra_heads():
    spec = read_spec(ZOO / "models" / "xlmroberta-bge-m3")
    assert (spec.bge_m3.colbert, spec.bge_m3.sparse) == ("colbert_linear.pt", "sparse_linear.pt")


@pytest.mark.parametrize(
    ("family", "score_type"),
    [
        ("bert-mean", "bi-encoder"),
        ("bert-crossencoder", "cross-encoder"),
        ("bert-seqcls-regression", "cross-encoder"),
        ("bert-seqcls", None),
        ("bert-colbert", "late-interaction"),
        ("bert-tokencls", None),
    ],
)
def test_pairs_are_scored_by_what_the_model_performs(family, score_type):
    assert read_spec(ZOO / "models" / family).score_type == score_type
