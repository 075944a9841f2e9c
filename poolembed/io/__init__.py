"""Files to chunks of rows, and chunks with their results to files.

In: paths, and the names of the texts that every row must bring.
Out: `RowChunk`, in input order; Parquet files that are there whole or not at all.
Never: a model, a tokenizer, a tensor; a type guessed from text; a row that is neither out nor rejected.
"""

from poolembed.io.atomic import replace_text
from poolembed.io.chunk import Reject, RowChunk, TextRole
from poolembed.io.explode import explode, exploded_columns
from poolembed.io.metadata import read_metadata
from poolembed.io.opening import open_input
from poolembed.io.publish import check_remote, publish
from poolembed.io.result_arrays import num_true, result_table
from poolembed.io.sink import Sink, open_sink
from poolembed.io.source import Source, open_source
from poolembed.io.store import FreshBlock, JobFolder, Lookup, ResultStore, open_job_folder, text_keys
from poolembed.io.target import OutputTarget, plan_output

__all__ = [
    "FreshBlock",
    "JobFolder",
    "Lookup",
    "OutputTarget",
    "Reject",
    "ResultStore",
    "RowChunk",
    "Sink",
    "Source",
    "TextRole",
    "check_remote",
    "explode",
    "exploded_columns",
    "num_true",
    "open_input",
    "open_job_folder",
    "open_sink",
    "open_source",
    "plan_output",
    "publish",
    "read_metadata",
    "replace_text",
    "result_table",
    "text_keys",
]
