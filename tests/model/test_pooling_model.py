"""Python's way in: shapes, order, generators, and what is refused with which words."""

import subprocess
import sys

import numpy as np
import pytest

from poolembed import ModelConfig, PoolerConfig, PoolingModel, PoolingParams, errors
from poolembed.config import ClassifyConfig, EmbedConfig
from poolembed.errors import ConfigError, InputError
from poolembed.model import calls
from poolembed.model.classify import Classify
from poolembed.model.embed import Embed
from tests.model.parity import inputs

TEXTS = ["one", "two words", "", "three words, all of them long"]


def test_a_vector_is_three_lines_away_and_torch_waits_for_the_second(models):
    code = (
        "import sys, poolembed\n"
        "assert 'torch' not in sys.modules\n"
        "from poolembed import PoolingModel\n"
        f"model = PoolingModel({str(models / 'bert-mean')!r})\n"
        "print(model.embed(['one', 'two']).shape)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(2, 64)\n", done.stderr


def test_public_names_can_be_listed_and_imported():
    import poolembed

    assert {name for name in dir(poolembed) if getattr(poolembed, name) is None} == set()
    with pytest.raises(AttributeError, match="no attribute 'Poolingmodel'"):
        _ = poolembed.Poolingmodel


def test_vectors_are_float32_in_the_order_of_the_texts(model_of):
    model = model_of("bert-mean")
    vectors = model.embed(TEXTS)
    assert (vectors.shape, vectors.dtype) == ((4, 64), np.float32)
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(vectors[row], model.embed([text])[0], rtol=0, atol=1e-6)


def test_no_texts_give_results_of_the_usual_type(model_of):
    assert model_of("bert-mean").embed([]).shape == (0, 64)
    assert model_of("bert-mean").embed([]).dtype == np.float32
    assert model_of("bert-seqcls").classify([]) == []
    assert model_of("bert-splade").sparse([]) == []
    assert model_of("qwen2-rm").reward([]).shape == (0,)
    assert model_of("bert-mean").encode([], "token_embed") == []


def test_a_generator_is_computed_as_it_comes(model_of):
    asked = []

    def texts():
        for row in range(5):
            asked.append(row)
            yield f"text {row}"

    model = model_of("bert-mean")
    operation = Embed.of(model.runner, "", EmbedConfig())
    outcomes = calls.outcomes_of(operation, texts(), max_texts=2)
    first = next(outcomes).columns["embedding"]
    assert asked == [0, 1]
    found = calls.joined(first, [outcome.columns["embedding"] for outcome in outcomes])
    np.testing.assert_allclose(found, model.embed([f"text {row}" for row in range(5)]), rtol=0, atol=1e-6)


def test_the_row_that_fails_is_counted_over_all_chunks(model_of):
    operation = Embed.of(model_of("bert-mean").runner, "", EmbedConfig())
    with pytest.raises(InputError, match="text 3 is no string but NoneType"):
        list(calls.outcomes_of(operation, ["a", "b", "c", None], max_texts=2))
    operation = Classify.of(model_of("gpt2-seqcls").runner, "", ClassifyConfig())
    with pytest.raises(InputError, match="text 2: the text has no tokens"):
        list(calls.outcomes_of(operation, ["a", "b", "", "c"], max_texts=2))


def test_unpaired_surrogates_become_the_replacement_character(model_of):
    model = model_of("bert-mean")
    np.testing.assert_array_equal(model.embed(["a\ud800b 😀"]), model.embed(["a\ufffdb 😀"]))


def test_a_model_config_sets_what_the_arguments_lack(models):
    config = ModelConfig(model=str(models / "bert-prompts"), max_length=8, prompt_name="query")
    model = PoolingModel(config, device="cpu", dtype="float32")
    assert model.runner.spec.max_length == 8
    plain = PoolingModel(str(models / "bert-prompts"))
    np.testing.assert_allclose(model.embed(["one"]), plain.embed(["one"], prompt_name="query"), atol=1e-6)
    assert not np.allclose(plain.embed(["one"]), plain.embed(["one"], prompt_name="query"), atol=1e-3)


def test_dimensions_are_cut_before_the_vectors_are_normalised(model_of):
    model = model_of("bert-dense-matryoshka")
    raw = model.embed(TEXTS, PoolingParams(use_activation=False))[:, :32]
    cut = model.embed(TEXTS, PoolingParams(dimensions=32))
    np.testing.assert_allclose(cut, raw / np.linalg.norm(raw, axis=1, keepdims=True), atol=1e-6)


def test_encode_gives_what_the_pooler_gives(model_of, shared):
    model = model_of("bert-seqcls")
    texts = list(inputs(shared / "zoo").values())[:5]
    np.testing.assert_array_equal(
        model.encode(texts, pooling_task="classify"), [found.probs for found in model.classify(texts)]
    )
    [tokens] = model_of("bert-mean").encode(["one two"], "token_embed")
    assert tokens.shape[1] == 64


REFUSED = [
    ("bert-mean", lambda m: m.classify(["a"]), "cannot classify"),
    ("bert-seqcls", lambda m: m.embed(["a"]), "cannot embed"),
    ("bert-splade", lambda m: m.embed(["a"]), "weight for every token of its vocabulary"),
    ("bert-mean", lambda m: m.sparse(["a"]), "gives no weights for tokens"),
    ("bert-mean", lambda m: m.reward(["a"]), "gives no rewards"),
    ("qwen2-prm", lambda m: m.reward(["a"], level="token"), "cannot reward by token"),
    ("qwen2-rm", lambda m: m.reward(["a"], level="word"), "--level must be one of"),
    ("bert-mean", lambda m: m.encode(["a"]), "pooling_task is missing"),
    ("bert-mean", lambda m: m.encode(["a"], "score"), "'score' was removed"),
    ("bert-mean", lambda m: m.encode(["a"], "classify"), "cannot classify"),
    ("bert-mean", lambda m: m.embed(["a"], prompt_name="x"), "declares no prompt 'x'"),
    ("bert-mean", lambda m: m.embed(["a"], PoolingParams(dimensions=32)), "no matryoshka dimensions"),
    (
        "bert-seqcls",
        lambda m: m.classify(["a"], PoolingParams(dimensions=2)),
        "not understand dimensions",
    ),
    ("bert-mean", lambda m: m.embed(["a"], PoolingParams(task="classify")), "are for the task 'classify'"),
    ("bert-seqcls", lambda m: m.classify(["a"], threshold=0.3), "--threshold is for models of several"),
    ("bert-seqcls-regression", lambda m: m.classify(["a"]), "gives values, not classes"),
    ("bert-mean", lambda m: m.token_embed(["a"], role="query"), "has no roles"),
    ("bert-colbert", lambda m: m.token_embed(["a"], prompt_name="query"), "marks queries and documents"),
    ("bert-colbert", lambda m: m.token_embed(["a"], role="answer"), "--role must be one of"),
    ("bert-splade", lambda m: m.sparse(["a"], top_k=0), "--top-k must be at least 1"),
    (
        "bert-splade",
        lambda m: m.sparse(["a"], pooling_params=PoolingParams(use_activation=False)),
        "activation",
    ),
]


@pytest.mark.parametrize(
    ("family", "call", "words"), REFUSED, ids=[f"{row}-{r[0]}" for row, r in enumerate(REFUSED)]
)
def test_what_a_model_cannot_do_is_said(family, call, words, model_of):
    with pytest.raises(ConfigError, match=words):
        call(model_of(family))


def test_one_string_is_no_list_of_texts(model_of):
    with pytest.raises(InputError, match="the texts are one string"):
        model_of("bert-mean").embed("one")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"device": "tpu"}, "--device"),
        ({"dtype": "float8"}, "--dtype"),
        ({"model": ModelConfig(model_impl="vllm")}, "--model-impl"),
        ({"task": "classify", "pooler_config": PoolerConfig(task="embed")}, "contradict each other"),
        ({"task": "classify"}, "does not support the task"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, words, models):
    with pytest.raises(errors.ConfigError, match=words):
        PoolingModel(**{"model": str(models / "bert-mean"), **arguments})
