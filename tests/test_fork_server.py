"""What is asked of the fork server is done as a new interpreter does it."""

import os
import subprocess
import sys
from importlib import import_module

import pytest

from tests.fork_server import ENVIRONMENT

TELL = """
import os, sys
os.write(2, b"told")
print(os.getcwd(), sys.argv[1:], os.environ["COLOUR"], "HOME" in os.environ, sys.stdin.read())
sys.exit(7)
"""


@pytest.fixture(params=["new", "forked"])
def run(request, python, tmp_path):
    """Run a command in a folder of its own, in a new interpreter or in a fork."""
    start = [sys.executable] if request.param == "new" else python
    own = {name: value for name, value in os.environ.items() if name != "HOME"} | ENVIRONMENT

    def run(*command, **environment):
        return subprocess.run(
            [*start, *command],
            cwd=tmp_path,
            env=own | environment,
            input="typed",
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_a_command_has_the_folder_environment_and_streams_of_who_asks(run, tmp_path):
    (tmp_path / "tell.py").write_text(TELL, "utf-8")
    for command in (["-c", TELL], ["tell.py"], ["-m", "tell"], ["-X", "dev", "-c", TELL]):
        done = run(*command, "a", "b c", COLOUR="green", PYTHONPATH=ENVIRONMENT["PYTHONPATH"])
        assert done.stdout == f"{tmp_path} ['a', 'b c'] green False typed\n"
        assert (done.returncode, done.stderr) == (7, "told")


def test_a_command_ends_as_it_would(run):
    assert run("-c", "import os; os.kill(os.getpid(), 9)").returncode == -9
    failed = run("-W", "error", "-c", "import warnings; warnings.warn('late')")
    assert (failed.returncode, failed.stderr.splitlines()[-1]) == (1, "UserWarning: late")


def test_what_is_read_at_import_is_read_again(python):
    # Libraries add to the environment of who asks; what they add needs no new interpreter.
    import_module("poolembed.runner.load")
    code = "import sys; print('torch' in sys.modules)"
    for threads, loaded in (("1", True), ("2", False)):
        done = subprocess.run(
            [*python, "-c", code],
            env=os.environ | ENVIRONMENT | {"OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        )
        assert (done.stdout, done.stderr) == (f"{loaded}\n", "")
