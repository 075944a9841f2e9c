"""Sizes, names and places of files."""

import re
import statistics
import subprocess
import tomllib

import pytest

import poolembed

MAX_LINES = 300
MAX_MEDIAN_LINES = 120
MAX_TRACKED_BYTES = 1 << 20

# Folders of the machines this is written on; the slash stands apart so that this line is no finding.
MACHINE_PATH = re.compile(r"(?<![\w.~-])" + "/" + r"(?:work|tmp|root|home|opt)/")


@pytest.fixture(scope="module")
def modules(root):
    """Every Python file of the package, relative to the project's folder."""
    return sorted(path.relative_to(root) for path in (root / "poolembed").rglob("*.py"))


@pytest.fixture(scope="module")
def tracked(root):
    """Every file that is under version control."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [root / name for name in listed.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def num_lines(path):
    return len(path.read_text("utf-8").splitlines())


def test_no_file_is_longer_than_a_reader_takes_in(root, modules):
    long = {str(path): num_lines(root / path) for path in modules if num_lines(root / path) > MAX_LINES}
    assert long == {}


def test_half_of_the_files_are_short(root, modules):
    assert statistics.median(num_lines(root / path) for path in modules) < MAX_MEDIAN_LINES


def test_no_module_is_a_drawer_for_everything(modules):
    drawers = {"util", "utils", "helper", "helpers", "misc", "common"}
    assert [
        str(path) for path in modules if drawers & {part.removesuffix(".py") for part in path.parts}
    ] == []


def test_every_top_level_module_has_a_place_in_the_layers(root, modules):
    contracts = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    [layers] = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    placed = {name.strip() for layer in layers for name in layer.split("|")}
    present = {path.parts[1].removesuffix(".py") for path in modules} - {"__init__"}
    assert placed == present


def test_the_import_contracts_list_every_other_module(root):
    """A forbidden contract names its modules one by one; none may be missing from the list."""
    config = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    owners = {
        "torch": {"poolers", "runner"},
        "transformers": {"runner"},
        "pyarrow": {"io"},
        "click": {"cli", "__main__"},
    }
    [layers] = [contract["layers"] for contract in config["contracts"] if contract["type"] == "layers"]
    rooms = {name.strip() for layer in layers for name in layer.split("|")}
    forbidden = [contract for contract in config["contracts"] if contract["type"] == "forbidden"]
    assert {contract["forbidden_modules"][0] for contract in forbidden} == set(owners)
    for contract in forbidden:
        named = {module.removeprefix("poolembed.") for module in contract["source_modules"]}
        assert named == rooms - owners[contract["forbidden_modules"][0]], contract["name"]


def test_the_changelog_begins_with_this_version(root):
    headings = re.findall(r"^## \[?([^\]\s]+)", (root / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert released[0] == poolembed.__version__


def test_no_tracked_file_is_large(tracked):
    assert [str(path) for path in tracked if path.stat().st_size > MAX_TRACKED_BYTES] == []


def test_no_tracked_text_names_a_folder_of_somebodys_machine(tracked):
    found = []
    for path in tracked:
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path}:{number}: {line.strip()}"
            for number, line in enumerate(text.splitlines(), 1)
            if MACHINE_PATH.search(line)
        ]
    assert found == []
