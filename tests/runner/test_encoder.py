"""Encoders of our own give what transformers gives for the same weights, in float64 to its last digits."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from poolembed.config import ModelConfig
from poolembed.runner import load_runner
from poolembed.runner.backbone import Backbone
from poolembed.runner.describe import describe_model
from poolembed.runner.encoder import EncoderModel, load_encoder
from poolembed.runner.packing import pack
from tests.runner.backbones import rows_of
from tests.runner.tiny import edit_json, save, tiny

CPU = torch.device("cpu")
FAMILIES = ["Bert", "Camembert", "DistilBert", "Electra", "MPNet", "Roberta", "XLMRoberta"]
SIZES = {
    "Camembert": {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 66,
        "pad_token_id": 1,
    },
    "MPNet": {"max_position_embeddings": 66},
}

# The same products in another order.
FLOAT64 = {"rtol": 1e-11, "atol": 1e-11}

# Two rows of one length; pad tokens, of either kind, inside a row.
ROWS = [
    [5, 9, 2, 33, 40, 7, 1, 0, 12, 60, 33, 21, 20, 19, 18, 17, 16, 15, 14, 13, 11, 10, 8, 7, 6, 5, 4, 3, 50],
    [8, 9, 10],
    [33, 1, 12],
    [7],
]


@pytest.fixture
def folder_of(tmp_path, models):
    """Save a tiny model of a class, in float64 whatever its configuration says; returns it and the folder."""

    def make(family, kind="Model", **changes):
        model = tiny(family, kind, **{**SIZES.get(family, {}), **changes}).double()
        folder = save(model, tmp_path / "model", models / "bert-mean")
        edit_json(folder / "config.json", dtype="float64")
        return model, folder

    return make


def encoder_of(folder, dtype=torch.float64, **config):
    _, spec = describe_model(ModelConfig(model=str(folder), **config), None)
    return load_encoder(spec, device=CPU, dtype=dtype)


def hidden_of(model, ids, **rest):
    with torch.inference_mode():
        return model(input_ids=torch.as_tensor(ids)[None], **rest)


@pytest.mark.parametrize("path", ["packed", "equal-length"])
@pytest.mark.parametrize("family", FAMILIES)
def test_hidden_states_are_those_of_transformers(folder_of, family, path):
    model, folder = folder_of(family)
    parts = encoder_of(folder)
    assert (parts.head, parts.decoder) == (None, None)
    backbone = Backbone(parts.transformer, CPU)
    backbone.use_path(path)
    rows = rows_of(*ROWS)
    batches = [range(4)] if path == "packed" else [[0], [1, 2], [3]]
    for batch in batches:
        found = backbone.forward(pack(rows, np.asarray(batch)))
        expected = [hidden_of(model, ROWS[row]).last_hidden_state[0] for row in batch]
        torch.testing.assert_close(found, torch.cat(expected), **FLOAT64)


@pytest.mark.parametrize("family", ["Bert", "Electra", "XLMRoberta"])
def test_token_types_are_added(folder_of, family):
    model, folder = folder_of(family, type_vocab_size=2)
    backbone = Backbone(encoder_of(folder).transformer, CPU)
    backbone.use_path("packed")
    types = np.asarray([index % 2 for row in ROWS for index in range(len(row))])
    found = backbone.forward(pack(rows_of(*ROWS, token_type_ids=types), np.arange(4)))
    split = torch.from_numpy(types).split([len(row) for row in ROWS])
    expected = [
        hidden_of(model, row, token_type_ids=own[None]).last_hidden_state[0]
        for row, own in zip(ROWS, split, strict=True)
    ]
    torch.testing.assert_close(found, torch.cat(expected), **FLOAT64)


@pytest.mark.parametrize("path", ["packed", "equal-length"])
@pytest.mark.parametrize("family", ["Bert", "MPNet"])
def test_tokens_that_are_not_seen_are_masked(folder_of, family, path):
    model, folder = folder_of(family)
    backbone = Backbone(encoder_of(folder).transformer, CPU)
    backbone.use_path(path)
    found = backbone.forward(pack(rows_of(ROWS[0], seen_lengths=np.asarray([12])), np.arange(1)))
    mask = (torch.arange(len(ROWS[0])) < 12).long()[None]
    expected = hidden_of(model, ROWS[0], attention_mask=mask).last_hidden_state[0]
    torch.testing.assert_close(found[:12], expected[:12], **FLOAT64)


def test_far_relative_positions_share_their_kinds(folder_of):
    model, folder = folder_of("MPNet", max_position_embeddings=402)
    ids = [3 + number % 60 for number in range(400)]
    backbone = Backbone(encoder_of(folder).transformer, CPU)
    backbone.use_path("packed")
    found = backbone.forward(pack(rows_of(ids, ids[:300]), np.arange(2)))
    expected = [hidden_of(model, row).last_hidden_state[0] for row in (ids, ids[:300])]
    torch.testing.assert_close(found, torch.cat(expected), **FLOAT64)


@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "relu", "silu", "swish"])
def test_activations_are_those_of_transformers(folder_of, activation):
    model, folder = folder_of("Bert", hidden_act=activation)
    backbone = Backbone(encoder_of(folder).transformer, CPU)
    found = backbone.forward(pack(rows_of(ROWS[0]), np.arange(1)))
    torch.testing.assert_close(found, hidden_of(model, ROWS[0]).last_hidden_state[0], **FLOAT64)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["ForSequenceClassification", "ForTokenClassification"])
def test_heads_give_the_logits_of_transformers(folder_of, family, kind):
    model, folder = folder_of(family, kind, num_labels=3)
    parts = encoder_of(folder, torch.float32)
    assert {weight.dtype for weight in parts.head.parameters()} == {torch.float32}
    model = model.float()
    with torch.inference_mode():
        hidden_states = hidden_of(model.base_model, ROWS[0]).last_hidden_state[0]
        found = parts.head(hidden_states if kind == "ForTokenClassification" else hidden_states[:1])
    torch.testing.assert_close(found, hidden_of(model, ROWS[0]).logits.reshape(found.shape))


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("family", ["Bert", "DistilBert", "MPNet", "Roberta"])
def test_masked_language_models_give_the_logits_of_transformers(folder_of, family, tied):
    model, folder = folder_of(family, "ForMaskedLM", tie_word_embeddings=tied)
    parts = encoder_of(folder, torch.float32)
    model = model.float()
    with torch.inference_mode():
        vectors = parts.head(hidden_of(model.base_model, ROWS[0]).last_hidden_state[0])
    found = torch.nn.functional.linear(vectors, *parts.decoder)
    torch.testing.assert_close(found, hidden_of(model, ROWS[0]).logits[0])


@pytest.mark.parametrize(
    "family", ["bert-seqcls", "roberta-tokencls", "bert-splade", "bert-colbert", "mpnet-mean"]
)
def test_the_zoo_runs_on_them(models, family):
    runner = load_runner(ModelConfig(model=str(models / family), device="cpu"), None, 512)
    assert isinstance(runner.backbone.model, EncoderModel)
    assert runner.check.path == "packed"


def test_the_names_of_the_first_checkpoints_are_understood(folder_of):
    model, folder = folder_of("Bert")
    weights = load_file(folder / "model.safetensors")
    old = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): w
        for name, w in weights.items()
    }
    save_file(old, folder / "model.safetensors", metadata={"format": "pt"})
    backbone = Backbone(encoder_of(folder).transformer, CPU)
    found = backbone.forward(pack(rows_of(ROWS[0]), np.arange(1)))
    torch.testing.assert_close(found, hidden_of(model, ROWS[0]).last_hidden_state[0], **FLOAT64)


@pytest.mark.parametrize(
    "changes",
    [
        {"is_decoder": True},
        {"position_embedding_type": "relative_key"},
        {"hidden_act": "mish"},
        {"num_hidden_layers": 3},
        {"hidden_size": 48},
        {"intermediate_size": 64},
        {"num_attention_heads": 3},
        {"model_type": "megatron-bert"},
        {"quantization_config": {"quant_method": "bitsandbytes", "load_in_8bit": True}},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_they_do_not_cover_is_left_to_transformers(folder_of, changes):
    _, folder = folder_of("Bert")
    assert encoder_of(folder) is not None
    spec = describe_model(ModelConfig(model=str(folder)), None)[1]
    edit_json(folder / "config.json", **changes)
    if "model_type" in changes:
        spec = describe_model(ModelConfig(model=str(folder)), None)[1]
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is None


@pytest.mark.parametrize(
    ("family", "key"),
    [
        ("Bert", "num_hidden_layers"),
        ("Bert", "hidden_act"),
        ("Bert", "layer_norm_eps"),
        ("DistilBert", "activation"),
        ("Roberta", "pad_token_id"),
    ],
)
def test_what_config_json_does_not_say_is_left_to_transformers(folder_of, family, key):
    _, folder = folder_of(family)
    spec = describe_model(ModelConfig(model=str(folder)), None)[1]
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is not None
    edit_json(folder / "config.json", key)
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is None


@pytest.mark.parametrize("key", ["bos_token_id", "eos_token_id"])
def test_filters_of_bge_m3_need_their_tokens(models, tmp_path, key):
    folder = shutil.copytree(models / "xlmroberta-bge-m3", tmp_path / "bge-m3")
    assert encoder_of(folder, torch.float32) is not None
    edit_json(folder / "config.json", key)
    assert encoder_of(folder, torch.float32) is None


@pytest.mark.parametrize("damage", ["decoder", "bias"])
def test_output_embeddings_of_another_shape_are_left_to_transformers(folder_of, damage):
    _, folder = folder_of("Bert", "ForMaskedLM")
    spec = describe_model(ModelConfig(model=str(folder)), None)[1]
    weights = load_file(folder / "model.safetensors")
    changed = {"cls.predictions.decoder.weight": torch.zeros(64, 30)}
    if damage == "bias":
        changed = {name: torch.zeros(63) for name in weights if name.endswith("predictions.bias")}
    save_file(weights | changed, folder / "model.safetensors", metadata={"format": "pt"})
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is None


def test_damaged_weights_are_left_to_transformers(folder_of):
    _, folder = folder_of("Bert")
    spec = describe_model(ModelConfig(model=str(folder)), None)[1]
    (folder / "model.safetensors").write_bytes(b"nothing")
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is None


def test_narrow_embeddings_without_a_projection_are_left_to_transformers(folder_of):
    _, folder = folder_of("Bert")
    weights = load_file(folder / "model.safetensors")
    narrow = {
        name: w[:, :16].clone() if "embeddings.weight" in name or "_embeddings" in name else w
        for name, w in weights.items()
    }
    save_file(narrow, folder / "model.safetensors", metadata={"format": "pt"})
    spec = describe_model(ModelConfig(model=str(folder)), None)[1]
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is None


def test_a_masked_head_without_its_bias_is_left_to_transformers(folder_of):
    _, folder = folder_of("Bert", "ForMaskedLM")
    spec = describe_model(ModelConfig(model=str(folder)), None)[1]
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is not None
    weights = load_file(folder / "model.safetensors")
    kept = {
        name: w
        for name, w in weights.items()
        if not name.startswith("cls.") or "bias" not in name or "transform" in name
    }
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    assert load_encoder(spec, device=CPU, dtype=torch.float32) is None


def test_an_electra_generator_is_left_to_transformers(folder_of):
    _, folder = folder_of("Electra", "ForMaskedLM")
    assert encoder_of(folder) is None
    assert transformers.AutoModelForMaskedLM.from_pretrained(folder) is not None


@pytest.mark.parametrize("family", ["Bert", "DistilBert", "Electra", "MPNet", "Roberta"])
def test_the_first_token_alone_has_the_hidden_state_that_it_has_among_all(folder_of, family):
    model, folder = folder_of(family)
    backbone = Backbone(encoder_of(folder).transformer, CPU)
    assert not backbone.gives_first
    backbone.use_path("packed")
    assert backbone.gives_first
    found = backbone.forward_first(pack(rows_of(*ROWS), np.arange(4)))
    expected = [hidden_of(model, row).last_hidden_state[0, 0] for row in ROWS]
    torch.testing.assert_close(found, torch.stack(expected), **FLOAT64)


def test_the_first_token_alone_does_not_see_what_is_not_to_be_seen(folder_of):
    model, folder = folder_of("MPNet")
    backbone = Backbone(encoder_of(folder).transformer, CPU)
    backbone.use_path("packed")
    rows = rows_of(ROWS[0], ROWS[0], ROWS[1], seen_lengths=np.asarray([12, 20, 2]))
    found = backbone.forward_first(pack(rows, np.arange(3)))
    expected = [
        hidden_of(model, row, attention_mask=(torch.arange(len(row)) < seen).long()[None])
        for row, seen in ((ROWS[0], 12), (ROWS[0], 20), (ROWS[1], 2))
    ]
    torch.testing.assert_close(
        found, torch.stack([each.last_hidden_state[0, 0] for each in expected]), **FLOAT64
    )


class CountsLast(Backbone):
    """Counts the rows whose first token alone was asked for."""

    __slots__ = ("num_rows",)

    def forward_first(self, batch):
        self.num_rows = getattr(self, "num_rows", 0) + len(batch.rows)
        return super().forward_first(batch)


@pytest.mark.parametrize(
    ("family", "task", "takes"),
    [
        ("bert-cls", "embed", True),
        ("bert-seqcls", "classify", True),
        ("xlmroberta-bge-m3", "embed", True),
        ("xlmroberta-bge-m3", "token_classify", False),
        ("bert-cls", "token_embed", False),
        ("bert-mean", "embed", False),
        ("bert-lasttoken", "embed", False),
        ("bert-splade", "embed", False),
        ("modernbert-cls", "embed", False),
        ("qwen3-last", "embed", False),
    ],
)
def test_only_the_first_tokens_are_computed_where_nothing_else_is_looked_at(models, family, task, takes):
    runner = load_runner(ModelConfig(model=str(models / family), device="cpu"), None, 512, 1)
    backbone = CountsLast(runner.backbone.model, CPU)
    backbone.use_path(runner.backbone.path)
    counting = replace(runner, backbone=backbone)
    tokenized = runner.tokenizers.texts("")(["one two three", "four", "five six"])
    pooled = counting.pool(tokenized, counting.params(task))
    assert not pooled.failures
    assert getattr(backbone, "num_rows", 0) == (3 if takes else 0)
