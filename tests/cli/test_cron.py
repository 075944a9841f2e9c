"""What a nightly job needs: silence when all is well, lines for programs, and an end at the right time."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime

import pytest

from poolembed import errors
from poolembed.cli.group import EPILOG
from tests.cli.conftest import ROWS, table_of, write


def lines_of(done):
    return [json.loads(line) for line in done.stderr.splitlines()]


def test_a_quiet_run_that_goes_well_says_nothing(embed, corpus, folder):
    done = embed("corpus.jsonl", "--quiet", "--status", "status.json", "--metrics", "run.prom")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    status = json.loads((folder / "status.json").read_text("utf-8"))
    assert (status["phase"], status["exit_code"]) == ("done", 0)
    assert (status["rows_done"], status["rows_total"]) == (len(ROWS), len(ROWS))
    assert status["tokens"] == sum(table_of(done)["num_tokens"].to_pylist())
    assert status["outputs"] == ["corpus.embed.parquet"]
    assert sorted(path.name for path in folder.glob("[!.]*")) == [
        "corpus.embed.parquet",
        "corpus.jsonl",
        "run.prom",
        "status.json",
    ]


def test_a_status_counts_the_rejects(embed, folder):
    write(folder / "corpus.jsonl", [*ROWS, {"text": None}, {"text": 5}])
    done = embed("corpus.jsonl", "--on-error", "skip", "--status", "status.json")
    assert done.exit_code == 0
    status = json.loads((folder / "status.json").read_text("utf-8"))
    assert (status["rows_done"], status["rows_rejected"]) == (len(ROWS) + 2, 2)


def test_a_log_in_json_has_the_summary_as_its_last_line(embed, corpus):
    done = embed("corpus.jsonl", "--log-format", "json")
    *_, last = lines_of(done)
    assert (last["event"], last["level"], last["fields"]["num_rows"]) == ("summary", "info", len(ROWS))
    assert abs(datetime.fromisoformat(last["ts"]).timestamp() - time.time()) < 3600


def test_a_failure_is_told_in_json_and_so_is_one_of_the_options(embed, corpus):
    done = embed("nowhere.jsonl", "--log-format", "json")
    [line] = lines_of(done)
    assert done.exit_code == line["fields"]["exit_code"] == 3
    assert (line["event"], line["level"]) == ("error", "error")
    assert line["message"] == "nowhere.jsonl: no such file or directory"
    [line] = lines_of(embed("corpus.jsonl", "--log-format", "json", "--limit", "0"))
    assert line["message"] == "--limit must be at least 1, got 0"


def test_the_format_of_the_log_may_stand_in_the_file_of_options(embed, corpus, folder):
    (folder / "run.toml").write_text('log-format = "json"\nlimit = 0\n')
    [line] = lines_of(embed("corpus.jsonl", "--config", "run.toml"))
    assert line["fields"]["exit_code"] == 2


def test_the_log_of_one_run_does_not_decide_that_of_the_next(embed, corpus):
    embed("nowhere.jsonl", "--log-format", "json")
    assert embed("nowhere.jsonl").stderr.startswith("poolembed: error: nowhere.jsonl")


def test_a_deadline_far_away_changes_nothing(embed, corpus):
    assert table_of(embed("corpus.jsonl", "--deadline", "10h")).num_rows == len(ROWS)


def test_help_lists_every_exit_code(poolembed):
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    constants = [value for name, value in vars(errors).items() if name.startswith("EXIT_")]
    codes = {0, *(kind.exit_code for kind in classes), *constants} - {1}
    listed = {
        int(code.strip())
        for line in EPILOG.splitlines()
        if line.startswith("  ")
        for code in line[2:].split("  ")[0].split(",")
    }
    assert listed == codes
    assert "Exit codes:" in poolembed("--help").stdout


@pytest.mark.slow
def test_a_reader_of_the_summary_that_has_gone_is_no_bug(root, models, corpus, folder):
    read, write_end = os.pipe()
    os.close(read)
    line = [*("embed", "corpus.jsonl", "--json", "--status", "s.json"), "--model", str(models / "bert-mean")]
    done = subprocess.run(
        [sys.executable, "-m", "poolembed", *line],
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads((folder / "s.json").read_text("utf-8"))["phase"] == "done"
    assert (folder / "corpus.embed.parquet").exists()
