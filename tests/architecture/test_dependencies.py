"""Every dependency has a line that says what it is for, and a tested version."""

import re
import tomllib

import pytest


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def required(root):
    """Names of the packages in pyproject.toml, by extra; '' has those that are always installed."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    return {
        extra: {normal(re.match(r"[\w.-]+", line).group()) for line in lines}
        for extra, lines in lists.items()
    }


@pytest.fixture(scope="module")
def documented(root):
    """Names of the packages in docs/dependencies.md, by the extra in the table's heading."""
    tables, extra = {}, None
    for line in (root / "docs" / "dependencies.md").read_text("utf-8").splitlines():
        if heading := re.match(r"## (?:.*`(\w+)`|.+)", line):
            extra = heading[1] or ""
        elif row := re.match(r"\| `([\w.-]+)`", line):
            tables.setdefault(extra, []).append(normal(row[1]))
    return tables


def test_every_dependency_is_documented_once_and_nothing_else_is(required, documented):
    assert {extra: sorted(names) for extra, names in required.items()} == {
        extra: sorted(names) for extra, names in documented.items()
    }


def test_every_dependency_has_a_tested_version(root, required):
    lines = (root / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9-]+==[\w.]+", line)] == []
    pinned = {line.partition("==")[0] for line in pins}
    assert set().union(*required.values()) - pinned == set()
