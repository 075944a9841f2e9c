"""Dense layers compute what sentence-transformers' Dense does, and incomplete ones are refused."""

import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from poolembed.errors import ModelError
from poolembed.runner.projector import linear, load_projector, read_weights
from poolembed.runner.spec import read_spec

CPU = torch.device("cpu")


@pytest.fixture
def dense_model(models, tmp_path):
    """A copy of a model with two Dense layers, and where the weights of the first are."""
    folder = tmp_path / "model"
    shutil.copytree(models / "bert-dense-matryoshka", folder)
    return SimpleNamespace(folder=folder, weights=folder / "2_Dense" / "model.safetensors")


def test_a_model_without_dense_layers_has_no_projector(models):
    assert load_projector(read_spec(models / "bert-mean"), CPU) is None


def test_the_layers_are_those_of_sentence_transformers(models):
    from sentence_transformers.sentence_transformer.modules import Dense

    folder = models / "bert-dense-matryoshka"
    spec = read_spec(folder)
    projector = load_projector(spec, CPU)
    assert projector is not None
    vectors = torch.randn(6, spec.hidden_size, generator=torch.Generator().manual_seed(0))
    expected = vectors
    for dense in spec.dense:
        expected = Dense.load(str(folder / dense.folder))({"sentence_embedding": expected})[
            "sentence_embedding"
        ]
    with torch.inference_mode():
        torch.testing.assert_close(projector(vectors), expected.detach(), rtol=0, atol=1e-6)


def test_half_precision_weights_become_float32(dense_model):
    halves = {name: tensor.half() for name, tensor in load_file(dense_model.weights).items()}
    save_file(halves, dense_model.weights)
    projector = load_projector(read_spec(dense_model.folder), CPU)
    assert projector is not None
    assert {parameter.dtype for parameter in projector.parameters()} == {torch.float32}


def test_a_pickle_of_tensors_is_read(dense_model, tmp_path):
    tensors = load_file(dense_model.weights)
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    read = read_weights(tmp_path / "pytorch_model.bin")
    assert {name: tensor.tolist() for name, tensor in read.items()} == {
        name: tensor.tolist() for name, tensor in tensors.items()
    }


class NotATensor:
    """Something that a pickle must run code to make."""


@pytest.mark.parametrize("content", [{"linear.weight": NotATensor()}, [torch.zeros(1)], {"weight": 1}])
def test_a_pickle_with_anything_but_tensors_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="cannot be read as weights: it is no pickle of tensors"):
        read_weights(tmp_path / "pytorch_model.bin")


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("content", [b"", b"these are no weights", b"\x08\x00\x00\x00\x00\x00\x00\x00{}"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelError, match=f"{name} cannot be read as weights"):
        read_weights(tmp_path / name)


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read as weights"):
        read_weights(tmp_path / "model.safetensors")


@pytest.mark.parametrize("lost", ["linear.weight", "linear.bias"])
def test_a_layer_that_lacks_its_weights_is_refused(dense_model, lost):
    spec = read_spec(dense_model.folder)
    tensors = load_file(dense_model.weights)
    if lost not in tensors:
        spec = replace(spec, dense=tuple(replace(dense, bias=True) for dense in spec.dense))
    tensors.pop(lost, None)
    save_file(tensors, dense_model.weights)
    with pytest.raises(ModelError, match="weights of the Dense layer are incomplete"):
        load_projector(spec, CPU)


def test_a_linear_layer_without_bias_has_none():
    layer = linear(torch.tensor([[1.0, 2.0]]), None)
    assert layer.bias is None
    assert layer(torch.tensor([[3.0, 4.0]])).tolist() == [[11.0]]
