"""`poolembed reward`: which tokens end a step, and by what a language model judges one."""

import json
import shutil

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.cli.conftest import table_of, write

TEXTS = ["first add two and two then divide by two", "two", "nothing to see"]


@pytest.fixture
def reward(poolembed, folder):
    """Write `TEXTS`, reward them, and return the output."""
    write(folder / "answers.jsonl", [{"text": text} for text in TEXTS])

    def run(model, *arguments):
        options = ("--model", model, "--batch-tokens", "512", "--device", "cpu", "--overwrite")
        return poolembed("reward", "answers.jsonl", *options, *arguments)

    return run


def rewards(done):
    return table_of(done, "answers.reward.parquet")["rewards"].to_pylist()


@pytest.fixture
def language_model(models, folder):
    """A language model without a word about steps, its tokenizer, and the token ids of `two` and `to`."""
    path = folder / "lm"
    shutil.copytree(models / "qwen3-causal-reranker", path)
    for name in ("modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"):
        (path / name).unlink()
    tokenizer = AutoTokenizer.from_pretrained(path)
    return path, tokenizer


def test_a_language_model_judges_steps_by_the_tokens_that_are_named(reward, language_model):
    path, tokenizer = language_model
    step = tokenizer(TEXTS[1])["input_ids"][-1]
    named = ("--tok-pooling-type", "STEP", "--step-tag-id", step, "--returned-token-ids", "5,9")
    found = rewards(reward(path, *named))
    model = AutoModelForCausalLM.from_pretrained(path).eval()
    for text, own in zip(TEXTS, found, strict=True):
        ids = tokenizer(text)["input_ids"]
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].float()
        wanted = [logits[place, [5, 9]].softmax(0).tolist() for place, one in enumerate(ids) if one == step]
        assert len(own) == len(wanted)
        np.testing.assert_allclose(np.reshape(own, (-1, 2)), np.reshape(wanted, (-1, 2)), rtol=0, atol=1e-5)
    assert sum(map(len, found)) > 1
    metadata = table_of(reward(path, *named), "answers.reward.parquet").schema.metadata
    assert metadata[b"poolembed.step_tag_id"] == str(step).encode()


def test_a_reward_model_of_tokens_can_give_those_of_steps_alone(reward, models):
    path = models / "qwen2-rm"
    tokenizer = AutoTokenizer.from_pretrained(path)
    step = tokenizer(TEXTS[1])["input_ids"][0]
    all_tokens = rewards(reward(path, "--level", "token"))
    picked = rewards(reward(path, "--tok-pooling-type", "STEP", "--step-tag-id", step))
    for text, own, every in zip(TEXTS, picked, all_tokens, strict=True):
        ids = tokenizer(text)["input_ids"]
        wanted = [value for one, value in zip(ids, every, strict=True) if one == step]
        np.testing.assert_allclose(own, wanted, rtol=0, atol=1e-5)
    assert list(map(len, picked))[1] == 1


@pytest.mark.parametrize(
    ("family", "arguments", "said"),
    [
        ("qwen2-rm", ("--step-tag-id", 3), "add --tok-pooling-type STEP"),
        ("qwen2-rm", ("--returned-token-ids", "3"), "add --tok-pooling-type STEP"),
        ("bert-crossencoder", ("--tok-pooling-type", "STEP"), "rewards the whole text"),
        ("qwen2-rm", ("--returned-token-ids", "a,b"), "is no list of token ids"),
        ("qwen2-rm", ("--set", "use_activation=true"), "--activation or --no-activation"),
    ],
)
def test_what_has_no_meaning_is_refused(reward, models, family, arguments, said):
    done = reward(models / family, *arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.split())


def test_token_ids_may_stand_in_a_file_of_options(reward, language_model, folder):
    path, _ = language_model
    (folder / "run.toml").write_text(
        'returned-token-ids = [5, 9]\nstep-tag-id = 3\ntok-pooling-type = "STEP"\n'
    )
    assert len(rewards(reward(path, "--config", "run.toml"))) == len(TEXTS)
    (folder / "run.toml").write_text('returned-token-ids = ["5"]\n')
    done = reward(path, "--config", "run.toml")
    assert done.exit_code == 2
    assert "must be a list of token ids" in done.stderr


def test_inspect_shows_how_a_language_model_would_judge(poolembed, language_model):
    path, _ = language_model
    options = ("--tok-pooling-type", "STEP", "--step-tag-id", 3, "--returned-token-ids", "5,9")
    done = poolembed("inspect", path, "--json", *options)
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert (shown["kind"], shown["step_tag_id"], shown["token_ids"]) == ("process-reward", 3, [5, 9])
