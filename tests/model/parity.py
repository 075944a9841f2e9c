"""Which calls of `PoolingModel` are compared with which stored outputs of the reference libraries.

`python -m tests.model.parity` writes the table of docs/tasks.md anew.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tasks.md"
GROUND_TRUTH = "transformers"

# Float32 references agree to 1e-4 on raw values (zoo/README.md); where they do not, one of them is wrong.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Case:
    """A method on a family, and the stored calls that must give the same.

    Attributes:
        command: the command that does it.
        family: folder in the zoo.
        task: pooling task of the stored calls.
        params: their parameters.
        call: from model and texts (pairs where the stored calls had pairs) to one array a text.
        of_reference: from a stored output and its token ids to what `call` gives, or None where the reference
            was given less than the command reads; None takes it as it is.
    """

    command: str
    family: str
    task: str
    call: object
    params: dict = field(default_factory=dict)
    of_reference: object = None


def embed(model, texts):
    return model.embed(texts)


def classify(model, texts):
    return [result.probs for result in model.classify(texts)]


def values(model, texts):
    return model.encode(texts, "classify")


def raw_classes(model, texts):
    from poolembed import PoolingParams

    return [result.probs for result in model.classify(texts, PoolingParams(use_activation=False))]


def tokens(model, texts):
    return model.token_embed(texts)


def documents(model, texts):
    return model.token_embed(texts, role="document")


def queries(model, texts):
    return model.token_embed(texts, role="query")


def splade(model, texts):
    size = model.runner.pooler.decoder_weight.shape[0]
    ids = {token: row for row, token in enumerate(model.runner.tokenizers.vocabulary(size))}
    dense = np.zeros((len(texts), size), np.float32)
    for row, weights in enumerate(model.sparse(texts)):
        dense[row, [ids[token] for token in weights]] = list(weights.values())
    return dense


def lexical(model, texts):
    vocabulary = model.runner.tokenizers.tokenizer.get_vocab()
    sorted_by_id = [sorted((vocabulary[t], w) for t, w in weights.items()) for weights in model.sparse(texts)]
    return [np.asarray(pairs, np.float64).reshape(-1, 2) for pairs in sorted_by_id]


def lexical_of_reference(output, token_ids):
    """BGE-M3's rule in a loop: the largest weight of each token; none for special tokens (ids 0 to 3)."""
    largest = {}
    for token_id, weight in zip(token_ids[1:-1], output.ravel(), strict=True):
        if token_id > 3 and weight > 0:
            largest[token_id] = max(weight, largest.get(token_id, 0.0))
    return np.asarray(sorted(largest.items()), np.float64).reshape(-1, 2)


def scores(model, pairs):
    return model.score([query for query, _ in pairs], [document for _, document in pairs])


def raw_scores(model, pairs):
    from poolembed import PoolingParams

    raw = PoolingParams(use_activation=False)
    return model.score([query for query, _ in pairs], [document for _, document in pairs], raw)


def ranked(model, pairs):
    """The score of each pair in the ranking of its query's documents, which must go down."""
    found = {}
    for query in dict.fromkeys(query for query, _ in pairs):
        documents = [document for one, document in pairs if one == query]
        ranking = model.rerank(query, documents)
        assert sorted(one.index for one in ranking) == list(range(len(documents)))
        assert [one.score for one in ranking] == sorted((one.score for one in ranking), reverse=True)
        found.update({(query, one.text): one.score for one in ranking})
    return [found[pair] for pair in pairs]


def number(output, _):
    """A stored score, which some references give as a list of one."""
    return output.reshape(())


def entities(model, texts):
    labels = model.runner.spec.labels
    return [
        np.asarray([(labels.index(one.label), one.score) for one in found], np.float64).reshape(-1, 2)
        for found in model.token_classify(texts, aggregation="none")
    ]


def entities_of_reference(output, token_ids):
    """The rule of transformers' pipeline: each token of text by its likeliest class, but for class 0, `O`."""
    if len(token_ids) >= 512:
        return None  # cut, where the command reads on
    own = [(row.argmax(), row.max()) for row in output[1:-1] if row.argmax()]
    return np.asarray(own, np.float64).reshape(-1, 2)


def rewards(model, texts):
    return model.reward(texts)


def token_rewards(model, texts):
    return model.reward(texts, level="token")


RAW = {"use_activation": False}
EMBEDDING = (
    *("bert-cls", "bert-dense-matryoshka", "bert-lasttoken", "bert-max", "bert-mean", "bert-mean-fp16"),
    *("bert-mean-nonorm", "bert-mean_sqrt", "bert-plain", "bert-prompts", "bert-weightedmean"),
    *("deberta-v2-mean", "distilbert-mean", "electra-cls", "gemma3-bidirectional", "llama-last"),
    *("mistral-last", "modernbert-cls", "mpnet-mean", "nomic-bert-mean", "qwen2-last", "qwen3-last"),
    *("roberta-mean", "t5-encoder-mean", "xlmroberta-bge-m3", "xlmroberta-cls"),
)
CLASSIFIERS = (
    *("bert-seqcls", "bert-seqcls-multilabel", "deberta-v2-seqcls", "distilbert-seqcls", "gpt2-seqcls"),
    *("modernbert-seqcls-cls", "modernbert-seqcls-mean", "roberta-seqcls"),
)

BI_ENCODERS = ("bert-prompts", "qwen3-last")
CROSS_ENCODERS = (
    *("bert-crossencoder", "bert-crossencoder-sigmoid", "bert-crossencoder-st5", "xlmroberta-crossencoder"),
    *("qwen3-seqcls", "qwen3-causal-reranker"),
)
LATE_INTERACTION = ("bert-colbert", "modernbert-colbert")
TOKEN_CLASSIFIERS = ("bert-tokencls", "modernbert-tokencls", "roberta-tokencls")

CASES = [
    *(Case("embed", family, "embed", embed) for family in EMBEDDING),
    *(Case("classify", family, "classify", classify) for family in CLASSIFIERS),
    Case("classify", "bert-seqcls-regression", "classify", values),
    *(Case("classify --no-activation", family, "classify", raw_classes, RAW) for family in CLASSIFIERS[:2]),
    Case("score", "bert-mean", "score", scores, {"prompts": False}, number),
    *(
        Case("score", family, "score", scores, {}, number)
        for family in BI_ENCODERS + CROSS_ENCODERS + LATE_INTERACTION
    ),
    *(
        Case("score --raw", family, "score", raw_scores, {"activation": "none"}, number)
        for family in CROSS_ENCODERS
    ),
    *(
        Case("rerank", family, "score", ranked, {}, number)
        for family in (BI_ENCODERS[0], *CROSS_ENCODERS[:2], LATE_INTERACTION[0])
    ),
    *(
        Case("token-classify", family, "token_classify", entities, {}, entities_of_reference)
        for family in TOKEN_CLASSIFIERS
    ),
    Case("token-embed", "bert-mean", "token_embed", tokens, {"normalize": True}),
    Case("token-embed", "xlmroberta-bge-m3", "token_embed", tokens, {"head": "colbert"}),
    *(
        Case(f"token-embed --role {role}", family, "token_embed", call, {"input_type": role})
        for family in ("bert-colbert", "modernbert-colbert")
        for role, call in (("document", documents), ("query", queries))
    ),
    Case("sparse", "bert-splade", "embed", splade),
    Case("sparse", "xlmroberta-bge-m3", "token_classify", lexical, {"head": "sparse"}, lexical_of_reference),
    Case("reward", "qwen2-rm", "classify", rewards),
    Case("reward --level token", "qwen2-rm", "token_classify", token_rewards, RAW),
    Case("reward", "qwen2-prm", "token_classify", rewards, {}, lambda output, _: output[:, 1]),
]


def inputs(zoo, names=("texts", "spans", "steps")):
    """The shared texts by id, and of pairs both texts."""
    rows = [
        json.loads(line)
        for name in names
        for line in (zoo / "inputs" / f"{name}.jsonl").read_text("utf-8").split("\n")
        if line
    ]
    texts = {row["id"]: row["text"] for row in rows if isinstance(row.get("text"), str)}
    return texts | {row["id"]: (row["query"], row["document"]) for row in rows if "query" in row}


def inputs_of(zoo, case):
    """What a case is computed for, by id."""
    return inputs(zoo, ("pairs",)) if case.task == "score" else inputs(zoo)


def stored(zoo, case):
    """Stored outputs of a case: reference -> input id -> array, in the form that the call gives."""
    texts = inputs_of(zoo, case)
    found = {}
    for row in pq.read_table(zoo / "expected" / f"{case.family}.parquet").to_pylist():
        if (row["task"], json.loads(row["params"])) != (case.task, case.params) or row["output"] is None:
            continue
        if row["input_id"] not in texts:
            continue
        output = np.asarray(row["output"]).reshape(row["shape"])
        if case.of_reference is not None:
            output = case.of_reference(output, row["token_ids"])
        if output is None:
            continue
        found.setdefault(row["reference"], {})[row["input_id"]] = output
    return found


def agreeing(outputs, truth):
    """The inputs whose stored output is that of transformers; elsewhere the zoo says why it is wrong."""
    return [
        name
        for name, output in outputs.items()
        if name in truth
        and output.shape == truth[name].shape
        and np.allclose(output, truth[name], rtol=0, atol=TOLERANCE)
    ]


def table(zoo):
    """The table of docs/tasks.md: for each case the references and the texts on which all agree."""
    lines = ["| command | model | references, and the texts compared |", "|---|---|---|"]
    for case in CASES:
        outputs = stored(zoo, case)
        counts = [
            f"{reference} {len(agreeing(found, outputs[GROUND_TRUTH]))}"
            for reference, found in sorted(outputs.items())
            if agreeing(found, outputs[GROUND_TRUTH])
        ]
        lines.append(f"| `{case.command}` | {case.family} | {', '.join(counts)} |")
    return "\n".join(lines) + "\n"


def written_table():
    """The table as the page has it."""
    return re.search(r"(?ms)^\| command \| model \| references.*?\n(?=\n|\Z)", PAGE.read_text("utf-8"))[0]


if __name__ == "__main__":
    import os

    zoo = Path(os.environ.get("POOLEMBED_SHARED") or ROOT.parent / "shared") / "zoo"
    PAGE.write_text(PAGE.read_text("utf-8").replace(written_table(), table(zoo)), "utf-8")
