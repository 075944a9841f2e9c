"""What stands in a status file and in a metrics file, at every stage of a run."""

import json
import os
import re
import socket
from datetime import UTC, datetime

import pytest

from poolembed.cli.figures import Figures, status_text
from poolembed.cli.metrics import metrics_text

START = datetime(2026, 3, 28, 1, 0, tzinfo=UTC).timestamp()
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\} (\S+)')


class Clock:
    """A clock that is set by hand."""

    now = START

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def figures(clock):
    return Figures(command="embed", target="out.parquet", clock=clock)


def run_half(figures, clock):
    clock.now += 10
    figures.start(100)
    clock.now += 5
    figures.advance(50, 4000, 5, 10)


def samples(text):
    """Every sample of a metrics file by (name, outcome); each name must come after its HELP and TYPE."""
    described, found = {}, {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in described
            described[name] = None
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert described[name] is None
            described[name] = kind
        else:
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert described[name] == ("counter" if name.endswith("_total") else "gauge")
            assert labels.startswith('command="embed",target="')
            found[name, *re.findall(r'outcome="(\w+)"', labels)] = float(value)
    return found


def test_a_status_tells_who_runs_and_how_far_it_is(figures, clock):
    before = json.loads(status_text(figures))
    assert (before["phase"], before["rows_total"], before["eta_s"]) == ("loading", None, None)
    run_half(figures, clock)
    status = json.loads(status_text(figures))
    assert status == {
        "phase": "running",
        "command": "embed",
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "started": "2026-03-28T01:00:00.000+00:00",
        "updated": "2026-03-28T01:00:15.000+00:00",
        "rows_total": 100,
        "rows_done": 50,
        "rows_rejected": 5,
        "rows_reused": 10,
        "tokens": 4000,
        "rows_per_s": 8.0,
        "tokens_per_s": 800.0,
        "eta_s": 6.2,
        "outputs": [],
        "error": None,
        "exit_code": None,
    }


def test_once_every_row_is_computed_the_rest_is_writing(figures, clock):
    run_half(figures, clock)
    figures.advance(50, 10, 0, 0)
    assert figures.phase == "writing"


@pytest.mark.parametrize("phase", ["failed", "stopped"])
def test_a_run_that_ends_otherwise_says_why(figures, clock, phase):
    run_half(figures, clock)
    figures.fail(phase, "the disk is full", 6)
    status = json.loads(status_text(figures))
    assert (status["phase"], status["error"], status["exit_code"]) == (phase, "the disk is full", 6)
    assert status["eta_s"] is None


def test_metrics_count_every_row_once(figures, clock):
    run_half(figures, clock)
    assert samples(metrics_text(figures, "")) == {
        ("poolembed_rows_total", "computed"): 35,
        ("poolembed_rows_total", "reused"): 10,
        ("poolembed_rows_total", "rejected"): 5,
        ("poolembed_tokens_total",): 4000,
        ("poolembed_input_rows",): 100,
        ("poolembed_duration_seconds",): 15,
        ("poolembed_running",): 1,
    }


def test_the_time_of_the_last_success_outlives_a_failure(figures, clock):
    run_half(figures, clock)
    figures.finish(("out.parquet",))
    good = metrics_text(figures, "")
    assert samples(good)["poolembed_last_success_timestamp_seconds",] == START + 15
    assert samples(good)["poolembed_exit_code",] == 0
    clock.now += 86_400
    later = Figures(command="embed", target="out.parquet", clock=clock)
    later.fail("failed", "no", 3)
    bad = samples(metrics_text(later, good))
    assert bad["poolembed_last_success_timestamp_seconds",] == START + 15
    assert (bad["poolembed_exit_code",], bad["poolembed_running",]) == (3, 0)
    other = Figures(command="embed", target="other.parquet", clock=clock)
    assert "last_success" not in metrics_text(other, good)


def test_names_with_quotes_and_line_breaks_are_escaped(clock):
    text = metrics_text(Figures(command="embed", target='a"b\\c\nd', clock=clock), "")
    assert 'target="a\\"b\\\\c\\nd"' in text
    assert samples(text)
