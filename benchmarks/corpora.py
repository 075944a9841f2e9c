"""The rows of each workload, as JSON Lines files in the work folder."""

import gzip
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.settings import Settings

Row = dict[str, Any]


class CorpusError(Exception):
    """The rows of a workload are not there."""


def short(settings: Settings) -> Iterator[Row]:
    """Yield WordNet glosses, about 12 tokens each, in a fixed random order."""
    return iter(_shuffled(_stored(settings, "glosses")))


def docstrings(settings: Settings) -> Iterator[Row]:
    """Yield the docstrings of Python's own library and of what is installed in it, in a fixed random order.

    Made once for a work folder, since every file of the library is parsed.
    """
    made = settings.work / "corpus.docstrings.jsonl"
    if not made.is_file():
        import sysconfig

        script = settings.shared / "corpora" / "make_docstrings.py"
        if not script.is_file():
            raise CorpusError(f"{script} is not there (--shared)")
        library = sysconfig.get_paths()["stdlib"]
        whole = settings.work / "corpus.docstrings.partial.jsonl"
        subprocess.run([sys.executable, "-W", "ignore", str(script), str(whole), library], check=True)
        whole.rename(made)
    return _lines(made)


def long(settings: Settings) -> Iterator[Row]:
    """Yield whole chapters, hundreds to thousands of tokens."""
    return iter(_shuffled(_stored(settings, "chapters")))


def pairs(settings: Settings) -> Iterator[Row]:
    """Yield a verse and the same in another translation as query and document."""
    return iter(_shuffled(_stored(settings, "verse-pairs")))


def duplicated(rows: Iterable[Row], mark: str = "") -> list[Row]:
    """Return every row twice, in a fixed random order.

    Args:
        rows: distinct rows.
        mark: put after the text of the second one. A space makes another text of it, with the same tokens.
    """
    first = list(rows)
    return _shuffled([*first, *({**row, "text": row["text"] + mark} for row in first)])


def numbered(settings: Settings, count: int) -> Iterator[Row]:
    """Yield `count` short rows with distinct texts."""
    glosses = [row["text"] for row in _stored(settings, "glosses")]
    for number in range(count):
        yield {"id": number, "text": f"{number} {glosses[number % len(glosses)]}"}


def write(rows: Iterable[Row], path: Path) -> Path:
    """Write rows with `text`, or `query` and `document`, and return the file."""
    keys = ("id", "text", "query", "document")
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps({key: row[key] for key in keys if key in row}) + "\n")
    return path


def first(rows: Iterable[Row], count: int) -> list[Row]:
    """Return the first `count` rows, or all where there are fewer."""
    return list(islice(rows, count))


def _stored(settings: Settings, name: str) -> list[Row]:
    path = settings.shared / "corpora" / f"{name}.jsonl.gz"
    if not path.is_file():
        raise CorpusError(f"{path} is not there (--shared)")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _lines(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _shuffled(rows: list[Row]) -> list[Row]:
    random.Random(0).shuffle(rows)
    return rows
