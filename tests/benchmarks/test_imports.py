"""What the benchmarks may import."""

import ast

import pytest


def imported(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.fixture(scope="module")
def files(root):
    found = sorted((root / "benchmarks").rglob("*.py"))
    assert len(found) > 10
    return found


def test_poolembed_is_used_as_its_users_use_it(files):
    assert {name for path in files for name in imported(path) if name.startswith("poolembed.")} == set()


def test_workers_need_nothing_of_the_harness(files):
    workers = [path for path in files if path.parent.name == "workers"]
    found = {name for path in workers for name in imported(path) if name.startswith("benchmarks")}
    assert found == {"benchmarks.workers.protocol"}


def test_no_file_is_longer_than_a_reader_takes_in(files):
    assert [path.name for path in files if len(path.read_text("utf-8").splitlines()) > 300] == []
