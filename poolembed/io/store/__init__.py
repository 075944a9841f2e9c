"""Results by the content of their texts, so that nothing is computed twice.

In: texts, and the results of those that were not known.
Out: the results of every row, whoever computed them: this run, an interrupted one, or the one that made
the output that stands there.
Never: a result of other settings; a result that is half-written.
"""

from poolembed.io.store.blocks import FreshBlock
from poolembed.io.store.folder import JobFolder, open_job_folder
from poolembed.io.store.keys import NO_KEY, Keys, text_keys
from poolembed.io.store.results import Lookup, ResultStore

__all__ = [
    "NO_KEY",
    "FreshBlock",
    "JobFolder",
    "Keys",
    "Lookup",
    "ResultStore",
    "open_job_folder",
    "text_keys",
]
