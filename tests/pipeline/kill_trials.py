"""Runs a command that gets a signal at a chosen moment.

    python -m tests.pipeline.kill_trials FOLDER SIGNAL N ARGUMENTS

The process sends the signal to itself as it touches the file system for the N-th time below FOLDER, with 0
never. It prints how often it touched the file system, if it lives to tell.
"""

import os
import signal
import sys
import threading

from poolembed.cli.group import cli

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


def main(folder: str, name: str, at: int, arguments: list[str]) -> None:
    """Run the command, and send this process a signal at the chosen moment."""
    touched = 0

    def hook(event: str, values: tuple[object, ...]) -> None:
        nonlocal touched
        if event not in EVENTS or not str(values[0]).startswith(folder):
            return
        touched += 1
        if touched == at:
            os.kill(os.getpid(), signal.Signals[name])

    # What coverage measures here would be lost at the end, and takes as long as the run.
    sys.settrace(None)
    threading.settrace(None)
    sys.addaudithook(hook)
    try:
        cli(arguments)
    except SystemExit as ended:
        os.write(1, str(touched).encode())
        # At once: what Python does at its end takes longer than the run.
        os._exit(ended.code if isinstance(ended.code, int) else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
