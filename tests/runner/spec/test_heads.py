import pytest

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec import LogitHead, read_spec


@pytest.fixture
def reward(qwen):
    return qwen.config(architectures=["Qwen2ForRewardModel"], model_type="qwen2").weights(
        **{"score.0.weight": (8, 8), "score.2.weight": (1, 8)}
    )


@pytest.fixture
def process(reward):
    reward.config(architectures=["Qwen2ForProcessRewardModel"]).weights(**{"score.2.weight": (2, 8)})
    return reward.edit("tokenizer.json", added_tokens=[{"id": 7, "content": "<extra_0>"}])


def test_an_outcome_reward_is_one_raw_value_a_token(reward):
    spec = read_spec(reward.path)
    assert (spec.kind, spec.tasks, spec.labels, spec.tok_pooling, spec.step_tag_id) == (
        "reward",
        ("token_classify", "classify"),
        ("reward",),
        "ALL",
        None,
    )
    assert (spec.use_activation, spec.pooler_config.use_activation, spec.to_json()["activation"]) == (
        False,
        False,
        "none",
    )
    wanted = read_spec(reward.path, pooler_config=PoolerConfig(use_activation=True))
    assert (wanted.activation, wanted.use_activation) == ("sigmoid", True)


def test_a_reward_head_ends_with_the_last_of_its_layers(reward):
    layers = {f"score.{2 * number}.weight": (8, 8) for number in range(5)}
    spec = read_spec(reward.weights(**layers, **{"score.10.weight": (3, 8)}).path)
    assert spec.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_another_reward_model_keeps_the_sigmoid_of_the_reference(reward):
    reward.config(architectures=["InternLM2ForRewardModel"], model_type="internlm2").weights(
        **{"v_head.weight": (1, 8)}
    )
    spec = read_spec(reward.path)
    assert (spec.kind, spec.activation, spec.use_activation) == ("reward", "sigmoid", True)


def test_a_process_reward_judges_every_step(process):
    spec = read_spec(process.path)
    assert (spec.kind, spec.tasks, spec.labels, spec.tok_pooling, spec.step_tag_id) == (
        "process-reward",
        ("token_classify",),
        ("bad", "good"),
        "STEP",
        7,
    )
    assert (spec.pooler_config.tok_pooling_type, spec.pooler_config.step_tag_id) == ("STEP", 7)
    assert (spec.activation, spec.use_activation) == ("softmax", True)


def test_the_user_names_another_step_token(process):
    spec = read_spec(process.path, pooler_config=PoolerConfig(step_tag_id=3))
    assert (spec.step_tag_id, spec.sources["step_tag_id"]) == (3, "user")
    assert read_spec(process.path, overrides={"step_tag_id": "4"}).step_tag_id == 4


def test_a_process_reward_without_step_token_is_an_error(process):
    process.edit("tokenizer.json", "added_tokens")
    with pytest.raises(ModelError, match=r"has no <extra_0>"):
        read_spec(process.path)
    assert read_spec(process.path, pooler_config=PoolerConfig(step_tag_id=3)).step_tag_id == 3


def test_missing_reward_weights_are_an_error(reward):
    with pytest.raises(ModelError, match=r"the head of Qwen2ForRewardModel has no weights"):
        read_spec(reward.weights(**{"model.norm.weight": (8,)}).path)


def test_a_language_model_judges_steps_by_its_vocabulary(qwen):
    config = PoolerConfig(pooling_type="STEP", step_tag_id=10, returned_token_ids=(5, 99))
    spec = read_spec(qwen.path, pooler_config=config)
    assert (spec.kind, spec.sources["kind"], spec.labels) == ("process-reward", "user", ("yes", "LABEL_99"))
    assert spec.logit_head == LogitHead(token_ids=(5, 99), method="no_post_processing")
    assert (spec.tok_pooling, spec.step_tag_id, spec.activation) == ("STEP", 10, "softmax")
    # The rows are picked from the language-model head, so no column of a hidden state is.
    assert spec.pooler_config.returned_token_ids is None


@pytest.mark.parametrize("config", [PoolerConfig(returned_token_ids=(5, 6)), PoolerConfig()])
def test_a_language_model_must_be_told_how_to_judge(qwen, config):
    with pytest.raises(ConfigError, match=r"judges steps only when told how"):
        read_spec(qwen.path, pooler_config=config, overrides={"kind": "process-reward"})


@pytest.mark.parametrize(
    ("config", "weights", "pooling"),
    [
        ({"architectures": ["BertForSequenceClassification"]}, "classifier.weight", "CLS"),
        (
            {"architectures": ["XLNetForSequenceClassification"], "model_type": "xlnet"},
            "logits_proj.weight",
            "LAST",
        ),
        (
            {"architectures": ["LlamaForSequenceClassification"], "model_type": "llama"},
            "score.weight",
            "LAST",
        ),
        (
            {
                "architectures": ["ModernBertForSequenceClassification"],
                "model_type": "modernbert",
                "classifier_pooling": "mean",
            },
            "classifier.weight",
            "MEAN",
        ),
    ],
)
def test_a_head_looks_where_its_architecture_looks(bert, config, weights, pooling):
    assert read_spec(bert.config(**config).weights(**{weights: (3, 8)}).path).pooling == pooling


def test_a_bidirectional_llama_names_the_pooling_of_its_head(bert):
    bert.config(architectures=["LlamaBidirectionalForSequenceClassification"], model_type="llama_bidirec")
    spec = read_spec(bert.config(pooling="avg").weights(**{"score.weight": (1, 8)}).path)
    assert (spec.pooling, spec.is_causal) == ("MEAN", False)


def test_an_unknown_classifier_pooling_is_an_error(bert):
    bert.config(architectures=["ModernBertForSequenceClassification"], classifier_pooling="max")
    with pytest.raises(ModelError, match=r"classifier_pooling is 'max'"):
        read_spec(bert.weights(**{"classifier.weight": (3, 8)}).path)


def test_the_pooling_of_a_decoder_with_a_head_can_be_chosen(bert):
    bert.config(architectures=["LlamaForSequenceClassification"], model_type="llama").weights(
        **{"score.weight": (3, 8)}
    )
    assert read_spec(bert.path, pooler_config=PoolerConfig(pooling_type="MEAN")).pooling == "MEAN"


def test_the_pooling_of_an_encoders_head_cannot(bert):
    bert.config(architectures=["BertForSequenceClassification"]).weights(**{"classifier.weight": (3, 8)})
    with pytest.raises(
        ConfigError, match=r"the head of BertForSequenceClassification has a pooling of its own"
    ):
        read_spec(bert.path, pooler_config=PoolerConfig(pooling_type="MEAN"))


def test_jamba_gives_raw_scores(bert):
    bert.config(architectures=["JambaForSequenceClassification"], model_type="jamba").weights(
        **{"score.weight": (1, 8)}
    )
    spec = read_spec(bert.path)
    assert (spec.activation, spec.use_activation) == ("sigmoid", False)
