"""Prompts of rerankers, compared with the texts of their model cards, written out."""

import pytest

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec import read_spec
from poolembed.runner.spec.templates import BUILT_IN
from tests.runner.spec.folders import ZOO

SANDBOX = pytest.importorskip("jinja2.sandbox")
ENVIRONMENT = SANDBOX.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
LIBRARY = "config_sentence_transformers.json"

QWEN3 = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
    'Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
    "<Instruct>: {task}\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n"
    "<think>\n\n</think>\n\n"
)
QWEN3_TASK = "Given a web search query, retrieve relevant passages that answer the query"
MXBAI = (
    "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>\n"
    "<|im_start|>user\n{task}query: {query}\ndocument: {document}\nYou are a search relevance expert who "
    "evaluates how well documents match search queries. For each query-document pair, carefully analyze the "
    "semantic relationship between them, then provide your binary relevance judgment (0 for not relevant, 1 "
    "for relevant).\nRelevance:<|im_end|>\n<|im_start|>assistant\n"
)
GEMMA = "A: {query}\nB: {document}\n{task}"
GEMMA_TASK = (
    "Given a query A and a passage B, determine whether the passage contains an answer to the query by "
    "providing a prediction of either 'Yes' or 'No'."
)
TEXTS = {"query": "Who wrote {{ it }}?", "document": 'It\'s "so"\n\nand so.\n'}


def render(jinja, **kwargs):
    messages = [{"role": role, "content": text} for role, text in TEXTS.items()]
    return ENVIRONMENT.from_string(jinja).render(messages=messages, **kwargs)


@pytest.mark.parametrize(
    ("name", "card", "task"),
    [
        ("qwen3-reranker", QWEN3, QWEN3_TASK),
        ("mxbai-rerank-v2", MXBAI, ""),
        ("bge-reranker-v2-gemma", GEMMA, GEMMA_TASK),
    ],
)
def test_built_in_prompts_are_those_of_the_model_cards(name, card, task):
    assert render(BUILT_IN[name]) == card.format(task=task, **TEXTS)


@pytest.mark.parametrize(
    ("name", "card", "task"),
    [
        ("qwen3-reranker", QWEN3, "Find code"),
        ("mxbai-rerank-v2", MXBAI, "instruction: Find code\n"),
        ("bge-reranker-v2-gemma", GEMMA, "Find code"),
    ],
)
def test_an_instruction_takes_the_place_of_the_usual_one(name, card, task):
    assert render(BUILT_IN[name], instruction="Find code") == card.format(task=task, **TEXTS)


@pytest.mark.skipif(not ZOO.is_dir(), reason="the shared zoo of checkpoints is not there (POOLEMBED_SHARED)")
def test_the_template_of_the_zoo_gives_the_same_prompt_as_ours():
    declared = read_spec(ZOO / "models" / "qwen3-causal-reranker").template
    assert declared.name == "declared"
    assert render(declared.jinja) == render(BUILT_IN["qwen3-reranker"])


@pytest.fixture
def scorer(qwen):
    """A sequence classifier of a language model that asks for messages."""
    qwen.config(architectures=["Qwen3ForSequenceClassification"]).weights(**{"score.weight": (1, 8)})
    qwen.write(LIBRARY, {"model_type": "CrossEncoder"})
    qwen.write("modules.json", [{"path": "", "type": "sentence_transformers.models.Transformer"}])
    return qwen.write("sentence_bert_config.json", {"modality_config": {"text": {}, "message": {}}})


@pytest.mark.parametrize(
    ("files", "expected", "source"),
    [
        ({"tokenizer_config.json": {"chat_template": "one"}}, "one", "tokenizer_config.json: chat_template"),
        (
            {"tokenizer_config.json": {"chat_template": [{"name": "default", "template": "two"}]}},
            "two",
            "tokenizer_config.json: chat_template",
        ),
        ({"chat_template.json": {"chat_template": "three"}}, "three", "chat_template.json: chat_template"),
        ({"chat_template.jinja": "four"}, "four", "chat_template.jinja"),
    ],
)
def test_chat_templates_are_found_wherever_they_lie(scorer, files, expected, source):
    for name, content in files.items():
        scorer.write(name, content)
    spec = read_spec(scorer.path)
    assert (spec.template.jinja, spec.template.name, spec.sources["template"]) == (
        expected,
        "declared",
        source,
    )


def test_damaged_entries_are_no_templates(scorer):
    entries = [{"name": "default"}, {"template": "x"}, {"name": "default", "template": "good"}]
    scorer.edit("tokenizer_config.json", chat_template=entries)
    assert read_spec(scorer.path).template.jinja == "good"
    with pytest.raises(ModelError, match=r"tokenizer_config\.json: chat_template is 5, expected a string"):
        read_spec(scorer.edit("tokenizer_config.json", chat_template=5).path)


def test_a_template_can_be_named_and_given_variables(scorer):
    call = {"chat_template": "rerank", "restore_suffix": True, "instruction": "Find code"}
    scorer.edit("sentence_bert_config.json", processing_kwargs={"chat_template": call})
    scorer.write("additional_chat_templates/rerank.jinja", "text")
    template = read_spec(scorer.path).template
    assert (template.jinja, template.kwargs) == ("text", {"instruction": "Find code"})


def test_a_template_can_stand_in_the_settings_themselves(scorer):
    scorer.edit(
        "sentence_bert_config.json", processing_kwargs={"chat_template": {"chat_template": "{{ x }}"}}
    )
    assert read_spec(scorer.path).template.jinja == "{{ x }}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({}, "asks for the chat template 'default', which the checkpoint does not have"),
        ({"chat_template": "other"}, "asks for the chat template 'other'"),
        ({"tools": []}, "chat_template: tools is not supported"),
        ({"tokenize": False}, "tokenize is not supported"),
    ],
)
def test_a_template_that_is_not_there_is_an_error(scorer, call, message):
    scorer.edit("sentence_bert_config.json", processing_kwargs={"chat_template": call})
    with pytest.raises(ModelError, match=message):
        read_spec(scorer.path)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_the_user_chooses_a_built_in_template(scorer, name):
    spec = read_spec(scorer.path, overrides={"template": name})
    assert (spec.template.name, spec.template.jinja, spec.sources["template"]) == (
        name,
        BUILT_IN[name],
        "user",
    )


def test_the_user_chooses_none_or_the_declared_one(scorer):
    scorer.write("chat_template.jinja", "mine")
    assert read_spec(scorer.path, overrides={"template": "none"}).template is None
    declared = read_spec(scorer.path, overrides={"template": "declared"})
    assert (declared.template.jinja, declared.sources["template"]) == ("mine", "user")


def test_an_unknown_template_is_an_error(scorer):
    with pytest.raises(ConfigError, match=r"template=chatty: unknown template .*qwen3-reranker"):
        read_spec(scorer.path, overrides={"template": "chatty"})
