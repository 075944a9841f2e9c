"""What a result says of where it is from."""

import subprocess

from benchmarks.machine import commit


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    return subprocess.run(
        ["git", "-C", folder, *identity, *words], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_commit_is_named_with_a_mark_for_what_is_not_in_it(tmp_path):
    git(tmp_path, "init", "--quiet")
    file, result = tmp_path / "file", tmp_path / "benchmarks" / "results" / "name.json"
    result.parent.mkdir(parents=True)
    for each in (file, result):
        each.write_text("one", "utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "one")
    name = git(tmp_path, "rev-parse", "HEAD")[:7]
    assert commit(tmp_path) == name
    result.write_text("two", "utf-8")
    assert commit(tmp_path) == name
    file.write_text("two", "utf-8")
    assert commit(tmp_path) == f"{name}+"


def test_outside_of_git_there_is_none(tmp_path):
    assert commit(tmp_path) == ""
