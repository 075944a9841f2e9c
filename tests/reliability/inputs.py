"""Faults of files of text, and of the texts in them."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq

from tests.reliability.fault import ROWS, Desk, Fault, Seen

BEFORE = "stops before the model is loaded"
ASIDE = "sets the row aside, and goes on"


def stops(*rows):
    """A row stops the run and nothing is written."""

    def run(desk: Desk) -> Seen:
        desk.write(*ROWS, *rows)
        seen = desk.embed("corpus.jsonl", "--model", "./nowhere")
        assert desk.names() == ["corpus.jsonl"]
        return seen

    return run


def aside(code, *rows, options=()):
    """A row goes to the rejects, with a code, and the others to the output."""

    def run(desk: Desk) -> Seen:
        desk.write(*ROWS, *rows, *ROWS)
        seen = desk.embed("corpus.jsonl", "--on-error", "skip", *options)
        assert desk.codes() == [code] * len(rows)
        assert desk.table()["id"].to_pylist() == [1, 2, 3, 1, 2, 3]
        return seen

    return run


def kept(column, *values, text="A line."):
    """Values of a column come out as they went in."""

    def run(desk: Desk) -> Seen:
        desk.write(*({"text": text, column: value} for value in values))
        seen = desk.embed("corpus.jsonl")
        assert desk.table()[column].to_pylist() == list(values)
        return seen

    return run


def told(*arguments, model=None):
    """The command line alone is the fault; the corpus is there, and nothing is written."""

    def run(desk: Desk) -> Seen:
        desk.write(*ROWS)
        seen = desk.embed(*arguments, *(() if model is None else ("--model", model)))
        assert desk.names() == ["corpus.jsonl"]
        return seen

    return run


def surrogate(desk: Desk) -> Seen:
    desk.write('{"text": "half a \\ud800 pair"}')
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["text"].to_pylist() == ["half a \ufffd pair"]
    return seen


def changing_ids(desk: Desk) -> Seen:
    desk.write({"id": 7, "text": "a"}, {"id": "seven", "text": "b"})
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["id"].to_pylist() == ["7", "seven"]
    return seen


def all_null_beginning(desk: Desk) -> Seen:
    desk.write(*[{"text": "a", "note": None}] * 60, {"text": "a", "note": "at last"})
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["note"].to_pylist() == [None] * 60 + ["at last"]
    return seen


def empty_text(desk: Desk) -> Seen:
    desk.write({"text": ""}, {"text": " "}, {"text": "\u200b"})
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["text"].to_pylist() == ["", " ", "\u200b"]
    assert desk.table()["embedding"].null_count == 0
    return seen


def no_rows(desk: Desk) -> Seen:
    desk.write('{"text": "x"}')
    desk.embed("corpus.jsonl", "-o", "one.parquet")
    desk.write(name="empty.jsonl")
    seen = desk.embed("empty.jsonl")
    assert desk.table("empty.embed.parquet").num_rows == 0
    kind = desk.table("one.parquet").schema.field("embedding").type
    assert desk.table("empty.embed.parquet").schema.field("embedding").type == kind
    return seen


def only_bad_rows(desk: Desk) -> Seen:
    desk.write(LONG, LONG)
    seen = desk.embed("corpus.jsonl", "--on-long", "error", "--on-error", "skip")
    assert desk.codes() == ["too_long"] * 2
    assert desk.table().num_rows == 0
    return seen


def cut_gzip(desk: Desk) -> Seen:
    whole = gzip.compress(b'{"text": "a line"}\n' * 500)
    (desk.folder / "corpus.jsonl.gz").write_bytes(whole[:-20])
    seen = desk.embed("corpus.jsonl.gz")
    assert desk.names() == ["corpus.jsonl.gz"]
    return seen


def damaged_parquet(desk: Desk) -> Seen:
    pq.write_table(pa.table({"text": ["a"]}), desk.folder / "corpus.parquet")
    content = (desk.folder / "corpus.parquet").read_bytes()
    (desk.folder / "corpus.parquet").write_bytes(content[:-8])
    seen = desk.embed("corpus.parquet")
    assert desk.names() == ["corpus.parquet"]
    return Seen(seen.exit_code, seen.says.partition(". ")[0])


def numbers_for_text(desk: Desk) -> Seen:
    pq.write_table(pa.table({"text": [1, 2]}), desk.folder / "corpus.parquet")
    return desk.embed("corpus.parquet")


def no_input_in_folder(desk: Desk) -> Seen:
    (desk.folder / "in").mkdir()
    return desk.embed("in")


def own_outputs(desk: Desk) -> Seen:
    desk.write(*ROWS, name="in/corpus.jsonl")
    desk.embed("in", "-o", "in/first.parquet")
    seen = desk.embed("in", "-o", "in/second.parquet")
    assert desk.table("in/second.parquet").num_rows == len(ROWS)
    return seen


def bad_line_of_stdin(desk: Desk) -> Seen:
    return desk.embed("-", "-o", "out.parquet", input=b'{"text": "a"}\n{"text": \n')


def long_line(desk: Desk) -> Seen:
    desk.write({"text": "word " * 2**20})
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["truncated"].to_pylist() == [True]
    return seen


def long_text(desk: Desk) -> Seen:
    desk.write(*ROWS, {"id": 4, "text": "word " * 2000})
    seen = desk.embed("corpus.jsonl")
    assert desk.table()["truncated"].to_pylist() == [False, False, False, True]
    return seen


def long_text_refused(desk: Desk) -> Seen:
    desk.write(*ROWS, {"id": 4, "text": "word " * 2000})
    seen = desk.embed("corpus.jsonl", "--on-long", "error")
    assert desk.names() == ["corpus.jsonl"]
    return seen


def null_results(desk: Desk) -> Seen:
    desk.write(ROWS[0], {"id": 2, "text": None})
    seen = desk.embed("corpus.jsonl", "--on-null", "null")
    assert desk.table()["embedding"].is_null().to_pylist() == [False, True]
    assert desk.table()["num_tokens"].is_null().to_pylist() == [False, True]
    return seen


def same_id(choice: str):
    """An id stands in two rows."""

    def run(desk: Desk) -> Seen:
        desk.write(ROWS[0], ROWS[1] | {"id": 1})
        seen = desk.embed("corpus.jsonl", "--on-duplicate-id", choice)
        assert desk.codes() == ["duplicate_id"] if choice == "first" else desk.names() == ["corpus.jsonl"]
        return seen

    return run


def ragged_csv(desk: Desk) -> Seen:
    (desk.folder / "a.csv").write_text("id,text\n1,one\n2,two,three\n")
    return desk.embed("a.csv")


LONG = {"id": 4, "text": "word " * 2000}

INPUTS = [
    Fault("a line is not JSON, or cut off", BEFORE, stops('{"text": "cut o')),
    Fault("the same, `--on-error skip`", ASIDE, aside("broken_json", '{"text": "cut o')),
    Fault("a line is not UTF-8", BEFORE, stops(b'{"text": "\xff"}')),
    Fault("the same, `--on-error skip`", ASIDE, aside("invalid_utf8", b'{"text": "\xff"}')),
    Fault("`NaN` in a line, which is no JSON", BEFORE, stops('{"text": "a", "x": NaN}')),
    Fault("a key stands twice in a line", BEFORE, stops('{"text": "a", "text": "b"}')),
    Fault("a line is nested very deeply", BEFORE, stops('{"text": "a", "x": ' + "[" * 10_000)),
    Fault("a line is a list, not an object", BEFORE, stops("[1, 2]")),
    Fault("a text is null", BEFORE, stops({"text": None})),
    Fault("the same, `--on-error skip`", ASIDE, aside("null_text", {"text": None})),
    Fault("the same, `--on-null null`", "writes the row with null results", null_results),
    Fault(
        "an empty text, `--on-empty reject`",
        ASIDE,
        aside("empty_text", {"text": " "}, options=("--on-empty", "reject")),
    ),
    Fault(
        "half a surrogate pair, `--on-bad-text reject`",
        ASIDE,
        aside("lone_surrogate", '{"text": "a\\ud800b"}', options=("--on-bad-text", "reject")),
    ),
    Fault("an id stands twice, `--on-duplicate-id error`", BEFORE, same_id("error")),
    Fault("an id stands twice, `--on-duplicate-id first`", "keeps the first row", same_id("first")),
    Fault("a row of a CSV file has too many cells", BEFORE, ragged_csv),
    Fault("a text is a number", BEFORE, stops({"text": 5})),
    Fault("a line lacks the text", BEFORE, stops({"id": 5})),
    Fault("half a surrogate pair in a text", "puts U+FFFD in its place, and counts the row", surrogate),
    Fault("ids above 2⁶³", "keeps every digit", kept("id", 2**63 + 1, 2**64 - 1)),
    Fault("ids that are numbers in some lines and text in others", "keeps them, as text", changing_ids),
    Fault("text that looks like dates", "leaves it text", kept("id", "2024-01-01", "2023-05-06 07:08:09")),
    Fault("a column that is null for a long time, and then text", "makes it text", all_null_beginning),
    Fault("empty texts, or nothing but blanks", "gives them the vector that the model gives", empty_text),
    Fault("a text over the maximum length", "cuts it, marks the row and counts it", long_text),
    Fault("the same, `--on-long error`", "stops; no output is left", long_text_refused),
    Fault("the same, with `--on-error skip`", ASIDE, aside("too_long", LONG, options=("--on-long", "error"))),
    Fault("a line of five megabytes", "reads it; the model sees its beginning", long_line),
    Fault("no rows at all", "writes a valid file with every column", no_rows),
    Fault(
        "no good row, `--on-error skip`", "writes a valid file without rows, and the rejects", only_bad_rows
    ),
    Fault("the file is not there", "says what is near", told("corpsu.jsonl")),
    Fault("the column is not there", "says what is near", told("corpus.jsonl", "--text-field", "txet")),
    Fault("a column to keep is not there", "says which there are", told("corpus.jsonl", "--columns", "body")),
    Fault("a file is given twice", "refuses to read its rows twice", told("corpus.jsonl", "./corpus.jsonl")),
    Fault("a pattern matches nothing", BEFORE, told("*.parquet", "-o", "out.parquet")),
    Fault("a folder without any input", BEFORE, no_input_in_folder),
    Fault("outputs of earlier runs in the folder that is read", "passes them over", own_outputs),
    Fault("a bad line on standard input", BEFORE, bad_line_of_stdin),
    Fault("a gzip file is cut off", BEFORE, cut_gzip),
    Fault("a Parquet file is damaged", BEFORE, damaged_parquet),
    Fault("the texts of a Parquet file are numbers", BEFORE, numbers_for_text),
]
