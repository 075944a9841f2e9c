"""`poolembed reward`."""

import click

from poolembed.cli.command import task_command
from poolembed.cli.option import option
from poolembed.cli.options import TEXT_OPTIONS
from poolembed.cli.step_options import STEP_OPTIONS
from poolembed.config import LEVELS, RewardConfig

REWARD_OPTIONS = (
    option(
        "--level",
        type=click.Choice(LEVELS),
        help="What gets a reward: the text, each token, or each step; by default what the model is made for.",
    ),
)

HELP = """Give each row's text a reward, by a reward model.

The text is a whole conversation or solution, as the model's card writes it. The output
(answers.jsonl gives answers.reward.parquet) has the input's columns and

\b
  reward    of the text: what the model gives its last token
  rewards   of each token, or of each step, in order

A process-reward model judges a step where its text has the token that ends one; a reward is the
probability that the step is right, where the model has an output called `good`, and else all its outputs
in the order of the labels in the metadata. Rewards of texts and tokens are raw; --activation applies the
model's function. A language model judges steps by the probabilities of a few tokens, when it is told which:
`--tok-pooling-type STEP` with `--step-tag-id` and `--returned-token-ids`, as its card says.

\b
Examples:
  poolembed reward answers.jsonl --model my-reward-model
  poolembed reward solutions.jsonl --model my-process-reward-model
"""

reward = task_command(
    "reward",
    RewardConfig,
    (*TEXT_OPTIONS, *REWARD_OPTIONS, *STEP_OPTIONS),
    short_help="Give each row's text a reward.",
    help_text=HELP,
)
