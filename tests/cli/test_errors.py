"""What goes wrong is told in one line and a hint, has its exit code, and leaves nothing behind."""

import os
import signal
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from poolembed import errors
from poolembed.cli.group import ExitCodeGroup
from poolembed.config import InputConfig, OutputConfig
from poolembed.io import open_job_folder, plan_output
from tests.cli.conftest import ROWS, write

INPUT, MODEL, OUTPUT, CONFIG, LOCKED = 3, 4, 6, 2, 75


def told(result):
    """The message and the hint of a run that failed; nothing else may have been printed."""
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert 1 <= len(lines) <= 2, result.stderr
    assert lines[0].startswith("poolembed: error: ")
    assert all(line.startswith("  ") for line in lines[1:])
    return lines[0].removeprefix("poolembed: error: "), (lines[1].strip() if len(lines) == 2 else None)


def files(folder):
    """Return all that a user sees in a folder; of the hidden ones those that no output stands beside."""
    found = [path.relative_to(folder) for path in folder.rglob("*")]
    outputs = [path for path in found if path.suffix == ".parquet"]
    jobs = [output.with_name(f".{output.name}.job") for output in outputs]
    return sorted(path.name for path in found if path not in jobs and path.parent not in jobs)


def test_a_missing_file(embed, corpus, folder):
    done = embed("corpsu.jsonl")
    assert done.exit_code == INPUT
    assert told(done) == ("corpsu.jsonl: no such file or directory", "did you mean corpus.jsonl?")
    assert files(folder) == ["corpus.jsonl"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("txet", "did you mean 'text'?"),
        ("body", "columns: id (int64), title (string), text (string)"),
    ],
)
@pytest.mark.parametrize("option", ["--text-field", "--columns"])
def test_a_column_that_is_not_there(embed, corpus, folder, option, name, hint):
    done = embed("corpus.jsonl", option, name)
    assert done.exit_code == INPUT
    assert told(done) == (f"no column is named {name!r}", hint)
    assert files(folder) == ["corpus.jsonl"]


def test_no_column_that_could_be_the_text(embed, folder):
    write(folder / "corpus.jsonl", [{"a": "one", "b": "two"}])
    done = embed("corpus.jsonl")
    assert done.exit_code == INPUT
    assert told(done) == (
        "no column 'text' for the text",
        "columns: a (string), b (string); --text-field names one",
    )
    assert files(folder) == ["corpus.jsonl"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"text": 5}, "5"),
        ({"text": None}, "null"),
        ({"text": ["a"]}, "list"),
        ({"id": 5}, "text"),
        ('{"text": "cut of', "not valid JSON: invalid control character at character 17"),
        (b'{"text": "\xff"}', "UTF-8"),
        ("[1, 2]", "object"),
    ],
    ids=["number", "null", "list", "missing", "broken JSON", "not UTF-8", "no object"],
)
def test_a_bad_row_is_told_by_file_and_line_before_any_model_is_looked_for(embed, folder, line, words):
    write(folder / "corpus.jsonl", [*ROWS, line, *ROWS])
    done = embed("corpus.jsonl", "--model", "./nowhere")
    assert done.exit_code == INPUT
    message, _ = told(done)
    assert message.startswith("corpus.jsonl:5: ")
    assert words in message
    assert files(folder) == ["corpus.jsonl"]


def test_an_unknown_model_folder(embed, corpus, folder):
    done = embed("corpus.jsonl", "--model", "./nowhere")
    assert done.exit_code == MODEL
    assert told(done) == ("no such model folder: ./nowhere", "give an existing folder or a hub name")
    assert files(folder) == ["corpus.jsonl"]


def test_a_hub_name_while_offline(embed, corpus, folder):
    done = embed("corpus.jsonl", "--model", "some-org/no-such-model")
    assert done.exit_code == MODEL
    assert told(done) == (
        "some-org/no-such-model is not on this machine and HF_HUB_OFFLINE is set",
        "give a model folder with --model",
    )
    assert files(folder) == ["corpus.jsonl"]


def test_a_folder_that_is_no_model(embed, corpus, folder):
    (folder / "empty").mkdir()
    done = embed("corpus.jsonl", "--model", "./empty")
    assert done.exit_code == MODEL
    assert "empty" in told(done)[0]


def test_a_target_in_a_folder_that_is_not_there(embed, corpus, folder):
    done = embed("corpus.jsonl", "-o", "nowhere/out.parquet")
    assert done.exit_code == OUTPUT
    assert told(done)[0] == "nowhere: the folder for the output does not exist"
    assert files(folder) == ["corpus.jsonl"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_target_in_a_folder_that_cannot_be_written(embed, corpus, folder):
    (folder / "locked").mkdir(mode=0o555)
    done = embed("corpus.jsonl", "-o", "locked/out.parquet")
    assert done.exit_code == OUTPUT
    assert told(done)[0] == "locked: the folder for the output cannot be written to"


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make a file")
def test_a_target_where_no_file_can_be_made(embed, corpus, folder):
    done = embed("corpus.jsonl", "-o", "/proc/out.parquet")
    assert done.exit_code == OUTPUT
    assert told(done)[0].startswith("/proc/out.parquet: cannot be written: ")
    assert files(folder) == ["corpus.jsonl"]


def test_a_target_below_a_file(embed, corpus, folder):
    done = embed("corpus.jsonl", "-o", "corpus.jsonl/out.parquet")
    assert done.exit_code == OUTPUT
    told(done)


def test_a_target_of_another_format(embed, corpus, folder):
    done = embed("corpus.jsonl", "-o", "out.csv")
    assert done.exit_code == CONFIG
    assert told(done)[0] == (
        "-o out.csv: the name of the output must end in .parquet, .arrow, "
        ".feather, .jsonl, .ndjson, .jsonl.gz, .ndjson.gz, .npy, .trec, .run"
    )


def test_an_existing_target_is_kept_unless_overwritten(embed, corpus, folder):
    target = folder / "corpus.embed.parquet"
    target.write_text("precious")
    done = embed("corpus.jsonl")
    assert done.exit_code == OUTPUT
    assert told(done) == (
        "corpus.embed.parquet: exists already, and is not as a run of poolembed left it",
        "--overwrite replaces it",
    )
    assert target.read_text() == "precious"
    failed = embed("corpus.jsonl", "--overwrite", "--model", "./nowhere")
    assert failed.exit_code == MODEL
    assert target.read_text() == "precious"
    assert embed("corpus.jsonl", "--overwrite").exit_code == 0
    assert target.read_bytes()[:4] == b"PAR1"
    assert files(folder) == ["corpus.embed.parquet", "corpus.jsonl"]


def test_a_second_run_into_the_same_output_has_its_own_exit_code(embed, corpus, folder):
    inputs = InputConfig(paths=(str(folder / "corpus.jsonl"),))
    with open_job_folder(plan_output(OutputConfig(), inputs, "embed")):
        done = embed("corpus.jsonl")
    assert done.exit_code == LOCKED
    assert told(done) == (
        f"corpus.embed.parquet: another run is writing it (process {os.getpid()})",
        "wait until it ends, or choose another -o",
    )
    assert files(folder) == ["corpus.jsonl"]


def test_other_settings_are_refused_with_what_differs(embed, corpus, folder):
    assert embed("corpus.jsonl").exit_code == 0
    before = (folder / "corpus.embed.parquet").read_bytes()
    done = embed("corpus.jsonl", "--max-length", 16, "--prompt", "q: ")
    assert done.exit_code == OUTPUT
    assert told(done) == (
        "corpus.embed.parquet: was made with other settings: "
        "max_length '256', not '16'; prompt '', not 'q: '",
        "--overwrite starts afresh; the same options go on",
    )
    assert (folder / "corpus.embed.parquet").read_bytes() == before


def test_an_output_over_its_own_input(embed, corpus, folder):
    assert embed("corpus.jsonl", "-o", "vectors.parquet").exit_code == 0
    before = (folder / "vectors.parquet").read_bytes()
    done = embed("vectors.parquet", "-o", "./vectors.parquet", "--overwrite")
    assert done.exit_code == OUTPUT
    assert told(done) == (
        "vectors.parquet: is an input, and the output would replace it",
        "choose another -o",
    )
    assert (folder / "vectors.parquet").read_bytes() == before


def test_a_column_with_the_name_of_a_result(embed, folder):
    write(folder / "corpus.jsonl", [{"text": "one", "embedding": 1}])
    done = embed("corpus.jsonl")
    assert done.exit_code == CONFIG
    assert "embedding" in told(done)[0]
    assert files(folder) == ["corpus.jsonl"]


def test_options_that_exclude_each_other_are_told_all_at_once(embed, corpus):
    done = embed(
        "corpus.jsonl",
        "--prompt",
        "a",
        "--prompt-name",
        "b",
        "--limit",
        "0",
        "--device",
        "tpu",
        "--chunk-rows",
        0,
    )
    assert done.exit_code == CONFIG
    assert told(done)[0] == (
        "--limit must be at least 1, got 0; --device must be auto, cpu, cuda, cuda:N or mps, got 'tpu'; "
        "--prompt and --prompt-name exclude each other; --chunk-rows must be at least 1, got 0"
    )


def test_a_prompt_that_the_model_does_not_declare(embed, corpus, models):
    done = embed("corpus.jsonl", "--prompt-name", "qury", "--model", models / "bert-prompts")
    assert done.exit_code == CONFIG
    message, hint = told(done)
    assert message.endswith("declares no prompt 'qury'")
    assert "query" in hint


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dtype", "float8"], "'float8' is not one of 'auto', 'float32', 'bfloat16', 'float16'"),
        (["--model-impl", "vllm"], "'vllm' is not one of 'auto', 'transformers'"),
        (["--on-error", "ignore"], "'ignore' is not one of 'fail', 'skip'"),
        (["--limit", "many"], "'many' is not a valid integer"),
        (["--btach-tokens", "7"], "No such option '--btach-tokens'"),
    ],
)
def test_an_option_or_value_that_does_not_exist_is_a_usage_error(embed, corpus, arguments, words):
    done = embed("corpus.jsonl", *arguments)
    assert done.exit_code == CONFIG
    assert words in done.stderr


def test_no_input_is_a_usage_error(embed):
    done = embed()
    assert done.exit_code == CONFIG
    assert "Missing argument 'INPUT...'" in done.stderr


def test_a_maximum_length_without_room_for_text(embed, corpus, folder):
    done = embed("corpus.jsonl", "--max-length", "2")
    assert done.exit_code == CONFIG
    assert told(done)[1] == "--max-length must be at least 3 for this model"
    assert files(folder) == ["corpus.jsonl"]


def test_more_dimensions_than_the_model_has(embed, corpus, folder):
    done = embed("corpus.jsonl", "--dimensions", "100000")
    assert done.exit_code in (CONFIG, 7)
    assert "100000" in told(done)[0]
    assert files(folder) == ["corpus.jsonl"]


@click.group(cls=ExitCodeGroup)
def group():
    """Commands that fail in every way there is."""


@group.command()
@click.argument("name")
def fail(name):
    """Raise an error of poolembed."""
    raise getattr(errors, name)("what happened", "what to do")


@group.command()
def bug():
    """Break an invariant."""
    raise AssertionError("this cannot be")


@group.command()
@click.argument("number", type=int)
def receive(number):
    """Get a signal."""
    signal.raise_signal(number)


TREE = [error for error in vars(errors).values() if isinstance(error, type)]


@pytest.mark.parametrize("error", TREE, ids=lambda error: error.__name__)
def test_every_kind_of_error_has_its_exit_code(error):
    done = CliRunner().invoke(group, ["fail", error.__name__])
    assert done.exit_code == error.exit_code
    prefix = "" if error is errors.UnfinishedError else "error: "  # a stop that was asked for is none
    assert done.stderr == f"poolembed: {prefix}what happened\n  what to do\n"


def test_a_bug_shows_its_traceback_and_has_its_own_exit_code():
    done = CliRunner().invoke(group, ["bug"])
    assert done.exit_code == 70
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-2:] == [
        "AssertionError: this cannot be",
        "poolembed: this is a bug in poolembed: please report the lines above",
    ]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_has_its_exit_code_and_one_line(number, code):
    before = signal.getsignal(number)
    done = CliRunner().invoke(group, ["receive", str(int(number))])
    assert done.exit_code == code
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.endswith("no half-written output was left\n")
    assert signal.getsignal(number) is before
