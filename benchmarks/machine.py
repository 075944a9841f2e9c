"""What a result must say of the machine that it is from."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
"""Instruction sets that decide how fast a precision can be."""


def machine(cores: tuple[int, ...]) -> dict[str, Any]:
    """Return the processor, its instruction sets, the cores used, and the date."""
    model, flags = cpu(Path("/proc/cpuinfo").read_text("utf-8"))
    return {
        "cpu": model,
        "flags": [flag for flag in FLAGS if flag in flags],
        "cores": len(cores),
        "cores_of_machine": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def commit(folder: Path) -> str:
    """Return the commit of a folder under git, `+` behind it for changes since; empty outside of git.

    Results, which change while they are measured, do not count.
    """
    git = ["git", "-C", str(folder)]
    changed = ["status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)benchmarks/results"]
    try:
        name, changes = (
            subprocess.run([*git, *words], capture_output=True, text=True, check=True).stdout.strip()
            for words in (["rev-parse", "--short=7", "HEAD"], changed)
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return name + ("+" if changes else "")


def cpu(cpuinfo: str) -> tuple[str, set[str]]:
    """Return the name and the flags of the first processor in the text of /proc/cpuinfo."""
    fields = dict(line.split(":", 1) for line in cpuinfo.split("\n\n")[0].splitlines() if ":" in line)
    told = {name.strip(): value.strip() for name, value in fields.items()}
    return told.get("model name", "unknown"), set(told.get("flags", "").split())
