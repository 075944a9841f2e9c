"""A chunk's rows come back in order, each with what it asked for, and the metadata says how."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner.load import load_runner
from tests.runner.backbones import rows_of
from tests.runner.zoo import RAW, UNIT

TEXTS = ["the cat sat on the mat", "", "how do I bake bread at home?", "the " * 40, "cat", "cat"]


def test_rows_without_tokens_are_failures(own_runner):
    own = own_runner("gpt2-seqcls")
    tokens = own.tokenizers.texts()(["", "cat", ""])
    found = own.pool(tokens, own.params("classify"))
    assert {row: failure.code for row, failure in found.failures.items()} == {0: "no_tokens", 2: "no_tokens"}
    alone = own.pool(own.tokenizers.texts()(["cat"]), own.params("classify"))
    np.testing.assert_allclose(found.values[1], alone.values[0], rtol=0, atol=UNIT)


def test_a_prompt_that_fills_the_row_leaves_nothing_to_pool(own_runner):
    own = own_runner("bert-mean", overrides=(("include_prompt", "false"),), max_length=6)
    tokens = own.tokenizers.texts("the cat sat on the mat: ")(["a", "b"])
    found = own.pool(tokens, own.params("embed"))
    assert {failure.code for failure in found.failures.values()} == {"only_prompt"}
    assert "no room for the text" in found.failures[0].message


def test_an_unpooled_prompt_changes_the_text_and_takes_no_part_in_the_mean(own_runner):
    own = own_runner("bert-mean-nonorm", overrides=(("include_prompt", "false"),))
    tokens = own.tokenizers.texts("query: ")(["the cat sat on the mat", "bread"])
    found = own.pool(tokens, own.params("embed")).values
    every = own.pool(replace(tokens, prompt_lengths=None), own.params("token_embed"))
    start = 0
    for row, length in enumerate(every.lengths.tolist()):
        vectors = every.values[start : start + length].astype(np.float64)
        expected = vectors[tokens.prompt_lengths[row] :].mean(axis=0)
        start += length
        assert np.abs(found[row] - expected).max() < RAW


def test_an_empty_chunk_has_empty_results(own_runner):
    own = own_runner()
    assert own.pool(rows_of(), own.params("embed")).values.shape == (0, 64)
    tokens = own.pool(rows_of(), own.params("token_embed"))
    assert (tokens.values.shape, tokens.lengths.tolist()) == ((0, 64), [])


def test_progress_tells_of_every_batch(own_runner):
    own = own_runner()
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


def test_a_task_that_the_model_cannot_do_is_refused(own_runner):
    with pytest.raises(ConfigError, match="bert-mean"):
        own_runner().params("classify")


def test_the_width_of_results_is_known_before_they_are_computed(own_runner):
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
        own = own_runner(family)
        params = own.params(task)
        pooled = own.pool(own.tokenizers.texts()(["the cat"]), params)
        assert pooled.values.shape[1] == own.result_size(params), (family, task)


def test_the_metadata_names_all_that_decides_a_result(own_runner):
    own = own_runner("bert-dense-matryoshka")
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
            "model_impl": "poolembed",
            "device": "cpu",
            "max_length": "512",
            "attention": "packed",
        }.items()
    )


def test_the_metadata_of_what_was_not_packed_and_not_activated_says_so(models):
    config = ModelConfig(model=str(models / "deberta-v2-mean"), device="cpu")
    own = load_runner(config, PoolerConfig(use_activation=False), 128)
    described = own.describe(own.params("embed"))
    assert described["activation"] == "none"
    assert described["attention"] == "equal-length"
    assert described["self_check"] == (
        "" if own.check.max_difference is None else f"{own.check.max_difference:.1e}"
    )


def test_the_metadata_of_a_hub_model_has_its_revision(own_runner):
    own = own_runner()
    hub = replace(own, folder=replace(own.folder, revision="abc123"))
    assert hub.describe(hub.params("embed"))["revision"] == "abc123"


def test_warnings_are_those_of_the_spec_and_of_the_self_check(own_runner):
    assert own_runner("bert-mean").warnings == ()
    own = own_runner("bert-plain")
    assert own.warnings == own.spec.warnings != ()
    cannot = own_runner("deberta-v2-mean").warnings
    assert len(cannot) == 1
    assert "rows of equal length run together" in cannot[0]


@pytest.mark.parametrize(
    ("family", "task"),
    [
        ("bert-mean", "token_embed"),
        ("bert-tokencls", "token_classify"),
        ("xlmroberta-bge-m3", "token_embed"),
        ("xlmroberta-bge-m3", "token_classify"),
    ],
)
def test_the_tokens_that_have_an_output_are_told(own_runner, family, task):
    own = own_runner(family)
    params = own.params(task)
    texts = ["the cat", "", "x"]
    rows = own.tokenizers.texts()(texts)
    # A row cut out of a longer text may lack the special tokens around it.
    bare = replace(
        rows, token_ids=np.where(np.isin(rows.token_ids, own.tokenizers.special_ids), 9, rows.token_ids)
    )
    for tokens in (rows, bare):
        lengths = own.pool(tokens, params).lengths.tolist()
        has = np.split(own.has_output(tokens, params), np.cumsum(tokens.lengths)[:-1])
        assert [int(row.sum()) for row in has] == lengths


def test_tokens_that_are_skipped_have_no_output(own_runner):
    own = own_runner("bert-colbert")
    tokens = own.tokenizers.role("document")(["a, b.", "c"])
    params = own.params("token_embed")
    assert own.has_output(tokens, params).tolist() == tokens.kept.tolist()
    assert own.has_output(tokens, params).sum() == own.pool(tokens, params).lengths.sum()
