import pytest

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec import KINDS, read_spec
from poolembed.runner.spec.kinds import TASKS
from poolembed.runner.spec.outputs import read_output
from tests.runner.spec.folders import POOLING, TRANSFORMER

LIBRARY = "config_sentence_transformers.json"
HEAD = {"classifier.weight": (3, 8)}


def test_every_kind_has_its_tasks():
    assert set(KINDS) == set(TASKS)
    assert callable(read_output)


@pytest.mark.parametrize(
    ("architecture", "weights", "config", "kind"),
    [
        ("BertModel", {}, {}, "embedding"),
        ("BertForPreTraining", {}, {}, "embedding"),
        ("BertForSequenceClassification", HEAD, {}, "classifier"),
        ("BertForSequenceClassification", {"classifier.weight": (1, 8)}, {}, "cross-encoder"),
        (
            "BertForSequenceClassification",
            {"classifier.weight": (1, 8)},
            {"problem_type": "regression"},
            "classifier",
        ),
        (
            "BertForSequenceClassification",
            HEAD,
            {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
            "cross-encoder",
        ),
        (
            "BertForSequenceClassification",
            HEAD,
            {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
            "cross-encoder",
        ),
        ("BertForTokenClassification", HEAD, {}, "token-classifier"),
        ("HF_ColBERT", {"linear.weight": (4, 8)}, {}, "late-interaction"),
        ("BertForMaskedLM", {"cls.predictions.bias": (12,)}, {}, "sparse"),
        ("GPT2LMHeadModel", {}, {"model_type": "gpt2"}, "embedding"),
    ],
)
def test_the_architecture_tells_the_kind(bert, architecture, weights, config, kind):
    bert.config(architectures=[architecture], **config)
    if weights:
        bert.weights(**weights)
    assert read_spec(bert.path).kind == kind


def test_an_activation_of_sentence_transformers_makes_a_cross_encoder(bert):
    bert.config(architectures=["BertForSequenceClassification"]).weights(**HEAD)
    bert.write(LIBRARY, {"activation_fn": "torch.nn.modules.activation.Sigmoid"})
    assert read_spec(bert.path).kind == "cross-encoder"


def test_modules_come_before_the_architecture(library):
    library.config(architectures=["BertForMaskedLM"])
    spec = read_spec(library.path)
    assert (spec.kind, spec.sources["kind"]) == ("embedding", "modules.json")


def test_an_unknown_class_of_sentence_transformers_is_an_error(library):
    with pytest.raises(ModelError, match=r"model_type is 'Telepath'.*known: SentenceTransformer"):
        read_spec(library.write(LIBRARY, {"model_type": "Telepath"}).path)


@pytest.mark.parametrize(
    ("modules", "kind", "message"),
    [
        ((TRANSFORMER, "sentence_transformers.models.SpladePooling"), "sparse", "no masked-language head"),
        ((TRANSFORMER, "sentence_transformers.models.LogitScore"), "cross-encoder", "no weights"),
        ((TRANSFORMER, "sentence_transformers.models.MultiVectorMask"), "late-interaction", None),
    ],
)
def test_modules_tell_the_kind_where_nothing_else_does(library, modules, kind, message):
    library.modules(*modules)
    if message:
        with pytest.raises(ModelError, match=message):
            read_spec(library.path)
    else:
        assert read_spec(library.path).kind == kind


@pytest.mark.parametrize("task", ["embed", "token_embed"])
def test_a_chosen_task_comes_first(library, task):
    spec = read_spec(library.path, pooler_config=PoolerConfig(task=task))
    assert (spec.task, sorted(spec.tasks), spec.sources["tasks"]) == (task, ["embed", "token_embed"], "user")
    assert spec.pooler_config.task == task


def test_a_task_that_the_model_lacks_is_an_error(library):
    with pytest.raises(
        ConfigError, match=r"does not support the task 'classify'.*supported: embed, token_embed"
    ):
        read_spec(library.path, pooler_config=PoolerConfig(task="classify"))


def test_a_classifier_labels_tokens_on_request(bert):
    bert.config(architectures=["BertForSequenceClassification"]).weights(**HEAD)
    assert read_spec(bert.path).tasks == ("classify",)
    assert read_spec(bert.path, pooler_config=PoolerConfig(task="token_classify")).tasks == (
        "token_classify",
        "classify",
    )


def test_a_score_of_vocabulary_entries_is_of_the_last_token_only(qwen):
    with pytest.raises(ConfigError, match=r"does not support the task 'token_classify'"):
        read_spec(qwen.path, model_name="Qwen3-Reranker", pooler_config=PoolerConfig(task="token_classify"))


def test_the_first_architecture_counts(library):
    spec = read_spec(library.config(architectures=["BertModel", "Other"]).path)
    assert spec.architecture == "BertModel"


def test_a_module_list_of_a_transformer_and_a_pooling_is_an_embedding(library):
    assert read_spec(library.modules(TRANSFORMER, POOLING).path).tasks == ("embed", "token_embed")
