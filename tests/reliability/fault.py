"""A fault, what the tool must do about it, and the command that shows it."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from click.testing import CliRunner

from poolembed.cli import cli

ROOT = Path(__file__).parents[2]
ROWS = [
    {"id": 1, "text": "Bread is baked from flour and water."},
    {"id": 2, "text": "A star is a ball of hot gas."},
    {"id": 3, "text": "Chess is played on sixty-four squares."},
]

SUMMARY = re.compile(r"^(.* tokens.*?) in [\d,.]+ s ", re.MULTILINE)
USAGE = re.compile(r"^Error: (.*)$", re.MULTILINE)
SPOKEN = re.compile(r"^poolembed: (?:error: )?(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Seen:
    """What somebody who typed a command saw of it.

    Attributes:
        exit_code: what it ended with.
        says: the line in which it told how it ended.
    """

    exit_code: int
    says: str

    @classmethod
    def of(cls, exit_code: int, stderr: str) -> "Seen":
        spoken = SUMMARY.findall(stderr) or SPOKEN.findall(stderr) or USAGE.findall(stderr)
        return cls(exit_code, spoken[-1] if spoken else "")


@dataclass(frozen=True)
class Fault:
    """A fault and what becomes of it.

    Attributes:
        name: the fault, as a row of the table says it.
        does: what the tool does about it, in words; `run` must prove it.
        run: brings the fault about in an empty folder, which is the current one, and proves `does`.
        varies: parts of the line told that are not the same every time.
        slow: whether it takes more than a few seconds.
    """

    name: str
    does: str
    run: Callable[["Desk"], Seen]
    varies: str = r"(?!)"
    slow: bool = False

    def row(self, seen: Seen) -> str:
        """The row of the table."""
        said = re.sub(self.varies, "N", seen.says).replace("|", "\\|").replace("`", "'")
        return f"| {self.name} | {self.does} | `{said}` | {seen.exit_code} |"


@dataclass(frozen=True)
class Desk:
    """An empty folder, which is the current one, and the tiny models.

    Attributes:
        folder: the folder.
        models: a tiny checkpoint of each family.
    """

    folder: Path
    models: Path

    def write(self, *rows: object, name: str = "corpus.jsonl") -> Path:
        """Write JSON Lines: objects as JSON, strings and bytes as they are."""
        lines = [row if isinstance(row, str | bytes) else json.dumps(row) for row in rows]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join((ln if isinstance(ln, bytes) else ln.encode()) + b"\n" for ln in lines))
        return path

    def embed(self, *arguments: object, command: str = "embed", **settings: object) -> Seen:
        """Run poolembed, with a tiny model unless the arguments name another."""
        line = [command, *map(str, arguments)]
        if "--model" not in line:
            line += ["--model", str(self.models / "bert-mean")]
        done = CliRunner().invoke(cli, line, prog_name="poolembed", **settings)
        assert done.exit_code != 70, done.stderr
        return Seen.of(done.exit_code, done.stderr)

    def names(self) -> list[str]:
        """The files that a user sees."""
        paths = [path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file()]
        return sorted(str(path) for path in paths if not any(part.startswith(".") for part in path.parts))

    def table(self, name: str = "corpus.embed.parquet"):
        """The output."""
        return pq.read_table(self.folder / name)

    def codes(self, name: str = "corpus.embed.parquet") -> list[str]:
        """The codes of the rejects of an output."""
        lines = (self.folder / f"{name}.rejects.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line)["code"] for line in lines]
