"""Results live where the hidden states do.

The meta device has no values but knows its tensors, and refuses to mix them with those of the CPU: it
finds a tensor that was made on the wrong device on machines without an accelerator.
"""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from poolembed.config import SEQ_POOLING_TYPES, PoolerConfig
from poolembed.poolers import (
    BOSEOSFilter,
    DispatchPooler,
    LateChunkingParams,
    PoolingParams,
    TokenPooler,
    compute_maxsim_one_to_many,
    compute_maxsim_score_batched,
    get_seq_pooling_method,
    get_tok_pooling_method,
)
from poolembed.poolers.token_heads import chunk_means
from tests.poolers.batches import batch

LENS = [3, 1, 4]
META = torch.device("meta")


def on_meta(metadata):
    lens = metadata.prompt_lens
    metadata.build_pooling_cursor(lens, lens, META)
    return metadata


def hidden():
    return torch.zeros(sum(LENS), 8, device=META)


@pytest.mark.parametrize("name", [*SEQ_POOLING_TYPES, "CLS+MEAN"])
@pytest.mark.parametrize("excluded", [None, [1, 0, 2]])
def test_sequence_methods(name, excluded):
    out = get_seq_pooling_method(name)(hidden(), on_meta(batch(LENS, excluded=excluded)))
    assert out.device == META


def test_token_methods_and_what_wraps_them():
    ids = [[1, 5, 2], [1], [5, 5, 5, 2]]
    pooler = BOSEOSFilter(TokenPooler(get_tok_pooling_method("ALL")), 1, 2)
    rows = pooler(hidden(), on_meta(batch(LENS, "token_embed", ids=ids)))
    assert [row.device for row in rows] == [META] * 3
    assert [len(row) for row in rows] == [1, 0, 3]


def test_cursors_follow_their_device_when_sliced():
    cursor = on_meta(batch(LENS)).get_pooling_cursor()
    assert cursor[1:].first_token_indices_gpu.device == META
    assert cursor[1:].finished_mask.device == torch.device("cpu")
    assert cursor.token_range(slice(1, 3)) == slice(3, 8)


def test_dispatch_of_mixed_tasks():
    params = [PoolingParams(task=task) for task in ("embed", "token_embed", "embed")]
    config = PoolerConfig(seq_pooling_type="MEAN", tok_pooling_type="ALL")
    pooler = DispatchPooler.for_embedding(config, nn.Linear(8, 5, device=META))
    out = pooler(hidden(), on_meta(batch(LENS, params=params)))
    assert [row.shape for row in out] == [(5,), (1, 5), (5,)]
    assert {row.device for row in out} == {META}


def test_classification():
    pooler = DispatchPooler.for_seq_cls(
        PoolerConfig(pooling_type="MEAN", logit_mean=1.0, logit_sigma=2.0),
        model_config=SimpleNamespace(hf_config=SimpleNamespace()),
        classifier=nn.Linear(8, 3, device=META),
    )
    assert pooler(hidden(), on_meta(batch(LENS, "classify"))).device == META


def test_late_chunks():
    assert chunk_means(hidden(), LateChunkingParams(3)).device == META


def test_late_interaction():
    queries = [torch.zeros(n, 4, device=META) for n in (2, 3)]
    documents = [torch.zeros(n, 4, device=META) for n in (5, 1)]
    assert compute_maxsim_one_to_many(queries[0], documents).device == META
    assert [score.device for score in compute_maxsim_score_batched(queries, documents)] == [META] * 2
