"""`token-embed`: a text to a vector for each token."""

from typing import TYPE_CHECKING

from poolembed.config import JobConfig, TokenEmbedConfig
from poolembed.pipeline.commands.command import TEXT, Command, params_of, prompt_of, task_of

if TYPE_CHECKING:
    from poolembed.model import Operation
    from poolembed.runner import ModelSpec, PoolingRunner

MAX_CHUNK_ROWS = 512
"""A row's result is as long as the row, so a chunk of the usual size could fill the memory."""


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.token_embed import check_token_embed, refuse_prompt

    check_token_embed(spec, task_of(job, TokenEmbedConfig), params_of(job))
    prompt_of(spec, job)
    refuse_prompt(spec, job.model.prompt, job.model.prompt_name)


def _operation(runner: "PoolingRunner", job: JobConfig) -> "Operation":
    from poolembed.model.token_embed import TokenEmbed

    return TokenEmbed.of(runner, prompt_of(runner.spec, job), task_of(job, TokenEmbedConfig), params_of(job))


COMMAND = Command(roles=(TEXT,), check=_check, operation=_operation, max_chunk_rows=MAX_CHUNK_ROWS)
