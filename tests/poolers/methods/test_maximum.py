import pytest
import torch

from poolembed.errors import PoolingError
from poolembed.poolers import MaxPool
from tests.poolers.batches import batch, packed, rows64

LENS = [3, 1, 40, 2]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("excluded", [None, [2, 0, 39, 1]])
def test_it_equals_a_loop(dtype, excluded):
    hidden = packed(LENS, dtype=dtype) - 3
    pooled = MaxPool()(hidden, batch(LENS, excluded=excluded))
    assert pooled.dtype == dtype
    skips = excluded or [0] * len(LENS)
    expected = [
        [max(token[k].item() for token in row[skip:]) for k in range(8)]
        for row, skip in zip(rows64(hidden, LENS), skips, strict=True)
    ]
    assert pooled.double().tolist() == expected


def test_an_empty_batch_gives_no_rows():
    assert MaxPool()(torch.zeros(0, 8), batch([])).shape == (0, 8)


def test_partial_prefill_is_refused():
    with pytest.raises(RuntimeError, match="partial prefill is not supported with MAX"):
        MaxPool()(packed([2]), batch([3], scheduled=[2]))


def test_hidden_states_of_another_batch_are_refused():
    with pytest.raises(PoolingError, match="do not fit"):
        MaxPool()(packed([8]), batch([3, 4]))
