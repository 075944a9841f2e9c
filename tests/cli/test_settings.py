"""A TOML file sets options; the environment wins over it, and the command line over both."""

import pytest

from tests.cli.conftest import table_of, write


@pytest.fixture
def settings(folder):
    """Write run.toml."""
    return lambda text: (folder / "run.toml").write_text(text)


def limit_of(done):
    return table_of(done).num_rows


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(embed, corpus, settings):
    settings("limit = 1\n")
    environment = {"POOLEMBED_LIMIT": "2"}
    config = ("corpus.jsonl", "--config", "run.toml", "--overwrite")
    assert limit_of(embed("corpus.jsonl", "--overwrite")) == 4
    assert limit_of(embed(*config)) == 1
    assert limit_of(embed(*config, env=environment)) == 2
    assert limit_of(embed(*config, "--limit", 3, env=environment)) == 3


def test_the_file_itself_may_be_named_by_the_environment(embed, corpus, settings):
    settings("limit = 1\n")
    assert limit_of(embed("corpus.jsonl", env={"POOLEMBED_CONFIG": "run.toml"})) == 1


def test_a_table_of_the_command_wins_over_the_top_of_the_file(embed, corpus, settings):
    settings("limit = 1\nquiet = true\n[embed]\nlimit = 2\n[inspect]\nmax-length = 7\n")
    done = embed("corpus.jsonl", "--config", "run.toml")
    assert limit_of(done) == 2
    assert done.output == ""


def test_values_of_every_type_are_taken(embed, corpus, settings, models):
    settings(
        f"""
        model = {str(models / "bert-mean")!r}
        text_field = "title"
        columns = ["title", "id"]
        max-length = 4
        activation = false
        quiet = true
        set = ["pooling=MAX"]
        """
    )
    table = table_of(embed("corpus.jsonl", "--config", "run.toml"))
    assert table.column_names[:2] == ["title", "id"]
    assert max(table["num_tokens"].to_pylist()) <= 4
    metadata = table.schema.metadata
    assert metadata[b"poolembed.pooling"] == b"MAX"
    assert metadata[b"poolembed.activation"] == b"none"


@pytest.mark.parametrize("line", ["no-activation = true", "no_activation = true", "activation = false"])
def test_a_switch_may_be_written_either_way(embed, corpus, settings, line):
    settings(line)
    table = table_of(embed("corpus.jsonl", "--config", "run.toml"))
    assert table.schema.metadata[b"poolembed.activation"] == b"none"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lmit = 1", "run.toml: unknown key 'lmit', did you mean 'limit'?\n  see `poolembed embed --help`"),
        ("a = 1\nlimit = 2\nb = 2", "run.toml: unknown key 'a'; run.toml: unknown key 'b'"),
        ("[embed]\nlmit = 1", "run.toml: unknown key 'lmit', did you mean 'limit'?"),
        ("[classfy]\nlimit = 1", "run.toml: unknown key 'classfy'"),
        ("limit =", "run.toml: not a TOML file: "),
        ("embed = 1", "run.toml: 'embed' must be a table\n  write [embed]"),
        ("limit = 'many'", "'many' is not a valid integer"),
        ("dtype = 'float8'", "'float8' is not one of"),
        ("quiet = 'yes'", 'run.toml: quiet must be true or false, got "yes"'),
        ("no-activation = 1", "run.toml: no-activation must be true or false, got 1"),
        ("text-field = ['a']", 'run.toml: text-field must be one value, got ["a"]'),
        ("text-field = {a = 1}", 'run.toml: text-field must be one value, got {"a": 1}'),
        ("columns = 'id,title'", 'run.toml: columns must be a list of strings, got "id,title"'),
        ("set = 'pooling=MAX'", 'run.toml: set must be a list of strings, got "pooling=MAX"'),
        ("set = ['pooling']", "'pooling' is not KEY=VALUE"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(embed, corpus, settings, text, message):
    settings(text)
    done = embed("corpus.jsonl", "--config", "run.toml")
    assert done.exit_code == 2, done.stderr
    assert message in done.stderr


def test_a_name_in_a_list_may_hold_a_comma(embed, folder, settings):
    write(folder / "corpus.jsonl", [{"text": "one", "a,b": 1, "c": 2}])
    settings('columns = ["a,b"]')
    table = table_of(embed("corpus.jsonl", "--config", "run.toml"))
    assert table.column_names[:2] == ["a,b", "embedding"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "run.toml: cannot be read: No such file"), (b"\xff\xfe", "run.toml: not a TOML file")],
)
def test_a_file_that_cannot_be_read_is_told(embed, corpus, folder, content, message):
    if content is not None:
        (folder / "run.toml").write_bytes(content)
    done = embed("corpus.jsonl", "--config", "run.toml")
    assert done.exit_code == 2
    assert message in done.stderr
