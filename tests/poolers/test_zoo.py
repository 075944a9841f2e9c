"""The room on the hidden states of tiny checkpoints, against stored outputs of transformers.

The checkpoints run here as in the reference, one text at a time; their hidden states are packed and
go through the poolers of this room. How a folder is read is not tested here.
"""

import json
import os
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from poolembed.config import PoolerConfig
from poolembed.poolers import (
    AllPool,
    BOSEOSFilter,
    DispatchPooler,
    PoolingParams,
    SpladePooler,
    TokenEmbeddingPoolerHead,
    TokenPooler,
    pooler_for_classify,
    pooler_for_embed,
    pooler_for_token_classify,
)
from poolembed.poolers.activations import PoolerNormalize
from tests.poolers.batches import batch

SHARED = Path(os.environ.get("POOLEMBED_SHARED", Path(__file__).parents[3] / "shared"))
ZOO = SHARED / "zoo"
pytestmark = pytest.mark.skipif(not ZOO.is_dir(), reason=f"needs {ZOO} (POOLEMBED_SHARED)")
transformers = pytest.importorskip("transformers")
parquet = pytest.importorskip("pyarrow.parquet")
load_file = pytest.importorskip("safetensors.torch").load_file

# Where float32 references agree (zoo/README.md): vectors of length 1 and probabilities; raw values.
UNIT = {"rtol": 0.0, "atol": 2e-5}
RAW = {"rtol": 0.0, "atol": 1e-4}


def stored(family, task="embed", **params):
    """The stored calls of a family: token ids, and outputs as matrices or vectors."""
    table = parquet.read_table(ZOO / "expected" / f"{family}.parquet").to_pylist()
    rows = [
        row
        for row in table
        if (row["reference"], row["task"]) == ("transformers", task)
        and json.loads(row["params"]) == params
        and row["output"] is not None
        and row["input_id"].startswith(("t", "s"))
    ]
    assert len(rows) > 5
    outputs = [torch.tensor(row["output"]).reshape(row["shape"]) for row in rows]
    return [row["token_ids"] for row in rows], outputs


@cache
def model(family, kind="AutoModel"):
    return (
        getattr(transformers, kind)
        .from_pretrained(ZOO / "models" / family, attn_implementation="eager")
        .eval()
    )


@torch.no_grad()
def hidden_states(encoder, ids):
    """Packed hidden states of texts that ran one at a time."""
    return torch.cat([encoder(torch.tensor([row])).last_hidden_state[0] for row in ids])


def rows(ids, task, **params):
    parameters = [PoolingParams(task=task, **params) for _ in ids]
    return batch([len(row) for row in ids], params=parameters, ids=ids)


NO_LABELS = SimpleNamespace(hf_config=SimpleNamespace())


@pytest.mark.parametrize(
    ("family", "name", "normalized"),
    [
        ("bert-cls", "CLS", True),
        ("bert-mean", "MEAN", True),
        ("bert-mean-nonorm", "MEAN", False),
        ("bert-max", "MAX", False),
        ("bert-mean_sqrt", "MEAN_SQRT_LEN", False),
        ("bert-weightedmean", "WEIGHTED_MEAN", False),
        ("bert-lasttoken", "LAST", False),
    ],
)
@torch.no_grad()
def test_every_sequence_method(family, name, normalized):
    ids, expected = stored(family)
    pooler = pooler_for_embed(PoolerConfig(pooling_type=name))
    out = pooler(hidden_states(model(family), ids), rows(ids, "embed", use_activation=normalized))
    torch.testing.assert_close(out, torch.stack(expected), **(UNIT if normalized else RAW))


@torch.no_grad()
def test_token_embeddings():
    ids, expected = stored("bert-mean", "token_embed", normalize=True)
    pooler = DispatchPooler.for_embedding(PoolerConfig(seq_pooling_type="MEAN", tok_pooling_type="ALL"))
    out = pooler(hidden_states(model("bert-mean"), ids), rows(ids, "token_embed"))
    torch.testing.assert_close(out, expected, **UNIT)


def dense(family):
    """The dense layers of a sentence-transformers folder."""
    layers = []
    for folder in ("2_Dense", "3_Dense"):
        config = json.loads((ZOO / "models" / family / folder / "config.json").read_text())
        weights = load_file(ZOO / "models" / family / folder / "model.safetensors")
        layer = nn.Linear(config["in_features"], config["out_features"], bias=config["bias"])
        layer.load_state_dict({key.removeprefix("linear."): value for key, value in weights.items()})
        layers += [layer, nn.Tanh() if config["activation_function"].endswith("Tanh") else nn.Identity()]
    return nn.Sequential(*layers)


@pytest.mark.parametrize("dimensions", [None, 8, 16, 32, 48])
@torch.no_grad()
def test_projector_and_matryoshka(dimensions):
    family = "bert-dense-matryoshka"
    ids, expected = stored(family, **({} if dimensions is None else {"dimensions": dimensions}))
    pooler = pooler_for_embed(PoolerConfig(pooling_type="MEAN"), dense(family))
    out = pooler(hidden_states(model(family), ids), rows(ids, "embed", dimensions=dimensions))
    torch.testing.assert_close(out, torch.stack(expected), **UNIT)


@pytest.mark.parametrize("activated", [True, False])
@pytest.mark.parametrize("family", ["bert-seqcls", "bert-seqcls-multilabel", "bert-seqcls-regression"])
@torch.no_grad()
def test_sequence_classification(family, activated):
    ids, expected = stored(family, "classify", **({} if activated else {"use_activation": False}))
    classifier = model(family, "AutoModelForSequenceClassification")

    def pooling(states, metadata):
        first = states[metadata.get_pooling_cursor().first_token_indices_gpu]
        return classifier.bert.pooler.dense(first).tanh()

    pooler = pooler_for_classify(
        PoolerConfig(),
        model_config=SimpleNamespace(hf_config=classifier.config),
        pooling=pooling,
        classifier=classifier.classifier,
    )
    states = hidden_states(classifier.bert, ids)
    out = pooler(states, rows(ids, "classify", use_activation=activated))
    torch.testing.assert_close(out, torch.stack(expected), **(UNIT if activated else RAW))


@pytest.mark.parametrize("activated", [True, False])
@torch.no_grad()
def test_token_classification(activated):
    ids, expected = stored(
        "bert-tokencls", "token_classify", **({} if activated else {"use_activation": False})
    )
    classifier = model("bert-tokencls", "AutoModelForTokenClassification")
    pooler = pooler_for_token_classify(
        PoolerConfig(pooling_type="ALL"),
        model_config=SimpleNamespace(hf_config=classifier.config),
        classifier=classifier.classifier,
    )
    out = pooler(hidden_states(classifier.bert, ids), rows(ids, "token_classify", use_activation=activated))
    torch.testing.assert_close(out, expected, **(UNIT if activated else RAW))


@torch.no_grad()
def test_process_rewards():
    ids, expected = stored("qwen2-prm", "token_classify")
    weights = load_file(ZOO / "models" / "qwen2-prm" / "model.safetensors")
    head = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
    head.load_state_dict(
        {key.removeprefix("score."): v for key, v in weights.items() if key.startswith("score.")}
    )
    encoder = transformers.Qwen2Model.from_pretrained(ZOO / "models" / "qwen2-prm").eval()
    pooler = pooler_for_token_classify(
        PoolerConfig(pooling_type="STEP"), model_config=NO_LABELS, classifier=head
    )
    step = json.loads((ZOO / "expected" / "qwen2-prm.json").read_text())["expect"]["step_tag_id"]
    out = pooler(hidden_states(encoder, ids), rows(ids, "token_classify", step_tag_id=step))
    torch.testing.assert_close(out, expected, **UNIT)


@pytest.mark.parametrize("max_chunk_bytes", [64 * 1024, 16 * 1024 * 1024])
@torch.no_grad()
def test_splade(max_chunk_bytes):
    ids, expected = stored("bert-splade")
    masked = model("bert-splade", "AutoModelForMaskedLM")
    head = masked.cls.predictions
    pooler = SpladePooler(
        head.transform, head.decoder.weight, head.decoder.bias, max_chunk_bytes=max_chunk_bytes
    )
    out = pooler(hidden_states(masked.bert, ids), rows(ids, "embed"))
    torch.testing.assert_close(out, torch.stack(expected), **RAW)


def bge_linear(name, out):
    layer = nn.Linear(64, out)
    layer.load_state_dict(torch.load(ZOO / "models" / "xlmroberta-bge-m3" / f"{name}.pt", weights_only=True))
    return layer


@torch.no_grad()
def test_bge_m3_token_vectors():
    ids, expected = stored("xlmroberta-bge-m3", "token_embed", head="colbert")
    head = TokenEmbeddingPoolerHead(bge_linear("colbert_linear", 64), torch.float32, PoolerNormalize())
    pooler = BOSEOSFilter(TokenPooler(AllPool(), head), bos_token_id=0)
    out = pooler(hidden_states(model("xlmroberta-bge-m3"), ids), rows(ids, "token_embed"))
    torch.testing.assert_close(out, expected, **UNIT)


@torch.no_grad()
def test_bge_m3_token_weights():
    ids, expected = stored("xlmroberta-bge-m3", "token_classify", head="sparse")
    sparse = pooler_for_token_classify(
        PoolerConfig(pooling_type="ALL"),
        model_config=NO_LABELS,
        classifier=bge_linear("sparse_linear", 1),
        act_fn=torch.relu,
    )
    pooler = BOSEOSFilter(sparse, bos_token_id=0, eos_token_id=2)
    out = pooler(hidden_states(model("xlmroberta-bge-m3"), ids), rows(ids, "token_classify"))
    torch.testing.assert_close([row.reshape(-1) for row in out], [e.reshape(-1) for e in expected], **RAW)
