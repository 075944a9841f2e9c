"""The `poolembed` group: which commands there are, and what each kind of failure exits with."""

import signal
import sys
from typing import Any

import click

from poolembed import __version__
from poolembed.cli.classify import classify
from poolembed.cli.embed import embed
from poolembed.cli.failures import Failure, Terminated
from poolembed.cli.inspect import inspect
from poolembed.cli.log import log_of
from poolembed.cli.rerank import rerank
from poolembed.cli.reward import reward
from poolembed.cli.score import score
from poolembed.cli.signals import terminate
from poolembed.cli.sparse import sparse
from poolembed.cli.token_classify import token_classify
from poolembed.cli.token_embed import token_embed


class ExitCodeGroup(click.Group):
    """A group whose commands end with the exit codes of `poolembed.errors`."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run the command; failures become one line on standard error and an exit code."""
        previous = signal.signal(signal.SIGTERM, terminate)
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except (Exception, KeyboardInterrupt, Terminated) as error:  # noqa: BLE001 - the last stop for all
            failure = Failure.of(error)
            failure.tell(log_of(ctx))
            sys.stderr.flush()
            ctx.exit(failure.exit_code)
        finally:
            signal.signal(signal.SIGTERM, previous)


HELP = """Turn files of text into vectors, classes, token vectors and rewards, in bulk and offline.

Reads JSONL or Parquet, keeps the rows' order and their columns, writes Parquet, Arrow, JSON Lines or numpy
arrays. An option of a command may also be set in a TOML file (--config) or by an environment variable
(--batch-tokens is POOLEMBED_BATCH_TOKENS); the command line wins over the environment, and that over the
file.

\b
Examples:
  poolembed embed corpus.jsonl
  poolembed inspect
  poolembed embed --help
"""

EPILOG = """\b
Exit codes:
  0     the output is complete
  2     options contradict each other or name something unknown
  3     an input file, row or column cannot be read
  4     the model is missing, incomplete or not supported
  5, 7  a row is too large; the pooling does not fit the model
  6     the output exists, or cannot be written
  8     more rows were rejected or truncated than allowed
  70    a bug
  75    another run holds the output, or the deadline came: try again later
  130, 143  interrupted, terminated
"""


@click.group(
    cls=ExitCodeGroup, context_settings={"help_option_names": ["-h", "--help"]}, help=HELP, epilog=EPILOG
)
@click.version_option(__version__, prog_name="poolembed")
def cli() -> None:
    """Run the command that is named."""


for command in (embed, classify, score, rerank, token_classify, token_embed, sparse, reward, inspect):
    cli.add_command(command)
