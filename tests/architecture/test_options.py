"""An option of the command line for every field of a run, and a field for every option."""

from dataclasses import MISSING, fields

import click
import pytest

from poolembed.cli import cli, options
from poolembed.cli.command import TaskCommand
from poolembed.config import (
    InputConfig,
    JobConfig,
    ModelConfig,
    OutputConfig,
    PoolerConfig,
    RunConfig,
    TaskConfig,
)

# Fields that no command takes yet. A field that gets its option leaves this list, or the test fails.
NOT_EXPOSED = {
    PoolerConfig: {
        "task",
        "seq_pooling_type",
        "tok_pooling_type",
        "enable_chunked_processing",
        "max_embed_len",
        "logit_mean",
        "logit_sigma",
        "step_tag_id",
        "returned_token_ids",
        "enable_flash_late_interaction",
    },
}

GROUPS = {
    InputConfig: (
        *options.INPUT_OPTIONS,
        *options.TEXT_OPTIONS,
        *options.PAIR_COLUMN_OPTIONS,
        *(option for option in options.LIST_COLUMN_OPTIONS if option not in options.PAIR_COLUMN_OPTIONS),
    ),
    ModelConfig: (*options.MODEL_OPTIONS, *options.PROMPT_OPTIONS),
    PoolerConfig: (*options.POOLER_OPTIONS, *options.DIMENSION_OPTIONS),
    OutputConfig: options.OUTPUT_OPTIONS,
    RunConfig: options.RUN_OPTIONS,
}

COMMANDS = [command for command in cli.commands.values() if isinstance(command, TaskCommand)]


def command_of(group):
    """A command that has the options of a group."""

    def nothing() -> None:
        """Do nothing."""

    for decorate in group:
        nothing = decorate(nothing)
    return click.command()(nothing)


def names_of(group):
    return {parameter.name for parameter in command_of(group).params}


@pytest.mark.parametrize("record", GROUPS, ids=lambda record: record.__name__)
def test_options_and_fields_match_one_to_one(record):
    names = [parameter.name for parameter in command_of(GROUPS[record]).params]
    assert len(names) == len(set(names))
    assert set(names) == {field.name for field in fields(record)} - NOT_EXPOSED.get(record, set())


@pytest.mark.parametrize("record", GROUPS, ids=lambda record: record.__name__)
def test_an_option_left_out_gives_its_fields_default(record):
    command = command_of(GROUPS[record])
    required = [parameter.name for parameter in command.params if parameter.required]
    given = command.make_context("x", ["value"] * len(required)).params
    defaults = {field.name: field.default for field in fields(record)}
    assert [name for name in given if defaults[name] is MISSING] == required
    assert {name: value for name, value in given.items() if name not in required} == {
        name: value for name, value in defaults.items() if name in given and name not in required
    }


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_has_an_option_for_every_field_of_its_own_record_and_no_other_of_its_own(command):
    names = [parameter.name for parameter in command.params]
    assert len(names) == len(set(names))
    not_for_all = set().union(*(names_of(group) for group in GROUPS.values()))
    own = set(names) - names_of(options.SHARED_OPTIONS) - not_for_all
    assert own == {field.name for field in fields(command.task)}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_an_own_option_left_out_gives_its_fields_default(command):
    given = command.make_context("x", ["value"]).params
    defaults = {field.name: field.default for field in fields(command.task)}
    assert {name: given[name] for name in defaults} == defaults


def test_every_record_of_a_job_has_its_group_of_options():
    records = {field.type for field in fields(JobConfig)} - {str}
    assert records == {*GROUPS, TaskConfig}


def test_every_command_of_the_pipeline_can_be_typed():
    from poolembed.pipeline.commands import COMMANDS as RUN

    assert sorted(RUN) == sorted(command.name for command in COMMANDS)


def test_what_is_for_every_command_is_given_to_every_command():
    shared = names_of(options.SHARED_OPTIONS)
    assert [command.name for command in COMMANDS if not shared <= {p.name for p in command.params}] == []


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_option_says_what_it_does_and_reads_its_environment_variable(command):
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            longest = max(parameter.opts, key=len).removeprefix("--")
            assert parameter.help, longest
            assert parameter.envvar == f"POOLEMBED_{longest.replace('-', '_').upper()}"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_help_has_two_examples_that_can_be_typed(command):
    examples = [line.strip() for line in command.help.splitlines() if line.startswith("  poolembed ")]
    assert len(examples) >= 2
    for example in examples:
        _, name, *arguments = example.split()
        assert name == command.name
        assert command.make_context(name, arguments).params["paths"]
