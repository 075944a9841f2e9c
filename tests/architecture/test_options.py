"""An option of the command line for every field of a run, and a field for every option."""

from dataclasses import MISSING, fields

import click
import pytest

from poolembed.cli import cli, options
from poolembed.cli.command import TaskCommand
from poolembed.config import (
    InputConfig,
    JobConfig,
    LimitConfig,
    ModelConfig,
    OutputConfig,
    PoolerConfig,
    RunConfig,
)

RECORDS = (InputConfig, ModelConfig, PoolerConfig, OutputConfig, RunConfig, LimitConfig)

# Fields that no command takes. A field that gets its option leaves this list, or the test fails.
NOT_EXPOSED = {
    # Chosen by the command, or by the model.
    "task",
    "seq_pooling_type",
    # The reference's own ways to say what --on-long, --set and the model's declaration say here.
    "enable_chunked_processing",
    "max_embed_len",
    "logit_mean",
    "logit_sigma",
    "enable_flash_late_interaction",
}

# What commands take for themselves: how they speak to the user.
CONSOLE = {"quiet", "as_json", "status", "metrics", "log_format", "config", "help"}

COMMANDS = {name: command for name, command in cli.commands.items() if isinstance(command, TaskCommand)}


def names_of(*records):
    return {field.name for record in records for field in fields(record)}


def options_of(command):
    return {parameter.name for parameter in command.params}


@pytest.fixture(params=COMMANDS)
def command(request):
    return COMMANDS[request.param]


def test_every_command_but_inspect_runs_a_job():
    assert set(cli.commands) - set(COMMANDS) == {"inspect"}


def test_every_command_of_the_pipeline_can_be_typed():
    from poolembed.pipeline.commands import COMMANDS as RUN

    assert sorted(RUN) == sorted(COMMANDS)


def test_every_record_of_a_job_is_looked_at():
    records = {field.type for field in fields(JobConfig) if field.name not in ("command", "task")}
    assert records == set(RECORDS)


def test_no_two_records_of_a_command_share_a_name(command):
    listed = [field.name for record in (*RECORDS, command.task) for field in fields(record)]
    assert len(listed) == len(set(listed))


def test_what_is_for_every_command_is_given_to_each_once(command):
    names = [parameter.name for parameter in command.params]
    assert len(names) == len(set(names))
    shared = {
        parameter.name
        for parameter in options.with_options(options.SHARED_OPTIONS)(click.Command("x")).params
    }
    assert shared
    assert shared - set(names) == set()


def test_every_option_is_a_field_of_a_record(command):
    assert options_of(command) - names_of(*RECORDS, command.task) - CONSOLE == set()


def test_every_field_of_its_own_record_is_an_option_of_the_command(command):
    assert names_of(command.task) - options_of(command) == set()


def test_every_field_of_a_shared_record_is_an_option_of_some_command():
    given = set().union(*map(options_of, COMMANDS.values()))
    assert names_of(*RECORDS) - given == NOT_EXPOSED


def test_an_option_left_out_gives_its_fields_default(command):
    defaults = {field.name: field.default for record in (*RECORDS, command.task) for field in fields(record)}
    required = [parameter.name for parameter in command.params if parameter.required]
    given = command.make_context("x", ["value"] * len(required)).params
    # A join stands in place of paths where they are not required.
    assert [name for name in given if defaults.get(name) is MISSING] == (required or ["paths"])
    left_out = {name: value for name, value in given.items() if name not in {"paths", *required, *CONSOLE}}
    assert left_out == {name: defaults[name] for name in left_out}


def test_every_option_says_what_it_does_and_reads_its_environment_variable(command):
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            longest = max(parameter.opts, key=len).removeprefix("--")
            assert parameter.help, longest
            assert parameter.envvar == f"POOLEMBED_{longest.replace('-', '_').upper()}"


def test_every_help_has_two_examples_that_can_be_typed(command):
    examples = [line.strip() for line in command.help.splitlines() if line.startswith("  poolembed ")]
    assert len(examples) >= 2
    for example in examples:
        _, name, *arguments = example.split()
        assert name == command.name
        given = command.make_context(name, arguments).params
        assert given["paths"] or given["candidates"]
