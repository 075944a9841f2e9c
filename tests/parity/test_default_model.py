"""What the command writes for the default model is what sentence-transformers and transformers give."""

import json
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from click.testing import CliRunner
from transformers import AutoModel, AutoTokenizer

from poolembed.cli import cli
from tests.unmeasured import unmeasured

# Other tests go through the same lines with tiny models.
pytestmark = [pytest.mark.slow, pytest.mark.no_cover]

# float32 vectors of length 1: sums in another order, padded batches on the other side.
TOLERANCE = 1e-5

WORD = "the "

# Much more than 256 tokens of any text, or one word that has no end; the references read texts as a whole.
BEGINNING = 10_000

# transformers takes no lone surrogates.
NOT_ALONE = {"lone surrogates"}
AWKWARD = {
    "empty": "",
    "blanks": "   ",
    "white space": "\t\n\r \u00a0\u3000\u2028",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 ❤️ 🤦🏽‍♀️",
    "CJK": "日本語のテキスト。中文文本，没有空格。한국어",
    "Arabic": "اللغة العربية جميلة جدًا",
    "Thai": "ภาษาไทยไม่มีช่องว่าง",
    "combining": "e\u0301a\u0308 n\u0303 \u0344",
    "lone surrogates": "before \ud83d after \udc00 end",
    "control characters": "a\x00b\x01c\x1fd\x7fe\u200bf\ufeffg\ufffd",
    "253 words": WORD * 253,
    "254 words": WORD * 254,
    "255 words": WORD * 255,
    "252 tokens": WORD * 250 + "x",
    "special tokens": "[CLS] one [SEP] two [PAD] three [MASK] [UNK]",
    "5 million characters": "A very long text. " * 280_000,
    "5 million without a blank": "nospace" * 715_000,
    "5 million blanks": " " * 5_000_000,
    "5 million CJK": "漢字" * 2_500_000,
    "one character": "x",
}


@pytest.fixture(scope="module")
def corpus(root):
    """The texts of the example corpus."""
    lines = (root / "examples" / "corpus.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines]


@pytest.fixture(scope="module")
def embed(default_model, tmp_path_factory):
    """Embed texts with the command; returns vectors, numbers of tokens and whether rows were truncated."""

    def embed(texts, *options):
        folder = tmp_path_factory.mktemp("embed")
        with (folder / "texts.jsonl").open("w") as file:
            file.writelines(
                json.dumps({"number": number, "text": text}) + "\n" for number, text in enumerate(texts)
            )
        command = ["embed", str(folder / "texts.jsonl"), "--model", str(default_model), *map(str, options)]
        done = CliRunner().invoke(cli, command)
        assert done.exit_code == 0, done.output
        return read(folder / "texts.embed.parquet")

    return embed


def read(path):
    table = pq.read_table(path)
    column = table["embedding"].combine_chunks()
    if "number" in table.column_names:
        assert table["number"].to_pylist() == list(range(len(column)))
    vectors = column.flatten().to_numpy().reshape(len(column), -1)
    return vectors, table["num_tokens"].to_pylist(), table["truncated"].to_pylist()


@pytest.fixture(scope="module")
def reference(default_model):
    """sentence-transformers' vectors of texts, with its own batches and padding."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(default_model), device="cpu")

    def reference(texts):
        repaired = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
        return model.encode(repaired, convert_to_numpy=True)

    return reference


@pytest.fixture(scope="module")
def corpus_reference(reference, corpus):
    return reference(corpus)


@pytest.fixture(scope="module")
def main_command(default_model, root, tmp_path_factory):
    """The main command on the example corpus in a process of its own, and what it wrote."""
    folder = tmp_path_factory.mktemp("main")
    (folder / "corpus.jsonl").write_bytes((root / "examples" / "corpus.jsonl").read_bytes())
    own = {"OMP_NUM_THREADS": "1", "HF_HOME": str(folder / "hub"), "PYTHONPATH": str(root)}
    done = subprocess.run(
        [sys.executable, "-m", "poolembed", "embed", "corpus.jsonl"],
        cwd=folder,
        env=unmeasured() | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done, folder / "corpus.embed.parquet"


@pytest.fixture(scope="module")
def embedded_corpus(main_command):
    return read(main_command[1])


@pytest.fixture(scope="module")
def embedded_awkward(embed):
    return embed(AWKWARD.values())


@pytest.fixture(scope="module")
def written_out(default_model):
    """One text at a time through transformers: CLS and SEP, 256 tokens, mean of all, length 1."""
    tokenizer = AutoTokenizer.from_pretrained(default_model)
    model = AutoModel.from_pretrained(default_model, attn_implementation="eager").eval()

    def vector(text):
        ids = tokenizer(text, add_special_tokens=False, padding=False, truncation=False)["input_ids"][:254]
        tokens = torch.tensor([[tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]])
        with torch.inference_mode():
            states = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state[0]
        mean = states.double().mean(0)
        return (mean / mean.norm()).numpy(), tokens.shape[1]

    return vector


def largest_difference(one, other):
    assert one.shape == other.shape
    assert np.isfinite(one).all()
    return float(np.abs(one - other).max())


def test_every_row_of_the_example_corpus_equals_sentence_transformers(embedded_corpus, corpus_reference):
    vectors, _, _ = embedded_corpus
    assert len(vectors) == 200
    assert largest_difference(vectors, corpus_reference) <= TOLERANCE


def test_every_row_of_the_example_corpus_equals_transformers_one_row_at_a_time(
    embedded_corpus, written_out, corpus
):
    vectors, num_tokens, truncated = embedded_corpus
    single = [written_out(text) for text in corpus]
    assert largest_difference(vectors, np.stack([vector for vector, _ in single])) <= TOLERANCE
    assert num_tokens == [length for _, length in single]
    assert [length for length, cut in zip(num_tokens, truncated, strict=True) if cut and length != 256] == []


@pytest.mark.parametrize(
    "beginning", [BEGINNING, pytest.param(None, marks=pytest.mark.nightly)], ids=["beginning", "whole"]
)
def test_awkward_texts_equal_sentence_transformers(embedded_awkward, reference, beginning):
    vectors, _, _ = embedded_awkward
    expected = reference([text[:beginning] for text in AWKWARD.values()])
    differences = {
        name: difference
        for name, one, other in zip(AWKWARD, vectors, expected, strict=True)
        if (difference := largest_difference(one, other)) > TOLERANCE
    }
    assert differences == {}


@pytest.mark.parametrize("name", sorted(set(AWKWARD) - NOT_ALONE))
def test_an_awkward_text_equals_transformers_one_row_at_a_time(embedded_awkward, written_out, name):
    vectors, num_tokens, _ = embedded_awkward
    vector, count = written_out(AWKWARD[name][:BEGINNING])
    row = list(AWKWARD).index(name)
    assert num_tokens[row] == count
    assert largest_difference(vectors[row], vector) <= TOLERANCE


def test_the_maximum_length_is_256_and_not_the_128_that_the_tokenizer_stores(embedded_awkward, default_model):
    stored = json.loads((default_model / "tokenizer.json").read_text())
    assert stored["truncation"]["max_length"] == 128
    _, num_tokens, truncated = embedded_awkward
    seen = {name: (num_tokens[row], truncated[row]) for row, name in enumerate(AWKWARD)}
    assert seen["253 words"] == (255, False)
    assert seen["254 words"] == (256, False)
    assert seen["255 words"] == (256, True)
    assert seen["5 million characters"] == (256, True)
    assert seen["empty"] == (2, False)


@pytest.mark.parametrize("options", [("--batch-tokens", 1), ("--batch-tokens", 50_000), ("--chunk-rows", 7)])
def test_batches_and_chunks_change_no_result(embed, embedded_corpus, corpus, options):
    vectors, tokens, _ = embed([*corpus[:60], "", "x"], *options)
    whole, whole_tokens, _ = embedded_corpus
    assert tokens[:60] == whole_tokens[:60]
    assert largest_difference(vectors[:60], whole[:60]) <= TOLERANCE


def test_the_main_command_says_what_it_did(main_command):
    done, _ = main_command
    assert done.stdout == ""
    assert "200 rows" in done.stderr
    assert "sentence-transformers/all-MiniLM-L6-v2 on cpu, float32, packed" in done.stderr
