"""The exceptions of poolembed and the exit code each one stands for.

    PoolembedError           1   base: what happened, where, and a hint what to do
    ├── ConfigError          2   options contradict each other, a name is unknown
    ├── InputError           3   an input file, row or column cannot be read
    ├── ModelError           4   a model folder is incomplete or declares what is not supported
    ├── CapacityError        5   one row alone exceeds memory or the position limit
    ├── OutputError          6   the target exists, cannot be written or does not match
    ├── PoolingError         7   a pooler or head got what it cannot use
    │   ├── UnknownPoolingError  (also a NotImplementedError)
    │   └── PoolingStateError    (also a RuntimeError)
    ├── RejectBudgetError    8   more rows rejected or truncated than allowed
    ├── LockedError         75   another run holds the output (EX_TEMPFAIL of sysexits)
    └── UnfinishedError     75   stopped before the last row; what is done is kept (130, 143 after a signal)

Anything that is not a PoolembedError is a bug: it keeps its traceback and exits with 70.
"""

EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class PoolembedError(Exception):
    """An expected failure, told to the user in one line.

    Args:
        message: what happened and where (`corpus.jsonl:17: text is a number`).
        hint: what to do about it; None where the message says it all.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(PoolembedError, ValueError):
    """Options contradict each other or name something unknown; lists every problem at once."""

    exit_code = 2


class InputError(PoolembedError):
    """An input file, row or column cannot be read."""

    exit_code = 3


class ModelError(PoolembedError):
    """A model folder is missing, incomplete, or declares something that is not supported."""

    exit_code = 4


class CapacityError(PoolembedError):
    """One row alone exceeds the memory of the device or the positions of the model."""

    exit_code = 5


class OutputError(PoolembedError):
    """The target exists, cannot be written, or does not match this run."""

    exit_code = 6


class PoolingError(PoolembedError, ValueError):
    """A pooler, a head or its parameters got what they cannot use."""

    exit_code = 7


class UnknownPoolingError(PoolingError, NotImplementedError):
    """No pooling method has that name."""


class PoolingStateError(PoolingError, RuntimeError):
    """A pooler was asked for something its sequences are not ready for, such as a partial prefill."""


class RejectBudgetError(PoolembedError):
    """More rows were rejected or truncated than the run allows."""

    exit_code = 8


class LockedError(PoolembedError):
    """Another run holds the output."""

    exit_code = 75


class UnfinishedError(PoolembedError):
    """The run stopped before its last row, as it was told to; what is done is kept.

    Args:
        message: what ended it, and how many rows are left.
        hint: how to go on.
        exit_code: another exit code than that of the class, where a signal ended the run.
    """

    exit_code = 75

    def __init__(self, message: str, hint: str | None = None, exit_code: int | None = None) -> None:
        super().__init__(message, hint)
        if exit_code is not None:
            self.exit_code = exit_code
