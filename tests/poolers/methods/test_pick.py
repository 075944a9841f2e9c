import pytest
import torch

from poolembed.errors import PoolingError
from poolembed.poolers import CLSPool, LastPool
from tests.poolers.batches import batch, packed

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", DTYPES)
def test_cls_is_the_first_token_of_each_row(dtype):
    hidden = packed([3, 1, 4], dtype=dtype)
    pooled = CLSPool()(hidden, batch([3, 1, 4]))
    assert pooled.dtype == dtype
    assert torch.equal(pooled, torch.stack([hidden[0], hidden[3], hidden[4]]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_last_is_the_last_token_of_each_row(dtype):
    hidden = packed([3, 1, 4], dtype=dtype)
    pooled = LastPool()(hidden, batch([3, 1, 4]))
    assert pooled.dtype == dtype
    assert torch.equal(pooled, torch.stack([hidden[2], hidden[3], hidden[7]]))


def test_cls_refuses_partial_prefill():
    with pytest.raises(RuntimeError, match="partial prefill is not supported with CLS"):
        CLSPool()(packed([2]), batch([3], scheduled=[2]))


def test_last_takes_the_last_scheduled_token_of_a_piece():
    hidden = packed([2, 4])
    pooled = LastPool()(hidden, batch([5, 4], scheduled=[2, 4]))
    assert torch.equal(pooled, torch.stack([hidden[1], hidden[5]]))


def test_cls_takes_the_first_token_after_an_excluded_prompt():
    hidden = packed([3, 1, 4])
    pooled = CLSPool()(hidden, batch([3, 1, 4], excluded=[1, 0, 3]))
    assert torch.equal(pooled, torch.stack([hidden[1], hidden[3], hidden[7]]))


def test_last_ignores_an_excluded_prompt():
    hidden = packed([3, 4])
    assert torch.equal(LastPool()(hidden, batch([3, 4], excluded=[2, 1])), hidden[[2, 6]])


@pytest.mark.parametrize("pool", [CLSPool(), LastPool()])
def test_an_empty_batch_keeps_its_width(pool):
    assert pool(torch.zeros(0, 8), batch([])).shape == (0, 8)


@pytest.mark.parametrize("pool", [CLSPool(), LastPool()])
def test_hidden_states_of_another_batch_are_refused(pool):
    with pytest.raises(PoolingError, match="do not fit"):
        pool(packed([6]), batch([3, 4]))
