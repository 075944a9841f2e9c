"""Where the output goes, and every reason to refuse it before work starts."""

import os
from pathlib import Path

import pytest

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import ConfigError, OutputError
from poolembed.io import plan_output


def plan(*paths, output=None, overwrite=False, suffix="embed"):
    inputs = InputConfig(paths=tuple(map(str, paths)))
    return plan_output(
        OutputConfig(output=None if output is None else str(output), overwrite=overwrite), inputs, suffix
    )


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz", "corpus.ndjson", "corpus.parquet"])
def test_the_default_stands_next_to_the_input(write, name):
    path = write(name, {"text": "x"})
    target = plan(path)
    assert (target.path, target.in_parts) == (path.with_name("corpus.embed.parquet"), False)
    assert target.rejects == path.with_name("corpus.embed.parquet.rejects.jsonl")


def test_the_suffix_is_that_of_the_command(write):
    assert plan(write("a.jsonl"), suffix="score").path.name == "a.score.parquet"


def test_a_directory_gives_its_name_to_a_file_beside_it(write, tmp_path):
    write("texts/a.jsonl", {"text": "x"})
    assert plan(tmp_path / "texts").path == tmp_path / "texts.embed.parquet"
    assert plan(f"{tmp_path}/texts/").path == tmp_path / "texts.embed.parquet"


def test_the_current_directory_has_a_name(write, tmp_path):
    write("texts/a.jsonl", {"text": "x"})
    assert plan(f"{tmp_path}/texts/../texts/.").path == tmp_path / "texts.embed.parquet"


def test_a_glob_of_one_file_counts_as_that_file(write, tmp_path):
    write("a.jsonl", {"text": "x"})
    assert plan(tmp_path / "*.jsonl").path == tmp_path / "a.embed.parquet"


def test_several_inputs_and_standard_input_need_a_name(write, tmp_path):
    first, second = write("a.jsonl"), write("b.jsonl")
    for paths in [(first, second), (tmp_path / "*.jsonl",), ("-",), (first, "-")]:
        with pytest.raises(ConfigError, match="gives no name to the output") as caught:
            plan(*paths)
        assert caught.value.hint == "name it with -o FILE.parquet or -o DIRECTORY/"
        assert plan(*paths, output=tmp_path / "out.parquet").path == tmp_path / "out.parquet"


@pytest.mark.parametrize("name", ["out/", "out"])
def test_a_directory_that_exists_gets_parts(write, tmp_path, name):
    path = write("a.jsonl")
    (tmp_path / "out").mkdir()
    target = plan(path, output=f"{tmp_path}/{name}")
    assert (target.path, target.in_parts, target.rejects) == (
        tmp_path / "out",
        True,
        tmp_path / "out.rejects.jsonl",
    )


def test_a_new_name_with_a_slash_is_a_directory_of_parts(write, tmp_path):
    target = plan(write("a.jsonl"), output=f"{tmp_path}/new/")
    assert target.in_parts
    assert not target.path.exists()


def test_a_directory_may_be_named_like_a_file(write, tmp_path):
    assert plan(write("a.jsonl"), output=f"{tmp_path}/new.parquet/").in_parts


@pytest.mark.parametrize("name", ["out", "out.csv", "out.parquet.gz", "-"])
def test_another_format_is_refused(write, tmp_path, name):
    with pytest.raises(ConfigError, match=r"must end in \.parquet"):
        plan(write("a.jsonl"), output=name)


def test_an_empty_name_is_not_the_current_directory(write):
    with pytest.raises(ConfigError, match="the name of the output is empty"):
        plan(write("a.jsonl"), output="")


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_input_is_never_replaced(write, tmp_path, overwrite):
    path = write("a.parquet", "x")
    with pytest.raises(OutputError, match="is an input"):
        plan(path, output=path, overwrite=overwrite)


def test_an_input_is_known_under_another_name(write, tmp_path):
    path = write("in/a.parquet", "x")
    (tmp_path / "link").symlink_to(tmp_path / "in")
    with pytest.raises(OutputError, match="is an input"):
        plan(path, output=tmp_path / "link" / "a.parquet", overwrite=True)


def test_parts_that_are_read_are_not_replaced(write, tmp_path):
    part = write("out/part-00000.parquet", "x")
    with pytest.raises(OutputError, match="is an input"):
        plan(part, output=tmp_path / "out", overwrite=True)


def test_an_input_that_has_the_name_of_the_rejects_is_not_replaced(write, tmp_path):
    path = write("out.parquet.rejects.jsonl", {"text": "x"})
    with pytest.raises(OutputError, match="is an input"):
        plan(path, output=tmp_path / "out.parquet")


@pytest.mark.parametrize("name", ["no/out.parquet", "no/out/"])
def test_a_missing_folder_is_refused(write, tmp_path, name):
    with pytest.raises(OutputError, match="the folder for the output does not exist"):
        plan(write("a.jsonl"), output=f"{tmp_path}/{name}")


def test_a_default_name_that_is_a_directory_is_refused(write, tmp_path):
    path = write("a.jsonl")
    (tmp_path / "a.embed.parquet").mkdir()
    with pytest.raises(OutputError, match="is a directory"):
        plan(path, overwrite=True)


def test_parts_into_a_file_are_refused(write, tmp_path):
    path, other = write("a.jsonl"), write("b.txt")
    with pytest.raises(OutputError, match="is not a directory"):
        plan(path, output=f"{other}/", overwrite=True)


@pytest.mark.parametrize("name", ["out.parquet", "out/"])
def test_a_folder_that_cannot_be_written_to_is_refused(write, tmp_path, name):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):  # root may write everywhere but where nobody can
        folder = Path("/proc/sys")
    if not folder.is_dir() or os.access(folder, os.W_OK):
        pytest.skip("there is no folder that this user cannot write to")
    with pytest.raises(OutputError, match="cannot be written to"):
        plan(write("a.jsonl"), output=f"{folder}/{name}")


def test_a_name_too_long_is_an_output_error(write):
    with pytest.raises(OutputError, match="File name too long"):
        plan(write("a.jsonl"), output="x" * 5000 + ".parquet")


def test_nothing_is_created(write, tmp_path):
    path = write("a.jsonl")
    plan(path)
    plan(path, output=f"{tmp_path}/new/")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.jsonl"]
