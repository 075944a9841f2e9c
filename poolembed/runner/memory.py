"""Memory of freed temporaries is kept for the next batch instead of going back to the system.

A batch makes and frees the same large temporaries again and again. By default glibc hands them back to the
system, which clears every page anew at the next batch: a third of the time for batches of 8192 tokens.
"""

import ctypes
import os
import sys

# Numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

# Blocks up to here come from memory that is kept. Older releases of glibc take at most the second.
KEPT_BYTES = (1 << 30, 32 << 20)

# What a user sets for themselves is left alone.
_OWN_SETTINGS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> int:
    """Let the C library keep what is freed, for the whole process; repeating it changes nothing.

    Returns:
        Bytes of the largest block that is kept; 0 where the C library has no such setting, or the
        environment has settings of its own.
    """
    if sys.platform != "linux" or any(name in os.environ for name in _OWN_SETTINGS):
        return 0
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # pragma: no cover - musl
        return 0
    for size in KEPT_BYTES:
        # Both or none: with one of them alone glibc stops to adapt the other.
        if mallopt(_M_MMAP_THRESHOLD, size) and mallopt(_M_TRIM_THRESHOLD, size):
            return size
    return 0  # pragma: no cover - glibc takes the second
