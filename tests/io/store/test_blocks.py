"""Results come back from memory, from files of a run and from earlier outputs as they went in."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.errors import OutputError
from poolembed.io.store.blocks import (
    KEY_COLUMN,
    OPEN_GROUPS,
    EarlierOutput,
    FreshBlock,
    GroupCache,
    SavedBlock,
    take_rows,
)
from poolembed.io.store.keys import NO_KEY
from tests.io.store.conftest import keys_of, results_of

TEXTS = [f"text {number} " * (number % 5) + chr(97 + number) for number in range(20)]
ROWS = np.asarray([0, 3, 4, 5, 19])


def expected(rows):
    return results_of([TEXTS[row] for row in rows])


@given(st.sets(st.integers(0, 19), min_size=1))
def test_any_rows_can_be_taken(rows):
    ascending = np.asarray(sorted(rows))
    assert take_rows(results_of(TEXTS), ascending).equals(expected(ascending))


def test_neighbours_share_memory():
    table = results_of(TEXTS)
    taken = take_rows(table, np.arange(4, 9))
    assert (
        taken["num_tokens"].chunk(0).buffers()[1].address == table["num_tokens"].chunk(0).buffers()[1].address
    )


def test_a_block_gives_the_same_before_and_after_it_is_saved(tmp_path):
    keys = keys_of(TEXTS)
    keys[7] = NO_KEY
    block = FreshBlock(keys, results_of(TEXTS))
    assert block.take(ROWS).equals(expected(ROWS))
    block.save(tmp_path / "results-00000.arrow")
    assert block.take(ROWS).equals(expected(ROWS))
    saved = SavedBlock(tmp_path / "results-00000.arrow")
    assert saved.num_rows == 20
    assert saved.keys().tolist() == keys.tolist()
    assert saved.schema.equals(results_of([]).schema)
    assert saved.take(ROWS).equals(expected(ROWS))
    assert [path.name for path in tmp_path.iterdir()] == ["results-00000.arrow"]


def test_the_part_of_a_larger_table_is_saved_alone(tmp_path):
    block = FreshBlock(keys_of(TEXTS[5:7]), results_of(TEXTS).slice(5, 2))
    block.save(tmp_path / "a.arrow")
    assert SavedBlock(tmp_path / "a.arrow").take(np.arange(2)).equals(expected([5, 6]))


def test_other_readers_open_a_saved_block(tmp_path):
    FreshBlock(keys_of(TEXTS), results_of(TEXTS)).save(tmp_path / "a.arrow")
    with pa.memory_map(str(tmp_path / "a.arrow")) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    assert table[KEY_COLUMN].to_pylist() == [key.ljust(16, b"\0") for key in keys_of(TEXTS).tolist()]


def test_a_block_that_cannot_be_saved_is_an_output_error_and_stays_in_memory(tmp_path):
    block = FreshBlock(keys_of(TEXTS), results_of(TEXTS))
    with pytest.raises(OutputError, match="cannot be written"):
        block.save(tmp_path / "nowhere" / "a.arrow")
    assert block.take(ROWS).equals(expected(ROWS))


@pytest.mark.parametrize("group_rows", [1, 3, 20])
def test_an_earlier_output_gives_its_results_whatever_its_row_groups(tmp_path, group_rows):
    table = results_of(TEXTS).append_column("text", pa.array(TEXTS))
    pq.write_table(table, tmp_path / "out.parquet", row_group_size=group_rows)
    cache = GroupCache(results_of([]).schema)
    output = EarlierOutput(tmp_path / "out.parquet", cache)
    assert output.num_rows == 20
    for rows in (ROWS, np.arange(20), np.asarray([11])):
        assert output.take(rows).combine_chunks().equals(expected(rows))
    assert len(cache._groups) <= OPEN_GROUPS
