"""What one command must know that the others need not: a record for each.

Values that contradict the model are told by the operation that meets them; here only those that
contradict themselves.
"""

from dataclasses import dataclass
from typing import Literal

OnLong = Literal["truncate", "error", "windows", "window-rows"]
OutputDType = Literal["float32", "float16", "int8", "uint8", "binary", "ubinary"]
Role = Literal["query", "document"]
Level = Literal["sequence", "token", "step"]

ON_LONG: tuple[OnLong, ...] = ("truncate", "error", "windows", "window-rows")
OUTPUT_DTYPES: tuple[OutputDType, ...] = ("float32", "float16", "int8", "uint8", "binary", "ubinary")
RANGED_DTYPES: tuple[OutputDType, ...] = ("int8", "uint8")
"""Types whose values are steps between the bounds of each dimension."""
ROLES: tuple[Role, ...] = ("query", "document")
LEVELS: tuple[Level, ...] = ("sequence", "token", "step")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskConfig:
    """What a command alone must know: nothing, for most."""

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTextConfig(TaskConfig):
    """What becomes of a text with more tokens than the model takes.

    Attributes:
        on_long: `truncate` cuts it, `error` refuses the row, `windows` computes it piece by piece and
            averages, `window-rows` gives each piece a row of its own.
        overlap_tokens: tokens of text that a window shares with the one before it.
    """

    on_long: OnLong = "truncate"
    overlap_tokens: int = 0

    @property
    def in_windows(self) -> bool:
        """Whether long texts are divided."""
        return self.on_long in ("windows", "window-rows")

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = _not_in("--on-long", self.on_long, ON_LONG)
        if self.overlap_tokens < 0:
            problems.append(f"--overlap-tokens must be at least 0, got {self.overlap_tokens}")
        elif self.overlap_tokens and not self.in_windows:
            problems.append("--overlap-tokens is for --on-long windows and window-rows")
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedConfig(LongTextConfig):
    """What `embed` must know.

    Attributes:
        output_dtype: type of the written vectors; `binary` and `ubinary` hold 8 dimensions a byte.
        ranges_from: an earlier int8 or uint8 output whose bounds are used; None finds bounds in the
            first rows of the input.
    """

    output_dtype: OutputDType = "float32"
    ranges_from: str | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = LongTextConfig.check(self) + _not_in("--output-dtype", self.output_dtype, OUTPUT_DTYPES)
        if self.ranges_from is not None and self.output_dtype not in RANGED_DTYPES:
            problems.append(f"--ranges-from is for --output-dtype {' or '.join(RANGED_DTYPES)}")
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassifyConfig(LongTextConfig):
    """What `classify` must know.

    Attributes:
        threshold: probability in (0, 1) from which a class of a multi-label model counts; None
            takes 0.5.
        top_k: give the most probable classes instead of all probabilities; at least 1.
    """

    threshold: float | None = None
    top_k: int | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = LongTextConfig.check(self) + _below_one("--top-k", self.top_k)
        if self.threshold is not None and not 0 < self.threshold < 1:
            problems.append(f"--threshold must be between 0 and 1, got {self.threshold}")
        if self.on_long == "window-rows":
            problems += [
                f"{option} and --on-long window-rows exclude each other: a window has one class"
                for option, value in (("--threshold", self.threshold), ("--top-k", self.top_k))
                if value is not None
            ]
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEmbedConfig(TaskConfig):
    """What `token-embed` must know.

    Attributes:
        role: whose texts these are, for models that tell queries from documents; None takes `document`.
        tokens: give the token of each vector as well.
        offsets: give the characters that each vector stands for as well.
        chunk_tokens: average the vectors of so many consecutive tokens (late chunking); at least 1.
    """

    role: Role | None = None
    tokens: bool = False
    offsets: bool = False
    chunk_tokens: int | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = _below_one("--chunk-tokens", self.chunk_tokens)
        if self.role is not None:
            problems += _not_in("--role", self.role, ROLES)
        if self.tokens and self.chunk_tokens is not None:
            problems.append("--tokens and --chunk-tokens exclude each other: a group has no single token")
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseConfig(TaskConfig):
    """What `sparse` must know.

    Attributes:
        top_k: keep at most so many entries of a row, the heaviest; at least 1; None keeps all.
    """

    top_k: int | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        return _below_one("--top-k", self.top_k)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardConfig(TaskConfig):
    """What `reward` must know.

    Attributes:
        level: what is rewarded: the whole text, each token, or each step; None takes what the model is
            made for.
    """

    level: Level | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        return [] if self.level is None else _not_in("--level", self.level, LEVELS)


def _not_in(option: str, value: str, known: tuple[str, ...]) -> list[str]:
    return [] if value in known else [f"{option} must be one of {', '.join(known)}, got {value!r}"]


def _below_one(option: str, value: int | None) -> list[str]:
    return [] if value is None or value >= 1 else [f"{option} must be at least 1, got {value}"]
