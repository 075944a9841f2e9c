"""What a run of the benchmarks must be told: where things are, how often, on which cores."""

import os
import sys
import tomllib
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[1]


class SettingsError(Exception):
    """Settings are unknown, missing or contradict each other."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where things are and how much is measured.

    Attributes:
        name: the result is `results/NAME.json`.
        models: folder with the real models (`build_models.py` beside them makes it).
        shared: folder with `corpora/` and `zoo/`.
        peers: interpreter of each peer's environment: `sentence-transformers`, `onnx`, `vllm`.
        cores: CPU numbers that everything runs on.
        threads: threads of every contestant; None gives each as many as there are cores.
        rounds: how often all contestants of a workload take turns.
        scale: factor on the number of rows of every workload.
        workloads: which to run; all where it is empty.
        contestants: whom to run; all where it is empty.
        options: words added to every `poolembed` command.
        work: folder for corpora, converted models and logs; kept between runs.
    """

    name: str = "local"
    models: Path | None = field(default_factory=lambda: _path("POOLEMBED_MODELS"))
    shared: Path = field(default_factory=lambda: _path("POOLEMBED_SHARED") or ROOT.parent / "shared")
    peers: dict[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = field(default_factory=lambda: tuple(sorted(os.sched_getaffinity(0))))
    threads: int | None = None
    rounds: int = 5
    scale: float = 1.0
    workloads: tuple[str, ...] = ()
    contestants: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    work: Path = ROOT / "bench-results"

    @classmethod
    def of(cls, file: Path | None, given: dict[str, Any]) -> Self:
        """Return settings from a TOML file and what was `given` on the command line, which goes before.

        Raises:
            SettingsError: an unknown key, or no sense in a value.
        """
        told = tomllib.loads(file.read_text("utf-8")) if file else {}
        unknown = sorted(set(told) - {each.name for each in fields(cls)})
        if unknown:
            raise SettingsError(f"{file}: unknown: {', '.join(unknown)}")
        peers = {**told.pop("peers", {}), **given.pop("peers", {})}
        told |= {key: value for key, value in given.items() if value not in (None, ())}
        for key in ("models", "shared", "work"):
            if key in told:
                told[key] = Path(told[key]).expanduser().resolve()
        for key in ("cores", "workloads", "contestants", "options"):
            if key in told:
                told[key] = tuple(told[key])
        settings = cls(**told, peers=peers)
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse what cannot be measured.

        Raises:
            SettingsError: a value makes no sense, or a folder is not there.
        """
        if self.rounds < 1 or self.scale <= 0 or not self.cores:
            raise SettingsError("rounds, scale and the number of cores must be positive")
        if not set(self.cores) <= os.sched_getaffinity(0):
            raise SettingsError(f"cores {self.cores} are not all this process's to use")
        for peer, interpreter in self.peers.items():
            if not Path(interpreter).is_file():
                raise SettingsError(f"{peer}: {interpreter} is no interpreter")

    @property
    def num_threads(self) -> int:
        """Threads of a contestant."""
        return self.threads or len(self.cores)

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of everything measured: number of threads, no network, no options."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("POOLEMBED_")}
        threads = str(self.num_threads)
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
        return (
            own
            | dict.fromkeys(names, threads)
            | {
                "HF_HUB_OFFLINE": "1",
                "TOKENIZERS_PARALLELISM": "true",
                "VLLM_CPU_KVCACHE_SPACE": "1",
                "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, self.cores)),
                "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
                "VLLM_NO_USAGE_STATS": "1",
            }
        )

    def python_of(self, peer: str) -> str | None:
        """Return the interpreter of a peer; poolembed's is this one, unless another was given."""
        return self.peers.get(peer) or (sys.executable if peer == "poolembed" else None)

    def model(self, name: str) -> Path | None:
        """Return the folder of a model, `zoo/NAME` for a tiny one; None where it is not there."""
        base = self.shared / "zoo" / "models" if name.startswith("zoo/") else self.models
        folder = base / name.removeprefix("zoo/") if base else None
        return folder if folder and (folder / "config.json").is_file() else None

    def record(self) -> dict[str, Any]:
        """Return what decides figures, as plain values without paths."""
        kept = ("cores", "threads", "rounds", "scale", "options")
        return {key: value for key, value in asdict(self).items() if key in kept}


def _path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value).resolve() if value else None
