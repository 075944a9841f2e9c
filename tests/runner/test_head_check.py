"""The trial at load refuses a head that does not give the logits of its whole model."""

import numpy as np
import pytest
import torch

from poolembed.config import ModelConfig, PoolerConfig
from poolembed.errors import ModelError
from poolembed.poolers import DispatchPooler, PoolerIdentity, pooler_for_classify, pooler_for_token_classify
from poolembed.runner.backbone import Backbone
from poolembed.runner.describe import describe_model
from poolembed.runner.head_check import check_head, own_logits
from poolembed.runner.heads import ModelHead
from poolembed.runner.load import load_runner
from poolembed.runner.pooling_runner import PoolingRunner
from poolembed.runner.self_check import random_rows, self_check
from tests.runner.tiny import save, tiny

ROWS = random_rows(64, 30, frozenset({0, 1, 2}))


@pytest.fixture
def runner_for(models, tmp_path):
    """A runner around a small model, pooled as the test says, without the check at load."""

    def make(model, token_task=False, scale=1.0, **pooling):
        folder, spec = describe_model(
            ModelConfig(model=str(save(model, tmp_path, models / "bert-mean"))), PoolerConfig(**pooling)
        )
        transformer, head = model.base_model, ModelHead(model, with_pooler=not token_task)
        make_pooler = pooler_for_token_classify if token_task else pooler_for_classify
        config = PoolerConfig(
            seq_pooling_type=spec.pooling,
            tok_pooling_type="ALL",
            logit_mean=pooling.get("logit_mean"),
            logit_sigma=pooling.get("logit_sigma"),
        )
        pooler = make_pooler(
            config,
            model_config=None,
            classifier=lambda states: head(states) * scale,
            act_fn=PoolerIdentity(),
        )
        backbone = Backbone(transformer, torch.device("cpu"))
        task = "token_classify" if token_task else "classify"
        return PoolingRunner(
            spec=spec,
            folder=folder,
            tokenizers=None,
            backbone=backbone,
            pooler=DispatchPooler({task: pooler}),
            check=self_check(backbone, ROWS),
            batch_tokens=64,
        )

    return make


def test_a_model_is_asked_for_the_logits_of_each_row_alone():
    model = tiny("Bert", "ForSequenceClassification", num_labels=3)
    logits = own_logits(model, ROWS)
    assert len(logits) == len(ROWS.lengths)
    ids = np.split(ROWS.token_ids, np.cumsum(ROWS.lengths)[:-1])
    with torch.no_grad():
        for row, found in zip(ids, logits, strict=True):
            torch.testing.assert_close(found, model(torch.from_numpy(row)[None]).logits[0], rtol=0, atol=0)
    shapes = [
        tuple(row.shape) for row in own_logits(tiny("Bert", "ForTokenClassification", num_labels=5), ROWS)
    ]
    assert shapes == [(length, 5) for length in ROWS.lengths.tolist()]


@pytest.mark.parametrize("changes", [{}, {"logit_mean": 1.5, "logit_sigma": 0.25}, {"logit_sigma": -2.0}])
def test_a_right_head_passes_also_behind_a_calibration(runner_for, changes):
    model = tiny("Bert", "ForSequenceClassification", num_labels=3)
    expected = own_logits(model, ROWS)
    check_head(runner_for(model, **changes), ROWS, expected)


def test_a_right_head_for_tokens_passes(runner_for):
    model = tiny("Bert", "ForTokenClassification", num_labels=3)
    expected = own_logits(model, ROWS)
    check_head(runner_for(model, token_task=True), ROWS, expected)


def test_a_head_that_reads_another_token_is_refused(runner_for):
    model = tiny("GPT2", "ForSequenceClassification", num_labels=3)
    expected = own_logits(model, ROWS)
    with pytest.raises(
        ModelError, match="head of GPT2ForSequenceClassification does not give the model's own"
    ):
        check_head(runner_for(model, seq_pooling_type="MEAN"), ROWS, expected)


def test_a_head_that_is_off_by_a_thousandth_is_refused(runner_for):
    model = tiny("Bert", "ForSequenceClassification", num_labels=3)
    expected = own_logits(model, ROWS)
    runner = runner_for(model, scale=1.001)
    with pytest.raises(ModelError, match=r"relative difference 1\.0e-03, allowed 1e-04"):
        check_head(runner, ROWS, expected)


def test_numbers_that_are_not_finite_are_refused(runner_for):
    model = tiny("Bert", "ForSequenceClassification", num_labels=3)
    expected = [torch.full_like(row, float("nan")) for row in own_logits(model, ROWS)]
    with pytest.raises(ModelError, match="relative difference nan"):
        check_head(runner_for(model), ROWS, expected)


def test_a_pooling_of_the_users_choice_is_not_held_against_the_model(models):
    config = ModelConfig(model=str(models / "gpt2-seqcls"), device="cpu")
    own = load_runner(config, PoolerConfig(), 512)
    chosen = load_runner(config, PoolerConfig(seq_pooling_type="MEAN"), 512)
    tokens = own.tokenizers.texts()(["the cat sat on the mat"])
    first, second = (runner.pool(tokens, runner.params("classify")).values for runner in (own, chosen))
    assert np.abs(first - second).max() > 1e-3


def test_tokens_of_the_users_choice_are_not_held_against_the_model(models):
    config = ModelConfig(model=str(models / "bert-tokencls"), device="cpu")
    runner = load_runner(config, PoolerConfig(tok_pooling_type="STEP", step_tag_id=7), 512)
    tokens = runner.tokenizers.texts()(["the cat sat"])
    pooled = runner.pool(tokens, runner.params("token_classify"))
    assert pooled.lengths.tolist() == [int((tokens.token_ids == 7).sum())] == [1]
