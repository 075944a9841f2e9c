"""The zoo's stored calls of transformers, and the same calls through the room."""

import json
import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.runner import load_runner

SHARED = Path(os.environ.get("POOLEMBED_SHARED") or Path(__file__).parents[3] / "shared")
ZOO = SHARED / "zoo"

# Where float32 references agree (zoo/README.md): vectors of length 1 and probabilities; raw values.
UNIT, RAW = 2e-5, 1e-4

EQUAL_LENGTH = ("deberta-v2-mean", "deberta-v2-seqcls", "t5-encoder-mean")
PACKED = (
    *("bert-cls", "bert-colbert", "bert-crossencoder", "bert-crossencoder-sigmoid", "bert-crossencoder-st5"),
    *("bert-dense-matryoshka", "bert-lasttoken", "bert-max", "bert-mean", "bert-mean-fp16"),
    *("bert-mean-nonorm", "bert-mean_sqrt", "bert-plain", "bert-prompts", "bert-seqcls"),
    *("bert-seqcls-multilabel", "bert-seqcls-regression", "bert-splade", "bert-tokencls"),
    *("bert-weightedmean", "distilbert-mean", "distilbert-seqcls", "electra-cls", "gemma3-bidirectional"),
    *("gpt2-seqcls", "llama-last", "mistral-last", "modernbert-cls", "modernbert-colbert"),
    *(
        "modernbert-seqcls-cls",
        "modernbert-seqcls-mean",
        "modernbert-tokencls",
        "mpnet-mean",
        "nomic-bert-mean",
    ),
    *("qwen2-last", "qwen2-prm", "qwen2-rm", "qwen3-causal-reranker", "qwen3-last", "qwen3-seqcls"),
    *("roberta-mean", "roberta-seqcls", "roberta-tokencls", "xlmroberta-bge-m3", "xlmroberta-cls"),
    "xlmroberta-crossencoder",
)
FAMILIES = (*PACKED, *EQUAL_LENGTH)

# Not asked of this room: codes of few bits; vectors normalised before they are cut, which is refused on
# purpose; scores of models that encode both texts apart.
_ELSEWHERE = ("precision", "markers", "prompts")
_SCORERS = (*(name for name in FAMILIES if "crossencoder" in name), "qwen3-causal-reranker", "qwen3-seqcls")
_WITH_DENSE = ("bert-dense-matryoshka", "gemma3-bidirectional", "t5-encoder-mean")


@dataclass(frozen=True, slots=True)
class Call:
    """One use of one family; `params` is JSON, as stored."""

    family: str
    task: str
    params: str = "{}"

    def __str__(self):
        named = json.loads(self.params).items()
        return "-".join([self.family, self.task, *(f"{name}={value}" for name, value in named)])

    @property
    def wanted(self):
        return json.loads(self.params)

    @property
    def has_options(self):
        """Whether the model must be loaded with options of the user for it."""
        return bool(self.wanted.keys() - {"prompt_name", "input_type", "head"})


@dataclass(frozen=True, slots=True)
class Stored:
    """What transformers gave for an input; `output` is None where it refused."""

    input_id: str
    output: np.ndarray | None
    token_ids: list[int] | None


def _is_ours(call):
    wanted = call.wanted
    if wanted.keys() & set(_ELSEWHERE) or wanted.get("normalize") == "before":
        return False
    if call.task == "token_embed" and wanted.keys() & {"stage", "normalize"}:
        # Token vectors of these go through layers of their own, which these references leave out.
        return call.family not in ("xlmroberta-bge-m3", *(_WITH_DENSE if "stage" in wanted else ()))
    return call.task != "score" or call.family in _SCORERS


@cache
def _table(family):
    wanted = ["input_id", "reference", "task", "params", "output", "shape", "token_ids"]
    return pq.read_table(
        ZOO / "expected" / f"{family}.parquet",
        columns=wanted,
        filters=[("reference", "=", "transformers")],
    ).to_pylist()


@cache
def calls(*families):
    """Every stored call of transformers that this room answers."""
    found = {}
    for family in families or FAMILIES:
        file = ZOO / "expected" / f"{family}.parquet"
        if not file.exists():
            continue
        names = pq.read_table(file, columns=["reference", "task", "params"])
        for reference, task, params in zip(*(column.to_pylist() for column in names.columns), strict=True):
            if reference == "transformers":
                found[Call(family, task, params)] = None
    return tuple(call for call in found if _is_ours(call))


@cache
def stored(call):
    """What transformers gave for each input of a call."""
    return [
        Stored(
            row["input_id"],
            None if row["output"] is None else np.asarray(row["output"], np.float32).reshape(row["shape"]),
            list(row["token_ids"]) if row["token_ids"] else None,
        )
        for row in _table(call.family)
        if (row["task"], row["params"]) == (call.task, call.params)
    ]


@cache
def inputs():
    """Texts by id; a pair is a tuple, and each half of it has an id of its own."""
    found = {}
    for name in ("texts", "spans", "steps", "pairs"):
        for line in (ZOO / "inputs" / f"{name}.jsonl").read_text("utf-8").rstrip("\n").split("\n"):
            row = json.loads(line)
            if name != "pairs":
                found[row["id"]] = row["text"]
                continue
            found[row["id"]] = (row["query"], row["document"])
            found[f"{row['id']}:query"], found[f"{row['id']}:document"] = row["query"], row["document"]
    return found


@cache
def load(family, options=(), overrides=(), device="cpu", dtype="float32"):
    """A family's runner with a budget of 512 tokens; shared, so whoever changes it changes it back."""
    model = ModelConfig(
        model=str(ZOO / "models" / family), device=device, dtype=dtype, overrides=tuple(overrides)
    )
    return load_runner(model, PoolerConfig(**dict(options)), 512)


def runner_of(call, **where):
    """The runner that a call needs, as a user would ask for it."""
    wanted, options, overrides = call.wanted, [], []
    use = wanted.get("normalize", wanted.get("use_activation"))
    if wanted.get("stage") == "hidden":
        use = False
    if use is not None:
        options.append(("use_activation", use))
    if "dimensions" in wanted:
        options.append(("dimensions", wanted["dimensions"]))
        # The EmbeddingGemma layout keeps the list of dimensions in its model card alone.
        if call.family == "gemma3-bidirectional":
            overrides.append(("is_matryoshka", "true"))
    if "activation" in wanted:
        overrides.append(("activation", wanted["activation"]))
    if "template" in wanted:
        overrides.append(("template", "none"))
    return load(call.family, tuple(options), tuple(overrides), **where)


def task_of(call):
    """The pooling task behind a stored call."""
    return "classify" if call.task == "score" else call.task


def tokenize(runner, call, input_ids):
    """Tokens of some inputs, as the call asks for them."""
    texts = [inputs()[_half(call, input_id)] for input_id in input_ids]
    if isinstance(texts[0], tuple):
        return runner.tokenizers.pairs()(*zip(*texts, strict=True))
    if "input_type" in call.wanted:
        return runner.tokenizers.role(call.wanted["input_type"])(texts)
    return runner.tokenizers.texts(_prompt(runner, call))(texts)


def _half(call, input_id):
    role = call.wanted.get("input_type")
    return f"{input_id}:{role}" if role and isinstance(inputs()[input_id], tuple) else input_id


def _prompt(runner, call):
    wanted = call.wanted
    if "prompt_name" in wanted and wanted["prompt_name"] is None:
        return ""
    # Only embeddings are asked for with the prompt that the checkpoint puts before every text.
    return runner.tokenizers.prompt(wanted.get("prompt_name")) if call.task == "embed" else ""


def tolerance(runner, call):
    """Largest difference that float32 explains."""
    params = runner.params(task_of(call))
    bounded = runner.spec.activation in ("normalize", "sigmoid", "softmax")
    return UNIT if params.use_activation and bounded else RAW


def answers(runner, call, input_ids, *, alone=False):
    """Token ids and pooled data (None for a failed row) of each input, in order."""
    pairs = [input_id for input_id in input_ids if isinstance(inputs()[_half(call, input_id)], tuple)]
    groups = [pairs, [input_id for input_id in input_ids if input_id not in pairs]]
    if alone:
        groups = [[input_id] for input_id in input_ids]
    found = {}
    for group in filter(None, groups):
        tokenized = tokenize(runner, call, group)
        found.update(zip(group, _rows(runner, call, tokenized), strict=True))
    return [found[input_id] for input_id in input_ids]


def _rows(runner, call, tokenized):
    pooled = runner.pool(tokenized, runner.params(task_of(call)))
    kept = np.ones(len(tokenized.token_ids), np.bool_) if tokenized.kept is None else tokenized.kept
    ends = np.cumsum(tokenized.lengths)[:-1]
    ids = [
        row[wanted]
        for row, wanted in zip(np.split(tokenized.token_ids, ends), np.split(kept, ends), strict=True)
    ]
    values = pooled.values
    rows = values if pooled.lengths is None else np.split(values, np.cumsum(pooled.lengths)[:-1])
    return [
        (row_ids.tolist(), None if number in pooled.failures else row)
        for number, (row_ids, row) in enumerate(zip(ids, rows, strict=True))
    ]


def differences(runner, call, *, budget=512, alone=False):
    """What differs from the stored call, by input id; empty where nothing does."""
    runner, expected, limit = replace(runner, batch_tokens=budget), stored(call), tolerance(runner, call)
    found = answers(runner, call, [row.input_id for row in expected], alone=alone)
    wrong = {}
    for row, (token_ids, output) in zip(expected, found, strict=True):
        problem = _problem(row, token_ids, output, limit)
        if problem:
            wrong[row.input_id] = problem
    return wrong


def _problem(row, token_ids, output, limit):
    if row.output is None or output is None:
        return None if row.output is output is None else "one of both refuses it"
    if row.token_ids is not None and token_ids != row.token_ids:
        return f"{len(token_ids)} token ids are not the {len(row.token_ids)} stored ones"
    if output.size != row.output.size:
        return f"shape {output.shape}, stored {row.output.shape}"
    error = np.abs(output - row.output.reshape(output.shape)).max(initial=0.0)
    return None if error <= limit else f"differs by {error:.1e}, allowed {limit:.0e}"
