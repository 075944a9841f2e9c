"""`token-embed`: a text to a vector for each token."""

from dataclasses import replace
from typing import TYPE_CHECKING

from poolembed.config import JobConfig, TokenEmbedConfig
from poolembed.pipeline.commands.command import text_command

if TYPE_CHECKING:
    from poolembed.model.token_embed import TokenEmbed
    from poolembed.runner import ModelSpec

MAX_CHUNK_ROWS = 512
"""A row's result is as long as the row, so a chunk of the usual size could fill the memory."""


def _operation() -> "type[TokenEmbed]":
    from poolembed.model.token_embed import TokenEmbed

    return TokenEmbed


def _check(spec: "ModelSpec", job: JobConfig) -> None:
    from poolembed.model.token_embed import refuse_prompt

    _ANY.check(spec, job)
    refuse_prompt(spec, job.model.prompt, job.model.prompt_name)


_ANY = text_command(_operation, TokenEmbedConfig, max_chunk_rows=MAX_CHUNK_ROWS)
COMMAND = replace(_ANY, check=_check)
