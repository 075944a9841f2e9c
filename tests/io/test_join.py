"""Queries, documents and candidates joined to rows."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolembed.config import InputConfig, OutputConfig
from poolembed.errors import ConfigError, InputError, OutputError
from poolembed.io import TextRole, open_input, plan_output

QUERIES = [{"qid": "b", "text": "bread", "n": 1}, {"qid": "s", "text": "stars", "n": 2}]
DOCUMENTS = [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}, {"id": 3, "text": "three"}]
PAIRS = "s\t3\nb\t1\ns\t1\n"


@pytest.fixture
def joined(tmp_path):
    """Write the three inputs, open them, and return (source's rows as (id, query, documents), chunks)."""

    def run(candidates=PAIRS, queries=QUERIES, documents=DOCUMENTS, name="c.tsv", max_rows=100, **config):
        for file, rows in (("q.jsonl", queries), ("d.jsonl", documents)):
            (tmp_path / file).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        if isinstance(candidates, pa.Table):
            pq.write_table(candidates, tmp_path / name)
        else:
            (tmp_path / name).write_text(candidates, "utf-8")
        inputs = InputConfig(
            paths=(),
            queries=str(tmp_path / "q.jsonl"),
            documents=str(tmp_path / "d.jsonl"),
            candidates=str(tmp_path / name),
            **config,
        )
        assert inputs.check() == []
        with open_input(inputs, (TextRole("query", ("query",)),)) as source:
            chunks = list(source.chunks(max_rows, 2**20))
            assert sum(chunk.num_rows + len(chunk.rejects) for chunk in chunks) == source.num_rows
            assert all(chunk.table.schema == source.schema for chunk in chunks)
        return chunks

    return run


def rows_of(chunks):
    """(id, query, documents) of every row."""
    return [
        (row["query_id"], query, documents)
        for chunk in chunks
        for row, query, documents in zip(
            chunk.table.to_pylist(), chunk.texts["query"], chunk.texts["documents"], strict=True
        )
    ]


def rejects_of(chunks):
    return [
        (reject.code, reject.file.rpartition("/")[2], reject.row)
        for chunk in chunks
        for reject in chunk.rejects
    ]


EXPECTED = [("b", "bread", [("1", "one")]), ("s", "stars", [("3", "three"), ("1", "one")])]


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("c.tsv", PAIRS),
        ("c.txt", PAIRS.replace("\t", "   ")),
        ("c.tsv", "query-id\tcorpus-id\tscore\ns\t3\t1\nb\t1\t1\ns\t1\t0\n"),
        ("c.qrels", "s 0 3 1\nb 0 1 1\ns 0 1 0\n"),
        ("c.trec", "s Q0 3 1 9.5 tag\nb Q0 1 1 9 tag\ns Q0 1 2 9 tag\n"),
        ("c.jsonl", '{"qid": "s", "docid": 3}\n{"qid": "b", "docid": 1}\n{"qid": "s", "docid": 1}\n'),
        ("c.jsonl", '{"left": "s", "right": 3}\n{"left": "b", "right": 1}\n{"left": "s", "right": 1}\n'),
        ("c.jsonl", '{"qid": "s", "documents": [3, 1]}\n{"qid": "b", "documents": ["1"]}\n'),
        ("c.parquet", pa.table({"query_id": ["s", "b"], "doc_ids": [[3, 1], [1]]})),
        ("c.parquet", pa.table({"x": [0.5, 0.5], "query_id": ["s", "b"], "candidates": [["3", "1"], ["1"]]})),
    ],
)
def test_every_way_to_write_candidates_gives_the_same_rows(joined, name, candidates):
    assert rows_of(joined(candidates, name=name)) == EXPECTED


def test_rows_stand_in_the_order_of_the_queries_with_their_columns(joined):
    [chunk] = joined()
    assert chunk.table.column_names == ["query_id", "text", "n"]
    assert chunk.table["n"].to_pylist() == [1, 2]
    assert [row for _, row in chunk.places] == [1, 2]
    [chunk] = joined(columns=("n",))
    assert chunk.table.column_names == ["query_id", "n"]


def test_queries_without_candidates_and_documents_that_nobody_names_are_left_out(joined):
    assert rows_of(joined("s 2\n")) == [("s", "stars", [("2", "two")])]


def test_chunks_hold_as_many_rows_as_allowed(joined):
    chunks = joined(max_rows=1)
    assert [chunk.num_rows for chunk in chunks] == [1, 1]
    assert rows_of(chunks) == EXPECTED


def test_a_limit_counts_queries_with_candidates(joined):
    queries = [{"qid": "x", "text": "nobody asks"}, *QUERIES]
    assert rows_of(joined("s 9\nb 1\n", queries, limit=1)) == EXPECTED[:1]


@pytest.mark.parametrize(
    ("candidates", "code", "line", "said"),
    [
        ("s 3\ns 9\n", "unknown_document", 2, "no document has the id '9'"),
        ("s 3\nx 1\n", "unknown_query", 2, "no query has the id 'x'"),
        ("s 3\ns 1\ns 3\n", "repeated_candidate", 3, "was named for the query 's' before"),
        ("s 3\ns\n", "not_a_pair", 2, "has 1 fields"),
        ("s\t3\ns\t\n", "null_id", 2, "an id is empty"),
    ],
)
def test_a_candidate_that_cannot_be_used_is_refused_by_its_line(joined, candidates, code, line, said):
    with pytest.raises(InputError, match=rf"c\.tsv:{line}: .*{said}"):
        joined(candidates)
    chunks = joined(candidates, on_error="skip")
    assert rejects_of(chunks) == [(code, "c.tsv", line)]
    assert rows_of(chunks)[0][:2] == ("s", "stars")


def test_a_list_is_refused_document_by_document(joined):
    chunks = joined('{"qid": "s", "documents": [7, 3, 8]}\n', name="c.jsonl", on_error="skip")
    assert rejects_of(chunks) == [("unknown_document", "c.jsonl", 1)] * 2
    assert rows_of(chunks) == [("s", "stars", [("3", "three")])]


def test_a_query_that_lost_all_its_candidates_still_has_its_row(joined):
    assert rows_of(joined("s 9\n", on_error="skip")) == [("s", "stars", [])]


@pytest.mark.parametrize(
    ("changes", "rejects"),
    [
        ({"documents": [*DOCUMENTS, {"id": 3, "text": "again"}]}, [("repeated_id", "d.jsonl", 4)]),
        ({"queries": [*QUERIES, {"qid": "s", "text": "again"}]}, [("repeated_id", "q.jsonl", 3)]),
        ({"documents": [*DOCUMENTS, {"id": None, "text": "x"}]}, [("null_id", "d.jsonl", 4)]),
        ({"queries": [*QUERIES, {"qid": None, "text": "x"}]}, [("null_id", "q.jsonl", 3)]),
        ({"documents": [*DOCUMENTS, {"id": 4, "text": None}]}, [("null_text", "d.jsonl", 4)]),
        ({"queries": [*QUERIES, {"qid": "t", "text": 7}]}, [("not_a_string", "q.jsonl", 3)]),
        ({"candidates": '{"qid": null, "docid": 3}\n', "name": "c.jsonl"}, [("null_id", "c.jsonl", 1)]),
    ],
)
def test_rows_that_cannot_be_used_are_refused_in_all_three_inputs(joined, changes, rejects):
    with pytest.raises(InputError, match=rf"{rejects[0][1]}:{rejects[0][2]}: "):
        joined(**changes)
    chunks = joined(**changes, on_error="skip")
    assert rejects_of(chunks) == rejects
    if "candidates" not in changes:
        assert rows_of(chunks) == EXPECTED


@pytest.mark.parametrize(
    ("candidates", "name", "said"),
    [
        ("s 3 4 5 6 7 8\n", "c.tsv", "c.tsv:1: neither a pair of ids, nor judgements"),
        ("s\tone\ttwo\tthree\n", "c.tsv", "c.tsv:1: neither a pair of ids"),
        ('{"qid": "s", "x": 1, "y": 2}\n', "c.jsonl", "with the id of a document"),
        ('{"qid": 1.5, "docid": 1}\n', "c.jsonl", "holds double, not ids"),
        (
            '{"qid": ["s"], "docid": 1}\n',
            "c.jsonl",
            "holds list<item: string>, not ids|not the id of one query",
        ),
    ],
)
def test_candidates_of_another_kind_are_refused_with_what_is_understood(joined, candidates, name, said):
    with pytest.raises(InputError, match=said):
        joined(candidates, name=name)


def test_columns_of_ids_can_be_named(joined):
    queries = [{"key": "s", "qid": "other", "text": "stars"}]
    documents = [{"number": 3, "text": "three"}]
    named = {"query_id_field": "key", "document_id_field": "number"}
    expected = [("s", "stars", [("3", "three")])]
    assert rows_of(joined("s 3\n", queries, documents, **named)) == expected
    both = '{"key": "s", "number": 3, "qid": "x"}\n'
    assert rows_of(joined(both, queries, documents, name="c.jsonl", **named)) == expected
    with pytest.raises(InputError, match="no column 'key' with the id of a query"):
        joined(query_id_field="key")


def test_a_column_of_the_name_of_the_id_in_the_output_is_refused(joined):
    queries = [{"id": "s", "query_id": "other", "text": "stars", "n": 1}]
    with pytest.raises(ConfigError, match="beside the id in 'id'") as caught:
        joined("s 3\n", queries, query_id_field="id")
    assert caught.value.hint == "leave it out with --columns text,n"


def test_a_column_of_the_queries_that_is_not_there_is_named(joined):
    with pytest.raises(InputError, match="no column of the queries is named 'm'"):
        joined(columns=("m",))


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("1234")), unique=True),
    st.permutations("abc"),
    st.permutations("123"),
)
@settings(deadline=None, max_examples=30)
def test_a_join_is_what_loops_over_dictionaries_give(tmp_path_factory, pairs, query_ids, document_ids):
    folder = tmp_path_factory.mktemp("join")
    (folder / "q.jsonl").write_text("".join(f'{{"id": "{name}", "text": "Q{name}"}}\n' for name in query_ids))
    (folder / "d.jsonl").write_text(
        "".join(f'{{"id": "{name}", "text": "D{name}"}}\n' for name in document_ids)
    )
    (folder / "c.tsv").write_text("".join(f"{query}\t{document}\n" for query, document in pairs))
    inputs = InputConfig(
        paths=(),
        queries=str(folder / "q.jsonl"),
        documents=str(folder / "d.jsonl"),
        candidates=str(folder / "c.tsv"),
        on_error="skip",
    )
    with open_input(inputs, ()) as source:
        chunks = list(source.chunks(2, 2**20))
    expected = [
        (name, f"Q{name}", [(other, f"D{other}") for one, other in pairs if one == name and other != "4"])
        for name in query_ids
        if any(one == name for one, _ in pairs)
    ]
    assert rows_of(chunks) == expected
    unknown = [row for row, (one, other) in enumerate(pairs, 1) if one == "d" or other == "4"]
    assert sorted(row for _, _, row in rejects_of(chunks)) == unknown


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"queries": "q"}, "--documents and --candidates missing: a join needs all three"),
        ({"queries": "q", "documents": "d", "candidates": "c", "paths": ("x",)}, "exclude each other"),
        ({"queries": "-", "documents": "-", "candidates": "c"}, "standard input"),
        ({"queries": "q", "documents": "d", "candidates": "-"}, "standard input"),
        ({"paths": ("x",), "query_id_field": "qid"}, "--query-id-field is for --queries"),
    ],
)
def test_half_a_join_is_refused(config, problem):
    [found] = InputConfig(**{"paths": (), **config}).check()
    assert problem in found


def test_the_output_stands_beside_the_candidates_and_replaces_no_input(joined, tmp_path):
    joined()
    names = {"queries": "q.jsonl", "documents": "d.jsonl", "candidates": "c.tsv"}
    inputs = InputConfig(paths=(), **{name: str(tmp_path / file) for name, file in names.items()})
    assert plan_output(OutputConfig(), inputs, "rerank").path == tmp_path / "c.rerank.parquet"
    pq.write_table(pa.table({"id": [1], "text": ["one"]}), tmp_path / "d.parquet")
    changed = InputConfig(
        paths=(), queries=inputs.queries, documents=str(tmp_path / "d.parquet"), candidates=inputs.candidates
    )
    with pytest.raises(OutputError, match="is an input"):
        plan_output(OutputConfig(output=str(tmp_path / "d.parquet"), overwrite=True), changed, "rerank")


def test_an_unknown_query_without_candidates_is_refused_too(joined):
    table = pa.table({"query_id": ["s", "x"], "documents": pa.array([["1"], []], pa.list_(pa.string()))})
    (chunk,) = joined(table, name="c.parquet", on_error="skip", queries=[{"id": "s", "text": "q"}])
    rejects = [reject for reject in chunk.rejects if reject.code == "unknown_query"]
    assert [(reject.row, reject.message) for reject in rejects] == [(2, "no query has the id 'x'")]
