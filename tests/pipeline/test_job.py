"""A run from files to files: order, counts, rows without a result, and nothing half-written."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file

from poolembed.config import InputConfig, JobConfig, ModelConfig, OutputConfig, RunConfig
from poolembed.errors import InputError, ModelError, OutputError
from poolembed.pipeline import run_job

# float32 sums in another order; the values are of size 1.
SAME = {"rtol": 0, "atol": 1e-5}


class Watcher:
    """Writes down what a run tells."""

    def __init__(self):
        self.notes = []
        self.num_rows = None
        self.done = []

    def note(self, message):
        self.notes.append(message)

    def start(self, num_rows):
        assert self.num_rows is None
        self.num_rows = num_rows

    def advance(self, num_rows, num_tokens, *, num_rejected=0, num_reused=0):
        assert self.num_rows is not None
        self.done.append((num_rows, num_tokens))


@pytest.fixture
def embed(tmp_path, models):
    """Write rows, run over them, and return the summary, what was told, and the output."""

    def embed(rows, model=models / "bert-mean", **settings):
        source = tmp_path / "corpus.jsonl"
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
        target = tmp_path / "out.parquet"
        job = JobConfig(
            command="embed",
            input=InputConfig(paths=(str(source),), on_error=settings.pop("on_error", "fail")),
            model=ModelConfig(model=str(model), device="cpu"),
            output=OutputConfig(output=str(target), overwrite=True),
            run=RunConfig(**settings),
        )
        watcher = Watcher()
        summary = run_job(job, watcher)
        return SimpleNamespace(summary=summary, watcher=watcher, table=pq.read_table(target))

    return embed


def vectors(table):
    column = table["embedding"].combine_chunks()
    return column.flatten().to_numpy().reshape(len(column), -1)


def rejects(tmp_path):
    path = tmp_path / "out.parquet.rejects.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def some_rows(count):
    return [{"id": number, "text": f"{number} " + "word " * (number * 7 % 11)} for number in range(count)]


@pytest.mark.parametrize("chunk_rows", [1, 4, 10, 1000])
def test_rows_come_out_in_their_order_whatever_the_chunks(embed, chunk_rows):
    whole = embed(some_rows(23))
    cut = embed(some_rows(23), chunk_rows=chunk_rows, batch_tokens=20)
    assert cut.table["id"].to_pylist() == list(range(23))
    assert cut.table.drop_columns("embedding").equals(whole.table.drop_columns("embedding"))
    np.testing.assert_allclose(vectors(cut.table), vectors(whole.table), **SAME)


def test_the_summary_and_the_progress_add_up(embed):
    done = embed(some_rows(23), chunk_rows=5)
    tokens = sum(done.table["num_tokens"].to_pylist())
    assert (done.summary.num_rows, done.summary.num_tokens) == (23, tokens)
    assert done.watcher.num_rows == 23
    assert sum(rows for rows, _ in done.watcher.done) == 23
    assert sum(tokens for _, tokens in done.watcher.done) == tokens
    assert done.watcher.notes == []
    summary = done.summary
    assert (summary.command, summary.device, summary.dtype) == ("embed", "cpu", "float32")
    assert summary.attention == "packed"
    assert summary.self_check < 1e-4
    assert summary.load_s > 0
    assert 0 < summary.forward_s <= summary.run_s
    assert 0 <= summary.wait_s <= summary.run_s


def test_rejected_rows_count_in_the_progress(embed, tmp_path):
    rows = some_rows(9)
    rows[2]["text"] = rows[7]["text"] = None
    done = embed(rows, on_error="skip", chunk_rows=4)
    assert (done.summary.num_rows, done.summary.num_rejected) == (7, 2)
    assert sum(rows for rows, _ in done.watcher.done) == 9
    assert [reject["row"] for reject in rejects(tmp_path)] == [3, 8]
    assert done.summary.outputs == (
        str(tmp_path / "out.parquet"),
        str(tmp_path / "out.parquet.rejects.jsonl"),
    )


def test_truncated_and_repaired_rows_are_counted(embed):
    done = embed([{"text": "word " * 400}, {"text": "half a \ud800 pair"}, {"text": "plain"}])
    assert done.table["truncated"].to_pylist() == [True, False, False]
    assert (done.summary.num_truncated, done.summary.num_replaced) == (1, 1)


def test_a_model_that_cannot_be_packed_says_so_once(embed, models):
    done = embed(some_rows(9), model=models / "deberta-v2-mean", chunk_rows=2)
    (note,) = done.watcher.notes
    assert "cannot be packed" in note
    assert done.summary.attention == "equal-length"


@pytest.fixture
def without_specials(models, tmp_path):
    """A model whose tokenizer adds nothing, so that an empty text has no tokens."""
    folder = tmp_path / "model"
    shutil.copytree(models / "bert-mean", folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer | {"post_processor": None}))
    config = json.loads((folder / "tokenizer_config.json").read_text())
    kept = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config["model_max_length"]}
    (folder / "tokenizer_config.json").write_text(json.dumps(kept))
    return folder


def test_a_text_without_tokens_stops_the_run_or_is_set_aside(embed, without_specials, tmp_path):
    rows = [{"text": "one"}, {"text": ""}, {"text": "two"}]
    with pytest.raises(InputError, match=r"corpus\.jsonl:2: the text has no tokens") as caught:
        embed(rows, model=without_specials)
    assert "--on-error skip" in caught.value.hint
    assert not (tmp_path / "out.parquet").exists()
    done = embed(rows, model=without_specials, on_error="skip")
    assert done.table["text"].to_pylist() == ["one", "two"]
    assert [(reject["row"], reject["code"]) for reject in rejects(tmp_path)] == [(2, "no_tokens")]
    alone = embed([{"text": "two"}], model=without_specials)
    np.testing.assert_allclose(vectors(done.table)[1], vectors(alone.table)[0], **SAME)


@pytest.fixture
def broken_mask(models, tmp_path):
    """A model with a damaged embedding of [MASK], which no random row of the self-check has."""
    folder = tmp_path / "model"
    shutil.copytree(models / "bert-mean", folder)
    weights = load_file(folder / "model.safetensors")
    (name,) = [name for name in weights if name.endswith("word_embeddings.weight")]
    mask = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]["[MASK]"]
    weights[name][mask] = torch.nan
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_a_row_that_is_not_finite_is_set_aside_and_harms_no_neighbour(embed, models, broken_mask, tmp_path):
    rows = [{"text": "one two"}, {"text": "[MASK] two"}, {"text": "three four"}]
    with pytest.raises(InputError, match=r"corpus\.jsonl:2: the model gave numbers that are not finite"):
        embed(rows, model=broken_mask)
    done = embed(rows, model=broken_mask, on_error="skip")
    assert [(reject["row"], reject["code"]) for reject in rejects(tmp_path)] == [(2, "non_finite")]
    sound = embed([rows[0], rows[2]], model=models / "bert-mean")
    np.testing.assert_allclose(vectors(done.table), vectors(sound.table), **SAME)


@pytest.mark.parametrize(
    ("text", "output", "error"),
    [
        (1, "out.parquet", InputError),
        ("one", "nowhere/out.parquet", OutputError),
        ("one", "out.parquet", ModelError),
    ],
)
def test_what_is_wrong_with_files_is_found_before_the_model_is_looked_for(tmp_path, text, output, error):
    source = tmp_path / "corpus.jsonl"
    source.write_text(json.dumps({"text": text}))
    job = JobConfig(
        command="embed",
        input=InputConfig(paths=(str(source),)),
        model=ModelConfig(model=str(tmp_path / "no-model")),
        output=OutputConfig(output=str(tmp_path / output)),
    )
    with pytest.raises(error):
        run_job(job, Watcher())
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def test_a_run_that_fails_leaves_the_old_output_as_it_was(embed, models, broken_mask, tmp_path):
    before = embed(some_rows(3)).table
    rows = [*some_rows(20), {"id": 99, "text": "[MASK]"}]
    with pytest.raises(InputError):
        embed(rows, model=broken_mask, chunk_rows=2)
    with pytest.raises(ModelError):
        embed(rows, model=tmp_path / "nowhere")
    assert pq.read_table(tmp_path / "out.parquet").equals(before)
    left = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("."))
    assert left == ["corpus.jsonl", "model", "out.parquet"]
