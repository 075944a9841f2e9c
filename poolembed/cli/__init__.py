"""The command line: reads options, talks to a person, turns failures into exit codes.

In: arguments, environment, a TOML file. Out: a job for the pipeline; lines on standard error, results
on standard output. Never: arithmetic, tensors, files of rows.
"""

from poolembed.cli.group import cli

__all__ = ["cli"]
