"""From the user's paths to files: directories, globs, near misses, and what is not read silently."""

import gzip
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.errors import ConfigError, InputError
from poolembed.io.inputs import find_inputs


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".parquet"):
            pq.write_table(pa.table({"text": ["x"]}), path)
        else:
            path.write_text('{"text": "x"}\n', encoding="utf-8")


def own_output(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([("text", pa.string())], metadata={"poolembed.model": "m"})
    pq.write_table(pa.table({"text": ["x"]}, schema=schema), path)


def names(*paths: Path | str, below: Path) -> list[str]:
    found = find_inputs([str(path) for path in paths]).files
    return [str(file.path.relative_to(below)) for file in found]


def test_files_are_read_in_the_order_given(tmp_path):
    touch(tmp_path, "b.jsonl", "a.parquet", "c.NDJSON", "d.jsonl.gz")
    order = ["b.jsonl", "a.parquet", "d.jsonl.gz", "c.NDJSON"]
    assert names(*[tmp_path / name for name in order], below=tmp_path) == order


def test_a_directory_gives_all_supported_files_below_it_by_name(tmp_path):
    touch(tmp_path, "b.jsonl", "a/z.parquet", "a/y.ndjson", "c.txt", "README.md", "d.jsonl.gz", "_SUCCESS")
    assert names(tmp_path, below=tmp_path) == ["a/y.ndjson", "a/z.parquet", "b.jsonl", "d.jsonl.gz"]


def test_hidden_files_and_folders_are_passed_over(tmp_path):
    touch(tmp_path, "a.jsonl", ".b.jsonl", ".cache/c.jsonl", "d/.e/f.jsonl")
    assert names(tmp_path, below=tmp_path) == ["a.jsonl"]


def test_outputs_of_earlier_runs_in_a_directory_are_not_read_and_told(tmp_path):
    touch(tmp_path, "a.jsonl", "a.embed.parquet.rejects.jsonl", "b.parquet")
    own_output(tmp_path / "a.embed.parquet")
    found = find_inputs([str(tmp_path)])
    assert [file.path.name for file in found.files] == ["a.jsonl", "b.parquet"]
    assert [path.name for path in found.skipped] == ["a.embed.parquet", "a.embed.parquet.rejects.jsonl"]


def test_outputs_of_earlier_runs_are_read_when_they_are_named(tmp_path):
    own_output(tmp_path / "a.parquet")
    assert names(tmp_path / "a.parquet", below=tmp_path) == ["a.parquet"]
    assert names(tmp_path / "*.parquet", below=tmp_path) == ["a.parquet"]


def test_a_directory_of_nothing_but_outputs_says_so(tmp_path):
    own_output(tmp_path / "part-00000.parquet")
    with pytest.raises(InputError, match="holds no input") as caught:
        find_inputs([str(tmp_path)])
    assert "1 outputs of earlier runs" in caught.value.hint


def test_arrow_outputs_of_earlier_runs_are_passed_over_and_compressed_files_are_read(tmp_path):
    for name, metadata in (("a.arrow", {"poolembed.model": "m"}), ("b.arrow", {"other": "m"})):
        table = pa.table({"text": ["x"]}).replace_schema_metadata(metadata)
        with pa.ipc.new_file(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
    touch(tmp_path, "c.parquet")
    (tmp_path / "d.parquet.gz").write_bytes(gzip.compress((tmp_path / "c.parquet").read_bytes()))
    found = find_inputs([str(tmp_path)])
    assert [file.path.name for file in found.files] == ["b.arrow", "c.parquet", "d.parquet.gz"]
    assert found.skipped == (tmp_path / "a.arrow",)


def test_an_empty_directory_lists_what_is_supported(tmp_path):
    with pytest.raises(InputError, match="holds no input") as caught:
        find_inputs([str(tmp_path)])
    assert ".jsonl" in caught.value.hint


def test_links_to_folders_are_not_followed(tmp_path):
    touch(tmp_path, "in/a.jsonl", "other/b.jsonl")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "other")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    assert names(tmp_path / "in", below=tmp_path) == ["in/a.jsonl"]


def test_a_damaged_parquet_file_in_a_directory_is_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match=r"a\.parquet: cannot be read as Parquet"):
        find_inputs([str(tmp_path)])


def test_a_glob_gives_supported_files_by_name(tmp_path):
    touch(tmp_path, "b.jsonl", "a.jsonl", "a.md", ".c.jsonl", "d/e.jsonl", "d/f/g.jsonl")
    assert names(tmp_path / "*", below=tmp_path) == ["a.jsonl", "b.jsonl"]
    assert names(tmp_path / "**" / "*.jsonl", below=tmp_path) == [
        "a.jsonl",
        "b.jsonl",
        "d/e.jsonl",
        "d/f/g.jsonl",
    ]
    assert names(tmp_path / "[b].jsonl", below=tmp_path) == ["b.jsonl"]


def test_a_file_whose_name_looks_like_a_glob_is_that_file(tmp_path):
    touch(tmp_path, "a[1].jsonl", "a1.jsonl", "b*.jsonl", "bc.jsonl", "d[1]/e.jsonl", "d1/f.jsonl")
    assert names(tmp_path / "a[1].jsonl", tmp_path / "b*.jsonl", below=tmp_path) == ["a[1].jsonl", "b*.jsonl"]
    assert names(tmp_path / "d[1]", below=tmp_path) == ["d[1]/e.jsonl"]


@pytest.mark.parametrize(
    ("pattern", "what"), [("*.jsonl", "nothing"), ("*.md", "1 names, none a readable file")]
)
def test_a_glob_without_input_is_an_error(tmp_path, pattern, what):
    touch(tmp_path, "README.md")
    with pytest.raises(InputError, match=f"the pattern matches {what}"):
        find_inputs([str(tmp_path / pattern)])


def test_a_missing_file_suggests_a_near_miss(tmp_path):
    touch(tmp_path, "corpus.jsonl")
    with pytest.raises(InputError, match="no such file or directory") as caught:
        find_inputs([str(tmp_path / "corups.jsonl")])
    assert caught.value.hint == f"did you mean {tmp_path / 'corpus.jsonl'}?"


def test_a_missing_file_unlike_all_others_lists_what_is_supported(tmp_path):
    with pytest.raises(InputError) as caught:
        find_inputs([str(tmp_path / "corpus.jsonl")])
    assert ".parquet" in caught.value.hint


def test_a_file_in_a_missing_folder_names_the_folder(tmp_path):
    with pytest.raises(InputError) as caught:
        find_inputs([str(tmp_path / "no" / "corpus.jsonl")])
    assert caught.value.hint == f"the directory {tmp_path / 'no'} does not exist"


@pytest.mark.parametrize("name", ["a.md", "a.json", "a.xls", "a", "a.gz", "a.jsonl.zip", "jsonl"])
def test_another_kind_of_file_is_refused_with_the_supported_ones(tmp_path, name):
    touch(tmp_path, name)
    with pytest.raises(InputError, match="not a kind of file") as caught:
        find_inputs([str(tmp_path / name)])
    assert ".jsonl, .ndjson, .parquet, .arrow, .feather, .ipc, .csv, .tsv, .txt" in caught.value.hint


def test_a_pipe_cannot_be_read_twice_and_is_refused(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(InputError, match="not a regular file") as caught:
        find_inputs([str(tmp_path / "a.jsonl")])
    assert "standard input" in caught.value.hint


def test_an_empty_name_is_not_the_current_directory():
    with pytest.raises(InputError, match="the name of an input is empty"):
        find_inputs([""])


def test_a_name_too_long_for_the_file_system_is_an_input_error():
    with pytest.raises(InputError, match="File name too long"):
        find_inputs(["x" * 5000 + ".jsonl"])


def test_a_folder_that_cannot_be_listed_is_not_passed_over(tmp_path):
    touch(tmp_path, "a.jsonl")
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(25):  # deeper than any path may be long
        os.mkdir("d" * 200, dir_fd=folder)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        find_inputs([str(tmp_path)])


@pytest.mark.parametrize("again", ["a.jsonl", "../in/a.jsonl", "link.jsonl", "", "*.jsonl"])
def test_a_file_given_twice_is_refused(tmp_path, again):
    touch(tmp_path, "in/a.jsonl")
    if again == "link.jsonl":
        (tmp_path / "in" / again).symlink_to("a.jsonl")
    with pytest.raises(ConfigError, match="is given twice"):
        find_inputs([str(tmp_path / "in" / "a.jsonl"), str(tmp_path / "in" / again)])


def test_standard_input_is_a_file_without_a_path():
    (file,) = find_inputs(["-"]).files
    assert (file.path, file.label, file.is_stdin) == (None, "<stdin>", True)
