"""One run at a time for an output, and none that is locked out by a dead one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from poolembed.errors import LockedError
from poolembed.io.store.lock import take_lock

ROOT = Path(__file__).parents[3]
HOLD = """
import sys, time
from pathlib import Path
from poolembed.io.store.lock import take_lock
lock = take_lock(Path(sys.argv[1]), Path("out.parquet"))
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "job")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_run_is_told_who_holds_the_output(holder, tmp_path):
    with pytest.raises(LockedError) as caught:
        take_lock(tmp_path / "job", Path("out.parquet"))
    assert caught.value.message == f"out.parquet: another run is writing it (process {holder.pid})"
    assert caught.value.exit_code == 75


def test_a_killed_run_holds_nothing(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    lock = take_lock(tmp_path / "job", Path("out.parquet"))
    assert (tmp_path / "job" / "lock").read_text() == f"{os.getpid()}\n"
    lock.release(remove=False)


def test_a_released_lock_can_be_taken_again_in_the_same_process(tmp_path):
    for remove in (False, True, False):
        lock = take_lock(tmp_path / "job", Path("out.parquet"))
        with pytest.raises(LockedError):
            take_lock(tmp_path / "job", Path("out.parquet"))
        lock.release(remove=remove)
        assert (tmp_path / "job" / "lock").exists() is not remove
