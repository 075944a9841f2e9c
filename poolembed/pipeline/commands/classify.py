"""`classify`: a text to its class."""

from typing import TYPE_CHECKING

from poolembed.config import ClassifyConfig
from poolembed.pipeline.commands.command import text_command

if TYPE_CHECKING:
    from poolembed.model.classify import Classify


def _operation() -> "type[Classify]":
    from poolembed.model.classify import Classify

    return Classify


COMMAND = text_command(_operation, ClassifyConfig)
