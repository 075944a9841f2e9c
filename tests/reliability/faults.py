"""Every fault of docs/reliability.md; `python -m tests.reliability.faults` writes its table anew.

A new fault is one entry in one of the lists.
"""

import os
import tempfile
from pathlib import Path

from tests.reliability.fault import ROOT, Desk, Fault
from tests.reliability.inputs import INPUTS
from tests.reliability.outputs import OUTPUTS
from tests.reliability.reruns import RERUNS
from tests.reliability.runs import RUNS

PAGE = ROOT / "docs" / "reliability.md"
SECTIONS = {
    "Texts and their files": INPUTS,
    "Outputs": OUTPUTS,
    "Runs again": RERUNS,
    "Models, options, limits, signals": RUNS,
}
HEAD = "| fault | what poolembed does | what it says | exit code |\n|---|---|---|---|\n"


def written_rows(section: str) -> list[str]:
    """The rows of a table as the page has them."""
    _, _, rest = PAGE.read_text("utf-8").partition(f"### {section}\n\n{HEAD}")
    return rest.partition("\n\n")[0].splitlines()


def observed(fault: Fault, models: Path) -> str:
    """The row of a fault, after it has been brought about in an empty folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return fault.row(fault.run(Desk(Path(folder).resolve(), models)))
        finally:
            os.chdir(before)


def main() -> None:
    """Bring every fault about, and write what was seen."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # as in the tests
    shared = Path(os.environ.get("POOLEMBED_SHARED") or ROOT.parent / "shared").resolve()
    tables = [
        f"### {section}\n\n{HEAD}" + "\n".join(observed(fault, shared / "zoo" / "models") for fault in faults)
        for section, faults in SECTIONS.items()
    ]
    text = PAGE.read_text("utf-8")
    start, end = (text.index(mark) for mark in ("<!-- faults -->\n", "<!-- end of faults -->"))
    body = "<!-- faults -->\n\n" + "\n\n".join(tables) + "\n\n"
    PAGE.write_text(text[:start] + body + text[end:], "utf-8")


if __name__ == "__main__":
    main()
