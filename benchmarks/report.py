"""docs/performance.md, from results and notes; nothing in it is typed by hand but the notes."""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.contestants import CONTESTANTS
from benchmarks.figures import median_ratio
from benchmarks.results import Result
from benchmarks.settings import ROOT
from benchmarks.targets import TARGETS, contestants, seconds, share_of_ceiling

PAGE = ROOT / "docs" / "performance.md"
NOTES = Path(__file__).parent / "notes.toml"

Notes = dict[str, Any]

MIN_ROUNDS = 5
"""Fewer rounds are a trial, and meet or miss nothing."""

HEADER = """\
# Performance

<!-- Written by `python -m benchmarks report` from benchmarks/results and benchmarks/notes.toml. -->

Every contestant runs in a process of its own, on the same cores and with as many threads, with its own
best batch size; they take turns (A, B, C, A, B, C), and a ratio is the median of the rounds' ratios.
`make bench` measures anew. Everything is float32 unless it says otherwise; vectors are compared with those
of sentence-transformers. The whole command is measured from reading the file to the finished Parquet file,
without loading the model; a library has its texts in memory. A target is met when the library or the
whole command meets it with vectors within 1e-5; both are shown.

Of the peers: ONNX Runtime and OpenVINO run through sentence-transformers, from models that it exported,
OpenVINO with one stream of all threads. int8 is dynamic quantization as sentence-transformers configures it
for the processor (`avx512_vnni`, `avx512` or `avx2`). vLLM runs in the process, eager, with its scheduler's
batches, without the preloaded tcmalloc and OpenMP that its manual recommends, which pip does not install.
"""

EMPTY = "No machine has been measured yet.\n"


def page(measured: dict[str, Result], notes: Notes) -> str:
    """Return the page.

    Args:
        measured: results by name.
        notes: by name: `machine` (a sentence or more), `targets` (by target) and `workloads` (by workload).
    """
    sections = [section(name, result, notes.get(name, {})) for name, result in measured.items()]
    return "\n".join([HEADER, *(sections or [EMPTY])])


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(results.every(), read_notes()), "utf-8")


def is_current() -> bool:
    """Whether the page is what the results give."""
    return PAGE.is_file() and PAGE.read_text("utf-8") == page(results.every(), read_notes())


def read_notes() -> Notes:
    """Return the hand-written notes."""
    return tomllib.loads(NOTES.read_text("utf-8"))


def section(name: str, result: Result, notes: Notes) -> str:
    """Return all there is to say of one result."""
    parts = [f"## {name}\n", machine_line(result)]
    if "machine" in notes:
        parts.append(notes["machine"].strip() + "\n")
    parts += ["### Targets\n", targets_table(result), *target_notes(notes.get("targets", {}))]
    for key, workload in result.get("workloads", {}).items():
        parts += [f"### {workload.get('title', key)}\n", workload_text(result, key)]
        if key in notes.get("workloads", {}):
            parts.append(notes["workloads"][key].strip() + "\n")
    parts += list(rest(result))
    return "\n".join(parts)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def machine_line(result: Result) -> str:
    """Return what was measured on, when and how."""
    told, settings = result["machine"], result["settings"]
    line = (
        f"{told['cpu']} ({', '.join(told['flags'])}), {told['cores']} of {told['cores_of_machine']} cores, "
        f"{told['memory_gib']} GiB, {told['system']}, Python {told['python']}, {told['date']}; "
        f"{settings['rounds']} rounds, load before {told['load_before']}"
    )
    if settings["scale"] != 1:
        line += f"; **a trial at {settings['scale']:g} of the rows**"
    if settings["options"]:
        line += f"; options `{' '.join(settings['options'])}`"
    return line + f".{commits_text(result.get('commits', {}))}\n"


def commits_text(commits: dict[str, str]) -> str:
    """Return which commit was measured; by parts of the result where they were measured at several."""
    parts: dict[str, list[str]] = {}
    for part, commit in commits.items():
        parts.setdefault(commit, []).append(part)
    if len(parts) < 2:
        return f" Commit {next(iter(parts))}." if any(parts) else ""
    return " Commits: " + "; ".join(f"{commit} ({', '.join(of)})" for commit, of in parts.items()) + "."


def targets_table(result: Result) -> str:
    """Return every target with what was seen."""
    rows = []
    for target in TARGETS.values():
        figures = target.seen(result)
        seen = ", ".join(
            target.form.format(value) + (f" ({short_title(key)})" if len(figures) > 1 else "")
            for key, value in figures.items()
        )
        asked = ("<= " if target.at_most else ">= ") + target.form.format(target.asked)
        verdict = "trial, no verdict" if seen and is_trial(result) else target.verdict(result)
        rows.append([target.title, asked, seen or "-", verdict])
    return table(["target", "asked", "seen", "verdict"], rows)


def is_trial(result: Result) -> bool:
    """Whether too few rows or rounds were measured to judge by."""
    settings = result["settings"]
    return bool(settings["scale"] < 1 or settings["rounds"] < MIN_ROUNDS)


def short_title(contestant: str) -> str:
    """Return `library` or `whole command`, or the title where it says nothing of the kind."""
    return CONTESTANTS[contestant].title.removeprefix("poolembed, ")


def target_notes(notes: dict[str, str]) -> Iterator[str]:
    """Yield why a figure is what it is.

    Raises:
        KeyError: a note is about a target that there is not.
    """
    for key, note in notes.items():
        yield f"**{TARGETS[key].title}**: {note.strip()}\n"


def workload_text(result: Result, key: str) -> str:
    """Return the tables of one workload."""
    workload = result["workloads"][key]
    if "skipped" in workload:
        return f"Not run: {workload['skipped']}.\n"
    size = f"{workload['num_rows']:,} rows, {workload['num_tokens']:,} tokens"
    work = f"{workload['flops'] / 1e9:,.0f} GFLOP, model {workload['model']}"
    parts = [f"{size}, {work}.\n", speed_table(result, key)]
    told = {name: entry["phases"] for name, entry in workload["contestants"].items() if "phases" in entry}
    if told:
        parts.append(phases_table(told))
    ceiling = workload["contestants"].get("ceiling")
    if ceiling:
        parts.append(ceiling_line(result, key, ceiling["flops_per_s"]))
    for name, reason in workload["skipped_contestants"].items():
        parts.append(f"Without {CONTESTANTS[name].title}: {reason}.\n")
    return "\n".join(parts)


def speed_table(result: Result, key: str) -> str:
    """Return speeds, and how many times faster poolembed is."""
    workload, rows = result["workloads"][key], []
    ours = next((name for name in ("poolembed", "command") if seconds(result, key, name)), None)
    for name, entry in workload["contestants"].items():
        if name == "ceiling":
            continue
        took, count = entry["seconds"], workload["num_rows"]
        theirs, own = seconds(result, key, name), seconds(result, key, ours) if ours else None
        rows.append(
            [
                with_version(name, entry),
                "" if entry["batch_size"] is None else str(entry["batch_size"]),
                f"{count / took['median']:,.0f}",
                f"{count / took['max']:,.0f} .. {count / took['min']:,.0f}",
                f"{100 * took['iqr'] / took['median']:.0f} %",
                f"{median_ratio(theirs, own):.2f}x" if theirs and own else "",
                vectors_cell(entry.get("vectors")),
                "" if entry["peak_mb"] is None else f"{entry['peak_mb']:,.0f}",
            ]
        )
    faster = f"{short_title(ours)} is faster" if ours else ""
    return table(
        ["", "batch", "rows/s", "least .. most", "IQR", faster, "vectors differ by", "peak MB"], rows
    )


def with_version(name: str, entry: dict[str, Any]) -> str:
    """Return the title of a contestant with its versions."""
    versions = ", ".join(f"{package} {number}" for package, number in entry["versions"].items())
    return CONTESTANTS[name].title + (f" ({versions})" if versions else "")


def vectors_cell(vectors: dict[str, float] | None) -> str:
    """Return how far vectors are from the reference's."""
    if not vectors:
        return ""
    cell = f"{vectors['max_difference']:.0e}"
    return cell + (
        f", cosine >= {vectors['min_cosine']:.5f}" if vectors.get("min_cosine", 1) < 0.99999 else ""
    )


def phases_table(told: dict[str, dict[str, Any]]) -> str:
    """Return where commands' seconds went; shares of the run, which overlap, and the rates."""
    names = sorted(
        {name for each in told.values() for name in each if name.endswith("_s")}
        - {"load_s", "run_s", "wall_s"}
    )
    rows = [
        [
            CONTESTANTS[key].title,
            f"{each['num_tokens'] / each['run_s']:,.0f}",
            f"{each['load_s']:.2f}",
            f"{each['run_s']:.2f}",
            *(f"{100 * each[name] / each['run_s']:.1f} %" if name in each else "" for name in names),
        ]
        for key, each in told.items()
    ]
    return table(["", "tokens/s", "load s", "run s", *(name.removesuffix("_s") for name in names)], rows)


def ceiling_line(result: Result, key: str, rates: dict[str, Any]) -> str:
    """Return the ceiling and everybody's share of it that computes in float32."""
    shares = share_of_ceiling(key)(result)
    reached = ", ".join(f"{short_title(name)} {share:.0f} %" for name, share in shares.items()) or "nobody"
    return (
        f"Matrix products alone reach {rates['median'] / 1e9:,.0f} GFLOP/s "
        f"({rates['min'] / 1e9:,.0f} .. {rates['max'] / 1e9:,.0f}); of that: {reached}.\n"
    )


def rest(result: Result) -> Iterator[str]:
    """Yield start-up and memory."""
    told = result.get("startup", {})
    if "imports" in told:
        yield "### Start to first batch\n"
        labels = {"imports": "`import torch, transformers`, reading the weights"}
        yield table(
            ["", "seconds", "least .. most"],
            [
                [
                    labels.get(key, key),
                    f"{entry['seconds']['median']:.2f}",
                    f"{entry['seconds']['min']:.2f} .. {entry['seconds']['max']:.2f}",
                ]
                for key, entry in told.items()
                if key != "model"
            ],
        )
    runs = [*result.get("memory_by_rows", {}).get("runs", [])]
    default = result.get("memory_at_defaults", {})
    if runs or "peak_mb" in default:
        yield "### Peak memory of the command\n"
        rows = [["docstrings at defaults", default]] if "peak_mb" in default else []
        rows += [["short rows, tiny model", run] for run in runs]
        yield table(
            ["", "rows", "peak MB", "largest process MB"],
            [
                [what, f"{of['num_rows']:,}", f"{of['peak_mb']:,.0f}", f"{of['alone_mb']:,.0f}"]
                for what, of in rows
            ],
        )
    if result.get("gpu"):
        yield gpu_table(result["gpu"])


def gpu_table(runs: list[dict[str, Any]]) -> str:
    """Return what GPUs reached."""
    rows = [
        [
            run["device"],
            run["model"],
            run["dtype"],
            f"{run['tokens_per_s']['median']:,.0f}",
            f"{run['utilisation_percent']:.1f} %",
            run["peak_source"],
        ]
        for run in runs
    ]
    head = ["device", "model", "dtype", "tokens/s", "model FLOPs utilisation", "peak"]
    return "### GPU\n\n" + table(head, rows)


__all__ = ["contestants", "is_current", "page", "read_notes", "write"]
