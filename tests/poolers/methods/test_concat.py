import pytest
import torch

from poolembed.errors import PoolingError
from poolembed.poolers import CLSPool, ConcatPool, LastPool, MeanPool, PoolingParamsUpdate
from tests.poolers.batches import batch, packed

LENS = [3, 1, 4]


class IdReadingPool(LastPool):
    def get_supported_tasks(self):
        return {"embed", "plugin"}

    def get_pooling_updates(self, task):
        return PoolingParamsUpdate(requires_token_ids=True)


def test_vectors_follow_the_order_of_the_methods():
    hidden = packed(LENS)
    metadata = batch(LENS)
    pooled = ConcatPool([LastPool(), CLSPool()])(hidden, metadata)
    assert torch.equal(
        pooled, torch.stack([torch.cat([hidden[b], hidden[a]]) for a, b in ((0, 2), (3, 3), (4, 7))])
    )


def test_the_widest_dtype_wins():
    hidden = packed(LENS, dtype=torch.bfloat16)
    assert ConcatPool([CLSPool(), LastPool()])(hidden, batch(LENS)).dtype == torch.bfloat16
    assert ConcatPool([CLSPool(), MeanPool()])(hidden, batch(LENS)).dtype == torch.float32


def test_it_serves_what_all_parts_serve_and_needs_what_any_needs():
    both = ConcatPool([MeanPool(), IdReadingPool()])
    assert both.get_supported_tasks() == {"embed"}
    assert both.get_pooling_updates("embed") == PoolingParamsUpdate(requires_token_ids=True)
    assert ConcatPool([MeanPool()]).get_pooling_updates("embed") == PoolingParamsUpdate()
    assert ConcatPool([IdReadingPool(), MeanPool()]).get_pooling_updates("embed").requires_token_ids


def test_its_parts_are_modules_of_it():
    assert [type(part) for part in ConcatPool([MeanPool(), CLSPool()]).children().__next__()] == [
        MeanPool,
        CLSPool,
    ]


def test_nothing_cannot_be_concatenated():
    with pytest.raises(PoolingError, match="at least one"):
        ConcatPool([])
