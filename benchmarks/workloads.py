"""What is computed: model, rows and who takes part, for each workload."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import corpora
from benchmarks.corpora import Row
from benchmarks.settings import Settings

FLOAT32 = ("poolembed", "sentence-transformers", "onnx", "openvino", "vllm")


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Rows, a model, and who computes them.

    Attributes:
        title: what the page calls it.
        model: name of a model folder.
        corpus: yields the rows.
        num_rows: rows at a scale of 1; some seconds of work on two cores.
        contestants: keys of `CONTESTANTS`, in the order of their turns.
        kind: `embed` or `pairs`.
        twice: every row comes twice; the variant `distinct` hides that from a comparison of texts.
    """

    title: str
    model: str
    corpus: Callable[[Settings], Iterable[Row]]
    num_rows: int
    contestants: tuple[str, ...]
    kind: str = "embed"
    twice: bool = False

    def write(self, settings: Settings, name: str) -> dict[str, Path]:
        """Write the rows and return the file of each variant."""
        count = max(8, round(self.num_rows * settings.scale))
        rows = corpora.first(self.corpus(settings), count)
        plain = settings.work / f"{name}.jsonl"
        if not self.twice:
            return {"rows": corpora.write(rows, plain)}
        half = rows[: count // 2]
        distinct = corpora.write(corpora.duplicated(half, " "), settings.work / f"{name}.distinct.jsonl")
        return {"rows": corpora.write(corpora.duplicated(half), plain), "distinct": distinct}


WORKLOADS = {
    "short": Workload(
        title="Short texts: WordNet glosses",
        model="all-MiniLM-L6-v2",
        corpus=corpora.short,
        num_rows=2100,
        contestants=(*FLOAT32, "command", "ceiling"),
    ),
    "docstrings": Workload(
        title="Docstrings of Python's library",
        model="all-MiniLM-L6-v2",
        corpus=corpora.docstrings,
        num_rows=420,
        contestants=(
            *FLOAT32,
            "command",
            "poolembed-bfloat16",
            "vllm-bfloat16",
            "poolembed-int8",
            "onnx-int8",
            "ceiling",
        ),
    ),
    "long": Workload(
        title="Long documents: chapters, cut at 512 tokens",
        model="bge-small-en-v1.5",
        corpus=corpora.long,
        num_rows=40,
        contestants=(*FLOAT32, "command", "ceiling"),
    ),
    "pairs": Workload(
        title="Pairs: verse and translation, cross-encoder",
        model="ms-marco-MiniLM-L12-v2",
        corpus=corpora.pairs,
        num_rows=300,
        contestants=(*FLOAT32, "command"),
        kind="pairs",
    ),
    "duplicates": Workload(
        title="Docstrings, every one twice",
        model="all-MiniLM-L6-v2",
        corpus=corpora.docstrings,
        num_rows=640,
        contestants=("command", "command-distinct"),
        twice=True,
    ),
    "tiny": Workload(
        title="A tiny model (two layers of 64) on short texts",
        model="zoo/bert-mean",
        corpus=corpora.short,
        num_rows=14_000,
        contestants=("poolembed", "command", "sentence-transformers", "tokenizers"),
    ),
    "workers": Workload(
        title="Docstrings, by one and by two workers",
        model="all-MiniLM-L6-v2",
        corpus=corpora.docstrings,
        num_rows=720,
        contestants=("command-1-worker", "command-2-workers"),
    ),
}
