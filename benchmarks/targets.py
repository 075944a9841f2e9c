"""What is aimed at, and what a result says of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.figures import median_ratio, ratios
from benchmarks.results import Result

OWN = ("poolembed", "command")
"""Both ways of using poolembed; a target counts as met when one of them meets it, and both are shown."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One aim.

    Attributes:
        title: what is compared, for a reader.
        asked: the figure aimed at.
        seen: figures of a result by way of measuring; empty where it was not measured.
        near: whether the vectors of a way of measuring are near enough to the reference's to count.
        at_most: whether less is better.
        form: how figures are printed.
    """

    title: str
    asked: float
    seen: Callable[[Result], dict[str, float]]
    near: Callable[[Result, str], bool] = lambda _result, _key: True
    at_most: bool = False
    form: str = "{:.2f}x"

    def verdict(self, result: Result) -> str:
        """Return `met`, `missed`, `missed: vectors too far` or `not measured`."""
        figures = self.seen(result)
        if not figures:
            return "not measured"
        counted = [figure for key, figure in figures.items() if self.near(result, key)]
        if not counted:
            return "missed: vectors too far"
        best = min(counted) if self.at_most else max(counted)
        return "met" if (best <= self.asked if self.at_most else best >= self.asked) else "missed"


def seconds(result: Result, workload: str, contestant: str) -> list[float] | None:
    """Return what a contestant took in each round; None where it did not take part."""
    entry = contestants(result, workload).get(contestant)
    return list(entry["seconds"]["values"]) if entry else None


def contestants(result: Result, workload: str) -> dict[str, Any]:
    """Return the contestants of a workload by key; none where it was not run."""
    found: dict[str, Any] = result.get("workloads", {}).get(workload, {}).get("contestants", {})
    return found


def faster(workload: str, peer: str, own: tuple[str, ...] = OWN) -> Callable[[Result], dict[str, float]]:
    """Return what tells how many times faster poolembed is than a peer.

    Args:
        workload: key of the workload.
        peer: key of the other contestant.
        own: keys of poolembed's contestants.
    """

    def seen(result: Result) -> dict[str, float]:
        theirs = seconds(result, workload, peer)
        ours = {key: seconds(result, workload, key) for key in own}
        return {key: median_ratio(theirs, each) for key, each in ours.items() if theirs and each}

    return seen


def within(workload: str, limits: dict[str, float]) -> Callable[[Result, str], bool]:
    """Return what tells whether a contestant's vectors keep `limits`.

    Args:
        workload: key of the workload.
        limits: `max_difference` at most, cosines at least.
    """

    def near(result: Result, key: str) -> bool:
        return keeps(contestants(result, workload).get(key, {}).get("vectors", {}), limits)

    return near


def keeps(vectors: dict[str, float], limits: dict[str, float]) -> bool:
    """Whether vectors were compared and are as near to the reference's as `limits` ask."""
    return all(
        name in vectors and (vectors[name] <= limit if name == "max_difference" else vectors[name] >= limit)
        for name, limit in limits.items()
    )


def share_of_ceiling(workload: str) -> Callable[[Result], dict[str, float]]:
    """Return what tells which share of the matrix ceiling a whole run reaches, in percent."""

    def seen(result: Result) -> dict[str, float]:
        ceiling = contestants(result, workload).get("ceiling")
        if not ceiling:
            return {}
        work = result["workloads"][workload]["flops"]
        rates = ceiling["flops_per_s"]["values"]
        shares = {}
        for key in OWN:
            ours = seconds(result, workload, key)
            if ours:
                shares[key] = 100 * median_ratio([work / took for took in ours], rates)
        return shares

    return seen


def share_of_tokenizers(result: Result) -> dict[str, float]:
    """Return which share of the raw rate of `tokenizers` the tiny model's whole run reaches, in percent."""
    raw = seconds(result, "tiny", "tokenizers")
    own = {key: seconds(result, "tiny", key) for key in OWN}
    return {key: 100 * median_ratio(raw, ours) for key, ours in own.items() if raw and ours}


def startup(result: Result) -> dict[str, float]:
    """Return how much longer the first batch takes than imports and reading the weights."""
    told = result.get("startup", {})
    if "poolembed" not in told:
        return {}
    return {
        "poolembed": median_ratio(
            told["poolembed"]["seconds"]["values"], told["imports"]["seconds"]["values"]
        )
    }


def memory_over_model(result: Result) -> dict[str, float]:
    """Return the peak of memory at defaults less the weights, in 10^6 bytes."""
    told = result.get("memory_at_defaults", {})
    return {"command": told["peak_mb"] - told["model_mb"]} if "peak_mb" in told else {}


def memory_by_rows(result: Result) -> dict[str, float]:
    """Return how much more memory the most rows take than the fewest."""
    runs = result.get("memory_by_rows", {}).get("runs", [])
    return {"command": runs[-1]["peak_mb"] / runs[0]["peak_mb"]} if len(runs) > 1 else {}


def writing(result: Result) -> dict[str, float]:
    """Return which share of the run on docstrings went into writing, in percent."""
    told = contestants(result, "docstrings").get("command", {}).get("phases", {})
    return {"command": 100 * told["write_s"] / told["run_s"]} if "write_s" in told else {}


def as_near_as_onnx(result: Result, key: str) -> bool:
    """Whether vectors of eight bits are at least as near as ONNX's."""
    theirs = contestants(result, "docstrings").get("onnx-int8", {}).get("vectors", {})
    return within("docstrings", {"mean_cosine": theirs["mean_cosine"]} if theirs else {})(result, key)


SAME = {"max_difference": 1e-5}

TARGETS = {
    "docstrings-sentence-transformers": Target(
        title="docstrings, float32, over sentence-transformers at its best batch size",
        asked=1.8,
        seen=faster("docstrings", "sentence-transformers"),
        near=within("docstrings", SAME),
    ),
    "short-sentence-transformers": Target(
        title="short texts, float32, over sentence-transformers at its best batch size",
        asked=2.5,
        seen=faster("short", "sentence-transformers"),
        near=within("short", SAME),
    ),
    "docstrings-openvino": Target(
        title="docstrings, float32, over OpenVINO",
        asked=1.35,
        seen=faster("docstrings", "openvino"),
        near=within("docstrings", SAME),
    ),
    "docstrings-vllm": Target(
        title="docstrings, float32, over vLLM CPU",
        asked=1.35,
        seen=faster("docstrings", "vllm"),
        near=within("docstrings", SAME),
    ),
    "docstrings-vllm-bfloat16": Target(
        title="docstrings, bfloat16 (cosine at least 0.9998), over vLLM CPU bfloat16",
        asked=1.3,
        seen=faster("docstrings", "vllm-bfloat16", ("poolembed-bfloat16",)),
        near=within("docstrings", {"min_cosine": 0.9998}),
    ),
    "docstrings-onnx-int8": Target(
        title="docstrings, int8 (cosine at least theirs), over ONNX int8",
        asked=1.5,
        seen=faster("docstrings", "onnx-int8", ("poolembed-int8",)),
        near=as_near_as_onnx,
    ),
    "ceiling": Target(
        title="docstrings, share of the float32 matrix ceiling",
        asked=85,
        seen=share_of_ceiling("docstrings"),
        form="{:.0f} %",
    ),
    "tokenizers": Target(
        title="tiny model, share of the raw rate of `tokenizers`",
        asked=60,
        seen=share_of_tokenizers,
        form="{:.0f} %",
    ),
    "writing": Target(
        title="docstrings, share of the run spent writing",
        asked=3,
        seen=writing,
        at_most=True,
        form="{:.1f} %",
    ),
    "duplicates": Target(
        title="50 % duplicates, over computing every text",
        asked=1.8,
        seen=faster("duplicates", "command-distinct", ("command",)),
    ),
    "workers": Target(
        title="two workers over one",
        asked=1.85,
        seen=faster("workers", "command-1-worker", ("command-2-workers",)),
    ),
    "startup": Target(
        title="start to first batch, over imports and reading the weights",
        asked=1.3,
        seen=startup,
        at_most=True,
    ),
    "memory": Target(
        title="peak memory at defaults, above the weights",
        asked=600,
        seen=memory_over_model,
        at_most=True,
        form="{:.0f} MB",
    ),
    "memory-by-rows": Target(
        title="peak memory of many short rows over that of a tenth as many",
        asked=1.2,
        seen=memory_by_rows,
        at_most=True,
    ),
}

__all__ = ["OWN", "TARGETS", "Target", "contestants", "ratios", "seconds", "share_of_ceiling"]
