"""A bar on a terminal, plain lines elsewhere, one summary, nothing but errors when quiet."""

import contextlib
import io
import json
import re

import pytest

from poolembed.cli.console import Console
from poolembed.cli.log import Log
from poolembed.pipeline import RunSummary


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def summary_of(**changes):
    values = {
        "command": "embed",
        "outputs": ("a.parquet", "a.parquet.rejects.jsonl"),
        "model": "org/model",
        "device": "cpu",
        "dtype": "float32",
        "int8_cosine": None,
        "workers": 1,
        "attention": "packed",
        "self_check": 1e-6,
        "num_rows": 1200,
        "num_computed": 1200,
        "num_reused": 0,
        "num_absent": 0,
        "num_removed": 0,
        "num_rejected": 0,
        "num_truncated": 0,
        "num_replaced": 0,
        "num_tokens": 48000,
        "load_s": 1.5,
        "run_s": 2.0,
        "read_s": 0.25,
        "tokenize_s": 0.5,
        "forward_s": 1.75,
        "pool_s": 0.125,
        "write_s": 0.5,
        "wait_s": 0.125,
    }
    return RunSummary(**values | changes)


def run(console, batches=((10, 500), (20, 700)), num_rows=30, error=None):
    with console:
        console.note("something worth knowing")
        console.start(num_rows)
        for rows, tokens in batches:
            console.advance(rows, tokens)
        if error is not None:
            raise error
        console.summary(summary_of())


@pytest.fixture
def watch():
    """Run a console in front of a stream, and return what went to standard error."""

    def watch(stream, *, quiet=False, as_json=False, log_interval_s=0.0, **story):
        with contextlib.redirect_stderr(stream):
            run(Console(Log("text"), quiet=quiet, as_json=as_json, log_interval_s=log_interval_s), **story)
        return stream.getvalue()

    return watch


def test_a_terminal_gets_a_bar_with_rows_rate_and_time_left(watch):
    shown = watch(Terminal(), batches=[(1, 50)] * 10, num_rows=10)
    assert "\r" in shown
    assert re.search(r"\d+/10 \[\d\d:\d\d<", shown)
    assert re.search(r"[\d,]+ tokens/s", shown)


def test_a_terminal_is_told_what_the_seconds_before_the_first_row_are_for():
    stream = Terminal()
    with contextlib.redirect_stderr(stream), Console(Log("text"), quiet=False, as_json=False) as console:
        assert stream.getvalue() == "\rreading the input, loading the model ..."
        console.start(3)
        assert re.search(r"\r +\r.*0/3 ", stream.getvalue())


def test_the_bar_is_gone_when_the_summary_comes(watch):
    shown = watch(Terminal())
    lines = shown.rstrip("\n").split("\n")
    assert lines[0].endswith("\rpoolembed: something worth knowing")
    # What tqdm wipes a line with, before the first line of the summary.
    assert re.search(r"\r +\r1,200 rows", shown)
    assert lines[-1] == "-> a.parquet.rejects.jsonl"


def test_the_bar_is_gone_when_a_run_fails(watch):
    stream = Terminal()
    with pytest.raises(ValueError, match="failed"):
        watch(stream, error=ValueError("failed"))
    assert re.search(r"\r +\r$", stream.getvalue())


def test_a_log_gets_plain_lines_without_carriage_returns(watch):
    lines = watch(io.StringIO()).splitlines(keepends=True)
    assert not any("\r" in line for line in lines)
    assert lines[0] == "poolembed: something worth knowing\n"
    progress = r"poolembed: (10|30) of 30 rows, [\d,]+ tokens/s, about \d+m \d\ds left\n"
    assert [bool(re.fullmatch(progress, line)) for line in lines[1:3]] == [True, True]
    assert lines[3].startswith("1,200 rows")


def test_a_log_is_not_filled_with_lines_of_progress(watch):
    shown = watch(io.StringIO(), log_interval_s=3600.0, batches=[(1, 10)] * 30)
    assert " left" not in shown


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_quiet_says_nothing(watch, stream, capsys):
    assert watch(stream(), quiet=True) == ""
    assert capsys.readouterr().out == ""


def test_the_summary_tells_how_many_workers_computed():
    assert "org/model on cpu, float32" in summary_of().lines()[1]
    assert "org/model on cpu (2 workers), float32" in summary_of(workers=2).lines()[1]


@pytest.mark.parametrize("quiet", [True, False])
def test_json_is_one_line_on_standard_output_and_the_rest_stays_on_standard_error(watch, capsys, quiet):
    shown = watch(io.StringIO(), as_json=True, quiet=quiet)
    assert json.loads(capsys.readouterr().out) == {
        "command": "embed",
        "outputs": ["a.parquet", "a.parquet.rejects.jsonl"],
        "model": "org/model",
        "device": "cpu",
        "dtype": "float32",
        "int8_cosine": None,
        "workers": 1,
        "attention": "packed",
        "self_check": 1e-6,
        "num_rows": 1200,
        "num_computed": 1200,
        "num_reused": 0,
        "num_absent": 0,
        "num_removed": 0,
        "num_rejected": 0,
        "num_truncated": 0,
        "num_replaced": 0,
        "num_tokens": 48000,
        "load_s": 1.5,
        "run_s": 2.0,
        "read_s": 0.25,
        "tokenize_s": 0.5,
        "forward_s": 1.75,
        "pool_s": 0.125,
        "write_s": 0.5,
        "wait_s": 0.125,
        "num_shared": 0,
        "tokens_per_s": 24000.0,
    }
    assert ("1,200 rows" in shown) is not quiet


def test_a_long_run_tells_its_hours(watch):
    shown = watch(io.StringIO(), batches=[(1, 1)], num_rows=10**12)
    assert re.search(r"about \d+h \d\dm left", shown)


def test_the_summary_names_what_a_reader_should_look_at():
    plain = summary_of().lines()
    assert plain == [
        "1,200 rows, 48,000 tokens in 2.0 s (600 rows/s, 24,000 tokens/s), after 1.5 s of loading",
        "org/model on cpu, float32, packed (self-check 1e-06)",
        "-> a.parquet",
        "-> a.parquet.rejects.jsonl",
    ]
    counts = summary_of(num_truncated=3, num_rejected=2, num_replaced=1).lines()[0]
    assert counts.startswith(
        "1,200 rows, 48,000 tokens, 3 truncated, 2 rejected, 1 with characters replaced in 2.0 s"
    )


def test_a_run_without_rows_has_a_summary():
    assert (
        summary_of(num_rows=0, num_computed=0, num_tokens=0, run_s=0.0)
        .lines()[0]
        .startswith("0 rows, 0 tokens in 0.0 s")
    )
