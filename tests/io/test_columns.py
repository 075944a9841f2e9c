"""Which column is the text, which are kept, and what several files make of one column."""

import itertools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig
from poolembed.errors import ConfigError, InputError
from poolembed.io import TextRole, open_source
from poolembed.io.columns import common_type

TEXT = TextRole("text", ("text",))


def opened(*paths, roles=(TEXT,), **config):
    return open_source(InputConfig(paths=tuple(map(str, paths)), **config), roles)


@pytest.fixture
def save(tmp_path):
    def save(name: str, metadata=None, **columns):
        pq.write_table(pa.table(columns).replace_schema_metadata(metadata), tmp_path / name)
        return tmp_path / name

    return save


def test_the_named_text_column_wins(write):
    path = write("a.jsonl", {"text": "a", "body": "b"})
    assert opened(path, text_field="body").fields == {"text": "body"}


def test_text_is_taken_when_there_is_one(write):
    assert opened(write("a.jsonl", {"body": "b", "text": "a"})).fields == {"text": "text"}


def test_else_the_only_string_column_is_the_text(write, save):
    assert opened(write("a.jsonl", {"id": 1, "body": "b"}, {"id": 2, "body": "c"})).fields == {"text": "body"}
    assert opened(save("a.parquet", id=[1], body=["b"])).fields == {"text": "body"}


def test_a_column_with_some_other_value_is_no_string_column(write):
    path = write("a.jsonl", {"code": "a", "body": "b"}, {"code": 1, "body": "c"})
    assert opened(path).fields == {"text": "body"}


def test_several_string_columns_are_listed_with_their_types(write):
    path = write("a.jsonl", {"title": "a", "body": "b", "n": 1})
    with pytest.raises(InputError, match="no column 'text' for the text") as caught:
        opened(path)
    assert caught.value.hint == "columns: title (string), body (string), n (int64); --text-field names one"


def test_a_role_may_refuse_the_only_string_column(write):
    with pytest.raises(InputError, match="no column 'query' or 'q' for the query"):
        opened(write("a.jsonl", {"body": "b"}), roles=[TextRole("query", ("query", "q"), False)])


def test_candidates_are_tried_in_their_order(write):
    path = write("a.jsonl", {"q": "a", "query": "b"})
    assert opened(path, roles=[TextRole("query", ("query", "q"), False)]).fields == {"query": "query"}


def test_very_many_columns_are_listed_in_part(write):
    path = write("a.jsonl", {f"column{number}": 1 for number in range(80)})
    with pytest.raises(InputError) as caught:
        opened(path)
    assert "column49 (int64), ...;" in caught.value.hint
    assert "column50" not in caught.value.hint


@pytest.mark.parametrize("config", [{"text_field": "boddy"}, {"columns": ("boddy",)}])
def test_an_unknown_column_suggests_a_near_miss(write, config):
    with pytest.raises(InputError, match="no column is named 'boddy'") as caught:
        opened(write("a.jsonl", {"body": "b"}), **config)
    assert caught.value.hint == "did you mean 'body'?"


def test_an_unknown_column_unlike_all_others_lists_them(write):
    with pytest.raises(InputError) as caught:
        opened(write("a.jsonl", {"body": "b"}), text_field="zzz")
    assert caught.value.hint == "columns: body (string)"


def test_columns_select_and_order_and_the_text_is_not_forced_in(write, read):
    whole = read(write("a.jsonl", {"text": "x", "a": 1, "b": 2}), columns=("b", "a"))
    assert whole.table.to_pylist() == [{"b": 2, "a": 1}]
    assert whole.texts == ["x"]


@pytest.mark.parametrize("columns", [(), ("a", "a")])
def test_no_column_and_one_column_twice_are_refused(write, columns):
    with pytest.raises(ConfigError, match="--columns must name at least one column, and each only once"):
        opened(write("a.jsonl", {"text": "x", "a": 1}), columns=columns)


def test_a_text_column_without_any_string_is_refused_whatever_happens_to_bad_rows(write):
    path = write("a.jsonl", {"text": 1, "title": "a"}, {"text": None, "title": "b"})
    with pytest.raises(InputError, match="the column 'text' holds int64, not strings") as caught:
        opened(path, on_error="skip")
    assert caught.value.hint == "columns with strings: title; --text-field names one"


def test_without_any_strings_that_is_said(write):
    with pytest.raises(InputError) as caught:
        opened(write("a.jsonl", {"text": 1}))
    assert caught.value.hint == "columns with strings: none; --text-field names one"


def test_a_parquet_file_without_the_text_column_is_a_wrong_file(save):
    with pytest.raises(InputError, match=r"b\.parquet: has no column 'text'") as caught:
        opened(save("a.parquet", text=["x"]), save("b.parquet", body=["y"]), on_error="skip")
    assert caught.value.hint == "columns: body (string)"


def test_a_parquet_file_without_columns_has_no_text(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="no column 'text'"):
        opened(tmp_path / "a.parquet")


def test_files_with_other_columns_fill_with_nulls(read, save, write):
    paths = [
        save("a.parquet", text=["x"], n=pa.array([1], pa.int16())),
        write("b.jsonl", {"text": "y", "tags": ["t"]}),
    ]
    assert read(*paths).table.to_pylist() == [
        {"text": "x", "n": 1, "tags": None},
        {"text": "y", "n": None, "tags": ["t"]},
    ]


def test_a_column_that_some_file_lacks_may_be_null(save, tmp_path):
    schema = pa.schema(
        [pa.field("text", pa.string(), nullable=False), pa.field("n", pa.int8(), nullable=False)]
    )
    pq.write_table(
        pa.Table.from_arrays([pa.array(["x"]), pa.array([1], pa.int8())], schema=schema),
        tmp_path / "a.parquet",
    )
    pq.write_table(pa.table({"text": ["y"]}, schema=schema.remove(1)), tmp_path / "b.parquet")
    unified = opened(tmp_path / "a.parquet", tmp_path / "b.parquet").schema
    assert [field.nullable for field in unified] == [False, True]


def test_types_of_all_jsonl_files_together_count(read, write):
    whole = read(write("a.jsonl", {"text": "x", "v": 1}), write("b.jsonl", {"text": "y", "v": "one"}))
    assert whole.table["v"].to_pylist() == ["1", "one"]


def test_an_empty_jsonl_file_changes_nothing(read, write):
    whole = read(write("a.jsonl"), write("b.jsonl", {"text": "y", "v": 1}))
    assert whole.table.to_pylist() == [{"text": "y", "v": 1}]


def test_a_jsonl_column_of_nulls_takes_the_type_of_the_others(read, save, write):
    paths = [
        write("a.jsonl", {"text": "x", "v": None}),
        save("b.parquet", text=["y"], v=pa.array([1.5], pa.float32())),
    ]
    whole = read(*paths)
    assert whole.schema.field("v").type == pa.float32()
    assert whole.table["v"].to_pylist() == [None, 1.5]


def test_wider_types_hold_the_values_of_all_files(read, save, write):
    paths = [
        save(
            "a.parquet",
            text=pa.array(["x"], pa.large_string()),
            n=pa.array([1], pa.int8()),
            f=pa.array([1], pa.int32()),
        ),
        save(
            "b.parquet",
            text=pa.array(["y"]).dictionary_encode(),
            n=pa.array([2**31], pa.uint32()),
            f=pa.array([0.5]),
        ),
        write("c.jsonl", {"text": "z", "n": 3, "f": 1.5}),
    ]
    whole = read(*paths)
    assert [field.type for field in whole.schema] == [pa.large_string(), pa.int64(), pa.float64()]
    assert whole.table.to_pylist() == [
        {"text": "x", "n": 1, "f": 1.0},
        {"text": "y", "n": 2**31, "f": 0.5},
        {"text": "z", "n": 3, "f": 1.5},
    ]
    assert whole.texts == ["x", "y", "z"]


def test_types_that_do_not_fit_are_refused_with_both_files(save, write):
    with pytest.raises(InputError) as caught:
        opened(
            save("a.parquet", text=["x"], when=pa.array([0], pa.date32())),
            write("b.jsonl", {"text": "y", "when": "now"}),
        )
    assert "the column 'when' holds date32[day] in" in caught.value.message
    assert "a.parquet but string in" in caught.value.message
    assert caught.value.message.endswith("b.jsonl")


SAMPLES = {
    pa.int8(): [-128, 127],
    pa.int16(): [-(2**15), 2**15 - 1],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**63 - 1],
    pa.uint8(): [0, 255],
    pa.uint16(): [0, 2**16 - 1],
    pa.uint32(): [0, 2**32 - 1],
    pa.uint64(): [0, 2**64 - 1],
    pa.float16(): [65504.0, 2.0**-24],
    pa.float32(): [3.4028234663852886e38, 1e-45],
    pa.float64(): [1.7976931348623157e308, 5e-324],
    pa.string(): ["é", ""],
    pa.large_string(): ["é", ""],
    pa.string_view(): ["é", ""],
    pa.bool_(): [True, False],
    pa.date32(): [0, 1],
    pa.null(): [None],
}


@pytest.mark.parametrize(("first", "second"), list(itertools.product(SAMPLES, SAMPLES)), ids=str)
def test_a_common_type_holds_the_extremes_of_both_exactly(first, second):
    both = common_type(first, second)
    assert both == common_type(second, first)
    if both is None:
        assert first != second
        return
    for kind in (first, second):
        column = pa.array(SAMPLES[kind], kind)
        assert column.cast(both).to_pylist() == column.to_pylist()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.int64(), pa.float64()),
        (pa.uint64(), pa.int8()),
        (pa.string(), pa.int64()),
        (pa.bool_(), pa.int8()),
        (pa.timestamp("us"), pa.timestamp("ns")),
        (pa.list_(pa.int8()), pa.list_(pa.int16())),
    ],
    ids=str,
)
def test_types_without_a_lossless_common_type_conflict(first, second):
    assert common_type(first, second) is None


def test_a_mixture_of_signs_is_widened():
    assert common_type(pa.uint8(), pa.int8()) == pa.int16()
    assert common_type(pa.uint16(), pa.int64()) == pa.int64()


def test_metadata_that_all_files_share_is_kept_and_what_describes_their_columns_is_not(save):
    shared = {
        "licence": "CC0",
        "pandas": "{}",
        "huggingface": "{}",
        "org.apache.spark.sql.parquet.row.metadata": "{}",
        "parquet.avro.schema": "{}",
        "poolembed.model": "old",
    }
    paths = [
        save("a.parquet", {**shared, "page": "1"}, text=["x"]),
        save("b.parquet", {**shared, "page": "2"}, text=["y"]),
    ]
    assert opened(*paths).schema.metadata == {b"licence": b"CC0"}
    assert opened(paths[0], columns=("text",)).schema.metadata == {b"licence": b"CC0", b"page": b"1"}


QUERY = TextRole("query", ("query", "question"), only_string_column=False)
DOCUMENT = TextRole("document", ("document", "answer"), only_string_column=False)


def test_two_roles_take_candidates_that_belong_together(write):
    path = write("a.jsonl", {"query": "a", "question": "b", "answer": "c"})
    assert opened(path, roles=(QUERY, DOCUMENT)).fields == {"query": "question", "document": "answer"}


def test_a_named_column_leaves_the_other_role_free_to_find_its_own(write):
    path = write("a.jsonl", {"query": "a", "answer": "c"})
    fields = opened(path, roles=(QUERY, DOCUMENT), query_field="query").fields
    assert fields == {"query": "query", "document": "answer"}
    both = opened(path, roles=(QUERY, DOCUMENT), query_field="answer", document_field="query").fields
    assert both == {"query": "answer", "document": "query"}


def test_candidates_that_are_there_only_in_part_are_not_taken(write):
    path = write("a.jsonl", {"query": "a", "answer": "c"})
    with pytest.raises(
        InputError, match="no column 'query' with 'document' or 'question' with 'answer'"
    ) as caught:
        opened(path, roles=(QUERY, DOCUMENT))
    assert caught.value.hint == (
        "columns: query (string), answer (string); --query-field and --document-field name them"
    )


def test_input_without_rows_takes_the_first_candidates(write):
    fields = opened(write("a.jsonl"), roles=(QUERY, DOCUMENT), document_field="d").fields
    assert fields == {"query": "query", "document": "d"}
