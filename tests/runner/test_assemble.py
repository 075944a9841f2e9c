"""A model taken apart still gives what the whole gives, whichever head it has."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ModelError
from poolembed.runner.load import load_runner
from tests.runner.tiny import edit_json, save, tiny
from tests.runner.zoo import RAW, UNIT

TEXTS = ["the cat sat on the mat", "", "how do I bake bread at home?"]


def run(folder, task, *, overrides=(), texts=TEXTS, **options):
    """Token ids and pooled data of each text."""
    config = ModelConfig(model=str(folder), device="cpu", overrides=overrides)
    runner = load_runner(config, PoolerConfig(**options), 512)
    tokens = runner.tokenizers.texts()(texts)
    pooled = runner.pool(tokens, runner.params(task))
    ids = np.split(tokens.token_ids, np.cumsum(tokens.lengths)[:-1])
    rows = pooled.values
    if pooled.lengths is not None:
        rows = np.split(rows, np.cumsum(pooled.lengths)[:-1])
    assert not pooled.failures
    return [torch.from_numpy(row)[None] for row in ids], rows


@pytest.fixture
def copy(models, tmp_path):
    """A copy of a zoo model, to be changed."""
    return lambda family: shutil.copytree(models / family, tmp_path / family)


ACTIVATIONS = {
    "none": lambda logits: logits,
    "sigmoid": torch.sigmoid,
    "softmax": lambda logits: logits.exp() / logits.exp().sum(dim=-1, keepdim=True),
}


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_the_activation_that_is_named_is_applied(models, name):
    folder = models / "bert-seqcls"
    _, raw = run(folder, "classify", use_activation=False)
    _, rows = run(folder, "classify", overrides=(("activation", name),))
    expected = ACTIVATIONS[name](torch.from_numpy(raw).double())
    np.testing.assert_allclose(rows, expected.numpy(), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("declared", "function"),
    [("torch.nn.modules.activation.Tanh", torch.tanh), ("torch.nn.ReLU", torch.relu)],
)
def test_an_activation_of_torch_is_applied_value_by_value(copy, declared, function):
    folder = copy("bert-crossencoder")
    edit_json(folder / "config_sentence_transformers.json", activation_fn=declared)
    _, raw = run(folder, "classify", use_activation=False)
    _, rows = run(folder, "classify")
    assert raw.min() < 0
    np.testing.assert_allclose(rows, function(torch.from_numpy(raw)).numpy(), rtol=0, atol=1e-6)


CAUSAL = ["Gemma", "Llama", "Phi", "Qwen2", "Qwen3"]


@pytest.fixture
def reranker(models, tmp_path):
    """A tiny causal language model, with tokens that answer; returns its folder and the model."""

    def make(family, answers, method, *, tied):
        tokenizer = models / "qwen3-causal-reranker"
        vocabulary = json.loads((tokenizer / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
        model = tiny(family, "ForCausalLM", vocab_size=900, tie_word_embeddings=tied)
        folder = save(model, tmp_path, tokenizer)
        words = list(answers)
        edit_json(folder / "config.json", classifier_from_token=words, method=method)
        return folder, model.double(), [vocabulary[word] for word in words]

    return make


@torch.no_grad()
def last_logits(model, ids):
    """Logits of the last token over the whole vocabulary, in float64, as transformers computes them."""
    return model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0, -1]


# Phi has a bias in its language-model head.
@pytest.mark.parametrize(
    ("family", "tied"), [(family, family != "Phi") for family in CAUSAL] + [("Qwen3", False)]
)
def test_two_answers_become_one_probability(reranker, family, tied):
    folder, model, (no, yes) = reranker(family, ("no", "yes"), "from_2_way_softmax", tied=tied)
    texts = [text for text in TEXTS if text]
    inputs, scores = run(folder, "classify", texts=texts)
    _, raw = run(folder, "classify", texts=texts, use_activation=False)
    for ids, score, logit in zip(inputs, scores, raw, strict=True):
        logits = last_logits(model, ids)
        probability = logits[[no, yes]].softmax(dim=0)[1]
        assert float(score[0]) == pytest.approx(float(probability), abs=UNIT)
        assert float(logit[0]) == pytest.approx(float(logits[yes] - logits[no]), abs=RAW)


@pytest.mark.parametrize(("family", "tied"), [("Gemma", True), ("Phi", False)])
def test_one_answer_gives_its_logit(reranker, family, tied):
    folder, model, (yes,) = reranker(family, ("yes",), "no_post_processing", tied=tied)
    texts = [text for text in TEXTS if text]
    inputs, raw = run(folder, "classify", texts=texts, use_activation=False)
    for ids, logit in zip(inputs, raw, strict=True):
        assert float(logit[0]) == pytest.approx(float(last_logits(model, ids)[yes]), abs=RAW)


def test_several_answers_give_their_logits_in_order(reranker):
    folder, model, answers = reranker("Qwen2", ("b", "a", "c"), "no_post_processing", tied=True)
    inputs, raw = run(folder, "classify", texts=TEXTS[:1], use_activation=False)
    np.testing.assert_allclose(raw[0], last_logits(model, inputs[0])[answers].numpy(), rtol=0, atol=RAW)


@pytest.mark.parametrize("kind", ["reward", "process-reward"])
def test_a_language_model_judges_steps_by_the_answers_that_are_named(models, tmp_path, kind):
    model = tiny("Llama", "ForCausalLM", vocab_size=900, tie_word_embeddings=False)
    folder = save(model, tmp_path, models / "qwen3-causal-reranker")
    tag, answers = 264, (71, 66)
    inputs, rows = run(
        folder,
        "token_classify",
        texts=["the cat sat on the mat a a"],
        overrides=(("kind", kind),),
        step_tag_id=tag,
        returned_token_ids=answers,
        tok_pooling_type="STEP",
    )
    steps = torch.nonzero(inputs[0][0] == tag).flatten()
    assert len(steps) > 0
    with torch.no_grad():
        logits = model.double()(input_ids=inputs[0], attention_mask=torch.ones_like(inputs[0])).logits[0]
    expected = logits[steps][:, list(answers)].softmax(dim=1)
    np.testing.assert_allclose(rows[0], expected.numpy(), rtol=0, atol=UNIT)


@pytest.fixture
def rewarder(copy):
    """The zoo's reward model with other layers on top."""

    def make(**layers):
        folder = copy("qwen2-rm")
        weights = load_file(folder / "model.safetensors")
        kept = {name: tensor for name, tensor in weights.items() if not name.startswith("score")}
        save_file({**kept, **layers}, folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return make


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.mark.parametrize("widths", [(1,), (8, 1), (8, 4, 1), (8, 7, 6, 5, 4, 3, 1)])
def test_a_reward_head_has_relu_between_its_layers(models, rewarder, widths):
    sizes = [128, *widths]
    layers, expected_head = {}, []
    for index, (before, after) in enumerate(zip(sizes, widths, strict=False)):
        layer = nn.Linear(before, after)
        layer.weight.data, layer.bias.data = random(after, before), random(after)
        layers |= {f"score.{2 * index}.weight": layer.weight.data, f"score.{2 * index}.bias": layer.bias.data}
        expected_head += [layer, nn.ReLU()]
    expected_head = nn.Sequential(*expected_head[:-1]).double()
    folder = rewarder(**layers)
    texts = [text for text in TEXTS if text]
    _, states = run(
        models / "qwen2-rm",
        "token_embed",
        texts=texts,
        overrides=(("kind", "embedding"),),
        use_activation=False,
    )
    _, tokens = run(folder, "token_classify", texts=texts)
    _, rows = run(folder, "classify", texts=texts)
    with torch.no_grad():
        for state, found, last in zip(states, tokens, rows, strict=True):
            expected = expected_head(torch.from_numpy(state).double()).numpy()
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=RAW)
            np.testing.assert_allclose(last, expected[-1], rtol=1e-5, atol=RAW)


@pytest.mark.parametrize(
    "shapes",
    [[(1, 127)], [(8, 128), (1, 9)]],
    ids=["of other hidden states", "with a gap"],
)
def test_a_reward_head_that_does_not_fit_is_refused(rewarder, shapes):
    folder = rewarder(**{f"score.{2 * index}.weight": random(*shape) for index, shape in enumerate(shapes)})
    with pytest.raises(ModelError, match="which do not lead from 128 to"):
        load_runner(ModelConfig(model=str(folder), device="cpu"), None, 512)


def test_a_reward_model_without_a_known_head_is_refused(rewarder):
    folder = rewarder(**{"classifier.weight": random(1, 128)})
    with pytest.raises(ModelError, match=r"has no reward head \(its weights should hold score"):
        load_runner(ModelConfig(model=str(folder), device="cpu"), None, 512)


def test_a_saved_layer_without_its_bias_is_refused(copy):
    folder = copy("xlmroberta-bge-m3")
    torch.save({"weight": random(1, 64)}, folder / "sparse_linear.pt")
    with pytest.raises(ModelError, match=r"sparse_linear\.pt lacks weight or bias"):
        load_runner(ModelConfig(model=str(folder), device="cpu"), None, 512)


@pytest.mark.parametrize("family", ["bert-dense-matryoshka", "xlmroberta-bge-m3"])
def test_a_projector_that_is_missing_is_refused(copy, family):
    folder = copy(family)
    lost = folder / ("2_Dense/model.safetensors" if family.startswith("bert") else "sparse_linear.pt")
    lost.write_bytes(b"not a file of weights")
    with pytest.raises(ModelError, match=lost.name):
        load_runner(ModelConfig(model=str(folder), device="cpu"), None, 512)


@pytest.mark.parametrize("family", ["Bert", "DistilBert", "Roberta"])
def test_sparse_vectors_are_the_maximum_of_saturated_logits(models, tmp_path, family):
    model = tiny(family, "ForMaskedLM", vocab_size=968)
    folder = save(model, tmp_path, models / "bert-splade")
    inputs, rows = run(folder, "embed", overrides=(("kind", "sparse"),))
    model = model.double()
    with torch.no_grad():
        for ids, row in zip(inputs, rows, strict=True):
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
            expected = logits.relu().log1p().amax(dim=0)
            np.testing.assert_allclose(row, expected.numpy(), rtol=0, atol=UNIT)


def test_a_language_model_without_a_bias_gives_sparse_vectors_too(models, tmp_path):
    model = tiny("ModernBert", "ForMaskedLM", vocab_size=968, decoder_bias=False)
    assert model.get_output_embeddings().bias is None
    folder = save(model, tmp_path, models / "bert-splade")
    inputs, rows = run(folder, "embed", overrides=(("kind", "sparse"),), texts=TEXTS[:1])
    with torch.no_grad():
        logits = model.double()(input_ids=inputs[0], attention_mask=torch.ones_like(inputs[0])).logits[0]
    np.testing.assert_allclose(rows[0], logits.relu().log1p().amax(dim=0).numpy(), rtol=0, atol=UNIT)
