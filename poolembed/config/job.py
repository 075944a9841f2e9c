"""A run: its input, model, output and limits, and the record that holds them all."""

from dataclasses import asdict, dataclass, field
from typing import Literal

from poolembed.config.pooler import PoolerConfig
from poolembed.config.tasks import TaskConfig
from poolembed.errors import ConfigError

DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

Device = str
DType = Literal["auto", "float32", "bfloat16", "float16"]
OnError = Literal["fail", "skip"]

DTYPES: tuple[DType, ...] = ("auto", "float32", "bfloat16", "float16")
ON_ERROR: tuple[OnError, ...] = ("fail", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputConfig:
    r"""Which rows are read.

    Attributes:
        paths: files, directories, globs, or `-` for JSONL on standard input; at least one.
        text_field: the column with the text; None takes `text`, else the only string column.
        query_field: the column with the query; None looks for a known pair of names.
        document_field: the column with the document; None looks for a known pair of names.
        documents_field: the column with the list of documents; likewise.
        template: the text, made of columns: `{title}\n{text}`; None takes one column as it is.
        columns: the input columns kept in the output, in this order; None keeps all.
        limit: read at most this many rows.
        on_error: what a row with unusable text does: stop the run, or go to the rejects file.
    """

    paths: tuple[str, ...]
    text_field: str | None = None
    query_field: str | None = None
    document_field: str | None = None
    documents_field: str | None = None
    template: str | None = None
    columns: tuple[str, ...] | None = None
    limit: int | None = None
    on_error: OnError = "fail"

    def column_of(self, role: str) -> str | None:
        """Return the column that the user names for a role of texts (`query`); None where they name none."""
        named = {
            "text": self.text_field,
            "query": self.query_field,
            "document": self.document_field,
            "documents": self.documents_field,
        }
        return named.get(role)

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        problems = []
        if not self.paths:
            problems.append("no input given")
        if self.limit is not None and self.limit < 1:
            problems.append(f"--limit must be at least 1, got {self.limit}")
        if self.on_error not in ON_ERROR:
            problems.append(f"--on-error must be one of {', '.join(ON_ERROR)}, got {self.on_error!r}")
        if self.template is not None and self.text_field is not None:
            problems.append("--template and --text-field exclude each other")
        if self.paths.count("-") > 1:
            problems.append("standard input ('-') can be read only once")
        return problems


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Which model runs, where, and in which precision.

    Attributes:
        model: a model folder or a hub name.
        revision: branch, tag or commit of a hub model.
        device: `auto`, `cpu`, `cuda`, `cuda:N` or `mps`.
        dtype: precision of the transformer; pooling and heads always run in float32.
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
        output: a file, or a directory (existing, or ending in `/`) for one part a chunk;
            None writes next to the input.
        overwrite: replace an existing output.
    """

    output: str | None = None
    overwrite: bool = False

    def check(self) -> list[str]:
        """Return every problem of these values, one line each."""
        return []


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """How much is held and computed at once; none of it changes a result.

    Attributes:
        batch_tokens: most tokens of one forward call; None chooses by device.
        chunk_rows: most rows of one chunk, inside which rows are sorted by length.
        chunk_bytes: most bytes of text of one chunk.
        workers: processes that compute, on the CPU; 1 computes in one process with all threads, None
            finds the faster by a short trial.
    """

    batch_tokens: int | None = None
    chunk_rows: int = 8192
    chunk_bytes: int = 64 * 1024 * 1024
    workers: int | None = 1

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
    """

    command: str
    task: TaskConfig = field(default_factory=TaskConfig)
    input: InputConfig
    model: ModelConfig = field(default_factory=ModelConfig)
    pooler: PoolerConfig = field(default_factory=PoolerConfig)
    output: OutputConfig = field(default_factory=OutputConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def check(self) -> None:
        """Check every part; `pooler` was checked when it was made.

        Raises:
            ConfigError: lists every problem that was found.
        """
        problems = [
            problem
            for part in (self.task, self.input, self.model, self.output, self.run)
            for problem in part.check()
        ]
        if problems:
            raise ConfigError("; ".join(problems))
