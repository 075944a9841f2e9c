from types import SimpleNamespace

import pytest
import torch

from poolembed.errors import PoolingError
from poolembed.poolers import (
    LambdaPoolerActivation,
    PoolerClassify,
    PoolerIdentity,
    PoolerMultiLabelClassify,
    get_act_fn,
    resolve_classifier_act_fn,
)

SIGMOID = "torch.nn.modules.activation.Sigmoid"
IDENTITY = "torch.nn.modules.linear.Identity"
TANH = "torch.nn.modules.activation.Tanh"


def config(**attributes):
    return SimpleNamespace(**attributes)


def test_regression_has_no_activation():
    assert type(get_act_fn(config(problem_type="regression"))) is PoolerIdentity


@pytest.mark.parametrize(("static", "num_labels"), [(True, 3), (False, None)])
def test_single_label_problems_are_classified(static, num_labels):
    act = get_act_fn(config(problem_type="single_label_classification", num_labels=3), static)
    assert type(act) is PoolerClassify
    assert act.num_labels == num_labels


def test_single_label_problems_are_classified_whatever_else_is_named():
    act = get_act_fn(
        config(problem_type="single_label_classification", sbert_ce_default_activation_function=TANH)
    )
    assert type(act) is PoolerClassify


def test_multi_label_problems_have_a_sigmoid():
    assert type(get_act_fn(config(problem_type="multi_label_classification"))) is PoolerMultiLabelClassify


@pytest.mark.parametrize("problem_type", [None, ""])
def test_without_a_problem_type_names_are_looked_at(problem_type):
    declared = config(problem_type=problem_type, sentence_transformers={"activation_fn": IDENTITY})
    assert type(get_act_fn(declared)) is PoolerIdentity


def test_the_problem_type_comes_first():
    declared = config(problem_type="regression", sentence_transformers={"activation_fn": SIGMOID})
    assert type(get_act_fn(declared)) is PoolerIdentity


@pytest.mark.parametrize("name", [SIGMOID, "torch.nn.modules.activation.Softmax"])
def test_sigmoid_and_softmax_are_decided_by_the_width(name):
    for declared in (
        config(sentence_transformers={"activation_fn": name}, num_labels=7),
        config(sbert_ce_default_activation_function=name, num_labels=7),
    ):
        act = get_act_fn(declared)
        assert type(act) is PoolerClassify
        assert act.num_labels is None


def test_other_modules_are_applied_as_they_are():
    act = get_act_fn(config(sbert_ce_default_activation_function=TANH))
    assert type(act) is LambdaPoolerActivation
    assert act(torch.tensor([0.7])).item() == pytest.approx(torch.tensor(0.7).tanh().item())


def test_sentence_transformers_comes_before_the_older_key():
    declared = config(
        sentence_transformers={"activation_fn": IDENTITY}, sbert_ce_default_activation_function=SIGMOID
    )
    assert type(get_act_fn(declared)) is PoolerIdentity


@pytest.mark.parametrize("empty", [None, {}, {"version": "5"}, {"activation_fn": None}])
def test_what_sentence_transformers_leaves_open_the_older_key_says(empty):
    declared = config(sentence_transformers=empty, sbert_ce_default_activation_function=IDENTITY)
    assert type(get_act_fn(declared)) is PoolerIdentity


@pytest.mark.parametrize(("static", "num_labels"), [(True, 3), (False, None)])
def test_without_any_declaration_labels_are_classified(static, num_labels):
    act = get_act_fn(config(num_labels=3, sbert_ce_default_activation_function=None), static)
    assert type(act) is PoolerClassify
    assert act.num_labels == num_labels


def test_the_number_of_labels_is_static_by_default():
    assert get_act_fn(config(num_labels=4)).num_labels == 4
    assert get_act_fn(config()).num_labels == 0
    assert resolve_classifier_act_fn(config(hf_config=config(num_labels=4))).num_labels == 4


@pytest.mark.parametrize("name", ["os.system", "torch.nn.Sigmoid", "torch.nn.modulesX.Sigmoid", "", 5])
def test_only_torch_modules_may_be_named(name):
    with pytest.raises(ValueError, match=r"restricted to torch.nn.modules.\*"):
        get_act_fn(config(sentence_transformers={"activation_fn": name}))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("torch.nn.modules.activation.NoSuchThing", "does not exist in torch"),
        ("torch.nn.modules.no_such_module.Sigmoid", "does not exist in torch"),
        ("torch.nn.modules.activation.os.system", "does not exist in torch"),
        ("torch.nn.modules.module.warnings", "restricted to modules, it is"),
        ("torch.nn.modules.linear.Tensor", "restricted to modules, it is"),
        ("torch.nn.modules.module.Any", "restricted to modules, it is"),
        ("torch.nn.modules.linear.Linear", "needs arguments"),
    ],
)
def test_what_is_no_plain_activation_is_refused(name, message):
    with pytest.raises(PoolingError, match=message):
        get_act_fn(config(sbert_ce_default_activation_function=name))


def test_the_callers_function_wins():
    model = config(hf_config=config(problem_type="regression"))
    assert resolve_classifier_act_fn(model, act_fn=torch.tanh) is torch.tanh
    assert type(resolve_classifier_act_fn(model)) is PoolerIdentity


@pytest.mark.parametrize(("static", "num_labels"), [(True, 4), (False, None)])
def test_static_labels_are_handed_on(static, num_labels):
    model = config(hf_config=config(num_labels=4))
    assert resolve_classifier_act_fn(model, static_num_labels=static).num_labels == num_labels


def test_what_cannot_be_called_is_no_activation():
    with pytest.raises(TypeError, match="must be callable, got 'sigmoid'"):
        resolve_classifier_act_fn(config(hf_config=config()), act_fn="sigmoid")
