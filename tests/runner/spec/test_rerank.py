import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import LogitHead, read_spec

LOGIT = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
TRANSFORMER = "sentence_transformers.base.modules.transformer.Transformer"
ROLES = "{% for m in messages %}{{ m.role == 'query' }}{{ m['role'] == \"document\" }}{% endfor %}"
FILTER = (
    "{{ messages | selectattr('role', 'equalto', 'query') }}"
    '{{ messages | selectattr("role", "eq", "document") }}'
)


@pytest.fixture
def scored(qwen):
    qwen.modules(TRANSFORMER, LOGIT)
    return qwen.write("1_LogitScore/config.json", {"true_token_id": 5, "false_token_id": 6})


def test_a_score_module_names_its_tokens(scored):
    spec = read_spec(scored.path)
    assert spec.logit_head == LogitHead(token_ids=(6, 5), method="from_2_way_softmax")
    assert (spec.kind, spec.num_labels, spec.activation, spec.pooling) == (
        "cross-encoder",
        1,
        "sigmoid",
        "LAST",
    )
    assert (spec.to_json()["yes"], spec.to_json()["no"]) == (5, 6)
    assert "declares no prompt" in spec.warnings[0]
    assert spec.sources["token_ids"] == "1_LogitScore/config.json: true_token_id"


def test_a_score_module_with_one_token_gives_its_logit(scored):
    spec = read_spec(scored.write("1_LogitScore/config.json", {"true_token_id": 5}).path)
    assert spec.logit_head == LogitHead(token_ids=(5,), method="no_post_processing")
    assert spec.to_json()["yes"] == 5
    assert "no" not in spec.to_json()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "1_LogitScore/config.json: true_token_id is missing"),
        ({"true_token_id": 12}, "true_token_id is 12, outside the vocabulary of 12 tokens"),
        ({"true_token_id": 5, "false_token_id": -1}, "false_token_id is -1, outside"),
    ],
)
def test_token_ids_that_cannot_be_are_an_error(scored, config, message):
    with pytest.raises(ModelError, match=message):
        read_spec(scored.write("1_LogitScore/config.json", config).path)


def test_token_ids_without_a_vocabulary_size_are_taken_as_they_are(scored):
    assert read_spec(scored.config("vocab_size").path).logit_head.token_ids == (6, 5)


def test_an_untied_head_must_have_weights(scored):
    scored.config(tie_word_embeddings=False)
    with pytest.raises(
        ModelError, match=r"tie_word_embeddings is false, but model.safetensors has no lm_head\.weight"
    ):
        read_spec(scored.path)
    assert read_spec(scored.weights(**{"lm_head.weight": (12, 8)}).path).logit_head


@pytest.mark.parametrize(
    ("name", "ids", "method", "template"),
    [
        ("Qwen/Qwen3-Reranker-0.6B", (6, 5), "from_2_way_softmax", "qwen3-reranker"),
        ("mixedbread-ai/mxbai-rerank-base-v2", (8, 9), "from_2_way_softmax", "mxbai-rerank-v2"),
        ("BAAI/bge-reranker-v2-gemma", (7,), "no_post_processing", "bge-reranker-v2-gemma"),
    ],
)
def test_released_rerankers_are_known_by_name(qwen, name, ids, method, template):
    spec = read_spec(qwen.path, model_name=name)
    assert spec.logit_head == LogitHead(token_ids=ids, method=method)
    assert (spec.template.name, spec.sources["template"]) == (template, f"known family ({template})")
    assert (spec.kind, spec.activation, spec.warnings) == ("cross-encoder", "sigmoid", ())


def test_a_token_that_is_none_is_an_error(qwen):
    qwen.edit("tokenizer.json", model={"vocab": {"yes": 0}})
    with pytest.raises(ModelError, match=r"the reranker qwen3-reranker needs 'no' as one token"):
        read_spec(qwen.path, model_name="Qwen3-Reranker")


@pytest.mark.parametrize("jinja", [ROLES, FILTER])
def test_a_chat_template_for_pairs_makes_a_reranker(qwen, jinja):
    spec = read_spec(qwen.edit("tokenizer_config.json", chat_template=jinja).path)
    assert (spec.kind, spec.template.jinja, spec.logit_head.token_ids) == ("cross-encoder", jinja, (6, 5))


@pytest.mark.parametrize("jinja", ["{{ messages }}", "{% if role == 'query' %}{% endif %} 'document'"])
def test_a_chat_template_for_talking_does_not(qwen, jinja):
    assert read_spec(qwen.edit("tokenizer_config.json", chat_template=jinja).path).kind == "embedding"


def test_a_chat_template_of_the_base_model_is_not_used_for_pairs(bert):
    bert.config(architectures=["Qwen2ForSequenceClassification"], model_type="qwen2", num_labels=1)
    bert.weights(**{"score.weight": (1, 8)}).edit("tokenizer_config.json", chat_template="{{ messages }}")
    spec = read_spec(bert.path)
    assert spec.template is None
    assert "declares no prompt" in spec.warnings[0]


@pytest.mark.parametrize(
    ("overrides", "head"),
    [
        (
            {"classifier_from_token": '["no", "yes"]', "method": "from_2_way_softmax"},
            LogitHead(token_ids=(6, 5), method="from_2_way_softmax"),
        ),
        (
            {"classifier_from_token": '["0", "1"]', "is_original_qwen3_reranker": "true"},
            LogitHead(token_ids=(8, 9), method="from_2_way_softmax"),
        ),
        (
            {"classifier_from_token": '["a", "b", "0"]', "method": "no_post_processing"},
            LogitHead(token_ids=(10, 11, 8), method="no_post_processing"),
        ),
        ({"classifier_from_token": '["Yes"]'}, LogitHead(token_ids=(7,), method="no_post_processing")),
    ],
)
def test_tokens_can_be_named_as_for_the_reference(qwen, overrides, head):
    spec = read_spec(qwen.path, overrides=overrides)
    assert (spec.logit_head, spec.num_labels, spec.sources["token_ids"]) == (head, head.num_outputs, "user")
    assert spec.activation == ("softmax" if head.num_outputs > 1 else "sigmoid")
    assert spec.to_json()["token_ids"] == list(head.token_ids)
    assert ("yes" in spec.to_json()) == (head.num_outputs == 1)


@pytest.mark.parametrize(
    "overrides",
    [
        {"classifier_from_token": '["yes"]', "method": "from_2_way_softmax"},
        {"classifier_from_token": "[]"},
        {"classifier_from_token": '["yes"]', "method": "magic"},
    ],
)
def test_tokens_that_do_not_fit_the_method_are_an_error(qwen, overrides):
    with pytest.raises(ModelError, match=r"does not fit the method"):
        read_spec(qwen.path, overrides=overrides)


def test_a_language_model_made_a_cross_encoder_by_the_user_says_yes_or_no(qwen):
    spec = read_spec(qwen.path, overrides={"kind": "cross-encoder"})
    assert spec.logit_head.token_ids == (6, 5)


def test_an_original_qwen3_reranker_is_known_by_the_key_of_the_reference(qwen):
    spec = read_spec(qwen.path, overrides={"is_original_qwen3_reranker": "true"})
    assert (spec.kind, spec.template.name) == ("cross-encoder", "qwen3-reranker")


def test_an_encoder_that_scores_pairs_needs_no_prompt(bert):
    bert.config(architectures=["BertForSequenceClassification"], num_labels=1).weights(
        **{"classifier.weight": (1, 8)}
    )
    spec = read_spec(bert.path)
    assert (spec.kind, spec.template, spec.logit_head, spec.warnings) == ("cross-encoder", None, None, ())


def test_another_module_of_a_cross_encoder_is_an_error(scored):
    scored.modules(TRANSFORMER, "sentence_transformers.models.Pooling", LOGIT)
    with pytest.raises(ModelError, match=r"a cross-encoder of Transformer, Pooling is not supported"):
        read_spec(scored.path)
