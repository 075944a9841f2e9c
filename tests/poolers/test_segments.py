import pytest
import torch

from poolembed.errors import PoolingError, PoolingStateError
from poolembed.poolers.segments import (
    MAX_CHUNK_BYTES,
    check_packed,
    check_whole,
    segment_ids,
    segment_maxima,
    segment_sums,
)
from tests.poolers.batches import FLOAT32, batch, packed, rows64


def test_ids_name_the_row_of_every_token():
    cursor = batch([2, 1, 3]).get_pooling_cursor()
    assert segment_ids(cursor, torch.device("cpu")).tolist() == [0, 0, 1, 2, 2, 2]


def test_excluded_tokens_belong_to_no_row():
    cursor = batch([2, 1, 3], excluded=[1, 0, 2]).get_pooling_cursor()
    assert segment_ids(cursor, torch.device("cpu")).tolist() == [3, 0, 1, 3, 3, 2]


@pytest.mark.parametrize("shape", [(4, 8), (6, 8), (5,), (1, 5, 8)])
def test_hidden_states_must_be_those_of_the_cursor(shape):
    with pytest.raises(PoolingError, match="do not fit a batch of 5 tokens"):
        check_packed(torch.zeros(shape), batch([2, 3]).get_pooling_cursor())


def test_partial_prefill_is_named_with_the_method():
    with pytest.raises(PoolingStateError, match="partial prefill is not supported with FOO pooling"):
        check_whole(batch([3], scheduled=[2]).get_pooling_cursor(), "FOO")
    check_whole(batch([3]).get_pooling_cursor(), "FOO")


LENS = [2, 1, 5, 3]


@pytest.mark.parametrize("max_chunk_bytes", [1, 16, 8 * 4 * 3, 1 << 20])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_sums_are_the_same_whatever_the_chunk(max_chunk_bytes, dtype):
    hidden = packed(LENS, dtype=dtype)
    ids = segment_ids(batch(LENS).get_pooling_cursor(), hidden.device)
    sums = segment_sums(hidden, ids, len(LENS), None, max_chunk_bytes)
    assert sums.dtype == torch.float32
    assert torch.equal(sums, segment_sums(hidden, ids, len(LENS)))
    expected = torch.stack([sum(row) for row in rows64(hidden, LENS)])
    torch.testing.assert_close(sums.double(), expected, **FLOAT32)


@pytest.mark.parametrize("max_chunk_bytes", [1, 1 << 20])
def test_weights_multiply_tokens(max_chunk_bytes):
    hidden = packed(LENS)
    weights = torch.rand(sum(LENS), generator=torch.Generator().manual_seed(1))
    ids = segment_ids(batch(LENS).get_pooling_cursor(), hidden.device)
    sums = segment_sums(hidden, ids, len(LENS), weights, max_chunk_bytes)
    flat = iter(weights.double())
    expected = torch.stack([sum(token * next(flat) for token in row) for row in rows64(hidden, LENS)])
    torch.testing.assert_close(sums.double(), expected, **FLOAT32)


def test_the_last_segment_is_dropped():
    values = torch.tensor([[1.0], [10.0], [100.0]])
    assert segment_sums(values, torch.tensor([1, 0, 1]), 1).tolist() == [[10.0]]
    assert segment_maxima(values, torch.tensor([1, 0, 1]), 1).tolist() == [[10.0]]


def test_values_without_columns_have_sums_without_columns():
    assert segment_sums(torch.zeros(3, 0), torch.tensor([0, 0, 1]), 2).shape == (2, 0)


def test_16_megabytes_are_copied_at_once_unless_told_otherwise():
    assert MAX_CHUNK_BYTES == 16 * 2**20


@pytest.mark.parametrize("width", [1, 64])
@pytest.mark.parametrize("max_chunk_bytes", [1, 64 * 1024])
def test_the_float32_copy_is_bounded(width, max_chunk_bytes):
    """The only tensors as long as the input are the input and its row numbers."""
    hidden = torch.zeros(20_000 if max_chunk_bytes > 1 else 5, width, dtype=torch.float16)
    ids, weights = torch.zeros(len(hidden), dtype=torch.int64), torch.ones(len(hidden))
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            nonlocal largest
            out = func(*args, **(kwargs or {}))
            if isinstance(out, torch.Tensor) and out.dtype == torch.float32:
                largest = max(largest, out.numel() * 4)
            return out

    with Watch():
        segment_sums(hidden, ids, 0, weights, max_chunk_bytes)
    assert largest == max(4 * width, max_chunk_bytes)


def test_maxima_keep_the_dtype_and_are_exact():
    hidden = packed(LENS, dtype=torch.bfloat16) - 5
    ids = segment_ids(batch(LENS).get_pooling_cursor(), hidden.device)
    maxima = segment_maxima(hidden, ids, len(LENS))
    assert maxima.dtype == torch.bfloat16
    expected = [[max(token[k].item() for token in row) for k in range(8)] for row in rows64(hidden, LENS)]
    assert maxima.tolist() == expected


def test_a_value_that_is_none_stays_in_its_row():
    hidden = packed([2, 2])
    hidden[1, 3] = torch.nan
    ids = torch.tensor([0, 0, 1, 1])
    for result in (segment_sums(hidden, ids, 2), segment_maxima(hidden, ids, 2)):
        assert result.isnan().nonzero().tolist() == [[0, 3]]
