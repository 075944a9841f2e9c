"""A run from its input files to its output files."""

import time
from collections.abc import Mapping
from dataclasses import asdict

from poolembed import __version__
from poolembed.config import JobConfig
from poolembed.io import (
    check_remote,
    exploded_columns,
    open_input,
    open_job_folder,
    open_sink,
    plan_output,
    publish,
)
from poolembed.pipeline.commands import COMMANDS
from poolembed.pipeline.ledger import Ledger
from poolembed.pipeline.row_texts import RowTexts
from poolembed.pipeline.run import COUNTS, Progress, Run
from poolembed.pipeline.stop import Deadline, StopRequest
from poolembed.pipeline.summary import RunSummary
from poolembed.pipeline.template import Template

RESULTS_REVISION = "1"
"""Raised when a release gives other numbers for the same settings, so that outputs are never mixed."""

_NOT_DECIDING = frozenset(("model", "model_impl", "device", "attention", "int8_cosine", "self_check"))
"""What is recorded of a run and decides no result beyond rounding; `revision` tells models apart."""


def run_job(job: JobConfig, progress: Progress, stop: StopRequest | None = None) -> RunSummary:
    """Read rows, compute what is not known, write.

    Everything that can be wrong with the input and the output is found before the model is loaded.

    Args:
        job: what to do; already checked.
        progress: told how far the run is.
        stop: asks the run to end after a batch; None for a run that nobody asks.

    Returns:
        How the run ended.

    Raises:
        PoolembedError: the run failed; no output has its final name, an old one is whole, and what was
            computed is kept for the same job.
        UnfinishedError: it was asked to end, or the deadline has passed; likewise.
    """
    started = time.monotonic()
    deadline = Deadline(job.limits.deadline)
    command = COMMANDS[job.command]
    template = None if job.input.template is None else Template.parse(job.input.template)
    roles = command.roles if template is None else template.roles
    target = plan_output(job.output, job.input, job.command)
    with open_job_folder(target) as folder, open_input(job.input, roles) as source:
        folder.check()
        check_remote(target)
        from poolembed.runner import describe_model

        _, spec = describe_model(job.model, job.pooler)
        command.check(spec, job)
        # Only now, so that what the model cannot do is said without waiting for torch.
        from poolembed.runner import load_runner

        runner = load_runner(job.model, job.pooler, job.run.batch_tokens, job.run.workers)
        for warning in runner.warnings:
            progress.note(warning)
        rows = RowTexts(source, template)
        operation = command.prepare(command.operation(runner, job), job, rows, folder.known_settings)
        columns = [*operation.columns, *COUNTS]
        written = exploded_columns(columns) if operation.explodes else columns
        metadata = {"version": __version__, **operation.metadata, **rows.metadata}
        store = folder.begin(_settings(job, operation.metadata), columns)
        nullable = "null" in (job.input.on_null, job.input.on_empty)
        with open_sink(folder, source.schema, written, metadata, nullable=nullable) as sink:
            loaded = time.monotonic()
            progress.start(source.num_rows)
            run = Run(
                job=job,
                operation=operation,
                columns=columns,
                folder=folder,
                store=store,
                progress=progress,
                ledger=Ledger(job.limits, source.num_rows),
                deadline=deadline,
                stop=stop or StopRequest(),
            )
            run.through(rows, sink)
            run.ledger.close()
            outputs = publish(target, sink.commit())
    return RunSummary(
        command=job.command,
        outputs=tuple(outputs),
        model=runner.folder.name,
        device=str(runner.backbone.device),
        dtype=runner.dtype,
        int8_cosine=runner.int8_cosine,
        workers=runner.workers.number,
        attention=runner.check.path,
        self_check=runner.check.max_difference,
        num_removed=store.num_unused,
        load_s=loaded - started,
        run_s=time.monotonic() - loaded,
        pool_s=runner.seconds.pooling / runner.workers.number,
        **asdict(run.tally),
    )


def _settings(job: JobConfig, metadata: Mapping[str, str]) -> dict[str, str]:
    """Return all that decides a result beside the texts."""
    deciding = {key: value for key, value in metadata.items() if key not in _NOT_DECIDING}
    return {"command": job.command, "results_revision": RESULTS_REVISION, **deciding}
