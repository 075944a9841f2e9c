"""A chunk's rows come back in order, whatever fits, overflows, or has nothing to pool."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner.backbone import Backbone
from poolembed.runner.load import load_runner
from poolembed.runner.packing import TokenizedRows
from tests.runner.zoo import RAW, UNIT

CPU = torch.device("cpu")
TEXTS = ["the cat sat on the mat", "", "how do I bake bread at home?", "the " * 40, "cat", "cat"]


@pytest.fixture
def runner(models):
    """A runner of a test's own, to be changed at will."""
    return lambda family="bert-mean", **options: load_runner(
        ModelConfig(model=str(models / family), device="cpu", **options), None, 128
    )


def rows_of(*rows, **fields):
    return TokenizedRows(
        token_ids=np.asarray([token for row in rows for token in row], np.int64),
        lengths=np.asarray([len(row) for row in rows], np.int64),
        truncated=np.zeros(len(rows), np.bool_),
        **fields,
    )


def with_backbone(runner, kind, **attributes):
    """The runner on another backbone around the same model, on the same path."""
    path = runner.backbone.path
    runner.backbone.use_path("equal-length")
    backbone = kind(runner.backbone.model, runner.backbone.device)
    for name, value in attributes.items():
        setattr(backbone, name, value)
    for either in (runner.backbone, backbone):
        either.use_path(path)
    return replace(runner, backbone=backbone)


class Small(Backbone):
    """Has memory for so many tokens; counts what it was given."""

    room = 10**9
    sizes = ()

    def forward(self, batch):
        self.sizes += (batch.num_tokens,)
        if batch.num_tokens > self.room:
            raise torch.OutOfMemoryError("no room")
        return super().forward(batch)


def test_a_batch_that_does_not_fit_is_halved_until_it_does(runner):
    own = runner()
    tokens = own.tokenizers.texts()(TEXTS)
    params = own.params("embed")
    expected = own.pool(tokens, params)
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=60)
    found = small.pool(tokens, params)
    assert found.failures == {}
    assert small.backbone.sizes[0] == tokens.lengths.sum() > 60
    assert max(size for size in small.backbone.sizes if size <= 60) > max(tokens.lengths.min(), 20)
    np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=UNIT)


def test_a_row_that_does_not_fit_alone_is_a_failure_and_the_others_are_right(runner):
    own = runner()
    tokens = own.tokenizers.texts()(TEXTS)
    expected = own.pool(tokens, own.params("embed"))
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=41)
    found = small.pool(tokens, own.params("embed"))
    longest = int(tokens.lengths.argmax())
    assert {row: failure.code for row, failure in found.failures.items()} == {longest: "too_large"}
    assert found.failures[longest].message == "42 tokens do not fit the memory of cpu"
    others = [row for row in range(len(TEXTS)) if row != longest]
    np.testing.assert_allclose(found.values[others], expected.values[others], rtol=0, atol=UNIT)


def test_failed_rows_of_token_tasks_have_no_values(runner):
    own = runner()
    tokens = own.tokenizers.texts()(TEXTS)
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=41)
    found = small.pool(tokens, own.params("token_embed"))
    longest = int(tokens.lengths.argmax())
    expected = [0 if row == longest else length for row, length in enumerate(tokens.lengths.tolist())]
    assert found.lengths.tolist() == expected
    assert len(found.values) == sum(expected)


class Overflowing(Backbone):
    """Gives infinity in half precision for rows with token 100, and always for rows with token 101."""

    seen = ()

    def forward(self, batch):
        self.seen += ((str(self.model.dtype), len(batch.rows)),)
        hidden_states = super().forward(batch).clone()
        ids = torch.from_numpy(batch.token_ids)
        if hidden_states.dtype != torch.float32:
            hidden_states[ids == 100] = float("inf")
        hidden_states[ids == 101] = float("nan")
        return hidden_states


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("task", ["embed", "token_embed"])
def test_a_row_that_overflows_is_computed_again_in_float32(runner, dtype, task):
    own = runner(dtype=dtype)
    before = {name: weight.clone() for name, weight in own.backbone.model.state_dict().items()}
    half = with_backbone(own, Overflowing)
    rows, params = rows_of([5, 6, 7], [5, 100, 7], [8, 101, 9], [9, 10, 11]), half.params(task)
    found = half.pool(rows, params)
    assert {row: failure.code for row, failure in found.failures.items()} == {2: "non_finite"}
    # The two that failed run again alone, and nobody else does.
    assert half.backbone.seen[-2:] == (("torch.float32", 1),) * 2
    assert len(half.backbone.seen) == 3
    after = half.backbone.model.state_dict()
    assert half.dtype == dtype
    assert all(torch.equal(after[name], weight) for name, weight in before.items())
    assert all(after[name].dtype == weight.dtype for name, weight in before.items())
    exact = replace(half, backbone=Backbone(copy.deepcopy(half.backbone.model).float(), CPU, "packed"))
    alone = exact.pool(rows_of([5, 100, 7]), params).values
    start, end = (1, 2) if task == "embed" else (3, 6)
    assert (np.abs(found.values[start:end] - alone) < UNIT).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_no_bit_of_a_model_is_changed_by_the_way_to_float32_and_back(runner, dtype):
    half = with_backbone(runner("llama-last", dtype=dtype), Overflowing)
    model, params = half.backbone.model, half.params("embed")

    def tensors():
        return {
            name: (tensor.dtype, tensor.clone())
            for name, tensor in (*model.named_parameters(), *model.named_buffers())
        }

    before, ordinary = tensors(), half.pool(rows_of([5, 6, 7]), params).values
    assert torch.float32 in {kind for kind, _ in before.values()}  # the frequencies of rotary positions
    half.pool(rows_of([5, 100, 7]), params)
    after = tensors()
    assert {name: kind for name, (kind, _) in after.items()} == {
        name: kind for name, (kind, _) in before.items()
    }
    assert all(torch.equal(after[name][1], tensor) for name, (_, tensor) in before.items())
    np.testing.assert_array_equal(half.pool(rows_of([5, 6, 7]), params).values, ordinary)


def test_rows_stay_failures_where_the_weights_do_not_fit_in_float32(runner):
    half = with_backbone(runner(dtype="bfloat16"), Overflowing)

    class Cramped(type(half.backbone.model)):
        def float(self):
            self.embeddings.float()
            raise torch.OutOfMemoryError("no room")

    half.backbone.model.__class__ = Cramped
    found = half.pool(rows_of([5, 100, 7], [5, 6]), half.params("embed"))
    assert {row: failure.code for row, failure in found.failures.items()} == {0: "non_finite"}
    assert {weight.dtype for weight in half.backbone.model.parameters()} == {torch.bfloat16}


def test_what_is_not_finite_in_float32_is_not_tried_again(runner):
    full = with_backbone(runner(), Overflowing)
    found = full.pool(rows_of([5, 101], [5, 6]), full.params("embed"))
    assert [(row, failure.code) for row, failure in found.failures.items()] == [(0, "non_finite")]
    assert len(full.backbone.seen) == 1


class Failing(Overflowing):
    """Breaks down in float32."""

    def forward(self, batch):
        if self.model.dtype == torch.float32:
            raise RuntimeError("broken")
        return super().forward(batch)


def test_the_precision_comes_back_also_after_an_error(runner):
    half = with_backbone(runner(dtype="bfloat16"), Failing)
    with pytest.raises(RuntimeError, match="broken"):
        half.pool(rows_of([5, 100, 7]), half.params("embed"))
    assert half.dtype == "bfloat16"


def test_rows_without_tokens_are_failures(runner):
    own = runner("gpt2-seqcls")
    tokens = own.tokenizers.texts()(["", "cat", ""])
    found = own.pool(tokens, own.params("classify"))
    assert {row: failure.code for row, failure in found.failures.items()} == {0: "no_tokens", 2: "no_tokens"}
    alone = own.pool(own.tokenizers.texts()(["cat"]), own.params("classify"))
    np.testing.assert_allclose(found.values[1], alone.values[0], rtol=0, atol=UNIT)


def test_a_prompt_that_fills_the_row_leaves_nothing_to_pool(runner):
    own = runner("bert-mean", overrides=(("include_prompt", "false"),), max_length=6)
    tokens = own.tokenizers.texts("the cat sat on the mat: ")(["a", "b"])
    found = own.pool(tokens, own.params("embed"))
    assert {failure.code for failure in found.failures.values()} == {"only_prompt"}
    assert "no room for the text" in found.failures[0].message


def test_an_unpooled_prompt_changes_the_text_and_takes_no_part_in_the_mean(runner):
    own = runner("bert-mean-nonorm", overrides=(("include_prompt", "false"),))
    tokens = own.tokenizers.texts("query: ")(["the cat sat on the mat", "bread"])
    found = own.pool(tokens, own.params("embed")).values
    every = own.pool(replace(tokens, prompt_lengths=None), own.params("token_embed"))
    start = 0
    for row, length in enumerate(every.lengths.tolist()):
        vectors = every.values[start : start + length].astype(np.float64)
        expected = vectors[tokens.prompt_lengths[row] :].mean(axis=0)
        start += length
        assert np.abs(found[row] - expected).max() < RAW


def test_an_empty_chunk_has_empty_results(runner):
    own = runner()
    assert own.pool(rows_of(), own.params("embed")).values.shape == (0, 64)
    tokens = own.pool(rows_of(), own.params("token_embed"))
    assert (tokens.values.shape, tokens.lengths.tolist()) == ((0, 64), [])


def test_progress_tells_of_every_batch(runner):
    own = runner()
    tokens = own.tokenizers.texts()(TEXTS * 4)
    told = []
    own.pool(tokens, own.params("embed"), lambda rows, count: told.append((rows, count)))
    assert len(told) > 1
    assert sum(rows for rows, _ in told) == len(TEXTS) * 4
    assert sum(count for _, count in told) == tokens.lengths.sum()
    assert all(count <= 128 for _, count in told)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 70), max_size=12), st.sampled_from([1, 7, 64, 8192]))
def test_any_lengths_and_any_budget_give_what_each_row_gives_alone(runner_of, lengths, budget):
    own = replace(runner_of("bert-mean"), batch_tokens=budget)
    random = np.random.default_rng(len(lengths))
    rows = [random.integers(10, 900, length).tolist() for length in lengths]
    params = own.params("embed")
    found = own.pool(rows_of(*rows), params)
    assert sorted(found.failures) == [row for row, length in enumerate(lengths) if length == 0]
    for row, ids in enumerate(rows):
        if ids:
            alone = own.pool(rows_of(ids), params).values[0]
            np.testing.assert_allclose(found.values[row], alone, rtol=0, atol=UNIT)


PREFILLED = [
    ("qwen2-last", "embed"),
    ("qwen3-last", "embed"),
    ("llama-last", "embed"),
    ("mistral-last", "embed"),
    ("mistral-last", "token_embed"),
    ("gpt2-seqcls", "classify"),
    ("qwen2-rm", "classify"),
    ("qwen2-rm", "token_classify"),
    ("qwen2-prm", "token_classify"),
    ("qwen3-causal-reranker", "classify"),
]


class Pieces(Backbone):
    """Counts rows that ran in pieces, and the tokens of each piece."""

    rows = 0
    pieces = ()

    def forward_in_pieces(self, batch, piece_tokens):
        self.rows += 1
        for piece in super().forward_in_pieces(batch, piece_tokens):
            self.pieces += (len(piece),)
            yield piece


@pytest.mark.parametrize("budget", [16, 64])
@pytest.mark.parametrize(("family", "task"), PREFILLED)
def test_long_causal_rows_run_in_pieces_and_give_the_same(runner, family, task, budget):
    own = runner(family)
    steps = "3 * 4 is 12.<extra_0>2 + 12 is 14.<extra_0>" if family == "qwen2-prm" else ""
    texts = [f"{steps}the cat sat on the mat. " * 12 + "end", "cat", f"how do I bake bread?{steps} " * 9]
    tokens = own.tokenizers.texts()(texts)
    params = own.params(task)
    whole = replace(own, batch_tokens=8192).pool(tokens, params)
    cut = with_backbone(replace(own, batch_tokens=budget), Pieces)
    found = cut.pool(tokens, params)
    long = [length for length in tokens.lengths.tolist() if length > budget]
    assert cut.backbone.rows == len(long) >= 2
    assert max(cut.backbone.pieces) == budget
    assert sum(cut.backbone.pieces) == sum(long)
    assert cut.backbone.path == "packed"
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=RAW)
    assert (found.lengths is None) == (whole.lengths is None)
    if found.lengths is not None:
        assert found.lengths.tolist() == whole.lengths.tolist()


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("bert-mean", {}),
        ("bert-lasttoken", {}),
        ("gemma3-bidirectional", {}),
        ("qwen2-last", {"seq_pooling_type": "MEAN"}),
        ("qwen2-last", {"seq_pooling_type": "CLS+LAST"}),
    ],
)
def test_rows_that_see_what_follows_or_need_all_their_tokens_are_not_cut(models, family, options):
    own = load_runner(ModelConfig(model=str(models / family), device="cpu"), PoolerConfig(**options), 16)
    cut = with_backbone(own, Pieces)
    tokens = own.tokenizers.texts()(["the cat sat on the mat. " * 12])
    found = cut.pool(tokens, cut.params("embed"))
    assert cut.backbone.rows == 0
    whole = replace(own, batch_tokens=8192).pool(tokens, own.params("embed"))
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=UNIT)


def test_a_causal_decoder_declared_bidirectional_is_not_cut(models):
    config = ModelConfig(model=str(models / "qwen2-last"), device="cpu", overrides=(("is_causal", "false"),))
    cut = with_backbone(load_runner(config, None, 16), Pieces)
    cut.pool(cut.tokenizers.texts()(["the cat sat on the mat. " * 12]), cut.params("embed"))
    assert cut.backbone.rows == 0


def test_a_task_that_the_model_cannot_do_is_refused(runner):
    with pytest.raises(ConfigError, match="bert-mean"):
        runner().params("classify")


def test_the_width_of_results_is_known_before_they_are_computed(runner):
    for family, task in [
        ("bert-mean", "embed"),
        ("bert-dense-matryoshka", "embed"),
        ("bert-splade", "embed"),
        ("bert-mean", "token_embed"),
        ("bert-colbert", "token_embed"),
        ("xlmroberta-bge-m3", "token_embed"),
        ("xlmroberta-bge-m3", "token_classify"),
        ("bert-seqcls", "classify"),
        ("bert-tokencls", "token_classify"),
        ("qwen2-prm", "token_classify"),
    ]:
        own = runner(family)
        params = own.params(task)
        pooled = own.pool(own.tokenizers.texts()(["the cat"]), params)
        assert pooled.values.shape[1] == own.result_size(params), (family, task)


def test_the_metadata_names_all_that_decides_a_result(runner):
    own = runner("bert-dense-matryoshka")
    described = own.describe(own.params("embed"))
    revision = described.pop("revision")
    difference = float(described.pop("self_check"))
    assert revision.startswith("sha256:")
    assert difference < 1e-5
    assert described.pop("model").endswith("bert-dense-matryoshka")
    assert (
        described.items()
        >= {
            "task": "embed",
            "pooling": "MEAN",
            "activation": "normalize",
            "dimensions": "48",
            "dtype": "float32",
            "device": "cpu",
            "max_length": "512",
            "attention": "packed",
        }.items()
    )


def test_the_metadata_of_what_was_not_packed_and_not_activated_says_so(models):
    config = ModelConfig(model=str(models / "mpnet-mean"), device="cpu")
    own = load_runner(config, PoolerConfig(use_activation=False), 128)
    described = own.describe(own.params("embed"))
    assert described["activation"] == "none"
    assert described["attention"] == "equal-length"
    assert described["self_check"] == (
        "" if own.check.max_difference is None else f"{own.check.max_difference:.1e}"
    )


def test_the_metadata_of_a_hub_model_has_its_revision(runner):
    own = runner()
    hub = replace(own, folder=replace(own.folder, revision="abc123"))
    assert hub.describe(hub.params("embed"))["revision"] == "abc123"


def test_warnings_are_those_of_the_spec_and_of_the_self_check(runner):
    assert runner("bert-mean").warnings == ()
    own = runner("bert-plain")
    assert own.warnings == own.spec.warnings != ()
    cannot = runner("mpnet-mean").warnings
    assert len(cannot) == 1
    assert "rows of equal length run together" in cannot[0]


def test_kept_tokens_belong_to_their_rows_also_where_batches_are_halved(runner):
    own = runner("bert-colbert")
    tokens = own.tokenizers.role("document")(["a, b.", "cat. sat, on. the", "x", "...,,,", "the cat"])
    assert 0 < tokens.kept.sum() < len(tokens.kept)
    whole = own.pool(tokens, own.params("token_embed"))
    small = with_backbone(replace(own, batch_tokens=8192), Small, room=12)
    found = small.pool(tokens, own.params("token_embed"))
    ends = np.cumsum(tokens.lengths)[:-1]
    assert found.lengths.tolist() == [int(row.sum()) for row in np.split(tokens.kept, ends)]
    np.testing.assert_allclose(found.values, whole.values, rtol=0, atol=UNIT)
