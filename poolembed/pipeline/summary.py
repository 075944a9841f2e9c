"""How a run ended, as a record, as lines for a person and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MOST_SHOWN = 3
"""Files of one folder that are named one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """How a run ended.

    Attributes:
        command: what was run.
        outputs: the files written.
        model: the model as the user named it.
        device: where it ran.
        dtype: precision of the transformer.
        int8_cosine: mean cosine between hidden states with and without eight bits; None without them.
        workers: batches that were computed at once.
        attention: path that the self-check chose.
        self_check: largest relative difference that the self-check saw; None where packing did not run.
        num_rows: rows written.
        num_computed: distinct texts computed.
        num_reused: rows whose results an earlier or interrupted run had computed.
        num_absent: rows without a text, written with null results.
        num_removed: rows of the output that was renewed whose texts are in the input no more.
        num_rejected: rows that went to the rejects file.
        num_truncated: rows that lost text to the maximum length.
        num_replaced: rows in which unpaired surrogates became U+FFFD.
        num_tokens: tokens computed.
        load_s: seconds from the start until the model was ready.
        run_s: seconds from then until the output stood under its name.
        read_s: seconds of reading and looking up, beside the computing.
        tokenize_s: seconds of tokenizing, beside the computing.
        forward_s: of `run_s`, seconds of computing.
        pool_s: of `forward_s`, seconds from hidden states to results in memory, the mean over the workers.
        write_s: seconds of writing, beside the computing.
        wait_s: of `run_s`, seconds of waiting for rows to be read and tokenized, or written.
    """

    command: str
    outputs: tuple[str, ...]
    model: str
    device: str
    dtype: str
    int8_cosine: float | None
    workers: int
    attention: str
    self_check: float | None
    num_rows: int
    num_computed: int
    num_reused: int
    num_absent: int
    num_removed: int
    num_rejected: int
    num_truncated: int
    num_replaced: int
    num_tokens: int
    load_s: float
    run_s: float
    read_s: float
    tokenize_s: float
    forward_s: float
    pool_s: float
    write_s: float
    wait_s: float

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second, without the time of loading."""
        return self.num_tokens / max(self.run_s, 1e-9)

    @property
    def num_shared(self) -> int:
        """Rows with the text of another row of the run, which was computed once for all of them."""
        return self.num_rows - self.num_computed - self.num_reused - self.num_absent

    def to_json(self) -> dict[str, Any]:
        """Return every field, `num_shared` and `tokens_per_s` as plain values."""
        return asdict(self) | {"num_shared": self.num_shared, "tokens_per_s": self.tokens_per_s}

    def lines(self) -> list[str]:
        """Return the summary in words."""
        rate = f"{self.num_rows / max(self.run_s, 1e-9):,.0f} rows/s, {self.tokens_per_s:,.0f} tokens/s"
        counts = f"{self.num_rows:,} rows, {self.num_tokens:,} tokens"
        for number, word in (
            (self.num_reused and self.num_computed, "computed"),
            (self.num_reused, "reused"),
            (self.num_shared, "with the text of another row"),
            (self.num_absent, "without a text"),
            (self.num_removed, "removed"),
            (self.num_truncated, "truncated"),
            (self.num_rejected, "rejected"),
            (self.num_replaced, "with characters replaced"),
        ):
            if number:
                counts += f", {number:,} {word}"
        verdict = "" if self.self_check is None else f" (self-check {self.self_check:.0e})"
        drift = "" if self.int8_cosine is None else f" (cosine {self.int8_cosine:.4f} to float32)"
        where = self.device if self.workers == 1 else f"{self.device} ({self.workers} workers)"
        return [
            f"{counts} in {self.run_s:,.1f} s ({rate}), after {self.load_s:,.1f} s of loading",
            f"{self.model} on {where}, {self.dtype}{drift}, {self.attention}{verdict}",
            *_shown(self.outputs),
        ]


def _shown(outputs: Sequence[str]) -> list[str]:
    """Name every output; of many in one folder only how many there are."""
    by_folder: dict[str, list[str]] = {}
    for output in outputs:
        by_folder.setdefault(str(Path(output).parent), []).append(output)
    lines = []
    for folder, files in by_folder.items():
        lines += files if len(files) <= MOST_SHOWN else [f"{folder}/ ({len(files)} files)"]
    return [f"-> {line}" for line in lines]
