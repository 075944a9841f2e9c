"""What each command does: the texts it reads, and the operation it runs on them; a file for each.

A new command is a new file here with an entry below, and the click command that names it. Nothing is
imported from `model` before a command is used: that would wait for torch.
"""

from poolembed.pipeline.commands import (
    classify,
    embed,
    rerank,
    reward,
    score,
    sparse,
    token_classify,
    token_embed,
)
from poolembed.pipeline.commands.command import Command

COMMANDS: dict[str, Command] = {
    "embed": embed.COMMAND,
    "classify": classify.COMMAND,
    "score": score.COMMAND,
    "rerank": rerank.COMMAND,
    "token-classify": token_classify.COMMAND,
    "token-embed": token_embed.COMMAND,
    "sparse": sparse.COMMAND,
    "reward": reward.COMMAND,
}

__all__ = ["COMMANDS", "Command"]
