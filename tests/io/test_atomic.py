"""Files appear whole or not at all."""

import os
import sys
from pathlib import Path

import pytest

from poolembed.errors import OutputError
from poolembed.io.atomic import AtomicFile, sync_folder, translated


def test_nothing_has_the_final_name_before_it_is_placed(tmp_path):
    path = tmp_path / "a.bin"
    file = AtomicFile(path, may_replace=True)
    file.handle.write(b"new")
    file.finish()
    assert not path.exists()
    assert file.place() == path
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.bin"]  # noqa: PTH208


def test_the_temporary_file_is_hidden_and_beside_the_final_one(tmp_path):
    AtomicFile(tmp_path / "a.bin", may_replace=True).finish()
    (name,) = os.listdir(tmp_path)  # noqa: PTH208
    assert name == f".a.bin.tmp-{os.getpid()}"


def test_an_old_file_stays_whole_until_then(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    file = AtomicFile(path, may_replace=True)
    file.handle.write(b"new")
    file.finish()
    assert path.read_bytes() == b"old"
    file.place()
    assert path.read_bytes() == b"new"


def test_a_name_that_was_taken_meanwhile_is_kept(tmp_path):
    file = AtomicFile(tmp_path / "a.bin", may_replace=False)
    file.finish()
    (tmp_path / "a.bin").write_bytes(b"other")
    with pytest.raises(OutputError, match="appeared while it was being written"):
        file.place()
    assert (tmp_path / "a.bin").read_bytes() == b"other"


def test_what_is_discarded_leaves_nothing_and_may_be_discarded_again(tmp_path):
    file = AtomicFile(tmp_path / "a.bin", may_replace=True)
    file.handle.write(b"new")
    file.discard()
    file.discard()
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_discarding_what_was_placed_keeps_it(tmp_path):
    file = AtomicFile(tmp_path / "a.bin", may_replace=True)
    file.finish()
    file.place()
    file.discard()
    assert (tmp_path / "a.bin").exists()


def test_a_folder_that_is_missing_is_an_output_error(tmp_path):
    with pytest.raises(OutputError, match=r"a\.bin: cannot be written: No such file or directory"):
        AtomicFile(tmp_path / "no" / "a.bin", may_replace=True)


def test_a_target_that_became_a_directory_is_an_output_error(tmp_path):
    file = AtomicFile(tmp_path / "a.bin", may_replace=True)
    file.finish()
    (tmp_path / "a.bin").mkdir()
    with pytest.raises(OutputError, match="Is a directory"):
        file.place()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told_with_what_to_do():
    with (
        pytest.raises(OutputError, match="No space left on device") as caught,
        translated(Path("out.parquet")),
        Path("/dev/full").open("wb", buffering=0) as handle,
    ):
        handle.write(b"x")
    assert caught.value.hint == "free some space, or write elsewhere with -o"


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (PermissionError(13, "Permission denied"), "write elsewhere with -o"),
        (OSError(5, "Input/output error"), None),
    ],
)
def test_other_failures_are_told_with_their_reason(error, hint):
    with pytest.raises(OutputError, match=error.strerror) as caught, translated(Path("out.parquet")):
        raise error
    assert caught.value.hint == hint
    assert caught.value.__cause__ is error


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that cannot sync folders")
def test_a_file_system_that_cannot_sync_folders_is_no_failure():
    sync_folder(Path("/proc"))


def test_a_folder_that_is_gone_is_a_failure(tmp_path):
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "no")
