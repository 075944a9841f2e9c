"""What a folder lacks is said at load; nothing is made up, and nothing foreign comes through."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from poolembed.config import ModelConfig
from poolembed.errors import ModelError
from poolembed.runner.checkpoint import load_checkpoint
from poolembed.runner.describe import describe_model
from poolembed.runner.tokenizer_files import load_tokenizer
from tests.runner.tiny import edit_json, save, tiny

CPU = torch.device("cpu")


@pytest.fixture
def copy(models, tmp_path):
    """A copy of a zoo model, to be broken."""
    return lambda family: shutil.copytree(models / family, tmp_path / family)


def spec_of(folder, *overrides):
    return describe_model(ModelConfig(model=str(folder), overrides=overrides))[1]


def load(folder, *overrides, dtype=torch.float32):
    return load_checkpoint(spec_of(folder, *overrides), device=CPU, dtype=dtype, trust_remote_code=False)


def tokenizer(folder, *overrides):
    return load_tokenizer(spec_of(folder, *overrides), trust_remote_code=False)


def change_weights(folder, change):
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def test_a_missing_weight_is_refused_by_name(copy):
    folder = copy("bert-mean")
    change_weights(folder, lambda weights: weights.pop("encoder.layer.1.output.dense.weight"))
    with pytest.raises(
        ModelError, match=r"lacks weights of BertModel: encoder\.layer\.1\.output\.dense\.weight"
    ):
        load(folder)


def test_of_many_missing_weights_some_are_named(copy):
    folder = copy("bert-mean")

    def drop_layer(weights):
        for name in [name for name in weights if name.startswith("encoder.layer.1.")]:
            del weights[name]

    change_weights(folder, drop_layer)
    with pytest.raises(ModelError, match=r"encoder\.layer\.1\..* and 12 more"):
        load(folder)


def test_a_pooler_that_embeddings_do_not_use_may_be_missing(copy):
    folder = copy("bert-mean")

    def drop_pooler(weights):
        for name in [name for name in weights if name.startswith("pooler.")]:
            del weights[name]

    change_weights(folder, drop_pooler)
    assert load(folder).config.model_type == "bert"


@pytest.mark.parametrize("lost", ["bert.pooler.dense.weight", "classifier.bias"])
def test_a_head_that_would_be_made_up_is_refused(copy, lost):
    folder = copy("bert-seqcls")
    change_weights(folder, lambda weights: weights.pop(lost))
    with pytest.raises(ModelError, match=f"lacks weights of BertForSequenceClassification: {lost}"):
        load(folder)


def test_weights_of_another_shape_are_refused(copy):
    folder = copy("bert-mean")
    edit_json(folder / "config.json", intermediate_size=96)
    with pytest.raises(ModelError, match=str(folder)):
        load(folder)


@pytest.mark.parametrize("size", [0, 7, 4000])
def test_a_damaged_file_of_weights_is_refused(copy, size):
    folder = copy("bert-mean")
    spec = spec_of(folder)
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_checkpoint(spec, device=CPU, dtype=torch.float32, trust_remote_code=False)


@pytest.mark.parametrize("size", [0, 7, 4000, 40_000])
def test_a_damaged_pickle_of_weights_is_refused(copy, size):
    folder = copy("bert-mean")
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    spec = spec_of(folder)
    file = folder / "pytorch_model.bin"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ModelError, match="cannot be loaded"):
        load_checkpoint(spec, device=CPU, dtype=torch.float32, trust_remote_code=False)


def test_weights_in_a_pickle_are_loaded_with_a_warning(copy):
    folder = copy("bert-mean")
    weights = load_file(folder / "model.safetensors")
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert any("pytorch_model.bin" in warning for warning in spec_of(folder).warnings)
    found = load(folder).state_dict()["embeddings.word_embeddings.weight"]
    assert torch.equal(found, weights["embeddings.word_embeddings.weight"])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_model_has_the_precision_that_was_asked_for(models, dtype):
    model = load(models / "bert-mean-fp16", dtype=dtype)
    assert model.dtype == dtype
    assert not model.training


def test_a_tied_language_model_head_is_the_embedding(models, tmp_path):
    model = tiny("Qwen3", "ForCausalLM", vocab_size=900, tie_word_embeddings=True)
    folder = save(model, tmp_path, models / "qwen3-causal-reranker")
    assert "lm_head.weight" not in load_file(folder / "model.safetensors")
    edit_json(folder / "config.json", classifier_from_token=["no", "yes"], method="from_2_way_softmax")
    loaded = load(folder)
    assert torch.equal(loaded.get_output_embeddings().weight, model.get_input_embeddings().weight)


def test_what_the_spec_changes_reaches_the_model(models):
    assert load(models / "qwen2-last", ("is_causal", "false")).config.is_causal is False


def test_an_encoder_decoder_leaves_its_decoder_out(models):
    names = {name.partition(".")[0] for name, _ in load(models / "t5-encoder-mean").named_parameters()}
    assert "decoder" not in names


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        ("bert-mean", "BertModel"),
        ("bert-seqcls", "BertForSequenceClassification"),
        ("bert-crossencoder", "BertForSequenceClassification"),
        ("bert-tokencls", "BertForTokenClassification"),
        ("bert-splade", "BertForMaskedLM"),
        ("bert-colbert", "BertModel"),
        ("qwen2-rm", "Qwen2Model"),
        ("qwen3-causal-reranker", "Qwen3ForCausalLM"),
        ("t5-encoder-mean", "T5EncoderModel"),
    ],
)
def test_a_kind_of_model_is_loaded_with_the_head_it_needs_and_no_other(models, family, kind):
    assert type(load(models / family)).__name__ == kind


def test_an_architecture_that_transformers_does_not_know_is_refused(copy):
    folder = copy("bert-mean")
    edit_json(folder / "config.json", model_type="no-such-type")
    with pytest.raises(ModelError):
        load(folder)


def test_nothing_of_the_loading_is_printed(models, capfd):
    load(models / "bert-mean")
    tokenizer(models / "bert-mean")
    assert capfd.readouterr() == ("", "")


def drop_tokenizer(folder):
    for file in folder.iterdir():
        if file.name.startswith(("tokenizer", "vocab", "special_tokens")):
            file.unlink()


def test_a_missing_tokenizer_is_refused(copy):
    folder = copy("bert-mean")
    drop_tokenizer(folder)
    # Later it would be too late: transformers makes up an empty vocabulary.
    with pytest.raises(ModelError, match="holds no tokenizer"):
        spec_of(folder)


@pytest.mark.parametrize("part", ["model", "pre_tokenizer"])
def test_a_tokenizer_of_a_kind_that_nobody_knows_is_refused(copy, part):
    folder = copy("bert-mean")
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    edit_json(folder / "tokenizer.json", **{part: {**content[part], "type": "NoSuchType"}})
    with pytest.raises(ModelError, match=r"tokenizer of .* cannot be loaded"):
        tokenizer(folder)


def test_a_tokenizer_damaged_since_the_folder_was_read_is_refused(copy):
    folder = copy("bert-mean")
    spec = spec_of(folder)
    (folder / "tokenizer.json").write_text('{"model": {"type": "WordPiece"', "utf-8")
    with pytest.raises(ModelError, match=r"tokenizer of .* cannot be loaded"):
        load_tokenizer(spec, trust_remote_code=False)


def test_what_fails_in_a_folders_own_code_keeps_its_traceback(copy):
    folder = copy("bert-mean")
    spec = spec_of(folder)
    edit_json(
        folder / "tokenizer_config.json",
        "tokenizer_class",
        tokenizer_class="Own",
        auto_map={"AutoTokenizer": ["own.Own", "own.Own"]},
    )
    (folder / "own.py").write_text("assert False\n\n\nclass Own:\n    pass\n")
    with pytest.raises(AssertionError):
        load_tokenizer(spec, trust_remote_code=True)


def test_a_tokenizer_without_a_fast_form_is_refused(copy):
    folder = copy("bert-mean")
    spec = spec_of(folder)
    drop_tokenizer(folder)
    # CANINE reads code points, which needs no file and no fast form.
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CanineTokenizer"}), "utf-8")
    with pytest.raises(ModelError, match="CanineTokenizer has no fast form") as caught:
        load_tokenizer(spec, trust_remote_code=False)
    assert "save_pretrained" in caught.value.hint


@pytest.mark.parametrize(
    ("family", "special"), [("bert-mean", "[SEP]"), ("roberta-mean", "</s>"), ("xlmroberta-cls", "</s>")]
)
def test_lower_casing_spares_special_tokens(models, family, special):
    plain, lowered = (
        tokenizer(models / family, ("do_lower_case", flag)).backend_tokenizer for flag in ("false", "true")
    )
    assert lowered.encode(f"The CAT {special} SAT").ids == plain.encode(f"the cat {special} sat").ids
    other = special.upper() if special.islower() else special
    assert plain.token_to_id(special) in lowered.encode(other).ids


def test_lower_casing_needs_no_normalizer(models):
    folder = models / "gpt2-seqcls"
    plain = tokenizer(folder).backend_tokenizer
    assert plain.normalizer is None
    lowered = tokenizer(folder, ("do_lower_case", "true")).backend_tokenizer
    assert lowered.encode("The CAT").ids == plain.encode("the cat").ids
