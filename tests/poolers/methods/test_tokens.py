import pytest
import torch

from poolembed.errors import PoolingError
from poolembed.poolers import AllPool, PoolingParams, PoolingParamsUpdate, PoolingStates, StepPool
from tests.poolers.batches import batch, packed

LENS = [3, 1, 4]


def steps(lens, ids, **params):
    return batch(lens, ids=ids, params=[PoolingParams(task="token_classify", **params) for _ in lens])


def test_all_splits_the_batch_in_its_rows():
    hidden = packed(LENS)
    rows = AllPool()(hidden, batch(LENS, "token_embed"))
    assert [
        torch.equal(row, part) for row, part in zip(rows, (hidden[:3], hidden[3:4], hidden[4:]), strict=True)
    ]
    assert all(torch.equal(row, part) for row, part in zip(rows, torch.split(hidden, LENS), strict=True))


def test_all_of_a_single_row():
    hidden = packed([5])
    (row,) = AllPool()(hidden, batch([5], "token_embed"))
    assert torch.equal(row, hidden)


def test_all_of_an_empty_batch():
    assert AllPool()(torch.zeros(0, 8), batch([])) == []


def test_output_sizes_keep_the_first_columns_of_each_row():
    hidden = packed(LENS)
    pool = AllPool(output_sizes_fn=lambda metadata: [2 * len(ids) for ids in metadata.get_prompt_token_ids()])
    rows = pool(hidden, batch(LENS, ids=[[0] * n for n in LENS]))
    assert [row.shape for row in rows] == [(3, 6), (1, 2), (4, 8)]
    assert torch.equal(rows[1], hidden[3:4, :2])


def test_output_sizes_are_needed_for_every_row():
    with pytest.raises(PoolingError, match="gave 2 sizes for 3 rows"):
        AllPool(output_sizes_fn=lambda metadata: [1, 2])(packed(LENS), batch(LENS))


def test_pieces_of_a_row_are_kept_until_it_is_finished():
    hidden = packed([6])
    states = [PoolingStates()]
    pool = AllPool()
    assert pool(hidden[:2], batch([6], scheduled=[2], seq_lens=[2], states=states)) == [None]
    assert pool(hidden[2:5], batch([6], scheduled=[3], seq_lens=[5], states=states)) == [None]
    assert len(states[0].hidden_states_cache) == 2
    (row,) = pool(hidden[5:], batch([6], scheduled=[1], seq_lens=[6], states=states))
    assert torch.equal(row, hidden)
    assert states[0].hidden_states_cache == []


def test_a_kept_piece_does_not_change_with_the_buffer_it_came_from():
    buffer = packed([2])
    before = buffer.clone()
    states = [PoolingStates()]
    AllPool()(buffer, batch([3], scheduled=[2], states=states))
    buffer.zero_()
    assert torch.equal(states[0].hidden_states_cache[0], before)


def test_finished_and_unfinished_rows_may_be_mixed():
    hidden = packed([2, 3])
    states = [PoolingStates(), PoolingStates()]
    rows = AllPool()(hidden, batch([4, 3], scheduled=[2, 3], states=states))
    assert rows[0] is None
    assert torch.equal(rows[1], hidden[2:])
    assert len(states[0].hidden_states_cache) == 1
    assert states[1].hidden_states_cache == []


def test_step_keeps_the_rows_of_the_tag():
    hidden = packed([4])
    (row,) = StepPool()(hidden, steps([4], [[7, 9, 7, 9]], step_tag_id=9))
    assert torch.equal(row, hidden[[1, 3]])


@pytest.mark.parametrize("columns", [(5, 0), [3], [0], (1, 1)])
def test_step_keeps_the_asked_for_columns_in_their_order(columns):
    hidden = packed([4])
    (row,) = StepPool()(hidden, steps([4], [[7, 9, 7, 9]], returned_token_ids=columns))
    assert torch.equal(row, torch.stack([hidden[:, column] for column in columns], dim=1))


@pytest.mark.parametrize("params", [{}, {"returned_token_ids": []}, {"returned_token_ids": None}])
def test_step_without_filters_keeps_all(params):
    hidden = packed([4])
    (row,) = StepPool()(hidden, steps([4], [[7, 9, 7, 9]], **params))
    assert torch.equal(row, hidden)


def test_step_with_both_filters_takes_columns_then_rows():
    hidden = packed([4])
    (row,) = StepPool()(hidden, steps([4], [[0, 9, 7, 9]], step_tag_id=9, returned_token_ids=[1, 2]))
    assert torch.equal(row, torch.stack([hidden[1, 1:3], hidden[3, 1:3]]))


def test_step_tag_zero_is_a_tag():
    hidden = packed([3])
    (row,) = StepPool()(hidden, steps([3], [[0, 9, 0]], step_tag_id=0))
    assert torch.equal(row, hidden[[0, 2]])


def test_step_without_a_match_gives_no_rows_of_full_width():
    (row,) = StepPool()(packed([3]), steps([3], [[1, 2, 3]], step_tag_id=9, returned_token_ids=[0, 1]))
    assert row.shape == (0, 2)


def test_step_looks_at_the_ids_of_its_own_row():
    hidden = packed([2, 3])
    rows = StepPool()(hidden, steps([2, 3], [[9, 1], [1, 9, 9]], step_tag_id=9))
    assert torch.equal(rows[0], hidden[:1])
    assert torch.equal(rows[1], hidden[3:])


def test_step_passes_unfinished_rows_through_and_filters_the_whole_row():
    hidden = packed([5])
    states = [PoolingStates()]
    params = [PoolingParams(task="token_classify", step_tag_id=9)]
    ids = [[9, 1, 9, 1, 9]]
    first = batch([5], scheduled=[3], params=params, states=states, ids=ids)
    assert StepPool()(hidden[:3], first) == [None]
    second = batch([5], scheduled=[2], seq_lens=[5], params=params, states=states, ids=ids)
    (row,) = StepPool()(hidden[3:], second)
    assert torch.equal(row, hidden[[0, 2, 4]])


def test_step_needs_token_ids():
    assert StepPool().get_pooling_updates("token_classify") == PoolingParamsUpdate(requires_token_ids=True)
    assert AllPool().get_pooling_updates("token_classify") == PoolingParamsUpdate()
    with pytest.raises(ValueError, match="no token ids"):
        StepPool()(packed([3]), batch([3], "token_classify"))


@pytest.mark.parametrize("pool", [AllPool(), StepPool()])
def test_token_methods_serve_token_tasks(pool):
    assert pool.get_supported_tasks() == {"token_embed", "token_classify"}


def test_hidden_states_of_another_batch_are_refused():
    with pytest.raises(PoolingError, match="do not fit"):
        AllPool()(packed([9]), batch(LENS))
