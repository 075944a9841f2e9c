import math

import pytest
import torch

from poolembed.errors import PoolingError
from poolembed.poolers import MeanPool, MeanSqrtLenPool, WeightedMeanPool
from tests.poolers.batches import FLOAT32, batch, packed, rows64

LENS = [3, 1, 40, 2]
EXCLUDED = [1, 0, 17, 0]


def mean(row, skip):
    return sum(row[skip:]) / len(row[skip:])


def mean_sqrt_len(row, skip):
    return sum(row[skip:]) / math.sqrt(len(row[skip:]))


def weighted_mean(row, skip):
    total, weights = 0, 0
    for position, token in enumerate(row, start=1):
        if position > skip:
            total = total + position * token
            weights += position
    return total / weights


POOLS = [
    pytest.param(MeanPool, mean, id="MEAN"),
    pytest.param(MeanSqrtLenPool, mean_sqrt_len, id="MEAN_SQRT_LEN"),
    pytest.param(WeightedMeanPool, weighted_mean, id="WEIGHTED_MEAN"),
]


@pytest.mark.parametrize(("pool", "loop"), POOLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("excluded", [None, EXCLUDED])
def test_it_equals_a_float64_loop(pool, loop, dtype, excluded):
    hidden = packed(LENS, dtype=dtype)
    pooled = pool()(hidden, batch(LENS, excluded=excluded))
    assert pooled.dtype == torch.float32
    skips = excluded or [0] * len(LENS)
    expected = torch.stack([loop(row, skip) for row, skip in zip(rows64(hidden, LENS), skips, strict=True)])
    torch.testing.assert_close(pooled.double(), expected, **FLOAT32)


@pytest.mark.parametrize(("pool", "loop"), POOLS)
@pytest.mark.parametrize("max_chunk_bytes", [1, 16, 96])
def test_the_size_of_chunks_changes_nothing(pool, loop, max_chunk_bytes):
    hidden = packed(LENS)
    metadata = batch(LENS, excluded=EXCLUDED)
    assert torch.equal(pool(max_chunk_bytes)(hidden, metadata), pool()(hidden, metadata))


@pytest.mark.parametrize(("pool", "loop"), POOLS)
def test_a_single_token_is_its_own_mean(pool, loop):
    hidden = packed([1])
    assert torch.equal(pool()(hidden, batch([1])), hidden)


@pytest.mark.parametrize("pool", [MeanPool, WeightedMeanPool])
def test_the_mean_of_equal_tokens_is_the_token(pool):
    torch.testing.assert_close(pool()(torch.full((5, 8), 3.0), batch([5])), torch.full((1, 8), 3.0))


@pytest.mark.parametrize(("pool", "loop"), POOLS)
def test_an_empty_batch_gives_no_rows(pool, loop):
    pooled = pool()(torch.zeros(0, 8, dtype=torch.bfloat16), batch([]))
    assert pooled.shape == (0, 8)
    assert pooled.dtype == torch.float32


@pytest.mark.parametrize(("pool", "loop"), POOLS)
def test_partial_prefill_is_refused_by_name(pool, loop, request):
    name = request.node.callspec.id
    with pytest.raises(RuntimeError, match=f"partial prefill is not supported with {name} pooling"):
        pool()(packed([2]), batch([3], scheduled=[2]))


@pytest.mark.parametrize(("pool", "loop"), POOLS)
def test_hidden_states_of_another_batch_are_refused(pool, loop):
    with pytest.raises(PoolingError, match="do not fit"):
        pool()(packed([8]), batch([3, 4]))


@pytest.mark.parametrize(("pool", "loop"), POOLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_run_in_float32(pool, loop, dtype):
    """In half precision 4000 + 1 stays 4000, so a half-precision sum would stand still."""
    hidden = torch.ones(3000, 1, dtype=dtype)
    hidden[0] = 4096.0
    pooled = pool()(hidden, batch([3000]))
    assert pooled.double().item() == pytest.approx(loop(rows64(hidden, [3000])[0], 0).item(), rel=1e-5)


@pytest.mark.parametrize(("pool", "loop"), POOLS)
def test_a_row_is_the_same_to_the_bit_in_any_company(pool, loop):
    hidden = packed(LENS)
    together = pool()(hidden, batch(LENS))
    for index, row in enumerate(torch.split(hidden, LENS)):
        assert torch.equal(together[index], pool()(row, batch([len(row)]))[0])


@pytest.mark.parametrize(("pool", "loop"), POOLS)
def test_divisors_and_weights_are_float32_on_the_cpu(pool, loop):
    cursor = batch(LENS, excluded=EXCLUDED).get_pooling_cursor()
    parts = [pool().divisors(cursor), pool().token_weights(cursor)]
    assert parts[0].shape == (len(LENS),)
    assert {(part.dtype, part.device.type) for part in parts if part is not None} == {(torch.float32, "cpu")}
