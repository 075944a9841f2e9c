"""The `poolembed` group: which commands there are, and what each kind of failure exits with."""

import signal
import sys
import traceback
from types import FrameType
from typing import Any, NoReturn

import click

from poolembed import __version__
from poolembed.cli.classify import classify
from poolembed.cli.embed import embed
from poolembed.cli.inspect import inspect
from poolembed.cli.rerank import rerank
from poolembed.cli.reward import reward
from poolembed.cli.score import score
from poolembed.cli.sparse import sparse
from poolembed.cli.token_classify import token_classify
from poolembed.cli.token_embed import token_embed
from poolembed.errors import EXIT_BUG, EXIT_INTERRUPTED, EXIT_TERMINATED, PoolembedError


class Terminated(BaseException):
    """SIGTERM arrived; raised in the main thread so that everything opened is closed."""


class ExitCodeGroup(click.Group):
    """A group whose commands end with the exit codes of `poolembed.errors`."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's own signature
        """Run the command; failures become one line on standard error and an exit code."""
        previous = signal.signal(signal.SIGTERM, _terminate)
        try:
            return super().invoke(ctx)
        except PoolembedError as error:
            hint = f"\n  {error.hint}" if error.hint else ""
            _leave(ctx, f"error: {error.message}{hint}", error.exit_code)
        except KeyboardInterrupt:
            _leave(ctx, "interrupted; no half-written output was left", EXIT_INTERRUPTED)
        except Terminated:
            _leave(ctx, "terminated; no half-written output was left", EXIT_TERMINATED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception:  # noqa: BLE001 - the last stop: a bug is shown whole and has its own code
            traceback.print_exc()
            _leave(ctx, "this is a bug in poolembed: please report the lines above", EXIT_BUG)
        finally:
            signal.signal(signal.SIGTERM, previous)


def _leave(ctx: click.Context, message: str, code: int) -> NoReturn:
    click.echo(f"poolembed: {message}", err=True)
    sys.stderr.flush()
    ctx.exit(code)


def _terminate(signum: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


HELP = """Turn files of text into vectors, classes, token vectors and rewards, in bulk and offline.

Reads JSONL or Parquet, keeps the rows' order and their columns, writes Parquet. An option of a command
may also be set in a TOML file (--config) or by an environment variable (--batch-tokens is
POOLEMBED_BATCH_TOKENS); the command line wins over the environment, and that over the file.

\b
Examples:
  poolembed embed corpus.jsonl
  poolembed inspect
  poolembed embed --help
"""


@click.group(cls=ExitCodeGroup, context_settings={"help_option_names": ["-h", "--help"]}, help=HELP)
@click.version_option(__version__, prog_name="poolembed")
def cli() -> None:
    """Run the command that is named."""


for command in (embed, classify, score, rerank, token_classify, token_embed, sparse, reward, inspect):
    cli.add_command(command)
