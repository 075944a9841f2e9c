"""Tokenizers that are read without transformers are those that transformers builds."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from transformers import AutoTokenizer

from poolembed.config import ModelConfig
from poolembed.runner.describe import describe_model
from poolembed.runner.plain_tokenizer import TOKENIZERS_FILE, PlainTokenizer, load_plain
from poolembed.runner.tokenizer_files import load_tokenizer
from tests.runner.tiny import edit_json
from tests.runner.zoo import FAMILIES

# Built anew from vocabulary and merges, with scores read by another reader or other settings than the file's.
REBUILT = ("deberta-v2", "qwen", "t5", "xlmroberta")

FACTS = ("truncation_side", "unk_token_id", "mask_token_id", "eos_token_id")


def load(folder):
    overrides = (("do_lower_case", "false"),)
    _, spec = describe_model(ModelConfig(model=str(folder), overrides=overrides), None)
    return load_tokenizer(spec, trust_remote_code=False)


@pytest.fixture
def copy(models, tmp_path):
    """Return a copy of a zoo model that may be changed, with files that no model was loaded from yet."""

    def make(family):
        folder = shutil.copytree(models / family, tmp_path / family)
        edit_json(folder / "tokenizer_config.json", name_or_path=str(folder))
        return folder

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_the_second_load_gives_what_transformers_builds(models, family):
    load(models / family)
    found = load(models / family)
    assert isinstance(found, PlainTokenizer) == (not family.startswith(REBUILT))
    built = AutoTokenizer.from_pretrained(models / family)
    for backend in (found.backend_tokenizer, built.backend_tokenizer):
        backend.no_padding()
        backend.no_truncation()
    assert found.backend_tokenizer.to_str() == built.backend_tokenizer.to_str()
    assert [getattr(found, name) for name in FACTS] == [getattr(built, name) for name in FACTS]
    assert sorted(found.all_special_ids) == sorted(built.all_special_ids)
    assert found.get_vocab() == built.get_vocab()
    assert found.num_special_tokens_to_add() == built.num_special_tokens_to_add()


def test_transformers_is_asked_once_for_the_same_files(copy):
    folder = copy("bert-mean")
    calls = []

    def build():
        calls.append(folder)
        return AutoTokenizer.from_pretrained(folder)

    load_plain(folder, build)
    load_plain(folder, build)
    assert len(calls) == 1
    # A file that has nothing to do with it, and one that has.
    (folder / "README.md").write_text("x", "utf-8")
    load_plain(folder, build)
    assert len(calls) == 1
    edit_json(folder / "tokenizer_config.json", model_max_length=100)
    load_plain(folder, build)
    assert len(calls) == 2


def test_a_setting_that_makes_transformers_build_another_tokenizer_counts(copy):
    folder = copy("bert-mean")
    load(folder)
    assert isinstance(load(folder), PlainTokenizer)
    edit_json(folder / "tokenizer_config.json", do_lower_case=False)
    for _ in range(2):
        found = load(folder)
        assert not isinstance(found, PlainTokenizer)
        assert found.backend_tokenizer.normalizer.lowercase is False


def test_special_tokens_that_are_split_in_texts_are_split_at_the_second_load(copy):
    folder = copy("bert-mean")
    edit_json(folder / "tokenizer_config.json", split_special_tokens=True)
    expected = AutoTokenizer.from_pretrained(folder)("a [SEP]")["input_ids"]
    assert len(expected) > 4
    for _ in range(2):
        assert load(folder).backend_tokenizer.encode("a [SEP]").ids == expected


def test_other_releases_are_asked_anew(copy, monkeypatch):
    folder = copy("bert-mean")
    load(folder)
    assert isinstance(load(folder), PlainTokenizer)
    monkeypatch.setattr("poolembed.runner.plain_tokenizer.version", lambda name: "9.9")
    assert not isinstance(load(folder), PlainTokenizer)


@pytest.mark.parametrize("damage", [None, True, 7, {}, {"eos_token_id": 1}])
def test_what_is_remembered_in_another_form_is_found_out_anew(copy, damage):
    folder = copy("bert-mean")
    load(folder)
    known = json.loads(TOKENIZERS_FILE.read_text("utf-8"))
    *_, key = known
    TOKENIZERS_FILE.write_text(json.dumps(known | {key: damage}), "utf-8")
    assert not isinstance(load(folder), PlainTokenizer)
    assert isinstance(load(folder), PlainTokenizer)


def test_a_tokenizer_without_a_json_file_is_built_each_time(copy):
    folder = copy("bert-mean")
    vocabulary = AutoTokenizer.from_pretrained(folder).get_vocab()
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)), "utf-8")
    for _ in range(2):
        found = load(folder)
        assert not isinstance(found, PlainTokenizer)
        assert found.get_vocab() == vocabulary


def test_a_tokenizer_that_renders_a_prompt_is_transformers_own(models):
    for _ in range(2):
        assert hasattr(load(models / "qwen3-causal-reranker"), "apply_chat_template")


@pytest.mark.slow
def test_a_second_start_imports_no_transformers(models):
    folder = models / "bert-crossencoder"
    load(folder)
    assert json.loads(TOKENIZERS_FILE.read_text("utf-8"))
    code = (
        "import sys\nfrom poolembed import PoolingModel\n"
        f"PoolingModel({str(folder)!r}).score(['a'], ['b'])\nprint('transformers' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
