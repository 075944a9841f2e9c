"""`poolembed classify`."""

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import LONG_TEXT_OPTIONS, TEXT_OPTIONS
from poolembed.config import ClassifyConfig

CLASSIFY_OPTIONS = (
    option(
        "--threshold",
        type=float,
        metavar="P",
        help="Models of several labels: probability from which a class is in `labels`; 0.5 by default.",
    ),
    option("--top-k", type=int, metavar="K", help="Write the K best classes as `top`, instead of `probs`."),
)

HELP = """Give each row's text a class, by a model with a classification head.

The output (reviews.jsonl gives reviews.classify.parquet) has the input's columns and

\b
  label, score  the best class and its probability
  labels        every class from --threshold up (models of several labels)
  probs         all probabilities, in the order of the labels in the metadata
  values        the numbers of a regression, in place of all these

A model of several labels gives each its own probability (sigmoid), others share one among all (softmax).
With `--no-activation` the numbers are logits, and `probs` is called `logits`. With `--on-long windows`
the probabilities of a long text are the means over its windows, weighted by their tokens of text; with
`--on-long window-rows` every window is a row with `window`, `start` and `end`, and `labels` is left out.

\b
Examples:
  poolembed classify reviews.jsonl --model my-classifier
  poolembed classify reviews.jsonl --model my-classifier --top-k 3
"""

classify = task_command(
    "classify",
    ClassifyConfig,
    (*TEXT_OPTIONS, *LONG_TEXT_OPTIONS, *CLASSIFY_OPTIONS),
    short_help="Give each row's text a class.",
    help_text=HELP,
)
