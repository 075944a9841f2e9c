"""A run: its input, model, output and limits, and the record that holds them all."""

from dataclasses import asdict, dataclass, field
from typing import Literal

from poolembed.config.input import InputConfig
from poolembed.config.limits import LimitConfig
from poolembed.config.pooler import PoolerConfig
from poolembed.config.tasks import TaskConfig
from poolembed.errors import ConfigError

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

Device = str
DType = Literal["auto", "float32", "bfloat16", "float16", "int8"]
ModelImpl = Literal["auto", "transformers"]
OutputFormat = Literal["parquet", "arrow", "jsonl", "jsonl.gz", "npy", "trec"]

DTYPES: tuple[DType, ...] = ("auto", "float32", "bfloat16", "float16", "int8")
MODEL_IMPLS: tuple[ModelImpl, ...] = ("auto", "transformers")
OUTPUT_FORMATS: tuple[OutputFormat, ...] = ("parquet", "arrow", "jsonl", "jsonl.gz", "npy", "trec")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model runs, where, and in which precision.

    Attributes:
        model: a model folder or a hub name.
        revision: branch, tag or commit of a hub model.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        dtype: precision of the transformer; pooling and heads always run in float32.
        model_impl: `auto` takes layers of poolembed where it has them for the model; `transformers` always
            those of transformers, as vLLM's option of that name does.
        max_length: most tokens of a row, special tokens included; None takes the model's own limit.
        prompt: text put before every row.
        prompt_name: name of a prompt that the model declares.
        overrides: (key, value) pairs that replace settings of the checkpoint or keys of its config.json.
        trust_remote_code: run Python code that the model folder carries.
    """

    model: str = DEFAULT_MODEL
    revision: str | None = None
    device: Device = "auto"
    dtype: DType = "auto"
    model_impl: ModelImpl = "auto"
    max_length: int | None = None
    prompt: str | None = None
    prompt_name: str | None = None
    overrides: tuple[tuple[str, str], ...] = ()
    trust_remote_code: bool = False

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = []
        if self.dtype not in DTYPES:
            problems.append(f"--dtype must be one of {', '.join(DTYPES)}, got {self.dtype!r}")
        if self.model_impl not in MODEL_IMPLS:
            problems.append(f"--model-impl must be one of {', '.join(MODEL_IMPLS)}, got {self.model_impl!r}")
        kind, _, index = self.device.partition(":")
        if kind not in ("auto", "cpu", "cuda", "mps") or (index and not (kind == "cuda" and index.isdigit())):
            problems.append(f"--device must be auto, cpu, cuda, cuda:N or mps, got {self.device!r}")
        if self.max_length is not None and self.max_length < 1:
            problems.append(f"--max-length must be at least 1, got {self.max_length}")
        if self.prompt is not None and self.prompt_name is not None:
            problems.append("--prompt and --prompt-name exclude each other")
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputConfig:
    """Where results go.

    Attributes:
        output: a file, or a directory (existing, or ending in `/`) for one part a chunk, or the URL of
            either; None writes next to the input.
        overwrite: replace an existing output.
        staging: the folder in which outputs behind URLs are made; None takes one in the home directory.
        format: the format of the file or of the parts; None takes what the name of a file says, else
            `parquet`.
    """

    output: str | None = None
    overwrite: bool = False
    staging: str | None = None
    format: OutputFormat | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        if self.format is None or self.format in OUTPUT_FORMATS:
            return []
        return [f"--format must be one of {', '.join(OUTPUT_FORMATS)}, got {self.format!r}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How much is held and computed at once; none of it changes a result.

    Attributes:
        batch_tokens: most tokens of one forward call; None chooses by device.
        chunk_rows: most rows of one chunk, inside which rows are sorted by length.
        chunk_bytes: most bytes of text of one chunk.
        workers: batches that are computed at once, each with its share of the cores; 1 computes one with all
            cores, None finds the faster by a short trial.
    """

    batch_tokens: int | None = None
    chunk_rows: int = 8192
    chunk_bytes: int = 64 * 1024 * 1024
    workers: int | None = None

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        return [
            f"--{name.replace('_', '-')} must be at least 1, got {value}"
            for name, value in asdict(self).items()
            if value is not None and value < 1
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    """A whole run: which command, on which rows, with which model, to which output.

    Attributes:
        command: the command's name.
        task: what that command alone must know.
        input: which rows are read.
        model: which model runs.
        pooler: changes to what the model declares.
        output: where results go.
        run: how much is computed at once.
        limits: when it must end, and how much may go wrong.
    """

    command: str
    task: TaskConfig = field(default_factory=TaskConfig)
    input: InputConfig
    model: ModelConfig = field(default_factory=ModelConfig)
    pooler: PoolerConfig = field(default_factory=PoolerConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
    run: RunConfig = field(default_factory=RunConfig)
    limits: LimitConfig = field(default_factory=LimitConfig)

    def check(self) -> None:
        """Check every part; `pooler` was checked when it was made.

        Raises:
            ConfigError: lists every problem that was found.
        """
        problems = [
            problem
            for part in (self.task, self.input, self.model, self.output, self.run, self.limits)
            for problem in part.check()
        ]
        if self.limits.max_rejects is not None and self.input.on_error != "skip":
            problems.append("--max-rejects is for --on-error skip; else the first bad row ends the run")
        if problems:
            raise ConfigError("; ".join(problems))
