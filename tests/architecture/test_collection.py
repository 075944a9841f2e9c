"""The end of a command does not go through all objects for garbage."""

import subprocess
import sys

# Prints how many objects are left out of collections when the command ends.
LEAVE = """
import gc, sys
from poolembed.__main__ import main
sys.argv = ["poolembed", "--version"]
print(gc.get_freeze_count())
try:
    main()
except SystemExit as end:
    print(end.code, gc.get_freeze_count() > 0)
"""


def test_the_command_leaves_without_a_search_for_garbage():
    done = subprocess.run([sys.executable, "-c", LEAVE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert (lines[0], lines[-1]) == ("0", "0 True")
