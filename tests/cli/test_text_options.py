"""Options that decide what the text of a row is, and of which type its vector."""

import json

import numpy as np
import pytest

from tests.cli.conftest import ROWS, table_of, vectors, write

# float32 sums in another order; the values are of size 1.
SAME = {"rtol": 0, "atol": 1e-5}


@pytest.fixture
def plain(embed, corpus):
    """The output without any option, read whole; its file is gone."""
    table = table_of(embed("corpus.jsonl"))
    (corpus.parent / "corpus.embed.parquet").unlink()
    return table


def test_template_makes_the_text_of_several_columns(embed, corpus, folder):
    table = table_of(embed("corpus.jsonl", "--template", "{title}: {text}"))
    write(folder / "written.jsonl", [row | {"text": f"{row['title']}: {row['text']}"} for row in ROWS])
    written = table_of(embed("written.jsonl"), "written.embed.parquet")
    np.testing.assert_allclose(vectors(table), vectors(written), **SAME)
    assert table["text"].to_pylist() == [row["text"] for row in ROWS]
    missing = embed("corpus.jsonl", "--template", "{titel}", "--overwrite")
    assert missing.exit_code == 3
    assert "titel" in missing.stderr


@pytest.fixture
def two_windows(folder):
    """A corpus of one text: first a window of `one` and then one of `two`, 6 words each."""
    return write(folder / "corpus.jsonl", [{"text": "one " * 6 + "two " * 6}])


def test_on_long_decides_what_happens_to_a_long_text(embed, two_windows, folder):
    limit = ("--max-length", 8)
    cut = table_of(embed("corpus.jsonl", *limit))
    assert cut["truncated"].to_pylist() == [True]
    refused = embed("corpus.jsonl", "--on-long", "error", "--overwrite", *limit)
    assert refused.exit_code == 3
    assert "corpus.jsonl:1: " in refused.stderr
    whole = table_of(embed("corpus.jsonl", "--on-long", "windows", "--overwrite", *limit))
    assert whole["truncated"].to_pylist() == [False]
    write(folder / "halves.jsonl", [{"text": "one " * 6}, {"text": "two " * 6}])
    halves = vectors(table_of(embed("halves.jsonl", *limit), "halves.embed.parquet"))
    mean = halves.mean(axis=0)
    np.testing.assert_allclose(vectors(whole)[0], mean / np.linalg.norm(mean), **SAME)


def test_every_window_can_have_a_row_with_the_vector_of_its_characters(embed, folder):
    texts = ["one " * 6 + "two " * 6 + " one", "two", ""]
    write(folder / "corpus.jsonl", [{"id": row, "text": text} for row, text in enumerate(texts)])
    windows = ("--max-length", 8, "--on-long", "window-rows", "--json")
    done = embed("corpus.jsonl", *windows)
    table = table_of(done)
    assert json.loads(done.stdout)["num_rows"] == 3
    rows = table.to_pylist()
    assert [row["id"] for row in rows] == [0, 0, 0, 1, 2]
    assert [row["window"] for row in rows] == [0, 1, 2, 0, 0]
    assert [row["num_tokens"] for row in rows] == [8, 8, 3, 3, 2]
    parts = [texts[row["id"]][row["start"] : row["end"]] for row in rows]
    assert parts == [("one " * 6).strip(), ("two " * 6).strip(), "one", "two", ""]
    assert not any(row["truncated"] for row in rows)
    write(folder / "parts.jsonl", [{"text": part} for part in parts])
    apart = vectors(table_of(embed("parts.jsonl"), "parts.embed.parquet"))
    np.testing.assert_allclose(vectors(table), apart, **SAME)


def test_rows_of_windows_overlap_stand_behind_their_prompt_and_are_stored_as_any_others(embed, two_windows):
    options = ("--on-long", "window-rows", "--max-length", 10, "--overlap-tokens", 2, "--prompt", "one two ")
    table = table_of(embed("corpus.jsonl", *options, "--output-dtype", "int8"))
    text = json.loads(two_windows.read_text("utf-8"))["text"]
    spans = list(zip(table["start"].to_pylist(), table["end"].to_pylist(), strict=True))
    words = text.split()
    assert [text[start:end].split() for start, end in spans] == [words[0:6], words[4:10], words[8:]]
    assert str(table.schema.field("embedding").type).startswith("fixed_size_list<element: int8")


def test_classes_can_be_given_for_every_window(poolembed, models, folder):
    write(folder / "corpus.jsonl", [{"text": "one " * 6 + "two " * 6}, {"text": "two"}])
    write(folder / "parts.jsonl", [{"text": "one " * 6}, {"text": "two " * 6}, {"text": "two"}])
    for family in ("bert-seqcls", "bert-seqcls-multilabel", "bert-seqcls-regression"):
        common = ("--max-length", 8, "--model", models / family, "--batch-tokens", 512, "--overwrite")
        options = ("--on-long", "window-rows")
        whole = table_of(poolembed("classify", "corpus.jsonl", *common, *options), "corpus.classify.parquet")
        apart = table_of(poolembed("classify", "parts.jsonl", *common), "parts.classify.parquet")
        assert "labels" not in whole.column_names
        assert whole["end"].to_pylist() == [23, 47, 3]
        for name in {"label", "probs", "values"} & set(apart.column_names):
            if name == "label":
                assert whole[name].to_pylist() == apart[name].to_pylist()
            else:
                np.testing.assert_allclose(whole[name].to_pylist(), apart[name].to_pylist(), **SAME)


def test_a_window_has_one_class(poolembed, corpus):
    done = poolembed("classify", corpus, "--on-long", "window-rows", "--top-k", 2)
    assert done.exit_code == 2
    assert "--top-k and --on-long window-rows exclude each other" in done.stderr


def test_overlap_tokens_repeat_the_end_of_a_window_in_the_next(embed, two_windows):
    windows = ("corpus.jsonl", "--max-length", 8, "--on-long", "windows", "--overwrite")
    plain = table_of(embed(*windows))
    overlapping = table_of(embed(*windows, "--overlap-tokens", 3))
    assert plain["num_windows"].to_pylist() == [2]
    assert overlapping["num_windows"].to_pylist() == [3]
    assert np.abs(vectors(overlapping) - vectors(plain)).max() > 1e-3


@pytest.mark.parametrize(
    ("dtype", "kind", "size"),
    [
        ("float16", "halffloat", 64),
        ("int8", "int8", 64),
        ("uint8", "uint8", 64),
        ("binary", "int8", 8),
        ("ubinary", "uint8", 8),
    ],
)
def test_output_dtype_is_the_type_of_the_written_vectors(embed, corpus, plain, dtype, kind, size):
    table = table_of(embed("corpus.jsonl", "--output-dtype", dtype))
    assert str(table.schema.field("embedding").type) == f"fixed_size_list<element: {kind}>[{size}]"
    if dtype == "float16":
        np.testing.assert_allclose(vectors(table).astype(np.float32), vectors(plain), atol=1e-3)
    if dtype == "ubinary":
        np.testing.assert_array_equal(vectors(table), np.packbits(vectors(plain) > 0, axis=1))


def test_ranges_from_gives_two_outputs_the_same_steps(embed, corpus, folder):
    whole = table_of(embed("corpus.jsonl", "--output-dtype", "int8"))
    write(folder / "half.jsonl", ROWS[2:])
    own = table_of(embed("half.jsonl", "--output-dtype", "int8"), "half.embed.parquet")
    shared = embed(
        *("half.jsonl", "--output-dtype", "int8", "--ranges-from", "corpus.embed.parquet", "--overwrite")
    )
    half = table_of(shared, "half.embed.parquet")
    assert np.abs(vectors(half).astype(int) - vectors(whole)[2:]).max() <= 1  # on the edge of a step
    assert np.abs(vectors(own).astype(int) - vectors(whole)[2:]).max() > 1
