"""docs/performance.md: what stands in it, and that it is what the results give."""

import pytest

from benchmarks import report, results
from benchmarks.contestants import CONTESTANTS
from benchmarks.targets import TARGETS
from benchmarks.workloads import WORKLOADS
from tests.benchmarks.results import SAME, contestant, result, workload


@pytest.fixture
def measured():
    phases = {"run_s": 2.0, "load_s": 1.0, "forward_s": 1.5, "wait_s": 0.1, "num_tokens": 2000}
    found = {
        "poolembed": contestant(1.0, 1.0, 1.0, vectors=SAME),
        "command": contestant(2.0, 2.0, 2.0, phases=phases),
        "sentence-transformers": contestant(2.0, 2.0, 4.0, batch_size=8, vectors=SAME),
        "ceiling": contestant(
            1.0, 1.0, 1.0, flops_per_s={"values": [8e9] * 3, "median": 8e9, "min": 8e9, "max": 8e9}
        ),
    }
    return result(
        workloads={
            "docstrings": workload(found, skipped_contestants={"vllm": "no interpreter given"}),
            "long": {"title": "Long", "skipped": "no model"},
        },
        startup={"model": "m", "imports": contestant(2.0), "poolembed": contestant(2.4)},
        memory_at_defaults={"num_rows": 10, "peak_mb": 650.0, "alone_mb": 600.0, "model_mb": 90.0},
    )


def test_the_page_is_what_the_results_give():
    assert report.is_current(), "`make docs` writes docs/performance.md anew"


def test_notes_are_of_results_targets_and_workloads_that_there_are():
    for name, notes in report.read_notes().items():
        assert name in results.every()
        assert set(notes) <= {"machine", "targets", "workloads"}
        assert set(notes.get("targets", {})) <= set(TARGETS)
        assert set(notes.get("workloads", {})) <= set(WORKLOADS)


def test_a_page_tells_speeds_ratios_and_who_was_left_out(measured):
    page = report.page({"box": measured}, {})
    [own] = [line for line in page.splitlines() if line.startswith("| poolembed, library")]
    assert own.split(" | ")[2] == "100"
    [theirs] = [line for line in page.splitlines() if line.startswith("| sentence-transformers, torch")]
    assert theirs.split(" | ")[1:3] == ["8", "50"]
    assert theirs.split(" | ")[5] == "2.00x"
    assert "Without vLLM, CPU engine: no interpreter given." in page
    assert "Not run: no model." in page
    assert "of that: library 50 %, whole command 25 %" in page


def test_a_page_has_every_target_with_its_verdict(measured):
    page = report.page({"box": measured}, {})
    for target in TARGETS.values():
        [line] = [line for line in page.splitlines() if line.startswith(f"| {target.title} |")]
        assert line.endswith(f"| {target.verdict(measured)} |")


def test_phases_are_shares_of_the_run(measured):
    page = report.page({"box": measured}, {})
    [line] = [line for line in page.splitlines() if line.startswith("| poolembed, whole command | 1,000")]
    assert line == "| poolembed, whole command | 1,000 | 1.00 | 2.00 | 75.0 % | 5.0 % |"


@pytest.mark.parametrize("few", [{"scale": 0.05}, {"rounds": 2}])
def test_a_trial_meets_and_misses_nothing(measured, few):
    measured["settings"] |= few
    lines = report.page({"box": measured}, {}).splitlines()
    assert [line for line in lines if line.endswith(("| met |", "| missed |"))] == []


def test_a_trial_says_that_it_is_one(measured):
    measured["settings"]["scale"] = 0.05
    assert "**a trial at 0.05 of the rows**" in report.page({"box": measured}, {})


def test_notes_stand_in_the_page(measured):
    notes = {
        "box": {"machine": "A box.", "targets": {"ceiling": "Because."}, "workloads": {"docstrings": "So."}}
    }
    page = report.page({"box": measured}, notes)
    assert "A box.\n" in page
    assert f"**{TARGETS['ceiling'].title}**: Because.\n" in page
    assert "So.\n" in page


def test_every_contestant_of_a_workload_is_known():
    assert {key for workload in WORKLOADS.values() for key in workload.contestants} <= set(CONTESTANTS)


@pytest.mark.parametrize(
    ("commits", "told"),
    [
        ({}, "load before 0.1.\n"),
        ({"short": "abc1234", "startup": "abc1234"}, "load before 0.1. Commit abc1234.\n"),
        (
            {"short": "abc1234", "startup": "def5678+", "long": "abc1234"},
            "load before 0.1. Commits: abc1234 (short, long); def5678+ (startup).\n",
        ),
    ],
)
def test_a_page_tells_which_commit_was_measured(measured, commits, told):
    measured["commits"] = commits
    assert told in report.page({"box": measured}, {})
