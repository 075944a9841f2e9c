"""`poolembed inspect`: what a model declares, and who says so."""

import json
import subprocess
import sys

import pytest

from tests.runner.spec.test_zoo import FAMILIES, expectation


@pytest.mark.parametrize("family", FAMILIES)
def test_inspect_as_json_says_what_the_zoo_expects(poolembed, models, family):
    done = poolembed("inspect", models / family, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    expect = expectation(family)
    assert {key: told.get(key, "missing") for key in expect} == expect
    assert (told["name"], told["origin"]) == (str(models / family), "folder")


def test_inspect_shows_setting_value_and_source_in_a_line(poolembed, models):
    done = poolembed("inspect", models / "bert-mean")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["max_length", "256", "sentence_bert_config.json:", "max_seq_length"] in lines
    assert ["pooling", "MEAN", "1_Pooling/config.json:", "pooling_mode_mean_tokens"] in lines


def test_a_long_value_goes_on_in_further_lines(poolembed, models):
    done = poolembed("inspect", models / "gemma3-bidirectional")
    start = next(i for i, line in enumerate(done.stdout.splitlines()) if line.startswith("prompts "))
    assert done.stdout.splitlines()[start + 1].startswith("    ")


def test_what_the_user_changes_is_shown_as_the_users(poolembed, models):
    done = poolembed("inspect", models / "bert-mean", "--max-length", "17", "--pooling", "CLS", "--json")
    told = json.loads(done.stdout)
    assert (told["max_length"], told["pooling_type"]) == (17, "cls")
    assert (told["sources"]["max_length"], told["sources"]["pooling"]) == ("user", "user")


def test_set_replaces_a_setting(poolembed, models):
    done = poolembed("inspect", models / "qwen2-last", "--set", "is_causal=false", "--json")
    assert json.loads(done.stdout)["sources"]["is_causal"] == "user"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--set", "nope=3"], 2, "--set nope: unknown setting"),
        (["--set", "nope"], 2, "'nope' is not KEY=VALUE"),
        (["--max-length", "0"], 2, "--max-length must be at least 1, got 0"),
        (["--max-length", "100000"], 2, "100000"),
    ],
)
def test_what_cannot_be_meant_is_refused(poolembed, models, arguments, code, message):
    done = poolembed("inspect", models / "bert-mean", *arguments)
    assert done.exit_code == code
    assert message in done.stderr
    assert done.stdout == ""


def test_a_warning_goes_to_standard_error(poolembed, models):
    done = poolembed("inspect", models / "bert-plain")
    assert done.exit_code == 0
    assert "poolembed: " in done.stderr
    assert "poolembed: " not in done.stdout


def test_inspect_loads_neither_torch_nor_transformers(models):
    code = (
        "import sys\n"
        "from poolembed.cli import cli\n"
        f"cli(['inspect', {str(models / 'bert-mean')!r}], standalone_mode=False)\n"
        "assert not {'torch', 'transformers'} & set(sys.modules), 'loaded'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
