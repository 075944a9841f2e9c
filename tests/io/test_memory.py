"""Memory does not grow with the number of rows."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unmeasured import unmeasured

ROOT = Path(__file__).parents[2]

SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from poolembed.config import InputConfig, OutputConfig
from poolembed.results import ResultColumn
from tests.io.conftest import writing

inputs = InputConfig(paths=(sys.argv[1],))
output = OutputConfig(output=sys.argv[2])
results = [ResultColumn("v", "float32", 64)]
with writing(inputs, output, results) as both:
    num_rows = 0
    for chunk in both.source.chunks(8192, 2**26):
        both.write(chunk, {"v": np.zeros((chunk.num_rows, 64), dtype=np.float32)})
        num_rows += chunk.num_rows
    both.sink.commit()
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(num_rows, int(status["VmHWM"].split()[0]) // 1024)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="needs Linux to tell the peak of memory"
    ),
]


def peak_mebibytes(num_rows: int, folder: Path, output: str) -> int:
    """Convert so many rows in a process of its own and return the peak of its resident memory."""
    path = folder / f"{num_rows}.jsonl"
    with path.open("w", encoding="utf-8") as handle:
        handle.writelines(
            json.dumps({"id": number, "text": f"row {number} " * 4, "tags": ["a"]}) + "\n"
            for number in range(num_rows)
        )
    command = [sys.executable, "-c", SCRIPT, str(path), f"{folder}/{output}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=unmeasured())
    rows, peak = map(int, done.stdout.split())
    assert rows == num_rows
    return peak


def test_five_times_the_rows_take_no_more_memory_and_a_single_file_one_row_group_more(tmp_path):
    few = peak_mebibytes(40_000, tmp_path, "few/")
    assert peak_mebibytes(200_000, tmp_path, "many/") < 1.2 * few
    assert peak_mebibytes(200_000, tmp_path, "single.parquet") < few + 160
