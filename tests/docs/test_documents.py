"""What the documents tell a reader to type is typed, and what they show is compared with what is seen.

The blocks of one document run in order in one folder, which holds a copy of examples/ and nothing else:

- `bash`: every line must succeed;
- `console`: what follows `$ ` is run, and the lines below it are the output, standard error included;
- `python`: must run without a warning;
- `text` right below one of these: its standard output.

Seconds, rates and lines of progress are not compared. `pip install` is run by .ci/run, `make` by people.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import zip_longest
from pathlib import Path

import pytest

from poolembed import errors
from tests.fork_server import ENVIRONMENT

ROOT = Path(__file__).parents[2]
WRITTEN_BY_HAND = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")})
WRITTEN_BY_HAND.remove(ROOT / "docs" / "cli.md")

FENCED = re.compile(r"^```(\w+)\n(.*?)^```$\n*", re.MULTILINE | re.DOTALL)
MEASURED = re.compile(r"[\d,.]+(?= (?:s\b|rows/s|tokens/s))|(?<=self-check )[^)]+")
PROGRESS = re.compile(r"^poolembed: .* left\n", re.MULTILINE)


def blocks(document):
    """The fenced blocks of a document as (language, content, expected output or None)."""
    found = list(FENCED.finditer(document.read_text("utf-8")))
    for block, after in zip_longest(found, found[1:]):
        language, content = block.groups()
        shown = after[2] if after and after[1] == "text" and after.start() == block.end() else None
        if language == "console":
            yield from console(content)
        elif language in ("bash", "python"):
            yield language, content, shown


def console(content):
    """The commands of a session, each with the output below it."""
    for entry in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        command, _, shown = entry.partition("\n")
        yield "bash", f"{command}\n", shown


def is_run_elsewhere(line):
    return line.startswith(("pip install", "make"))


def comparable(output):
    return MEASURED.sub("#", PROGRESS.sub("", output)).rstrip()


@pytest.fixture
def reader(tmp_path, python):
    """Somebody who types into a shell, in a folder with the examples; `poolembed` is on their path."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.parquet"))
    commands = tmp_path / ".bin"
    commands.mkdir()
    for name, command in (("python", python), ("poolembed", [*python, "-m", "poolembed"])):
        (commands / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', "utf-8")
        (commands / name).chmod(0o755)
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])

    def type_in(language, content):
        command = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [*python, "-W", "error", "-c"]
        return subprocess.run(
            [*command, content],
            cwd=tmp_path,
            env=os.environ | ENVIRONMENT | {"PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if language == "bash" else subprocess.PIPE,
            text=True,
            check=False,
        )

    return type_in


@pytest.mark.slow
@pytest.mark.usefixtures("default_model")
@pytest.mark.parametrize(
    "document",
    [document for document in WRITTEN_BY_HAND if any(blocks(document))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_what_a_document_tells_to_type_works_and_gives_what_it_shows(document, reader):
    for language, content, shown in blocks(document):
        if language == "bash":
            content = "".join(line for line in content.splitlines(True) if not is_run_elsewhere(line))
        done = reader(language, content)
        assert done.returncode == 0, f"{content}\n{done.stdout}\n{done.stderr}"
        if shown is not None:
            assert comparable(done.stdout) == comparable(shown), content


@pytest.mark.parametrize("document", WRITTEN_BY_HAND, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_only_files_and_targets_that_exist(document):
    text = document.read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)) <= targets
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_readme_has_the_two_commands_that_ci_runs():
    commands = re.findall(r"^pip install .+ && .+", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE)
    assert [command.partition(" && ")[2] for command in commands] == [
        "poolembed embed examples/corpus.jsonl",
        "pytest",
    ]


def test_the_page_on_reliability_lists_every_exit_code():
    page = (ROOT / "docs" / "reliability.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE)
    listed = [int(code) for row in rows for code in row.split(",")]
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    constants = [value for name, value in vars(errors).items() if name.startswith("EXIT_")]
    assert listed == sorted({0, *(kind.exit_code for kind in classes), *constants})
