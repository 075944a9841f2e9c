"""Freed memory stays with the process, unless its user has said what is to become of it."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a setting of glibc")

# Pages that a second, equal temporary makes the system hand out.
SCRIPT = """
import json, resource
import numpy as np
from poolembed.runner.memory import keep_freed_memory

def faults_of(work):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    work()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def work():
    np.ones(16_000_000, np.uint8)

before = [faults_of(work) for _ in range(3)]
kept = keep_freed_memory()
assert keep_freed_memory() == kept
work()
print(json.dumps([before, kept, [faults_of(work) for _ in range(3)]]))
"""


def measured(**environment):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(done.stdout)


def test_memory_of_temporaries_is_faulted_in_once():
    _, kept, after = measured()
    if not kept:
        pytest.skip("the C library has no such setting")
    assert kept > 16_000_000
    assert max(after) < 100


@pytest.mark.parametrize("name", ["MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"])
def test_what_the_user_set_stays(name):
    before, kept, after = measured(**{name: "131072"})
    assert kept == 0
    assert min(before + after) > 300
