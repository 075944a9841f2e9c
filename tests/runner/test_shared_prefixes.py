"""Rows of causal models that begin alike compute that once, to the results of transformers row by row."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.runner.load import load_runner
from tests.runner.backbones import Counted, Pieces, Small, rows_of, with_backbone
from tests.runner.zoo import RAW, UNIT

SHARING = ["llama-last", "mistral-last", "qwen2-last", "qwen3-last"]


def alike(vocab_size):
    """Two groups, mixed, with a row that is a prefix itself, two equal rows, one alone and an empty one."""
    random = np.random.default_rng(11)
    first, second = (random.integers(10, vocab_size, length).tolist() for length in (90, 40))
    rows = [(second, first)[row % 2] + random.integers(10, vocab_size, 1 + row).tolist() for row in range(24)]
    return [first, *rows, rows[3], random.integers(10, vocab_size, 60).tolist(), []]


def whole(runner):
    """The runner without shared prefixes."""
    return replace(runner, check=replace(runner.check, shares_prefixes=False))


@pytest.mark.parametrize("budget", [100, 512, 8192])
@pytest.mark.parametrize("family", SHARING)
def test_vectors_are_those_of_transformers_row_by_row(models, own_runner, family, budget):
    own = own_runner(family)
    counted = with_backbone(replace(own, batch_tokens=budget), Counted)
    rows = alike(own.backbone.model.get_input_embeddings().num_embeddings)
    told = []
    found = counted.pool(rows_of(*rows), own.params("embed"), lambda *done: told.append(done))
    model = AutoModel.from_pretrained(models / family, attn_implementation="eager", dtype=torch.float32)
    for ids, vector in zip(rows[:-1], found.values, strict=False):
        with torch.inference_mode():
            last = model.eval()(input_ids=torch.tensor([ids])).last_hidden_state[0, -1].double()
        expected = (last / last.norm()).numpy()
        np.testing.assert_allclose(vector, expected, rtol=0, atol=UNIT)
    assert {row: failure.code for row, failure in found.failures.items()} == {len(rows) - 1: "no_tokens"}
    # Rows and tokens are counted as they came, whatever of them was computed.
    assert sum(rows for rows, _ in told) == len(rows) - 1
    num_tokens = sum(map(len, rows))
    assert sum(tokens for _, tokens in told) == num_tokens
    # With the least budget some rows are over it and run in pieces, others next to nothing of their group.
    assert sum(counted.backbone.sizes) < num_tokens * (0.9 if budget == 100 else 0.6)
    assert max(counted.backbone.sizes) <= budget
    assert max(counted.backbone.prefixes) == (1 if budget == 100 else 2)


def test_scores_of_a_query_and_many_documents_are_those_of_transformers(models, own_runner):
    own = own_runner("qwen3-causal-reranker")
    documents = [f"{animal} sat on the mat {place}" for animal in ("cat", "dog") for place in ("", "at home")]
    queries = ["where did the cat sit?"] * 4 + ["how do I bake bread?"] * 4
    tokens = own.tokenizers.pairs()(queries, documents * 2)
    counted = with_backbone(replace(own, batch_tokens=8192), Counted)
    found = counted.pool(tokens, own.params("classify")).values[:, 0]
    model = AutoModelForCausalLM.from_pretrained(
        models / "qwen3-causal-reranker", attn_implementation="eager", dtype=torch.float32
    ).eval()
    no, yes = own.spec.logit_head.token_ids
    for ids, score in zip(np.split(tokens.token_ids, np.cumsum(tokens.lengths)[:-1]), found, strict=True):
        with torch.inference_mode():
            logits = model(input_ids=torch.from_numpy(ids)[None]).logits[0, -1].double()
        expected = torch.stack([logits[no], logits[yes]]).softmax(0)[1]
        assert abs(score - float(expected)) < UNIT
    # The instruction alone, since it is longer than the queries of so few documents.
    assert counted.backbone.prefixes == (1,)
    assert counted.backbone.sizes[0] < tokens.lengths.sum() / 2


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_gives_nearly_the_same_vectors(own_runner, dtype):
    own = own_runner("qwen3-last", dtype=dtype)
    assert own.check.shares_prefixes
    rows = alike(own.backbone.model.get_input_embeddings().num_embeddings)[:-1]
    exact = own_runner("qwen3-last", dtype="float32")
    expected = whole(exact).pool(rows_of(*rows), exact.params("embed")).values
    found = own.pool(rows_of(*rows), own.params("embed")).values
    assert (found * expected).sum(axis=1).min() > 0.999


@pytest.mark.parametrize(("family", "task"), [("gpt2-seqcls", "classify"), ("qwen2-rm", "classify")])
def test_classes_and_rewards_of_the_last_token_are_the_same(own_runner, family, task):
    own = own_runner(family)
    rows = alike(own.backbone.model.get_input_embeddings().num_embeddings)
    counted = with_backbone(own, Counted)
    found = counted.pool(rows_of(*rows), own.params(task))
    expected = whole(own).pool(rows_of(*rows), own.params(task))
    assert max(counted.backbone.prefixes) >= 1
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=RAW)


@pytest.mark.parametrize(
    ("family", "task", "options"),
    [
        ("qwen2-last", "token_embed", {}),
        ("qwen2-rm", "token_classify", {}),
        ("qwen2-last", "embed", {"seq_pooling_type": "MEAN"}),
        ("qwen2-last", "embed", {"seq_pooling_type": "CLS+LAST"}),
        ("gemma3-bidirectional", "embed", {"seq_pooling_type": "LAST"}),
        ("bert-lasttoken", "embed", {}),
    ],
)
def test_nothing_is_shared_where_prefixes_are_pooled_or_see_what_follows(models, family, task, options):
    own = load_runner(ModelConfig(model=str(models / family), device="cpu"), PoolerConfig(**options), 512)
    counted = with_backbone(own, Counted)
    rows = alike(own.backbone.model.get_input_embeddings().num_embeddings)[:-1]
    counted.pool(rows_of(*rows), own.params(task))
    assert sum(counted.backbone.sizes) == sum(map(len, rows))


def test_a_row_over_the_budget_runs_in_pieces_whatever_it_shares(own_runner):
    own = own_runner("llama-last")
    random = np.random.default_rng(2)
    prefix = random.integers(10, 700, 60).tolist()
    rows = [[*prefix, *random.integers(10, 700, length).tolist()] for length in (150, 5, 7, 9)]
    pieces = with_backbone(own, Pieces)
    found = pieces.pool(rows_of(*rows), own.params("embed"))
    assert (pieces.backbone.rows, sum(pieces.backbone.pieces)) == (1, 210)
    expected = whole(replace(own, batch_tokens=8192)).pool(rows_of(*rows), own.params("embed"))
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=UNIT)


def test_a_batch_without_room_is_halved_behind_its_prefix(own_runner):
    own = own_runner("llama-last")
    rows = [[*range(100, 160), 200 + row] for row in range(8)]
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=200)
    found = small.pool(rows_of(*rows), own.params("embed"))
    assert small.backbone.sizes == (488, 244, 122, 122, 244, 122, 122)
    expected = whole(own).pool(rows_of(*rows), own.params("embed"))
    assert found.failures == {}
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=UNIT)
