"""Result files: `results/NAME.json`, one a machine or purpose, in version control."""

import json
from pathlib import Path
from typing import Any

Result = dict[str, Any]

FOLDER = Path(__file__).parent / "results"


def load(name: str, folder: Path = FOLDER) -> Result:
    """Return a result; an empty one where there is none yet."""
    path = folder / f"{name}.json"
    result: Result = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return result


def save(name: str, result: Result, folder: Path = FOLDER) -> Path:
    """Write a result and return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def every(folder: Path = FOLDER) -> dict[str, Result]:
    """Return all results by name."""
    return {path.stem: load(path.stem, folder) for path in sorted(folder.glob("*.json"))}
