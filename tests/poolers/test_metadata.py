import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from poolembed.errors import PoolingError, PoolingStateError
from poolembed.poolers import PoolingMetadata, PoolingParams, PoolingStates
from tests.poolers.batches import batch


def bare(lens=(2, 3), ids=None, **changes):
    parts = {
        "prompt_lens": torch.tensor(lens),
        "prompt_token_ids": ids,
        "prompt_token_ids_cpu": ids,
        "pooling_params": [PoolingParams(task="embed") for _ in lens],
        "pooling_states": [PoolingStates() for _ in lens],
    }
    return PoolingMetadata(**(parts | changes))


def test_every_row_needs_a_task():
    with pytest.raises(ValueError, match="every row needs a pooling task"):
        bare(pooling_params=[PoolingParams(task="embed"), PoolingParams()])


def test_tasks_are_those_of_the_rows_in_order():
    tasks = ["token_classify", "embed"]
    assert bare(pooling_params=[PoolingParams(task=task) for task in tasks]).tasks == tasks


@pytest.mark.parametrize("name", ["pooling_params", "pooling_states", "num_excluded_tokens_cpu"])
def test_parts_of_another_length_are_refused(name):
    parts = {
        "pooling_params": [PoolingParams(task="embed")],
        "pooling_states": [PoolingStates()],
        "num_excluded_tokens_cpu": torch.tensor([0]),
    }
    with pytest.raises(ValueError, match=f"{name} has 1 entries for 2 rows"):
        bare(**{name: parts[name]})


@pytest.mark.parametrize(("excluded", "row"), [([2, 0], 0), ([0, 3], 1), ([0, 4], 1), ([-1, 0], 0)])
def test_a_row_keeps_at_least_one_token(excluded, row):
    with pytest.raises(ValueError, match=f"row {row} has no token beside its prompt"):
        bare(num_excluded_tokens_cpu=torch.tensor(excluded))


def test_all_but_one_token_may_be_excluded():
    assert bare(num_excluded_tokens_cpu=torch.tensor([1, 2])).num_excluded_tokens_cpu.tolist() == [1, 2]


def test_the_cursor_must_be_built_before_use():
    with pytest.raises(RuntimeError, match="cursor is not built"):
        bare().get_pooling_cursor()
    assert issubclass(PoolingStateError, PoolingError)


@pytest.mark.parametrize("scheduled", [np.array([2, 3], dtype=np.int32), torch.tensor([2, 3])])
def test_scheduled_tokens_may_be_numpy_or_torch(scheduled):
    metadata = bare()
    metadata.build_pooling_cursor(scheduled, torch.tensor([2, 3], dtype=torch.int32), torch.device("cpu"))
    cursor = metadata.get_pooling_cursor()
    assert cursor.last_token_indices_gpu.tolist() == [1, 4]
    assert cursor.num_scheduled_tokens_cpu.dtype == cursor.seq_lens_cpu.dtype == torch.int64
    assert cursor.partial_prefill is False


def test_lengths_of_any_integer_dtype_compare():
    metadata = bare(prompt_lens=torch.tensor([2, 3], dtype=torch.int32))
    assert metadata.prompt_lens.dtype == torch.int64
    metadata.build_pooling_cursor(torch.tensor([2, 3]), torch.tensor([2, 3]), torch.device("cpu"))
    assert metadata.get_pooling_cursor().partial_prefill is False


def test_given_starts_are_used():
    metadata = bare()
    starts = torch.tensor([0, 2, 5])
    metadata.build_pooling_cursor(torch.tensor([2, 3]), torch.tensor([2, 3]), torch.device("cpu"), starts)
    assert metadata.get_pooling_cursor().first_token_indices_gpu.data_ptr() == starts.data_ptr()
    with pytest.raises(ValueError, match="query_start_loc_gpu"):
        metadata.build_pooling_cursor(
            torch.tensor([2, 3]), torch.tensor([2, 3]), torch.device("cpu"), starts[:2]
        )


def test_wrong_lengths_are_refused():
    with pytest.raises(ValueError, match="2 rows, but 1 scheduled"):
        bare().build_pooling_cursor(torch.tensor([2]), torch.tensor([2, 3]), torch.device("cpu"))
    with pytest.raises(ValueError, match="row 1: 1 <= 0 scheduled"):
        bare().build_pooling_cursor(torch.tensor([2, 0]), torch.tensor([2, 3]), torch.device("cpu"))


@pytest.mark.parametrize("ids", [torch.tensor([5, 6, 7, 8, 9]), torch.tensor([[5, 6, 0, 0], [7, 8, 9, 0]])])
def test_token_ids_are_trimmed_to_their_row(ids):
    metadata = bare(ids=ids)
    assert [row.tolist() for row in metadata.get_prompt_token_ids()] == [[5, 6], [7, 8, 9]]
    assert [row.tolist() for row in metadata.get_prompt_token_ids_cpu()] == [[5, 6], [7, 8, 9]]
    assert [row.tolist() for row in metadata[1:].get_prompt_token_ids()] == [[7, 8, 9]]
    assert [row.tolist() for row in metadata[:1].get_prompt_token_ids_cpu()] == [[5, 6]]


def test_ids_on_the_device_and_on_the_cpu_are_kept_apart():
    metadata = bare(prompt_token_ids=torch.arange(5), prompt_token_ids_cpu=torch.arange(5) + 10)
    assert [row.tolist() for row in metadata.get_prompt_token_ids()] == [[0, 1], [2, 3, 4]]
    assert [row.tolist() for row in metadata.get_prompt_token_ids_cpu()] == [[10, 11], [12, 13, 14]]


@pytest.mark.parametrize(
    "ids",
    [
        torch.zeros(4),
        torch.zeros(6),
        torch.zeros(1, 3),
        torch.zeros(3, 3),
        torch.zeros(2, 2),
        torch.zeros(5, 1),
    ],
)
def test_token_ids_that_do_not_fit_are_refused(ids):
    with pytest.raises(PoolingError, match=r"do not fit rows of \[2, 3\] tokens"):
        bare(ids=ids).get_prompt_token_ids()


@pytest.mark.parametrize("ids", [torch.zeros(0), torch.zeros(0, 0), torch.zeros(0, 7)])
def test_a_batch_without_rows_has_no_ids(ids):
    assert bare(lens=(), ids=ids).get_prompt_token_ids() == []


def test_missing_token_ids_are_an_error():
    with pytest.raises(ValueError, match="carries no token ids"):
        bare().get_prompt_token_ids()
    with pytest.raises(ValueError, match="carries no token ids"):
        bare().get_prompt_token_ids_cpu()


def test_states_are_forgotten_when_cleaned():
    state = PoolingStates()
    state.hidden_states_cache.append(torch.zeros(1))
    state.clean()
    assert state.hidden_states_cache == []
    assert PoolingStates().hidden_states_cache is not state.hidden_states_cache


def test_a_slice_without_cursor_has_none():
    assert bare()[0:1].pooling_cursor is None


ROW = st.integers(1, 6).flatmap(
    lambda length: st.tuples(st.just(length), st.integers(0, length - 1), st.integers(1, length))
)


def build(rows, *, padded, with_excluded):
    """Metadata of (prompt length, excluded, scheduled); rows start at an id of their own."""
    lens = [row[0] for row in rows]
    ids = [[100 * length + i for i in range(length)] for length in lens]
    if padded:
        tensor = torch.tensor([row + [0] * (7 - len(row)) for row in ids]).reshape(len(rows), -1)
    else:
        tensor = torch.tensor([i for row in ids for i in row])
    metadata = PoolingMetadata(
        prompt_lens=torch.tensor(lens, dtype=torch.int64),
        prompt_token_ids=tensor,
        prompt_token_ids_cpu=tensor,
        pooling_params=[PoolingParams(task="embed", step_tag_id=length) for length in lens],
        pooling_states=[PoolingStates([torch.tensor(length)]) for length in lens],
        num_excluded_tokens_cpu=torch.tensor([row[1] for row in rows], dtype=torch.int64)
        if with_excluded
        else None,
    )
    scheduled = torch.tensor([row[2] for row in rows], dtype=torch.int64)
    metadata.build_pooling_cursor(scheduled, scheduled, torch.device("cpu"))
    return metadata


def plain(metadata):
    cursor = metadata.get_pooling_cursor()
    tensors = (
        metadata.prompt_lens,
        metadata.num_excluded_tokens_cpu,
        cursor.first_token_indices_gpu,
        cursor.last_token_indices_gpu,
        cursor.prompt_lens_cpu,
        cursor.seq_lens_cpu,
        cursor.num_scheduled_tokens_cpu,
        cursor.num_excluded_tokens_cpu,
        cursor.finished_mask,
    )
    return (
        [None if tensor is None else tensor.tolist() for tensor in tensors],
        cursor.partial_prefill,
        metadata.tasks,
        metadata.pooling_params,
        [state.hidden_states_cache[0].item() for state in metadata.pooling_states],
        [row.tolist() for row in metadata.get_prompt_token_ids()],
        [row.tolist() for row in metadata.get_prompt_token_ids_cpu()],
    )


@given(
    rows=st.lists(ROW, min_size=1, max_size=6), cut=st.data(), padded=st.booleans(), excluded=st.booleans()
)
def test_a_slice_of_metadata_is_the_metadata_of_the_slice(rows, cut, padded, excluded):
    start = cut.draw(st.integers(0, len(rows) - 1))
    stop = cut.draw(st.integers(start + 1, len(rows)))
    sliced = build(rows, padded=padded, with_excluded=excluded)[start:stop]
    assert plain(sliced) == plain(build(rows[start:stop], padded=padded, with_excluded=excluded))


def test_an_empty_batch_has_metadata():
    metadata = batch([])
    assert metadata.tasks == []
    assert metadata.get_pooling_cursor().first_token_indices_gpu.tolist() == []
    assert metadata[0:0].get_pooling_cursor().partial_prefill is False
