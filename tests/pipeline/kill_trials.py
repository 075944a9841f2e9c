"""Kills runs at chosen moments; a process of its own, so that torch is imported once for all trials.

    python -m tests.pipeline.kill_trials FOLDER ARGUMENTS

Reads a line for each trial: the name of a signal and a number N. A child runs the job and gets the
signal from itself as it touches the file system for the N-th time below FOLDER, with 0 never. Answers with
the child's exit status and the number of times it touched the file system.
"""

import os
import signal
import sys

import poolembed.model
import poolembed.runner.load  # noqa: F401 - imported before the forks
from poolembed.cli.group import cli

EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


def child(folder: str, arguments: list[str], number: int, at: int, tell: int) -> None:
    """Run the command, and send itself a signal at the chosen moment."""
    touched = 0

    def hook(event: str, values: tuple[object, ...]) -> None:
        nonlocal touched
        if event not in EVENTS or not str(values[0]).startswith(folder):
            return
        touched += 1
        if touched == at:
            os.kill(os.getpid(), number)

    sys.addaudithook(hook)
    try:
        cli(arguments, standalone_mode=True)
    except SystemExit as ended:
        os.write(tell, str(touched).encode())
        os._exit(ended.code if isinstance(ended.code, int) else 0)


def main() -> None:
    """Run the trials that standard input asks for."""
    folder, *arguments = sys.argv[1:]
    for line in sys.stdin:
        name, at = line.split()
        read, write = os.pipe()
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            child(folder, arguments, signal.Signals[name], int(at), write)
        os.close(write)
        touched = os.read(read, 64).decode() or "0"
        os.close(read)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        sys.stdout.write(f"{status} {touched}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
