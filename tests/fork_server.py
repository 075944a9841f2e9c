"""A process that has imported the heavy libraries, and forks for a command instead of starting Python anew.

    python -m tests.fork_server ADDRESS                 serves at a Unix socket; writes a line when ready
    python -IS tests/fork_server.py ADDRESS COMMAND...  does what `python COMMAND...` does, in a fork

A command has the folder, environment and streams of the process that asks for it, which ends as the command
ends. The server only imports: it never computes, as threads do not survive a fork. A command whose
environment differs in what libraries read while they are imported, or with an option that is unknown here,
gets a new interpreter after all. What a fork covers of the package is not measured. Signals to the process
that asks are not handed on.
"""

import json
import os
import signal
import socket
import sys
from pathlib import Path

# A command has the same, or it gets a new interpreter.
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).resolve().parents[1]), "OMP_NUM_THREADS": "1"}
IMPORTED = [
    *("pyarrow.dataset", "pyarrow.parquet", "poolembed.cli.group", "poolembed.pipeline"),
    *("poolembed.model.pooling_model", "poolembed.runner.load", "transformers.models.bert.tokenization_bert"),
]
READ_AT_IMPORT = (
    "HF_",
    "MALLOC_",
    "MKL_",
    "OMP_",
    "PYTHON",
    "TOKENIZERS_",
    "TORCH_",
    "TRANSFORMERS_",
)


def ask(address: str, command: list[str]) -> None:
    """Have a command run, and end as it does."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        request = {"command": command, "folder": str(Path.cwd()), "environment": dict(os.environ)}
        socket.send_fds(connection, [b"\n"], [0, 1, 2])
        connection.sendall(json.dumps(request).encode() + b"\n")
        status = int(connection.makefile().read())
    if status < 0:
        if status != -signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def serve(address: str) -> None:
    """Import, then fork for every connection until standard input ends; returns in a fork as it is done."""
    import contextlib
    import gc
    import select
    from importlib import import_module

    own = dict(os.environ)  # libraries add to it while they are imported
    for name in IMPORTED:
        import_module(name)
    gc.freeze()  # so that no collection in a fork copies the pages of what is imported
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                attend(connection, own)
                return
            connection.close()
            # Those that have ended since the last time: no zombies, and their time counts as this process's.
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def attend(connection: socket.socket, own: dict[str, str]) -> None:
    """Fork once more for the command, and tell how it ended; returns in the fork that has run it."""
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().readline())
    command = os.fork()
    if command == 0:
        connection.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(request["folder"])
        if read_at_import(request["environment"]) != read_at_import(own):
            start_anew(request["command"], request["environment"])
        for name in own:
            os.environ.pop(name, None)
        os.environ.update(request["environment"])
        run(request["command"])
        return
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(command, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def run(command: list[str]) -> None:
    """Do what `python COMMAND...` does; leaves as that does."""
    import runpy
    import warnings

    if command[:2] == ["-W", "error"]:
        warnings.simplefilter("error")
        command = command[2:]
    match command:
        case ["-m", module, *arguments]:
            sys.path[0], sys.argv = str(Path.cwd()), [module, *arguments]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *arguments]:
            sys.path[0], sys.argv = "", ["-c", *arguments]
            exec(code, {"__name__": "__main__"})
        case [script, *arguments] if not script.startswith("-"):
            sys.path[0], sys.argv = str(Path(script).parent), [script, *arguments]
            runpy.run_path(script, run_name="__main__")
        case _:
            start_anew(command, dict(os.environ))


def start_anew(command: list[str], environment: dict[str, str]) -> None:
    """Become a new interpreter that runs the command."""
    os.execve(sys.executable, [sys.executable, *command], environment)


def read_at_import(environment: dict[str, str]) -> dict[str, str]:
    """The variables that libraries read while they are imported."""
    return {name: value for name, value in environment.items() if name.startswith(READ_AT_IMPORT)}


if __name__ == "__main__":
    address, *command = sys.argv[1:]
    ask(address, command) if command else serve(address)
