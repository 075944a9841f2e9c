"""Which import pulls in what, seen in a fresh interpreter."""

import importlib
import json
import subprocess
import sys

import pytest

from tests.unmeasured import unmeasured

HEAVY = {"torch", "transformers", "pyarrow"}

# Prints the heavy modules that are loaded after the command line did its work.
RUN_AND_LIST = f"""
import sys
from poolembed.__main__ import main
sys.argv = ["poolembed", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print("LOADED", end.code, *sorted({HEAVY} & set(sys.modules)))
"""

# Imports every module of a room (or of the package, given no room) while some libraries cannot be found.
IMPORT_ALL = """
import importlib, pkgutil, sys
room, *blocked = sys.argv[1:]
for name in blocked:
    sys.modules[name] = None
package = importlib.import_module(room)
for module in pkgutil.walk_packages(package.__path__, f"{room}."):
    importlib.import_module(module.name)
print("IMPORTED")
"""


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=unmeasured(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("--help", 0),
        ("--version", 0),
        ("embed --help", 0),
        ("embed", 2),
        ("embed x.jsonl --no-such-option", 2),
        ("embed x.jsonl --max-length 0", 2),
    ],
)
def test_help_and_bad_options_load_no_heavy_library(line, code):
    done = python(RUN_AND_LIST, *line.split())
    assert done.stdout.splitlines()[-1].split() == ["LOADED", str(code)], done.stderr


def test_the_list_of_heavy_libraries_can_be_seen_when_they_load():
    done = python(f"import pyarrow, torch\n{RUN_AND_LIST}", "--help")
    assert done.stdout.splitlines()[-1].split() == ["LOADED", "0", "pyarrow", "torch"]


@pytest.mark.parametrize(
    ("room", "blocked"),
    [
        ("poolembed", []),
        ("poolembed.cli", ["torch", "transformers", "tokenizers", "pyarrow"]),
        ("poolembed.io", ["torch", "transformers", "tokenizers", "click", "tqdm"]),
        ("poolembed.poolers", ["transformers", "tokenizers", "pyarrow", "click", "tqdm"]),
        ("poolembed.runner", ["pyarrow", "click"]),
    ],
)
def test_every_module_of_a_room_imports_without_the_other_rooms_libraries(room, blocked):
    done = python(IMPORT_ALL, room, *blocked)
    assert done.stdout == "IMPORTED\n", done.stderr


@pytest.mark.parametrize(
    ("command", "family"),
    [
        ("embed", "bert-seqcls"),
        ("classify", "bert-mean"),
        ("token-embed", "bert-seqcls"),
        ("token-classify", "bert-mean"),
        ("sparse", "bert-mean"),
        ("reward", "bert-mean"),
        ("score", "bert-seqcls"),
        ("score --max-query-tokens 9", "bert-mean"),
        ("score --dimensions 8", "bert-mean"),
        ("score --dimensions 8", "bert-crossencoder"),
        ("score --query-prompt-name none", "bert-mean"),
        ("rerank", "bert-tokencls"),
        ("rerank --max-document-tokens 512", "bert-crossencoder"),
    ],
)
def test_what_a_model_cannot_do_is_known_without_torch(command, family, shared, tmp_path):
    row = {"text": "one", "query": "one", "document": "two", "documents": ["two"]}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    model = str(shared / "zoo" / "models" / family)
    text_field = [] if command.startswith(("score", "rerank")) else ["--text-field", "text"]
    done = python(
        RUN_AND_LIST, *command.split(), str(tmp_path / "corpus.jsonl"), "--model", model, *text_field
    )
    assert done.stdout.splitlines()[-1].split() == ["LOADED", "2", "pyarrow"], done.stderr


@pytest.mark.parametrize("package", ["poolembed", "poolembed.model", "poolembed.runner"])
def test_names_that_are_imported_late_are_all_there_and_no_others(package):
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = module.nothing_of_that_name
