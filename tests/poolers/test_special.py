from types import SimpleNamespace

import pytest
import torch
from torch import nn

from poolembed.config import PoolerConfig
from poolembed.poolers import (
    AllPool,
    BgeM3Pooler,
    BOSEOSFilter,
    IdentityPooler,
    LateChunkingParams,
    PoolingParams,
    PoolingParamsUpdate,
    StepPool,
    TokenEmbeddingPoolerHead,
    TokenPooler,
    pooler_for_embed,
    pooler_for_token_classify,
)
from tests.poolers.batches import FLOAT32, batch, packed

BOS, EOS = 1, 2
IDS = [[BOS, 7, 8, EOS], [7, EOS], [BOS], [EOS], [7, 8, 7]]
LENS = [len(row) for row in IDS]


def test_the_identity_pooler_hands_hidden_states_on():
    hidden = packed([2])
    assert IdentityPooler()(hidden, batch([2], "plugin")) is hidden
    assert IdentityPooler().get_supported_tasks() == {"plugin"}
    assert IdentityPooler().get_pooling_updates("plugin") == PoolingParamsUpdate()


def filtered(bos=-1, eos=-1, width=8):
    hidden = packed(LENS, width=width)
    rows = BOSEOSFilter(TokenPooler(AllPool()), bos, eos)(hidden, batch(LENS, "token_embed", ids=IDS))
    return list(torch.split(hidden, LENS)), rows


@pytest.mark.parametrize(
    ("bos", "eos", "kept"),
    [
        (-1, -1, [slice(0, 4), slice(0, 2), slice(0, 1), slice(0, 1), slice(0, 3)]),
        (BOS, -1, [slice(1, 4), slice(0, 2), slice(1, 1), slice(0, 1), slice(0, 3)]),
        (-1, EOS, [slice(0, 3), slice(0, 1), slice(0, 1), slice(0, 0), slice(0, 3)]),
        (BOS, EOS, [slice(1, 3), slice(0, 1), slice(1, 1), slice(0, 0), slice(0, 3)]),
    ],
)
def test_special_tokens_are_dropped_where_they_are(bos, eos, kept):
    rows, out = filtered(bos, eos)
    for row, result, part in zip(rows, out, kept, strict=True):
        assert torch.equal(result, row[part])


def test_a_lone_token_that_begins_and_ends_goes_once():
    hidden = packed([1])
    (row,) = BOSEOSFilter(TokenPooler(AllPool()), 3, 3)(hidden, batch([1], "token_embed", ids=[[3]]))
    assert row.shape == (0, 8)


def test_token_id_zero_can_be_dropped():
    hidden = packed([3])
    pooler = BOSEOSFilter(TokenPooler(AllPool()), 0, 0)
    (row,) = pooler(hidden, batch([3], "token_embed", ids=[[0, 5, 0]]))
    assert torch.equal(row, hidden[1:2])


def test_one_weight_a_token_comes_flat():
    rows, out = filtered(BOS, EOS, width=1)
    assert [row.shape for row in out] == [(2,), (1,), (0,), (0,), (3,)]
    assert torch.equal(out[0], rows[0][1:3, 0])


def test_late_chunks_stay_as_they_are():
    hidden = packed([4], width=1)
    params = [PoolingParams(task="token_embed", late_chunking_params=LateChunkingParams(2))]
    pooler = BOSEOSFilter(TokenPooler(AllPool(), TokenEmbeddingPoolerHead()), BOS, EOS)
    (row,) = pooler(hidden, batch([4], params=params, ids=IDS[:1]))
    assert row.shape == (2, 1)


def test_unfinished_rows_stay_none():
    pooler = BOSEOSFilter(TokenPooler(AllPool()), BOS, EOS)
    assert pooler(packed([2]), batch([4], "token_embed", scheduled=[2], ids=IDS[:1])) == [None]


def test_the_filter_serves_what_it_wraps_and_reads_ids():
    for wrapped in (AllPool(), StepPool()):
        pooler = BOSEOSFilter(TokenPooler(wrapped))
        assert pooler.get_supported_tasks() == {"token_embed", "token_classify"}
        assert pooler.get_pooling_updates("token_embed") == PoolingParamsUpdate(requires_token_ids=True)
    with pytest.raises(ValueError, match="no token ids"):
        BOSEOSFilter(TokenPooler(AllPool()))(packed([2]), batch([2], "token_embed"))


def bge_m3(classifier):
    config = PoolerConfig(seq_pooling_type="CLS", tok_pooling_type="ALL")
    model = SimpleNamespace(hf_config=SimpleNamespace())
    sparse = pooler_for_token_classify(config, model_config=model, classifier=classifier, act_fn=torch.relu)
    return BgeM3Pooler(BOSEOSFilter(sparse, BOS, EOS), pooler_for_embed(config))


def test_bge_m3_joins_dense_and_sparse():
    torch.manual_seed(0)
    classifier = nn.Linear(8, 1).requires_grad_(False)
    hidden = packed(LENS)
    out = bge_m3(classifier)(hidden, batch(LENS, "embed&token_classify", ids=IDS))
    kept = [slice(1, 3), slice(0, 1), slice(1, 1), slice(0, 0), slice(0, 3)]
    for row, tokens, part in zip(out, torch.split(hidden.double(), LENS), kept, strict=True):
        dense = tokens[0] / tokens[0].square().sum().sqrt()
        weights = (tokens @ classifier.weight.double().flatten() + classifier.bias.double()).clamp(min=0)[
            part
        ]
        torch.testing.assert_close(row.double(), torch.cat([dense, weights]), **FLOAT32)


def test_bge_m3_flattens_weights_that_come_in_columns():
    config = PoolerConfig(seq_pooling_type="CLS", tok_pooling_type="ALL")
    hidden = packed([3])
    (row,) = BgeM3Pooler(TokenPooler(AllPool()), pooler_for_embed(config))(
        hidden, batch([3], "embed&token_classify")
    )
    assert row.shape == (8 + 24,)
    assert torch.equal(row[8:], torch.cat(list(hidden)))


def test_bge_m3_waits_for_unfinished_rows():
    config = PoolerConfig(seq_pooling_type="LAST", tok_pooling_type="ALL")
    pooler = BgeM3Pooler(TokenPooler(AllPool()), pooler_for_embed(config))
    assert pooler(packed([2]), batch([4], "embed&token_classify", scheduled=[2])) == [None]


def test_bge_m3_serves_its_own_task_and_needs_what_its_parts_need():
    pooler = bge_m3(nn.Linear(8, 1))
    assert pooler.get_supported_tasks() == {"embed&token_classify"}
    assert pooler.get_pooling_updates("embed&token_classify").requires_token_ids is True
    config = PoolerConfig(seq_pooling_type="CLS", tok_pooling_type="ALL")
    plain = BgeM3Pooler(TokenPooler(AllPool()), pooler_for_embed(config))
    assert plain.get_pooling_updates("embed&token_classify").requires_token_ids is False


def test_parts_are_asked_about_their_own_tasks():
    class Asked(IdentityPooler):
        def __init__(self):
            super().__init__()
            self.tasks = []

        def get_pooling_updates(self, task):
            self.tasks.append(task)
            return PoolingParamsUpdate(requires_token_ids=task == "embed")

    sparse, dense = Asked(), Asked()
    assert BgeM3Pooler(sparse, dense).get_pooling_updates("embed&token_classify").requires_token_ids is True
    assert (sparse.tasks, dense.tasks) == (["token_classify"], ["embed"])
