"""Every check, seen red: a copy of the project gets a fault, and the check that is to find it runs there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unmeasured import unmeasured

COPIED = ["poolembed", "docs", "tests/architecture", "tests/conftest.py", "tests/unmeasured.py"]
COPIED += ["pyproject.toml", "constraints.txt", "CHANGELOG.md", "README.md"]

LAYERS = "A room imports only from the rooms to its right"

IMPORTS = [
    ("poolembed/io/__init__.py", "import torch", "torch is for poolers and runner"),
    ("poolembed/pipeline/__init__.py", "def late():\n    import torch", "torch is for poolers and runner"),
    ("poolembed/poolers/__init__.py", "import transformers", "transformers is for runner"),
    ("poolembed/io/__init__.py", "import huggingface_hub", "transformers is for runner"),
    ("poolembed/cli/__init__.py", "import pyarrow", "pyarrow is for io"),
    ("poolembed/runner/__init__.py", "import pyarrow.parquet", "pyarrow is for io"),
    ("poolembed/pipeline/__init__.py", "import pyarrow", "pyarrow is for io"),
    ("poolembed/io/__init__.py", "import click", "click and tqdm are for cli"),
    ("poolembed/runner/__init__.py", "from tqdm import tqdm", "click and tqdm are for cli"),
    ("poolembed/io/__init__.py", "import poolembed.runner", LAYERS),
    ("poolembed/runner/__init__.py", "import poolembed.io", LAYERS),
    ("poolembed/poolers/__init__.py", "import poolembed.runner", LAYERS),
    ("poolembed/pipeline/__init__.py", "import poolembed.cli", LAYERS),
    ("poolembed/errors.py", "import poolembed.tasks", LAYERS),
    ("poolembed/extra.py", "'''A room without a place.'''", LAYERS),
]

LINT = [
    ("poolembed/cli/planted.py", "import torch", "TID253"),
    ("poolembed/pipeline/planted.py", "import pyarrow", "TID253"),
    ("poolembed/io/planted.py", "from . import names", "TID252"),
    ("poolembed/io/planted.py", "def public() -> None:\n    pass", "D103"),
    ("poolembed/io/planted.py", "def _typeless(value):\n    pass", "ANN001"),
    ("poolembed/io/planted.py", "try:\n    pass\nexcept Exception:\n    pass", "BLE001"),
    ("poolembed/io/planted.py", "print(1)", "T201"),
    ("poolembed/io/planted.py", "def _flag(on: bool) -> None:\n    pass", "FBT001"),
    (
        "poolembed/io/planted.py",
        f"def _f({', '.join(f'a{i}: int' for i in range(7))}) -> None:\n    pass",
        "PLR0913",
    ),
    ("poolembed/io/planted.py", "def _long() -> None:\n" + "    id(1)\n" * 41, "PLR0915"),
    ("poolembed/io/planted.py", "def _maze(a: int) -> None:\n" + "    if a:\n        a = 0\n" * 9, "C901"),
    ("tests/planted.py", "import os", "F401"),
]

OWN = [
    ("poolembed/io/planted.py", "\n" * 301, "test_layout.py::test_no_file_is_longer_than_a_reader_takes_in"),
    ("poolembed/io/utils.py", "", "test_layout.py::test_no_module_is_a_drawer_for_everything"),
    ("poolembed/extra.py", "", "test_layout.py::test_every_top_level_module_has_a_place_in_the_layers"),
    (
        "poolembed/__init__.py",
        "__version__ = '9'",
        "test_layout.py::test_the_changelog_begins_with_this_version",
    ),
    ("docs/large.bin", "x" * 1048577, "test_layout.py::test_no_tracked_file_is_large"),
    (
        "docs/planted.md",
        "See " + "/" + "work/main.",
        "test_layout.py::test_no_tracked_text_names_a_folder_of_somebodys_machine",
    ),
    (
        "poolembed/io/planted.py",
        'def public(a: int, b: int) -> None:\n    """Do."""',
        "test_docstrings.py::test_a_public_function_says_what_it_takes_returns_and_raises"
        "[poolembed/io/planted.py]",
    ),
    (
        "docs/dependencies.md",
        "| `leftpad` | nothing |",
        "test_dependencies.py::test_every_dependency_is_documented_once_and_nothing_else_is",
    ),
    (
        "poolembed/cli/embed.py",
        "embed.params = [option for option in embed.params if option.name != 'on_long']",
        "test_options.py::test_every_field_of_its_own_record_is_an_option_of_the_command[embed]",
    ),
]


@pytest.fixture
def copy(root, tmp_path):
    """A copy of what the checks look at, under version control of its own."""
    for name in COPIED:
        source = root / name
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path / name)
    return tmp_path


def plant(copy, name, text):
    with (copy / name).open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def run(copy, *command):
    """Run a tool of this interpreter's environment in the copy, which shadows an installed poolembed."""
    own = {"PYTHONPATH": str(copy), "PYTEST_ADDOPTS": "", "PYTHONDONTWRITEBYTECODE": "1"}
    environment = unmeasured() | own
    return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)


def tool(name):
    return str(Path(sys.executable).with_name(name))


def broken_contracts(copy):
    done = run(copy, tool("lint-imports"), "--no-cache")
    broken = re.findall(r"^(.+) BROKEN$", done.stdout, re.MULTILINE)
    assert (done.returncode == 0) == (not broken), done.stdout + done.stderr
    return broken


def run_tests(copy, *files):
    # The plugins take longer to load than these tests to run.
    without = [
        f"-pno:{plugin}" for plugin in ("cacheprovider", "xdist", "pytest_cov", "anyio", "hypothesispytest")
    ]
    return run(copy, sys.executable, "-m", "pytest", "-q", *without, *files)


def failed_tests(copy, *files):
    done = run_tests(copy, *files)
    return re.findall(r"^(?:FAILED|ERROR) tests/architecture/(\S+)", done.stdout, re.MULTILINE)


def test_the_import_contracts_hold_without_a_fault(copy):
    assert broken_contracts(copy) == []


@pytest.mark.parametrize(("name", "code", "contract"), IMPORTS, ids=lambda value: value[:40])
def test_a_forbidden_import_breaks_its_contract_and_no_other(copy, name, code, contract):
    plant(copy, name, code)
    assert broken_contracts(copy) == [contract]


@pytest.mark.parametrize(("name", "code", "rule"), LINT, ids=lambda value: value[:20].strip())
def test_a_breach_of_the_conventions_is_found_by_its_lint_rule(copy, name, code, rule):
    plant(copy, name, f'"""Planted."""\n\n{code}')
    done = run(copy, tool("ruff"), "check", "--no-cache", "--output-format", "concise", name)
    assert done.returncode == 1
    assert f" {rule} " in done.stdout


def test_a_file_that_is_not_formatted_is_found(copy):
    plant(copy, "poolembed/io/planted.py", "x=1")
    done = run(copy, tool("ruff"), "format", "--no-cache", "--check", "poolembed/io/planted.py")
    assert done.returncode == 1
    assert "1 file would be reformatted" in done.stdout


def test_a_reference_that_differs_from_the_help_is_found(copy):
    assert run(copy, sys.executable, "-m", "docs.generate", "--check").returncode == 0
    plant(copy, "docs/cli.md", "an option that is gone")
    done = run(copy, sys.executable, "-m", "docs.generate", "--check")
    assert (done.returncode, done.stderr) == (
        1,
        "cli.md differs from what --help says; `make docs` writes it anew\n",
    )


def test_a_wrong_type_is_found(copy):
    # Outside the package, whose imports would take minutes to read without mypy's cache.
    plant(copy, "planted.py", "x: int = 'text'\n\n\ndef untyped(a):\n    return a")
    done = run(copy, sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "planted.py")
    assert done.returncode == 1
    assert re.findall(r"\[([\w-]+)\]$", done.stdout, re.MULTILINE) == ["assignment", "no-untyped-def"]


def track(copy):
    for command in (["init", "--quiet"], ["add", "--all"]):
        assert run(copy, "git", *command).returncode == 0


@pytest.mark.slow
def test_without_a_fault_none_of_these_tests_fails(copy):
    track(copy)
    # A test of a planted file is not there yet.
    there = [f"tests/architecture/{test}" for _, _, test in OWN if "planted.py" not in test]
    done = run_tests(copy, *there)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text", "test"), OWN, ids=lambda value: value[:40].strip())
def test_a_fault_of_layout_or_docs_fails_its_own_test(copy, name, text, test):
    plant(copy, name, text)
    track(copy)
    assert failed_tests(copy, f"tests/architecture/{test}") == [test]


@pytest.mark.slow
def test_help_that_loads_torch_fails_its_own_test(copy):
    plant(copy, "poolembed/cli/__init__.py", "import torch")
    failed = failed_tests(copy, "tests/architecture/test_imports.py", "-k", "no_heavy_library and version")
    assert "test_imports.py::test_help_and_bad_options_load_no_heavy_library[--version-0]" in failed
