"""What one start found out and the next need not: small JSON files beside the hub's cache.

Nothing depends on them: what is missing, damaged or cannot be written is only found out again.
"""

import json
import os
from pathlib import Path

from huggingface_hub.constants import HF_HOME

FOLDER = Path(HF_HOME) / "poolembed"
"""Where they lie."""


def recall(file: Path, key: str) -> object:
    """Return what was written down.

    Args:
        file: where.
        key: what for.

    Returns:
        The value; None for nothing.
    """
    return _content(file).get(key)


def remember(file: Path, key: str, value: object) -> None:
    """Write something down, if the file can be written.

    Of two processes that write at once, one may forget the other's.

    Args:
        file: where.
        key: what for.
        value: what JSON can express.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
        temporary.write_text(json.dumps(_content(file) | {key: value}, indent=1), "utf-8")
        temporary.replace(file)
    except OSError:
        return


def _content(file: Path) -> dict[str, object]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
