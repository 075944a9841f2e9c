import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec

LIBRARY = "config_sentence_transformers.json"
IDENTITY = "torch.nn.modules.linear.Identity"
SIGMOID = "torch.nn.modules.activation.Sigmoid"
SOFTMAX = "torch.nn.modules.activation.Softmax"


@pytest.fixture
def classifier(bert):
    return bert.config(architectures=["BertForSequenceClassification"]).weights(
        **{"classifier.weight": (3, 8)}
    )


@pytest.mark.parametrize(
    ("config", "labels", "warned"),
    [
        ({"id2label": {"2": "c", "0": "a", "1": "b"}}, ("a", "b", "c"), False),
        (
            {"id2label": {"10": "k"} | {str(i): chr(97 + i) for i in range(10)}},
            (*"abcdefghij", "k"),
            False,
        ),
        ({"id2label": {"0": "a", "2": "c"}}, ("a", "LABEL_1", "c"), True),
        ({"id2label": {"0": "a"}}, ("a", "LABEL_1", "LABEL_2"), True),
        ({"label2id": {"b": 1, "a": 0, "c": 2}}, ("a", "b", "c"), False),
        ({"id2label": None}, ("LABEL_0", "LABEL_1", "LABEL_2"), False),
        ({"num_labels": 3}, ("LABEL_0", "LABEL_1", "LABEL_2"), False),
    ],
)
def test_labels_are_in_the_order_of_the_outputs(classifier, config, labels, warned):
    classifier.config(**config).weights(**{"classifier.weight": (len(labels), 8)})
    spec = read_spec(classifier.path)
    assert (spec.labels, spec.num_labels, bool(spec.warnings)) == (labels, len(labels), warned)


def test_fewer_names_than_outputs_is_handed_to_the_loader(classifier):
    classifier.config(id2label={"0": "yes", "1": "no"}).weights(**{"classifier.weight": (50, 8)})
    spec = read_spec(classifier.path)
    assert (spec.num_labels, spec.labels[:3], spec.labels[49]) == (50, ("yes", "no", "LABEL_2"), "LABEL_49")
    assert spec.config_overrides["id2label"] == dict(enumerate(spec.labels))
    assert "names 2 of 50 labels" in spec.warnings[0]


def test_names_that_the_user_changes_are_handed_over_by_number(classifier):
    spec = read_spec(classifier.path, overrides={"id2label": '{"0": "x", "2": "z", "1": "y"}'})
    assert (spec.labels, spec.config_overrides["id2label"]) == (("x", "y", "z"), {0: "x", 1: "y", 2: "z"})


def test_complete_names_need_no_hand(classifier):
    assert read_spec(classifier.config(id2label={"0": "a", "1": "b", "2": "c"}).path).config_overrides == {}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"id2label": {str(i): "x" for i in range(4)}},
            "names 4 labels .*but model.safetensors has 3 outputs",
        ),
        ({"id2label": {"first": "a"}}, "an index is not a whole number"),
        ({"label2id": {"a": "first"}}, "an index is not a whole number"),
        ({"id2label": ["a"]}, "id2label is .*expected an object"),
        ({"problem_type": "poetry"}, "problem_type is 'poetry'"),
    ],
)
def test_labels_that_contradict_are_an_error(classifier, config, message):
    with pytest.raises(ModelError, match=message):
        read_spec(classifier.config(**config).path)


@pytest.mark.parametrize(
    ("config", "num_labels"),
    [
        ({"num_labels": 5}, 5),
        ({"id2label": {"0": "a", "3": "b"}}, 4),
        ({}, 2),
        ({"num_labels": 9, "id2label": {"0": "a"}}, 9),
    ],
)
def test_without_a_readable_head_the_number_is_declared(classifier, config, num_labels):
    classifier.config(**config).remove("model.safetensors").write("pytorch_model.bin", "")
    assert read_spec(classifier.path).num_labels == num_labels


@pytest.mark.parametrize(
    "name",
    [
        "classifier.out_proj.weight",
        "score.weight",
        "classification_head.out_proj.weight",
        "logits_proj.weight",
    ],
)
def test_heads_of_other_families_are_counted(classifier, name):
    assert read_spec(classifier.weights(**{name: (4, 8)}).path).num_labels == 4


def test_a_head_of_another_form_leaves_the_number_to_the_names(classifier):
    classifier.weights(**{"classifier.linear_out.weight": (4, 8)}).config(id2label={"0": "a", "1": "b"})
    assert read_spec(classifier.path).labels == ("a", "b")


def test_a_missing_head_is_an_error(classifier):
    classifier.weights(**{"bert.embeddings.word_embeddings.weight": (12, 8)})
    with pytest.raises(ModelError, match=r"the head of BertForSequenceClassification has no weights"):
        read_spec(classifier.path)


def test_the_user_names_the_labels(classifier):
    spec = read_spec(classifier.path, overrides={"labels": '["x", "y", "z"]'})
    assert (spec.labels, spec.sources["labels"]) == (("x", "y", "z"), "user")


@pytest.mark.parametrize(
    ("config", "library", "num_labels", "activation"),
    [
        ({}, {}, 3, "softmax"),
        ({}, {}, 1, "sigmoid"),
        ({"problem_type": "regression"}, {}, 3, "none"),
        ({"problem_type": "multi_label_classification"}, {}, 3, "sigmoid"),
        ({"problem_type": "single_label_classification"}, {}, 3, "softmax"),
        ({"problem_type": "single_label_classification"}, {}, 1, "sigmoid"),
        ({"sentence_transformers": {"activation_fn": IDENTITY}}, {}, 1, "none"),
        ({"sentence_transformers": {"activation_fn": SIGMOID}}, {}, 3, "sigmoid"),
        ({"sentence_transformers": {"activation_fn": SOFTMAX}}, {}, 3, "softmax"),
        ({"sentence_transformers": {"activation_fn": SOFTMAX}}, {}, 1, "sigmoid"),
        ({"sbert_ce_default_activation_function": IDENTITY}, {}, 3, "none"),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh"}, {}, 1, "Tanh"),
        (
            {
                "sentence_transformers": {"activation_fn": IDENTITY},
                "sbert_ce_default_activation_function": SIGMOID,
            },
            {},
            1,
            "none",
        ),
        ({"problem_type": "regression", "sentence_transformers": {"activation_fn": SIGMOID}}, {}, 1, "none"),
        ({"sentence_transformers": {"activation_fn": SIGMOID}}, {"activation_fn": IDENTITY}, 1, "none"),
        ({"problem_type": "regression"}, {"activation_fn": SIGMOID}, 1, "sigmoid"),
        ({}, {"model_type": "CrossEncoder"}, 3, "softmax"),
    ],
)
def test_the_activation_is_the_one_meant(classifier, config, library, num_labels, activation):
    classifier.config(**config).write(LIBRARY, library).weights(**{"classifier.weight": (num_labels, 8)})
    spec = read_spec(classifier.path)
    assert (spec.activation, spec.use_activation) == (activation, True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os.system", "restricted to torch.nn.modules"),
        ("torch.nn.modules.activation.GLU", "the activation GLU is not supported"),
    ],
)
def test_other_code_is_no_activation(classifier, name, message):
    with pytest.raises(ModelError, match=message):
        read_spec(classifier.config(sentence_transformers={"activation_fn": name}).path)


@pytest.mark.parametrize("choice", ["none", "sigmoid", "softmax"])
def test_the_user_chooses_the_activation(classifier, choice):
    spec = read_spec(classifier.config(problem_type="regression").path, overrides={"activation": choice})
    assert (spec.activation, spec.sources["activation"]) == (choice, "user")
