"""`reward`: a text to its rewards."""

from typing import TYPE_CHECKING

from poolembed.config import RewardConfig
from poolembed.pipeline.commands.command import text_command

if TYPE_CHECKING:
    from poolembed.model.reward import Reward


def _operation() -> "type[Reward]":
    from poolembed.model.reward import Reward

    return Reward


COMMAND = text_command(_operation, RewardConfig)
