"""Rows with lists of documents, from JSON Lines and from Parquet."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from poolembed.config import InputConfig
from poolembed.errors import InputError
from poolembed.io import TextRole, open_source

QUERY = TextRole("query", ("query", "query"), only_string_column=False)
DOCUMENTS = TextRole("documents", ("documents", "passages"), only_string_column=False, is_list=True)


def opened(path, **config):
    return open_source(InputConfig(paths=(str(path),), **config), (QUERY, DOCUMENTS))


def read(path, **config):
    """All lists of documents, and the rejects."""
    with opened(path, **config) as source:
        chunks = list(source.chunks(2, 2**20))
    return (
        [documents for chunk in chunks for documents in chunk.texts["documents"]],
        [reject for chunk in chunks for reject in chunk.rejects],
    )


def save(path, documents, kind=None):
    columns = {"query": pa.array(["q"] * len(documents)), "documents": pa.array(documents, kind)}
    pq.write_table(pa.table(columns), path)
    return path


STRINGS = [["a", "b"], [], ["c"]]
OBJECTS = [[{"id": "x", "text": "a"}, {"id": None, "text": "b"}], [], [{"id": "y", "text": "c"}]]


@pytest.mark.parametrize(
    ("documents", "wanted"),
    [
        (STRINGS, [[("0", "a"), ("1", "b")], [], [("0", "c")]]),
        (OBJECTS, [[("x", "a"), ("1", "b")], [], [("y", "c")]]),
    ],
)
def test_documents_are_strings_or_objects_with_text_and_id(documents, wanted, write, tmp_path):
    path = write("a.jsonl", *({"query": "q", "documents": its_own} for its_own in documents))
    assert read(path) == (wanted, [])
    assert read(save(tmp_path / "a.parquet", documents)) == (wanted, [])


@pytest.mark.parametrize("kind", [pa.large_list(pa.string()), pa.list_(pa.large_string())])
def test_every_kind_of_list_is_read(kind, tmp_path):
    assert read(save(tmp_path / "a.parquet", STRINGS, kind))[0] == [
        [("0", "a"), ("1", "b")],
        [],
        [("0", "c")],
    ]


def test_lists_of_a_fixed_size_are_read(tmp_path):
    path = save(tmp_path / "a.parquet", [["a", "b"]], pa.list_(pa.string(), 2))
    assert read(path)[0] == [[("0", "a"), ("1", "b")]]


def test_ids_may_be_whole_numbers(write, tmp_path):
    documents = [[{"id": 7, "text": "a"}, {"text": "b"}]]
    assert read(write("a.jsonl", {"query": "q", "documents": documents[0]}))[0] == [[("7", "a"), ("1", "b")]]
    assert read(save(tmp_path / "a.parquet", documents))[0] == [[("7", "a"), ("1", "b")]]


def test_the_output_keeps_the_list_as_it_was(write):
    with opened(write("a.jsonl", {"query": "q", "documents": ["a", "b"]})) as source:
        (chunk,) = source.chunks(10, 1000)
    assert chunk.table.column("documents").to_pylist() == [["a", "b"]]


BAD_ID = "document 0 in 'documents' has an id that is no string and no integer"
BAD = [
    (None, "null_text", "the list in 'documents' is null"),
    ("a", "not_a_list", "'documents' holds a string, not a list of texts"),
    (["a", None], "not_a_string", "document 1 in 'documents' has null for its text"),
    ([1], "not_a_string", "document 0 in 'documents' has a number for its text"),
    ([{"id": "x"}], "not_a_string", "document 0 in 'documents' has null for its text"),
    (
        [{"id": 1.5, "text": "a"}],
        "bad_id",
        "document 0 in 'documents' has an id that is no string and no integer",
    ),
    (
        [{"id": True, "text": "a"}],
        "bad_id",
        "document 0 in 'documents' has an id that is no string and no integer",
    ),
]


@pytest.mark.parametrize(("value", "code", "message"), BAD)
def test_a_row_without_a_usable_list_is_refused(value, code, message, write):
    good = {"query": "q", "documents": ["a"]}
    path = write("a.jsonl", good, {"query": "q", "documents": value}, good)
    documents, [reject] = read(path, on_error="skip")
    assert documents == [[("0", "a")], [("0", "a")]]
    assert (reject.row, reject.code, reject.message) == (2, code, message)
    with pytest.raises(InputError, match=r"a\.jsonl:2"):
        opened(path)


def test_a_row_without_the_list_is_refused(write):
    _, [reject] = read(write("a.jsonl", {"query": "q", "documents": ["a"]}, {"query": "q"}), on_error="skip")
    assert (reject.code, reject.message) == ("missing_field", "the field 'documents' is missing")


def test_null_lists_and_null_texts_in_parquet_are_refused(tmp_path):
    path = save(tmp_path / "a.parquet", [["a"], None, ["b", None]])
    documents, rejects = read(path, on_error="skip")
    assert documents == [[("0", "a")]]
    assert [(reject.row, reject.code) for reject in rejects] == [(2, "null_text"), (3, "not_a_string")]
    with pytest.raises(InputError, match=r"a.parquet:2: the list in 'documents' is null"):
        opened(path)


def test_texts_in_parquet_that_are_not_utf8_are_refused(tmp_path):
    broken = pa.array([[b"a"], [b"\xff"]], pa.list_(pa.binary())).view(pa.list_(pa.string()))
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"query": ["q", "q"], "documents": broken}), path)
    documents, [reject] = read(path, on_error="skip")
    assert documents == [[("0", "a")]]
    assert (reject.row, reject.code) == (2, "invalid_utf8")


def test_a_column_without_lists_of_texts_is_told(write, tmp_path):
    with pytest.raises(InputError, match="the column 'documents' holds string, not lists of texts") as caught:
        opened(write("a.jsonl", {"query": "q", "documents": "a"}))
    assert caught.value.hint == "lists hold strings, or objects with `text`; --documents-field names one"
    for documents in ([[1]], [[{"id": "a"}]], [3]):
        with pytest.raises(InputError, match="not lists of texts"):
            opened(save(tmp_path / "a.parquet", documents))


def test_the_column_may_be_named(write):
    path = write("a.jsonl", {"query": "q", "hits": ["a"]})
    with opened(path, documents_field="hits") as source:
        assert source.fields == {"query": "query", "documents": "hits"}


def test_input_without_rows_has_a_list_column(write):
    with opened(write("a.jsonl")) as source:
        assert source.schema.field("documents").type == pa.list_(pa.string())
