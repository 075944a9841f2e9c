"""An option of the command line for every field of a run, and a field for every option."""

from dataclasses import MISSING, fields

import click
import pytest

from poolembed.cli import options
from poolembed.config import InputConfig, JobConfig, ModelConfig, OutputConfig, PoolerConfig, RunConfig

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
    InputConfig: options.INPUT_OPTIONS,
    ModelConfig: options.MODEL_OPTIONS,
    PoolerConfig: options.POOLER_OPTIONS,
    OutputConfig: options.OUTPUT_OPTIONS,
    RunConfig: options.RUN_OPTIONS,
}


def command_of(group):
    """A command that has the options of a group."""

    def nothing() -> None:
        """Do nothing."""

    for decorate in group:
        nothing = decorate(nothing)
    return click.command()(nothing)


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


def test_every_record_of_a_job_has_its_group_of_options():
    records = {field.type for field in fields(JobConfig)} - {str}
    assert records == set(GROUPS)


def test_every_group_is_given_to_the_commands():
    given = {id(decorate) for decorate in options.SHARED_OPTIONS}
    assert [record.__name__ for record, group in GROUPS.items() if not given >= set(map(id, group))] == []


def test_every_option_says_what_it_does_and_reads_its_environment_variable():
    for parameter in command_of(options.SHARED_OPTIONS).params:
        if isinstance(parameter, click.Option):
            longest = max(parameter.opts, key=len).removeprefix("--")
            assert parameter.help, longest
            assert parameter.envvar == f"POOLEMBED_{longest.replace('-', '_').upper()}"
