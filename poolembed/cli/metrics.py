"""Figures of a run in the text format of Prometheus, for the textfile collector of its node exporter.

Source:
    The Prometheus documentation, "Exposition formats", text-based format 0.0.4.
"""

from collections.abc import Iterator

from poolembed.cli.figures import Figures

LAST_SUCCESS = "poolembed_last_success_timestamp_seconds"


def metrics_text(figures: Figures, before: str) -> str:
    """Return the metrics file.

    Args:
        figures: how far the run is.
        before: the file as it stands, whose time of the last success is kept until the next one.
    """
    labels = f'{{command="{_escaped(figures.command)}",target="{_escaped(figures.target)}"}}'
    lines: list[str] = []
    for name, kind, about, values in _metrics(figures, labels, _last_success(before, labels)):
        if values:
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{extra} {value}" for extra, value in values]
    return "\n".join(lines) + "\n"


Metric = tuple[str, str, str, list[tuple[str, str]]]


def _metrics(figures: Figures, labels: str, last_success: str | None) -> Iterator[Metric]:
    num_written = figures.num_done - figures.num_rejected - figures.num_reused
    outcomes = (("computed", num_written), ("reused", figures.num_reused), ("rejected", figures.num_rejected))
    rows = [(f'{labels[:-1]},outcome="{outcome}"}}', str(count)) for outcome, count in outcomes]
    yield (
        "poolembed_rows_total",
        "counter",
        "Rows that the latest run has done, by outcome.",
        rows,
    )
    yield (
        "poolembed_tokens_total",
        "counter",
        "Tokens computed by the latest run.",
        [(labels, str(figures.num_tokens))],
    )
    if figures.num_rows is not None:
        yield (
            "poolembed_input_rows",
            "gauge",
            "Rows of the input of the latest run.",
            [(labels, str(figures.num_rows))],
        )
    yield (
        "poolembed_duration_seconds",
        "gauge",
        "Time that the latest run has taken.",
        [(labels, f"{figures.duration_s:.3f}")],
    )
    yield (
        "poolembed_running",
        "gauge",
        "1 while a run is under way, 0 after it.",
        [(labels, str(int(figures.exit_code is None)))],
    )
    if figures.exit_code is not None:
        yield (
            "poolembed_exit_code",
            "gauge",
            "Exit code of the latest run; 0 is success.",
            [(labels, str(figures.exit_code))],
        )
    if figures.exit_code == 0:
        last_success = f"{figures.clock():.3f}"
    if last_success is not None:
        yield LAST_SUCCESS, "gauge", "When a run last ended well.", [(labels, last_success)]


def _last_success(before: str, labels: str) -> str | None:
    beginning = f"{LAST_SUCCESS}{labels} "
    found = [line for line in before.splitlines() if line.startswith(beginning)]
    return found[-1].removeprefix(beginning) if found else None


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
