"""Tokens a second and model FLOPs utilisation on a GPU: `python -m benchmarks gpu --model FOLDER`.

The peak is what the caller says of the device, or what a large matrix product reaches in the same run.
"""

import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import spread
from benchmarks.flops import flops

NO_GPU = 3
"""Exit code where there is no GPU."""

SQUARE = 8192
"""Rows and columns of the matrices whose product measures the peak."""


class NoGPUError(Exception):
    """There is no CUDA device, or torch cannot use it."""


def measure(
    model: Path, texts: Sequence[str], dtype: str, rounds: int, peak_tflops: float | None
) -> dict[str, Any]:
    """Embed texts some times and return rates.

    Args:
        model: model folder.
        texts: what is embedded, whole, in every round.
        dtype: precision of the transformer.
        rounds: runs that count; one before them does not.
        peak_tflops: the device's peak in `dtype` in 10^12 FLOP/s; None measures it.

    Raises:
        NoGPUError: there is none.
    """
    import torch

    if not torch.cuda.is_available():
        raise NoGPUError("no CUDA device that torch can use: nothing was measured")
    from poolembed import ModelConfig, PoolingModel

    pooled = PoolingModel(ModelConfig(model=str(model), device="cuda", dtype=dtype))  # type: ignore[arg-type]
    lengths = token_lengths(model, texts)
    pooled.embed(texts)
    seconds, peaks = [], []
    for _ in range(rounds):
        if peak_tflops is None:
            peaks.append(matrix_rate(dtype))
        started = time.perf_counter()
        vectors = pooled.embed(texts)
        seconds.append(time.perf_counter() - started)
    if not np.isfinite(vectors).all():
        raise ValueError("the vectors have values that are no numbers")
    work = flops(json.loads((model / "config.json").read_text("utf-8")), lengths)
    peak = peak_tflops * 1e12 if peak_tflops is not None else statistics.median(peaks)
    return {
        "device": torch.cuda.get_device_name(),
        "model": model.name,
        "dtype": dtype,
        **rates(sum(lengths), work, seconds, peak),
        "num_rows": len(texts),
        "peak_source": "as told"
        if peak_tflops is not None
        else f"{SQUARE} x {SQUARE} products in the same run",
        "torch": torch.__version__,
    }


def rates(num_tokens: int, work: float, seconds: Sequence[float], peak: float) -> dict[str, Any]:
    """Return tokens a second and the share of the peak.

    Args:
        num_tokens: tokens of a run.
        work: floating-point operations of a run.
        seconds: of each run.
        peak: operations a second that the device can do.
    """
    return {
        "tokens_per_s": spread([num_tokens / took for took in seconds]),
        "utilisation_percent": 100 * work / statistics.median(seconds) / peak,
        "peak_tflops": peak / 1e12,
    }


def matrix_rate(dtype: str) -> float:
    """Return the rate of a large square product on the GPU, in FLOP/s."""
    import torch

    kind = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    left = torch.randn(SQUARE, SQUARE, device="cuda", dtype=kind)
    right = torch.randn(SQUARE, SQUARE, device="cuda", dtype=kind)
    out = torch.empty_like(left)
    torch.mm(left, right, out=out)
    torch.cuda.synchronize()
    started, calls = time.perf_counter(), 20
    for _ in range(calls):
        torch.mm(left, right, out=out)
    torch.cuda.synchronize()
    return calls * 2 * SQUARE**3 / (time.perf_counter() - started)


def token_lengths(model: Path, texts: Sequence[str]) -> list[int]:
    """Return the number of tokens of each text, as `tokenizers` counts them, cut at the model's limit."""
    from tokenizers import Tokenizer

    from benchmarks.workers.tokenizer import max_length

    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length(model))
    return [len(encoding) for encoding in tokenizer.encode_batch(list(texts))]
