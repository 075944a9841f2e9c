"""The one place that joins files and models: chunks in, the same chunks out with more columns.

In: a job. Out: files, and a summary. Never: a file format, a tensor, a word to a person.
"""

from poolembed.pipeline.describe import ModelReport, report_model
from poolembed.pipeline.job import run_job
from poolembed.pipeline.run import Progress
from poolembed.pipeline.stop import StopRequest
from poolembed.pipeline.summary import RunSummary

__all__ = ["ModelReport", "Progress", "RunSummary", "StopRequest", "report_model", "run_job"]
