"""How a run ended, as a record, as lines for a person and as JSON."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """How a run ended.

    Attributes:
        command: what was run.
        outputs: the files written.
        model: the model as the user named it.
        device: where it ran.
        dtype: precision of the transformer.
        workers: processes that computed.
        attention: path that the self-check chose.
        self_check: largest relative difference that the self-check saw; None where packing did not run.
        num_rows: rows written.
        num_rejected: rows that went to the rejects file.
        num_truncated: rows that lost text to the maximum length.
        num_replaced: rows in which unpaired surrogates became U+FFFD.
        num_tokens: tokens computed.
        load_s: seconds from the start until the model was ready.
        run_s: seconds from then until the output stood under its name.
        forward_s: of those, seconds of computing.
        wait_s: of those, seconds of waiting for rows to be read and tokenized, or written.
    """

    command: str
    outputs: tuple[str, ...]
    model: str
    device: str
    dtype: str
    workers: int
    attention: str
    self_check: float | None
    num_rows: int
    num_rejected: int
    num_truncated: int
    num_replaced: int
    num_tokens: int
    load_s: float
    run_s: float
    forward_s: float
    wait_s: float

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second, without the time of loading."""
        return self.num_tokens / max(self.run_s, 1e-9)

    def to_json(self) -> dict[str, Any]:
        """Return every field and `tokens_per_s` as plain values."""
        return asdict(self) | {"tokens_per_s": self.tokens_per_s}

    def lines(self) -> list[str]:
        """Return the summary in words."""
        rate = f"{self.num_rows / max(self.run_s, 1e-9):,.0f} rows/s, {self.tokens_per_s:,.0f} tokens/s"
        counts = f"{self.num_rows:,} rows, {self.num_tokens:,} tokens"
        for number, word in (
            (self.num_truncated, "truncated"),
            (self.num_rejected, "rejected"),
            (self.num_replaced, "with characters replaced"),
        ):
            if number:
                counts += f", {number:,} {word}"
        verdict = "" if self.self_check is None else f" (self-check {self.self_check:.0e})"
        where = self.device if self.workers == 1 else f"{self.device} ({self.workers} processes)"
        return [
            f"{counts} in {self.run_s:,.1f} s ({rate}), after {self.load_s:,.1f} s of loading",
            f"{self.model} on {where}, {self.dtype}, {self.attention}{verdict}",
            *(f"-> {output}" for output in self.outputs),
        ]
