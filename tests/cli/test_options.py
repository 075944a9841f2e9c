"""Every option changes something, and what it changes is right."""

import json
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest

from poolembed.cli import cli
from tests.cli.conftest import ROWS, table_of, vectors, write

# float32 sums in another order; the values are of size 1.
SAME = {"rtol": 0, "atol": 1e-5}

LONG = " ".join(["word"] * 600)


@pytest.fixture
def plain(embed, corpus):
    """The output without any option, read whole; its file is gone."""
    table = table_of(embed("corpus.jsonl"))
    (corpus.parent / "corpus.embed.parquet").unlink()
    return table


def said(table, name):
    return table.schema.metadata[f"poolembed.{name}".encode()].decode()


def norms(table):
    return np.linalg.norm(vectors(table), axis=1)


def test_without_options_the_output_has_the_inputs_columns_and_the_results(plain):
    assert plain.column_names == ["id", "title", "text", "embedding", "num_tokens", "truncated"]
    assert [str(field.type) for field in plain.schema] == [
        "int64",
        "string",
        "string",
        "fixed_size_list<element: float>[64]",
        "int32",
        "bool",
    ]
    assert plain.select(["id", "title", "text"]).to_pylist() == ROWS
    np.testing.assert_allclose(norms(plain), 1, atol=1e-6)


def test_text_field_names_the_column_that_is_read(embed, corpus, plain):
    table = table_of(embed("corpus.jsonl", "--text-field", "title"))
    assert np.abs(vectors(table) - vectors(plain)).max() > 1e-2


def test_columns_are_kept_in_the_order_asked_for(embed, corpus, plain):
    table = table_of(embed("corpus.jsonl", "--columns", "title, id"))
    assert table.column_names == ["title", "id", "embedding", "num_tokens", "truncated"]
    assert table.drop_columns(["title", "id"]).equals(plain.select(["embedding", "num_tokens", "truncated"]))


def test_limit_reads_the_first_rows(embed, corpus):
    assert table_of(embed("corpus.jsonl", "--limit", 2))["id"].to_pylist() == [1, 2]


def test_on_error_skip_sets_bad_rows_aside(embed, folder):
    write(folder / "corpus.jsonl", [ROWS[0], {"id": 9, "text": None}, "{broken", ROWS[1]])
    done = embed("corpus.jsonl", "--on-error", "skip")
    assert table_of(done)["id"].to_pylist() == [1, 2]
    lines = (folder / "corpus.embed.parquet.rejects.jsonl").read_text().splitlines()
    rejects = [json.loads(line) for line in lines]
    assert [(reject["file"], reject["row"]) for reject in rejects] == [
        ("corpus.jsonl", 2),
        ("corpus.jsonl", 3),
    ]
    assert all(reject["code"] and reject["message"] for reject in rejects)
    assert "2 rejected" in done.stderr
    assert "corpus.embed.parquet.rejects.jsonl" in done.stderr


def test_model_decides_the_vectors(embed, corpus, plain, models):
    table = table_of(embed("corpus.jsonl", "-m", models / "bert-cls"))
    assert np.abs(vectors(table) - vectors(plain)).max() > 1e-2
    assert said(table, "model") == str(models / "bert-cls")


def test_revision_is_for_hub_models(embed, corpus):
    done = embed("corpus.jsonl", "--revision", "main")
    assert done.exit_code == 4
    assert "is a folder, which has no revision" in done.stderr


def test_device_is_used_and_recorded(embed, corpus):
    assert said(table_of(embed("corpus.jsonl", "--device", "cpu")), "device") == "cpu"
    absent = embed("corpus.jsonl", "--device", "cuda:99", "--overwrite")
    assert absent.exit_code == 2
    assert "torch sees" in absent.stderr


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8"])
def test_dtype_lowers_the_precision(embed, corpus, plain, dtype):
    table = table_of(embed("corpus.jsonl", "--dtype", dtype))
    assert said(table, "dtype") == dtype
    difference = np.abs(vectors(table) - vectors(plain)).max()
    assert 1e-5 < difference < 5e-2


def test_model_impl_decides_whose_layers_run_and_no_vector(embed, corpus, plain):
    table = table_of(embed("corpus.jsonl", "--model-impl", "transformers"))
    assert (said(plain, "model_impl"), said(table, "model_impl")) == ("poolembed", "transformers")
    np.testing.assert_allclose(vectors(table), vectors(plain), **SAME)
    again = embed("corpus.jsonl", "--model-impl", "auto")
    assert table_of(again).column("embedding").equals(table.column("embedding"))
    assert "4 reused" in again.stderr


def test_max_length_cuts_rows_and_marks_them(embed, corpus, plain):
    table = table_of(embed("corpus.jsonl", "--max-length", 5))
    lengths = plain["num_tokens"].to_pylist()
    assert table["num_tokens"].to_pylist() == [min(length, 5) for length in lengths]
    assert table["truncated"].to_pylist() == [length > 5 for length in lengths]
    assert said(table, "max_length") == "5"


def test_prompt_stands_before_every_text(embed, corpus, folder):
    prompted = table_of(embed("corpus.jsonl", "--prompt", "query: "))
    write(folder / "written.jsonl", [row | {"text": "query: " + row["text"]} for row in ROWS])
    written = table_of(embed("written.jsonl"), "written.embed.parquet")
    np.testing.assert_allclose(vectors(prompted), vectors(written), **SAME)
    assert prompted["text"].to_pylist() == [row["text"] for row in ROWS]
    assert said(prompted, "prompt") == "query: "


def test_prompt_name_takes_a_prompt_of_the_model(embed, corpus, models):
    declared = json.loads((models / "bert-prompts" / "config_sentence_transformers.json").read_text())
    model = ("--model", models / "bert-prompts")
    named = table_of(embed("corpus.jsonl", "--prompt-name", "query", *model))
    assert said(named, "prompt") == declared["prompts"]["query"]
    by_hand = embed("corpus.jsonl", "--prompt", declared["prompts"]["query"], "--overwrite", *model)
    np.testing.assert_allclose(vectors(named), vectors(table_of(by_hand)), **SAME)
    default = table_of(embed("corpus.jsonl", "--overwrite", *model))
    assert said(default, "prompt") == declared["prompts"][declared["default_prompt_name"]]
    none = table_of(embed("corpus.jsonl", "--prompt", "", "--overwrite", *model))
    assert said(none, "prompt") == ""
    assert np.abs(vectors(none) - vectors(default)).max() > 1e-2


REMOTE = """
from transformers import BertConfig, BertModel

class OwnConfig(BertConfig):
    model_type = "own-bert"

class OwnModel(BertModel):
    config_class = OwnConfig
"""


def test_code_of_a_model_runs_only_when_it_is_trusted(embed, corpus, folder, models):
    # The folder's name becomes part of a module's name in transformers.
    own = folder / "own_model"
    own.mkdir()
    for file in (models / "bert-plain").iterdir():
        (own / file.name).write_bytes(file.read_bytes())
    config = json.loads((own / "config.json").read_text())
    classes = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    (own / "config.json").write_text(json.dumps(config | {"auto_map": classes, "model_type": "own-bert"}))
    (own / "own.py").write_text(REMOTE)
    refused = embed("corpus.jsonl", "--model", "own_model")
    assert refused.exit_code == 4
    assert "--trust-remote-code" in refused.stderr
    pooling = ("--pooling", "MEAN", "--no-activation")
    trusted = embed("corpus.jsonl", "--model", "own_model", "--trust-remote-code", *pooling)
    built_in = embed("corpus.jsonl", "--model", models / "bert-plain", "-o", "plain.parquet", *pooling)
    np.testing.assert_allclose(
        vectors(table_of(trusted)), vectors(table_of(built_in, "plain.parquet")), **SAME
    )


def test_dimensions_are_cut_before_normalisation(embed, corpus, models):
    model = ("--model", models / "bert-dense-matryoshka")
    whole = vectors(table_of(embed("corpus.jsonl", "--no-activation", *model)))
    table = table_of(embed("corpus.jsonl", "--dimensions", 16, "--overwrite", *model))
    expected = whole[:, :16] / np.linalg.norm(whole[:, :16], axis=1, keepdims=True)
    np.testing.assert_allclose(vectors(table), expected, **SAME)
    assert said(table, "dimensions") == "16"


def test_activation_can_be_switched_off_and_on(embed, corpus, plain, models):
    raw = table_of(embed("corpus.jsonl", "--no-activation"))
    assert np.abs(norms(raw) - 1).max() > 1e-2
    np.testing.assert_allclose(vectors(raw) / norms(raw)[:, None], vectors(plain), **SAME)
    assert (said(raw, "activation"), said(plain, "activation")) == ("none", "normalize")
    without = ("--model", models / "bert-mean-nonorm", "--overwrite")
    assert np.abs(norms(table_of(embed("corpus.jsonl", *without))) - 1).max() > 1e-2


def test_pooling_replaces_what_the_model_declares(embed, corpus, plain, models):
    table = table_of(embed("corpus.jsonl", "--pooling", "CLS"))
    # The zoo's BERT encoders share their weights.
    cls = table_of(embed("corpus.jsonl", "--model", models / "bert-cls", "-o", "cls.parquet"), "cls.parquet")
    np.testing.assert_allclose(vectors(table), vectors(cls), **SAME)
    assert said(table, "pooling") == "CLS"


def test_set_replaces_a_setting_of_the_model(embed, corpus, plain):
    table = table_of(embed("corpus.jsonl", "--set", "pooling=MAX"))
    assert said(table, "pooling") == "MAX"
    assert np.abs(vectors(table) - vectors(plain)).max() > 1e-2
    unknown = embed("corpus.jsonl", "--set", "poling=MAX", "--overwrite")
    assert unknown.exit_code == 2
    assert "did you mean pooling" in unknown.stderr
    assert embed("corpus.jsonl", "--set", "pooling", "--overwrite").exit_code == 2


def test_output_names_a_file(embed, corpus, folder):
    assert table_of(embed("corpus.jsonl", "-o", "here.parquet"), "here.parquet").num_rows == 4
    assert sorted(path.name for path in folder.glob("[!.]*")) == ["corpus.jsonl", "here.parquet"]


def test_overwrite_replaces_an_output(embed, corpus):
    assert embed("corpus.jsonl", "--limit", 1, "--max-length", 8).exit_code == 0
    assert embed("corpus.jsonl").exit_code == 6
    assert table_of(embed("corpus.jsonl", "--overwrite")).num_rows == 4


def test_batch_tokens_change_the_work_and_not_the_result(embed, folder):
    rows = [{"id": number, "text": LONG[: 7 * number]} for number in range(60)]
    write(folder / "corpus.jsonl", rows)
    outputs = []
    for budget in (1, 64, 100_000):
        table = table_of(embed("corpus.jsonl", "--batch-tokens", budget, "--overwrite"))
        assert table["id"].to_pylist() == list(range(60))
        outputs.append(vectors(table))
    for one, other in pairwise(outputs):
        np.testing.assert_allclose(one, other, **SAME)


@pytest.mark.parametrize("option", [("--chunk-rows", 10), ("--chunk-bytes", 500)])
def test_chunks_change_the_parts_and_not_the_result(embed, folder, option):
    rows = [{"id": number, "text": LONG[: 3 * number]} for number in range(35)]
    write(folder / "corpus.jsonl", rows)
    whole = table_of(embed("corpus.jsonl"))
    assert embed("corpus.jsonl", *option, "-o", "parts/").exit_code == 0
    parts = sorted((folder / "parts").glob("*.parquet"))
    assert len(parts) > 3
    if option[0] == "--chunk-rows":
        assert [pq.read_metadata(part).num_rows for part in parts] == [10, 10, 10, 5]
    table = pq.read_table(folder / "parts")
    assert table["id"].to_pylist() == list(range(35))
    np.testing.assert_allclose(vectors(table), vectors(whole), **SAME)


def test_quiet_prints_nothing_and_json_prints_the_summary(embed, corpus):
    assert embed("corpus.jsonl", "--quiet").output == ""
    done = embed("corpus.jsonl", "--json", "--quiet", "--overwrite")
    assert done.stderr == ""
    summary = json.loads(done.stdout)
    assert summary["num_rows"] == 4
    assert summary["outputs"] == ["corpus.embed.parquet"]
    told = embed("corpus.jsonl", "--json", "--overwrite")
    assert json.loads(told.stdout)["num_tokens"] == summary["num_tokens"]
    assert told.stderr.startswith("4 rows, ")


def test_config_takes_options_from_a_file(embed, corpus, folder):
    (folder / "run.toml").write_text("limit = 3\n")
    assert table_of(embed("corpus.jsonl", "--config", "run.toml")).num_rows == 3


TESTED = {
    *("paths", "text_field", "columns", "limit", "on_error", "model", "revision", "device", "dtype"),
    *("max_length", "prompt", "prompt_name", "trust_remote_code", "dimensions", "use_activation"),
    *("pooling_type", "overrides", "output", "overwrite", "batch_tokens", "chunk_rows", "chunk_bytes"),
    *("quiet", "as_json", "config", "template", "on_long", "overlap_tokens", "output_dtype", "ranges_from"),
    *("input_format", "delimiter", "id_field", "on_null", "on_empty", "on_bad_text", "on_duplicate_id"),
    *("format", "max_rejects", "max_truncated", "deadline", "status", "metrics", "log_format", "staging"),
    *("workers", "model_impl"),
}
"""The options with a test here, in a file beside it, or in tests/reliability; a new one needs one too."""


def test_every_option_has_a_test_that_it_changes_something():
    assert {parameter.name for parameter in cli.commands["embed"].params} == TESTED
