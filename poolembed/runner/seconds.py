"""What computing costs, added up over all threads that compute."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Seconds:
    """Seconds spent so far; several threads may add to them at once.

    Attributes:
        pooling: from hidden states to pooled data in the host's memory. On a GPU these seconds contain the
            wait for the hidden states.
    """

    pooling: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @contextmanager
    def of_pooling(self) -> Iterator[None]:
        """Add the seconds until the exit."""
        started = time.perf_counter()
        try:
            yield
        finally:
            took = time.perf_counter() - started
            with self._lock:
                self.pooling += took
