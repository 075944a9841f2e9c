"""Everybody who watches a run is told the same, and a broken watcher does not end a run."""

import io
import json
import logging
from contextlib import redirect_stderr

import pytest

from poolembed.cli.console import Console
from poolembed.cli.failures import Failure, Terminated
from poolembed.cli.figures import Figures
from poolembed.cli.log import Log
from poolembed.cli.watch import MetricsFile, StatusFile, Watch
from poolembed.errors import InputError, OutputError, UnfinishedError
from tests.cli.test_console import summary_of


class Board:
    """Keeps every phase it is shown; may fail from some state on."""

    def __init__(self, fails_from=None):
        self.phases = []
        self._fails_from = fails_from

    def claim(self):
        pass

    def show(self, figures):
        if self._fails_from is not None and len(self.phases) >= self._fails_from:
            raise OutputError("board: cannot be written: disk full")
        self.phases.append(figures.phase)


class Ticks:
    """A clock that advances by itself."""

    def __init__(self, step):
        self._now, self._step = 0.0, step

    def __call__(self):
        self._now += self._step
        return self._now


def watch_of(*boards, step=0.0):
    figures = Figures(command="embed", target="out")
    console = Console(Log("text"), quiet=False, as_json=False)
    return Watch(console, figures, boards, clock=Ticks(step))


def run(watch, error=None):
    with watch:
        watch.start(4)
        for _ in range(4):
            watch.advance(1, 10)
        if error is not None:
            raise error
        watch.summary(summary_of())


def test_every_board_sees_the_beginning_and_the_end():
    boards = Board(), Board()
    run(watch_of(*boards))
    assert [board.phases for board in boards] == [["loading", "running", "done"]] * 2


def test_between_them_a_board_is_shown_at_most_once_a_second():
    often, seldom = Board(), Board()
    run(watch_of(often, step=1.0))
    run(watch_of(seldom, step=0.2))
    assert often.phases == ["loading", "running", "running", "running", "running", "writing", "done"]
    assert len(seldom.phases) < len(often.phases)


@pytest.mark.parametrize(
    ("error", "phase"),
    [
        (InputError("x"), "failed"),
        (ValueError("x"), "failed"),
        (UnfinishedError("x"), "stopped"),
        (KeyboardInterrupt(), "stopped"),
        (Terminated(), "stopped"),
    ],
)
def test_the_last_state_says_how_the_run_ended(error, phase):
    board = Board()
    with pytest.raises(type(error)):
        run(watch_of(board), error)
    assert board.phases[-1] == phase


def test_a_board_that_breaks_on_the_way_is_told_once_and_the_run_goes_on():
    good, bad = Board(), Board(fails_from=1)
    stream = io.StringIO()
    with redirect_stderr(stream):
        run(watch_of(bad, good, step=1.0))
    assert good.phases[-1] == "done"
    assert stream.getvalue().count("poolembed: board: cannot be written: disk full; it stays as it is") == 1


def test_a_board_that_cannot_be_shown_at_first_ends_the_run():
    with pytest.raises(OutputError):
        run(watch_of(Board(fails_from=0)))


@pytest.mark.parametrize("kind", [StatusFile, MetricsFile])
def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path, kind):
    path = tmp_path / "now"
    run(watch_of(kind(path)))
    first = path.read_bytes()
    run(watch_of(kind(path)))
    assert [each.name for each in tmp_path.iterdir()] == ["now"]
    assert path.read_bytes() != first
    with pytest.raises(OutputError, match="cannot be written"):
        run(watch_of(kind(tmp_path / "nowhere" / "now")))


@pytest.mark.parametrize("kind", [StatusFile, MetricsFile])
@pytest.mark.parametrize("content", [b'{"text": "an input"}\n', b"\xff\x00", b"PAR1"])
def test_a_file_that_is_something_else_is_not_replaced(tmp_path, kind, content):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    with pytest.raises(OutputError, match="is there and was not written by --"):
        run(watch_of(kind(path)))
    assert path.read_bytes() == content
    with pytest.raises(OutputError, match="cannot be read"):
        run(watch_of(kind(tmp_path)))


def test_a_json_log_has_one_object_a_line_and_no_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with redirect_stderr(stream):
        console = Console(Log("json"), quiet=False, as_json=False, log_interval_s=0.0)
        run(Watch(console, Figures(command="embed", target="out"), ()))
        Failure.of(InputError("größe", "do this")).tell(Log("json"))
        Failure.of(ValueError("broken")).tell(Log("json"))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert all(set(line) == {"ts", "level", "event", "message", "fields"} for line in lines)
    events = [line["event"] for line in lines]
    assert events == ["progress"] * 4 + ["summary", "error", "bug"]
    assert lines[3]["fields"]["rows_done"] == 4
    assert lines[4]["fields"]["num_rows"] == 1200
    assert (lines[5]["message"], lines[5]["fields"]["exit_code"]) == ("größe", 3)
    assert "ValueError: broken" in lines[6]["fields"]["traceback"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_what_a_library_logs_is_told_in_the_same_format(log_format):
    stream = io.StringIO()
    with redirect_stderr(stream):
        log = Log(log_format)
        with log.others():
            logging.getLogger("library").warning("half of %s", "it")
        logging.getLogger("library").warning("after the run")
    if log_format == "text":
        assert stream.getvalue() == "poolembed: half of it\n"
    else:
        line = json.loads(stream.getvalue())
        assert (line["level"], line["event"], line["message"]) == ("warning", "library", "half of it")
        assert line["fields"] == {"logger": "library"}
