import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec import read_spec
from poolembed.runner.spec.families import known_prompts

FILE = "config_sentence_transformers.json"


def test_declared_prompts_and_the_default_one(library):
    library.write(FILE, {"prompts": {"query": "q: ", "document": "d: "}, "default_prompt_name": "document"})
    spec = read_spec(library.path, model_name="intfloat/e5-base")
    assert (spec.prompts, spec.default_prompt_name, spec.default_prompt) == (
        {"query": "q: ", "document": "d: "},
        "document",
        "d: ",
    )
    assert not spec.warnings


@pytest.mark.parametrize("prompts", [{}, {"query": "", "document": ""}, {"query": None}, None])
def test_empty_placeholders_are_no_prompts(library, prompts):
    spec = read_spec(library.write(FILE, {"prompts": prompts}).path)
    assert (spec.prompts, spec.default_prompt) == ({}, "")


def test_an_empty_prompt_next_to_a_real_one_is_kept(library):
    spec = read_spec(library.write(FILE, {"prompts": {"query": "q: ", "document": "", "other": None}}).path)
    assert spec.prompts == {"query": "q: ", "document": "", "other": ""}


def test_a_default_that_is_a_placeholder_is_none(library):
    library.write(FILE, {"prompts": {"query": "", "document": ""}, "default_prompt_name": "document"})
    assert read_spec(library.path).default_prompt_name is None


def test_a_default_that_no_prompt_has_is_an_error(library):
    library.write(FILE, {"prompts": {"query": "q: "}, "default_prompt_name": "document"})
    with pytest.raises(
        ModelError, match=rf"{FILE}: default_prompt_name: .*'document'.*declared prompts: query"
    ):
        read_spec(library.path)


def test_task_instructions_of_config_json_are_prompts(library):
    spec = read_spec(library.config(task_instructions={"query": "Represent: "}).path)
    assert (spec.prompts, spec.sources["prompts"]) == (
        {"query": "Represent: "},
        "config.json: task_instructions",
    )


@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("intfloat/e5-small-v2", "query: "),
        ("intfloat/multilingual-e5-base", "query: "),
        ("e5_base", "query: "),
        ("intfloat/e5-mistral-7b-instruct", "Instruct: Given a web search query"),
        ("intfloat/multilingual-e5-large-instruct", "Instruct: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: "),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: "),
        ("BAAI/bge-large-en", "Represent this sentence"),
        ("BAAI/bge-base-zh-v1.5", "为这个句子"),
        ("mixedbread-ai/mxbai-embed-large-v1", "Represent this sentence"),
        ("Snowflake/snowflake-arctic-embed-m", "Represent this sentence"),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", "query: "),
    ],
)
def test_a_family_that_runs_bare_is_warned_about_and_gets_its_prompts(library, name, query):
    spec = read_spec(library.path, model_name=name)
    assert spec.prompts["query"].startswith(query)
    assert spec.default_prompt == ""
    assert [name in warning and "--prompt-name" in warning for warning in spec.warnings] == [True]
    assert spec.sources["prompts"] == f"known family ({name})"


@pytest.mark.parametrize(
    "name", ["BAAI/bge-m3", "all-MiniLM-L6-v2", "BAAI/bge-reranker-base", "me/phase5-x", "de5-x"]
)
def test_other_names_need_no_prompt(name):
    assert known_prompts(name) == {}
