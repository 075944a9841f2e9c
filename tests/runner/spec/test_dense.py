import pytest
import torch

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec
from poolembed.runner.spec.dense import ACTIVATIONS
from tests.runner.spec.folders import DENSE, NORMALIZE, POOLING, TRANSFORMER


@pytest.fixture
def projected(library):
    return (
        library.modules(TRANSFORMER, POOLING, DENSE, DENSE, NORMALIZE)
        .dense("2_Dense", 16, 8)
        .dense("3_Dense", 4, 16, bias=False, activation_function="torch.nn.modules.linear.Identity")
    )


def test_layers_are_read_in_order(projected):
    spec = read_spec(projected.path)
    assert [(d.folder, d.in_features, d.out_features, d.bias, d.activation) for d in spec.dense] == [
        ("2_Dense", 8, 16, True, "Tanh"),
        ("3_Dense", 16, 4, False, "Identity"),
    ]
    assert spec.dense[0].files == ("2_Dense/model.safetensors",)
    assert (spec.embedding_size, spec.sources["dimension"]) == (4, "modules.json")


@pytest.mark.parametrize("names", [("weight", "bias"), ("dense.weight", "dense.bias")])
def test_other_names_of_the_weights_are_known(projected, names):
    projected.weights("2_Dense/model.safetensors", **{names[0]: (16, 8), names[1]: (16,)})
    assert read_spec(projected.path).dense[0].out_features == 16


def test_pickled_weights_are_accepted_unopened(projected):
    projected.remove("2_Dense/model.safetensors").write("2_Dense/pytorch_model.bin", "")
    assert read_spec(projected.path).dense[0].files == ("2_Dense/pytorch_model.bin",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"in_features": 9}, "the weight has shape"),
        ({"out_features": 9}, "the weight has shape"),
        ({"in_features": None}, "in_features or out_features is missing"),
        ({"activation_function": "os.system"}, "not one of torch.nn's modules"),
        ({"activation_function": "torch.nnx.Tanh"}, "not one of torch.nn's modules"),
        (
            {"activation_function": "torch.nn.modules.activation.MultiheadAttention"},
            "MultiheadAttention is not supported",
        ),
        ({"use_residual": True}, "use_residual: a residual Dense is not supported"),
        ({"module_input_name": "token_embeddings"}, "module_input_name is 'token_embeddings'"),
        ({"module_output_name": "scores"}, "module_output_name is 'scores'"),
    ],
)
def test_what_is_not_understood_is_an_error(projected, changes, message):
    projected.edit("2_Dense/config.json", **changes)
    with pytest.raises(ModelError, match=message):
        read_spec(projected.path)


def test_a_layer_without_weights_is_an_error(projected):
    with pytest.raises(ModelError, match=r"2_Dense declares a Dense layer but holds no model.safetensors"):
        read_spec(projected.remove("2_Dense/model.safetensors").path)


def test_a_declared_bias_must_be_there(projected):
    projected.weights("2_Dense/model.safetensors", **{"linear.weight": (16, 8)})
    with pytest.raises(ModelError, match=r"has no bias"):
        read_spec(projected.path)


def test_layers_that_do_not_fit_together_are_an_error(projected):
    projected.dense("3_Dense", 4, 15)
    with pytest.raises(
        ModelError, match=r"3_Dense/config.json: in_features is 15, but what comes before is 16 wide"
    ):
        read_spec(projected.path)


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_every_activation_is_an_element_wise_class_of_torch_without_arguments(name):
    values = torch.linspace(-2, 2, 5)
    function = getattr(torch.nn, name)()
    assert torch.equal(function(values)[1:], function(values[1:]))
