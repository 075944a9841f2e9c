import pytest
import torch

from poolembed.errors import PoolingError
from poolembed.poolers.cursor import check_lengths, consecutive, row_starts
from tests.poolers.batches import batch


def test_a_cursor_knows_where_rows_begin_and_end():
    cursor = batch([3, 1, 4]).get_pooling_cursor()
    assert cursor.first_token_indices_gpu.tolist() == [0, 3, 4]
    assert cursor.last_token_indices_gpu.tolist() == [2, 3, 7]
    assert cursor.prompt_lens_cpu.tolist() == [3, 1, 4]
    assert cursor.partial_prefill is False
    assert cursor.finished_mask.tolist() == [True, True, True]


def test_a_cursor_of_pieces_knows_what_is_finished():
    cursor = batch([5, 2, 6], scheduled=[2, 2, 1], seq_lens=[2, 2, 6]).get_pooling_cursor()
    assert cursor.first_token_indices_gpu.tolist() == [0, 2, 4]
    assert cursor.last_token_indices_gpu.tolist() == [1, 3, 4]
    assert cursor.partial_prefill is True
    assert cursor.finished_mask.tolist() == [False, True, True]


def test_a_slice_recomputes_both_flags():
    cursor = batch([5, 2, 3], scheduled=[2, 2, 3], seq_lens=[2, 2, 3]).get_pooling_cursor()
    assert cursor[0:1].partial_prefill is True
    assert cursor[1:3].partial_prefill is False
    assert cursor[1:3].finished_mask.tolist() == [True, True]
    assert cursor[0:2].finished_mask.tolist() == [False, True]


@pytest.mark.parametrize(
    ("rows", "tokens"),
    [
        (slice(0, 1), slice(0, 3)),
        (slice(1, 3), slice(3, 8)),
        (slice(None), slice(0, 8)),
        (slice(2, 2), slice(4, 4)),
        (slice(3, 3), slice(8, 8)),
        (slice(-1, None), slice(4, 8)),
        (slice(2, 1), slice(4, 4)),
    ],
)
def test_token_ranges_follow_the_scheduled_tokens(rows, tokens):
    cursor = batch([3, 1, 9], scheduled=[3, 1, 4]).get_pooling_cursor()
    assert cursor.token_range(rows) == tokens
    part = cursor[rows]
    assert part.num_scheduled_tokens_cpu.sum() == tokens.stop - tokens.start
    assert part.first_token_indices_gpu.tolist() == [
        i - tokens.start for i in cursor.first_token_indices_gpu[rows].tolist()
    ]
    assert part.last_token_indices_gpu.tolist() == [
        i - tokens.start for i in cursor.last_token_indices_gpu[rows].tolist()
    ]


def test_excluded_tokens_are_sliced_with_the_rows():
    cursor = batch([3, 2, 4], excluded=[1, 0, 3]).get_pooling_cursor()
    assert cursor[1:].num_excluded_tokens_cpu.tolist() == [0, 3]
    assert batch([3, 2]).get_pooling_cursor()[1:].num_excluded_tokens_cpu is None


def test_rows_must_be_consecutive():
    with pytest.raises(PoolingError, match="consecutive, not every 2"):
        consecutive(slice(0, 4, 2), 4)
    assert consecutive(slice(-3, -1), 5) == slice(2, 4)
    assert consecutive(slice(3, 1), 5) == slice(3, 3)


@pytest.mark.parametrize(
    ("scheduled", "seq", "prompt"),
    [([3, 0], [3, 2], [3, 2]), ([3, 3], [3, 2], [3, 3]), ([3, 2], [3, 3], [3, 2]), ([-1], [1], [1])],
)
def test_lengths_that_contradict_each_other_are_refused(scheduled, seq, prompt):
    row = len(scheduled) - 1
    with pytest.raises(
        ValueError, match=f"row {row}: 1 <= {scheduled[row]} scheduled <= {seq[row]} computed"
    ):
        check_lengths(torch.tensor(scheduled), torch.tensor(seq), torch.tensor(prompt))


@pytest.mark.parametrize(("scheduled", "seq", "prompt"), [([1], [1], [1]), ([1], [2], [3]), ([], [], [])])
def test_lengths_that_fit_pass(scheduled, seq, prompt):
    check_lengths(torch.tensor(scheduled), torch.tensor(seq), torch.tensor(prompt))


@pytest.mark.parametrize(("num_scheduled", "num_seq"), [(1, 2), (2, 1), (3, 2), (2, 3)])
def test_a_length_for_every_row_is_needed(num_scheduled, num_seq):
    with pytest.raises(ValueError, match=f"2 rows, but {num_scheduled} scheduled and {num_seq} sequence"):
        check_lengths(torch.ones(num_scheduled), torch.ones(num_seq), torch.ones(2))


def test_given_starts_are_taken_as_they_are():
    starts = torch.tensor([0, 2, 5])
    assert row_starts(torch.tensor([2, 3]), torch.device("cpu"), starts) is starts
    assert row_starts(torch.tensor([2, 3]), torch.device("cpu")).tolist() == [0, 2, 5]
    assert row_starts(torch.tensor([], dtype=torch.int64), torch.device("cpu")).tolist() == [0]


def test_given_starts_may_live_on_any_device_of_the_hidden_states():
    starts = torch.zeros(3, dtype=torch.int64, device="meta")
    assert row_starts(torch.tensor([2, 3]), torch.device("meta"), starts) is starts
    with pytest.raises(PoolingError, match=r"on cpu, needed .* on meta"):
        row_starts(torch.tensor([2, 3]), torch.device("meta"), torch.tensor([0, 2, 5]))


@pytest.mark.parametrize(
    "starts", [torch.tensor([0, 2]), torch.tensor([[0, 2, 5]]), torch.zeros(3, device="meta")]
)
def test_given_starts_of_another_shape_or_device_are_refused(starts):
    with pytest.raises(ValueError, match=r"query_start_loc_gpu: shape .* needed \(3,\) on cpu"):
        row_starts(torch.tensor([2, 3]), torch.device("cpu"), starts)
