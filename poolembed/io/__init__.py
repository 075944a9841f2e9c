"""Files to chunks of rows, and chunks with their results to files.

In: paths, and the names of the texts that every row must bring.
Out: `RowChunk`, in input order; Parquet files that are there whole or not at all.
Never: a model, a tokenizer, a tensor; a type guessed from text; a row that is neither out nor rejected.
"""

from poolembed.io.chunk import Reject, RowChunk, TextRole
from poolembed.io.explode import explode, exploded_columns
from poolembed.io.metadata import read_metadata
from poolembed.io.opening import open_input
from poolembed.io.sink import Sink, open_sink
from poolembed.io.source import Source, open_source
from poolembed.io.target import OutputTarget, plan_output

__all__ = [
    "OutputTarget",
    "Reject",
    "RowChunk",
    "Sink",
    "Source",
    "TextRole",
    "explode",
    "exploded_columns",
    "open_input",
    "open_sink",
    "open_source",
    "plan_output",
    "read_metadata",
]
