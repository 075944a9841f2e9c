"""A model that is fetched on the way: its bar is for a person at a terminal, unless they want quiet."""

import os
import pty
import subprocess
import sys
import termios

import pytest

from tests.runner.hub import serving
from tests.unmeasured import unmeasured

pytestmark = pytest.mark.slow


def shown_on_a_terminal(command, folder, environment):
    """What a command writes to standard error when that is a terminal."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 100))  # a bar needs room
    with subprocess.Popen(
        command, cwd=folder, env=environment, stderr=follower, stdin=subprocess.DEVNULL
    ) as run:
        os.close(follower)
        shown = b""
        while True:
            try:
                block = os.read(leader, 65536)
            except OSError:  # how Linux says that nobody writes to the terminal any more
                break
            if not block:
                break
            shown += block
    os.close(leader)
    assert run.returncode == 0, shown.decode()
    return shown


@pytest.mark.parametrize(
    "options", [[], ["--quiet"], ["--log-format", "json"]], ids=["plain", "quiet", "json"]
)
def test_quiet_and_json_hide_the_bar_of_a_download(root, models, folder, corpus, options):
    files = {
        str(path.relative_to(models / "bert-mean")): path.read_bytes()
        for path in (models / "bert-mean").rglob("*")
        if path.is_file()
    }
    environment = {
        name: value for name, value in unmeasured().items() if not name.startswith(("HF_", "TRANSFORMERS_"))
    }
    with serving({"org/model": files}) as hub:
        environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "hf"), "PYTHONPATH": str(root)}
        command = [
            sys.executable,
            "-m",
            "poolembed",
            "embed",
            "corpus.jsonl",
            "--model",
            "org/model",
            *options,
        ]
        shown = shown_on_a_terminal(command, folder, environment)
    if not options:
        assert b"\r" in shown.replace(b"\r\n", b"\n")
        assert b"etching" in shown or b"ownload" in shown
    elif options == ["--quiet"]:
        assert shown == b""
    else:
        assert all(line.startswith(b"{") for line in shown.splitlines())
