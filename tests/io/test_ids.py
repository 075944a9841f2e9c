"""Names of rows: read from every type of column, and duplicates found among any number of them."""

import datetime
import json
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source
from poolembed.io.ids import HASH_BYTES, SeenIds, column_ids

TEXT = TextRole("text", ("text",))


@pytest.mark.parametrize(
    ("array", "names"),
    [
        (pa.array([1, -5, None]), ["1", "-5", None]),
        (pa.array([2**64 - 1], pa.uint64()), [str(2**64 - 1)]),
        (pa.array(["a", "", None]), ["a", "", None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        (pa.array(["é"], pa.string_view()), ["é"]),
        (pa.array([True, None]), ["true", None]),
        (pa.array([datetime.date(2024, 2, 3)]), ["2024-02-03"]),
        (pa.array([UUID(int=1).bytes], pa.uuid()), [str(UUID(int=1))]),
        (pa.nulls(2), [None, None]),
    ],
    ids=str,
)
def test_a_name_is_the_text_of_the_value(array, names):
    assert column_ids(array) == names


def test_names_are_read_from_json_whatever_their_type(write, read):
    values = ["a", 7, 2**70, None, 1.5, True, {"b": [1]}]
    chunk = read(write("a.jsonl", *[{"id": value, "text": "x"} for value in values], {"text": "y"})).chunks[0]
    assert chunk.ids == ("a", "7", str(2**70), None, "1.5", "true", '{"b":[1]}', None)


def test_another_column_can_name_the_rows_and_need_not_be_kept(write, read):
    whole = read(write("a.jsonl", {"id": 1, "key": "k", "text": "x"}), id_field="key", columns=("text",))
    assert whole.chunks[0].ids == ("k",)
    assert whole.schema.names == ["text"]


def test_an_input_without_ids_has_none(write, read):
    assert read(write("a.jsonl", {"text": "x"})).chunks[0].ids is None


def test_a_file_without_ids_among_others_has_none(write, read, tmp_path):
    pq.write_table(pa.table({"text": ["y"]}), tmp_path / "b.parquet")
    chunk = read(write("a.jsonl", {"id": 5, "text": "x"}), tmp_path / "b.parquet").chunks[0]
    assert chunk.ids == ("5", None)


def test_a_column_of_names_that_is_not_there_is_told(write):
    path = write("a.jsonl", {"idd": 5, "text": "x"})
    with pytest.raises(InputError, match="no column is named 'ide'") as caught:
        open_source(InputConfig(paths=(str(path),), id_field="ide"), [TEXT])
    assert caught.value.hint == "did you mean 'idd'?"


def test_looking_for_duplicates_needs_names(write):
    path = write("a.jsonl", {"key": 5, "text": "x"})
    with pytest.raises(InputError, match="--on-duplicate-id first needs ids") as caught:
        open_source(InputConfig(paths=(str(path),), on_duplicate_id="first"), [TEXT])
    assert "key (int64)" in caught.value.hint


def test_rejects_have_the_name_of_their_row(write, read):
    path = write(
        "a.jsonl", {"id": 7, "text": None}, {"id": "x", "text": 5}, "broken", {"text": None}, {"text": "x"}
    )
    assert [reject.id for reject in read(path, on_error="skip").rejects] == ["7", "x", None, None]


def test_rows_refused_later_have_it_too(write, read):
    chunk = read(write("a.jsonl", {"id": 7, "text": "x"}, {"id": 8, "text": "y"})).chunks[0]
    rest = chunk.without({0: ("too_long", "too long")})
    assert (rest.rejects[0].id, rest.ids) == ("7", ("8",))


@pytest.fixture
def repeated(write, tmp_path):
    """Ids 1, 2, 1, null, null in JSON Lines, then "2", 3, 1 in Parquet."""
    path = write(
        "a.jsonl", *[{"id": name, "text": f"j{row}"} for row, name in enumerate([1, 2, 1, None, None])]
    )
    pq.write_table(pa.table({"id": [2, 3, 1], "text": ["p0", "p1", "p2"]}), tmp_path / "b.parquet")
    return path, tmp_path / "b.parquet"


def test_rows_with_one_id_are_kept_by_default(repeated, read):
    assert len(read(*repeated).texts) == 8


@pytest.mark.parametrize("max_rows", [1, 2, 100])
def test_the_first_row_of_each_id_is_kept_and_the_others_are_rejected(repeated, read, max_rows):
    whole = read(*repeated, on_duplicate_id="first", max_rows=max_rows)
    assert whole.texts == ["j0", "j1", "j3", "j4", "p1"]
    assert whole.table["text"].to_pylist() == whole.texts
    assert [(reject.row, reject.code, reject.id, reject.excerpt) for reject in whole.rejects] == [
        (3, "duplicate_id", "1", "j2"),
        (1, "duplicate_id", "2", "p0"),
        (3, "duplicate_id", "1", "p2"),
    ]
    assert whole.num_rows == 8


def test_reading_a_second_time_finds_the_same(repeated):
    config = InputConfig(paths=tuple(map(str, repeated)), on_duplicate_id="first")
    with open_source(config, [TEXT]) as source:
        first, second = ([chunk.ids for chunk in source.chunks(3, 10**6)] for _ in range(2))
    assert first == second


def test_an_id_that_stands_twice_stops_the_run_before_it_starts(repeated):
    config = InputConfig(paths=tuple(map(str, repeated)), on_duplicate_id="error", on_error="skip")
    with pytest.raises(InputError, match=r"a\.jsonl:3: the id '1' stood before"):
        open_source(config, [TEXT])


def test_distinct_ids_do_not_stop_the_run(write, read):
    path = write("a.jsonl", *[{"id": row, "text": "x"} for row in range(3000)])
    assert len(read(path, on_duplicate_id="error").texts) == 3000


def test_a_refused_row_gives_its_id_away_to_nobody(write, read):
    path = write("a.jsonl", {"id": 1, "text": None}, {"id": 1, "text": "x"})
    whole = read(path, on_duplicate_id="first", on_null="reject")
    assert whole.texts == ["x"]
    assert [reject.code for reject in whole.rejects] == ["null_text"]


@given(
    st.lists(st.lists(st.sampled_from([None, *"abcdefgh", "", "\x00", "a\x00"]), max_size=12), max_size=12)
)
def test_repeats_are_those_of_a_set(batches):
    seen, known = SeenIds(), set()
    for names in batches:
        expected = []
        for row, name in enumerate(names):
            if name in known and name is not None:
                expected.append(row)
            known.add(name)
        assert seen.add(names) == expected


def test_a_name_costs_its_hash_and_no_more():
    seen = SeenIds()
    for start in range(0, 20_000, 1000):
        assert seen.add([str(number) for number in range(start, start + 1000)]) == []
    assert seen.num_bytes == 20_000 * HASH_BYTES
    assert seen.add([json.dumps(number) for number in range(20_001)]) == list(range(20_000))
