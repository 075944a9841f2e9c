"""Who takes part: each way of computing, whose interpreter runs it, and what it is told."""

from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.child import Child, WorkerError
from benchmarks.command import Command, has_option
from benchmarks.machine import cpu
from benchmarks.settings import Settings

BFLOAT16_FLAGS = frozenset(("avx512_bf16", "amx_bf16"))
"""Without one of these, bfloat16 is computed through float32 and slower than it."""


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """One way of computing a workload.

    Attributes:
        title: its name in tables.
        peer: whose interpreter runs it.
        module: worker in `benchmarks.workers`; None for the whole command.
        backend: what the worker is told.
        dtype: precision.
        searches: whether its caller chooses batch sizes, so that its best one is searched first.
        options: words for the command; none of them may be unknown to it.
        variant: which file of the workload it reads.
        threads: its threads, where they are not those of the settings.
    """

    title: str
    peer: str = "poolembed"
    module: str | None = None
    backend: str = "torch"
    dtype: str = "float32"
    searches: bool = False
    options: tuple[str, ...] = ()
    variant: str = "rows"
    threads: int | None = None

    def refusal(self, settings: Settings) -> str | None:
        """Return why it cannot take part; None if it can, as far as one sees without trying."""
        if settings.python_of(self.peer) is None:
            return f"no interpreter given (--peer {self.peer}=PYTHON)"
        if self.dtype == "bfloat16" and not BFLOAT16_FLAGS & flags():
            return "the processor has no bfloat16 units"
        unknown = [word for word in self.options if word.startswith("--") and not has_option(settings, word)]
        return f"poolembed has no option {', '.join(unknown)}" if unknown else None

    def start(self, settings: Settings, name: str, model: Path, kind: str) -> "Child | Command":
        """Load it.

        Args:
            settings: interpreters and environment.
            name: its key, for the name of its log.
            model: model folder.
            kind: `embed` or `pairs`.

        Raises:
            WorkerError: it did not start.
        """
        if self.threads is not None:
            settings = replace(settings, threads=self.threads)
        if self.module is None:
            return Command(settings, model, kind, settings.work, self.options)
        backend = self.backend.replace("QUANTIZATION", quantization(flags()))
        words = ["--model", str(model), "--kind", kind, "--backend", backend, "--dtype", self.dtype]
        words += ["--threads", str(settings.num_threads), "--cache", str(settings.work / "converted")]
        return Child(settings, self.peer, self.module, words, settings.work / f"{name}.log")


SENTENCE_TRANSFORMERS = "sentence_transformers_model"

CONTESTANTS = {
    "poolembed": Contestant(title="poolembed, library", module="library"),
    "command": Contestant(title="poolembed, whole command"),
    "sentence-transformers": Contestant(
        title="sentence-transformers, torch",
        peer="sentence-transformers",
        module=SENTENCE_TRANSFORMERS,
        searches=True,
    ),
    "onnx": Contestant(
        title="sentence-transformers, ONNX Runtime",
        peer="onnx",
        module=SENTENCE_TRANSFORMERS,
        backend="onnx",
        searches=True,
    ),
    "openvino": Contestant(
        title="sentence-transformers, OpenVINO",
        peer="onnx",
        module=SENTENCE_TRANSFORMERS,
        backend="openvino",
        searches=True,
    ),
    "vllm": Contestant(title="vLLM, CPU engine", peer="vllm", module="vllm_engine"),
    "poolembed-bfloat16": Contestant(title="poolembed, bfloat16", module="library", dtype="bfloat16"),
    "vllm-bfloat16": Contestant(
        title="vLLM, CPU engine, bfloat16", peer="vllm", module="vllm_engine", dtype="bfloat16"
    ),
    "poolembed-int8": Contestant(title="poolembed, int8", module="library", dtype="int8"),
    "onnx-int8": Contestant(
        title="sentence-transformers, ONNX Runtime, int8",
        peer="onnx",
        module=SENTENCE_TRANSFORMERS,
        backend="onnx-QUANTIZATION",
        dtype="int8",
        searches=True,
    ),
    "command-distinct": Contestant(title="poolembed, every text computed", variant="distinct"),
    "command-1-worker": Contestant(
        title="poolembed, one worker of one thread", options=("--workers", "1"), threads=1
    ),
    "command-2-workers": Contestant(
        title="poolembed, two workers of one thread", options=("--workers", "2"), threads=2
    ),
    "tokenizers": Contestant(title="tokenizers, encode_batch alone", module="tokenizer"),
    "ceiling": Contestant(title="matrix products alone", module="ceiling"),
}


def flags() -> set[str]:
    """Return the instruction sets of this machine's processor."""
    return cpu(Path("/proc/cpuinfo").read_text("utf-8"))[1]


def quantization(flags: set[str]) -> str:
    """Return the name of sentence-transformers' int8 configuration for a processor with `flags`."""
    for flag, name in (("avx512_vnni", "avx512_vnni"), ("avx512f", "avx512")):
        if flag in flags:
            return name
    return "avx2"


__all__ = ["CONTESTANTS", "Contestant", "WorkerError", "flags", "quantization"]
