"""Damaged files end in an InputError or in rejects, and no row is unaccounted for."""

import gzip
import io
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolembed.errors import InputError

LINES = "".join(
    json.dumps({"text": text, "n": n, "x": {"a": [1, 2.5, None]}}, ensure_ascii=n % 2 == 0) + "\n"
    for n, text in enumerate(["a", "漢字😀", "", None, "b😀", "\\ud83d"])
).encode()

EDITS = st.lists(
    st.tuples(
        st.integers(0, 10_000),
        st.integers(0, 8),
        st.binary(max_size=6) | st.sampled_from([b"{", b'"', b"\\ud8", b"\n", b"]"]),
    ),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, edits) -> bytes:
    """Cut and insert at some places."""
    for place, num_cut, inserted in edits:
        at = place % (len(data) + 1)
        data = data[:at] + inserted + data[at + num_cut :]
    return data


def parquet() -> bytes:
    handle = io.BytesIO()
    columns = {"text": ["a", "bb", None, "漢"] * 50, "n": list(range(200)), "t": [["x"]] * 200}
    pq.write_table(pa.table(columns), handle, row_group_size=70)
    return handle.getvalue()


def check(read, path) -> None:
    try:
        whole = read(path, max_rows=7, max_bytes=100, on_error="skip")
    except InputError:
        return
    assert whole.table.num_rows == len(whole.texts)
    assert whole.num_rows == len(whole.texts) + len(whole.rejects)
    assert all(isinstance(text, str) for text in whole.texts)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(EDITS)
def test_damaged_json_lines(read, tmp_path, edits):
    path = tmp_path / "a.jsonl"
    path.write_bytes(edited(LINES, edits))
    check(read, path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(EDITS)
def test_damaged_gzip(read, tmp_path, edits):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(edited(gzip.compress(LINES, mtime=0), edits))
    check(read, path)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_parquet(read, tmp_path, seed):
    # Always the same damage: on some, pyarrow ends the process, which is not ours to mend.
    choose = random.Random(seed)
    whole, path = parquet(), tmp_path / "a.parquet"
    for _ in range(50):
        edits = [(choose.randrange(len(whole)), choose.randrange(9), choose.randbytes(choose.randrange(7)))]
        path.write_bytes(edited(whole, edits))
        check(read, path)


@pytest.mark.parametrize("at", range(4), ids=["file", "column", "column again", "row group"])
@pytest.mark.parametrize("declared", [2, 6])
def test_a_number_of_rows_that_contradicts_the_others_is_damage(read, tmp_path, at, declared):
    handle = io.BytesIO()
    pq.write_table(pa.table({"text": ["a"] * 4}), handle)
    data = bytearray(handle.getvalue())
    four = b"\x16\x08"  # a 64-bit field of the footer that holds 4
    places = [place for place in range(len(data)) if data.startswith(four, place)]
    assert len(places) == 4
    data[places[at] + 1] = 2 * declared
    (tmp_path / "a.parquet").write_bytes(data)
    if at in (0, 3):
        with pytest.raises(InputError, match=r"a\.parquet: is damaged: it declares \d rows but holds \d"):
            read(tmp_path / "a.parquet")
    else:
        check(read, tmp_path / "a.parquet")


def test_row_groups_that_hold_less_than_all_numbers_say_are_damage(read, tmp_path):
    handle = io.BytesIO()
    pq.write_table(pa.table({"text": ["a"] * 4}), handle)
    data = handle.getvalue().replace(b"\x16\x08", b"\x16\x0c")
    (tmp_path / "a.parquet").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.parquet"):
        read(tmp_path / "a.parquet")
