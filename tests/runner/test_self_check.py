"""The self-check lets a model run packed only where that is right: planted faults are refused."""

import pytest
import torch
from torch import nn
from transformers import AutoModel

from poolembed.errors import ModelError
from poolembed.runner.backbone import Backbone
from poolembed.runner.packing import positions_in_rows
from poolembed.runner.self_check import (
    LENGTHS,
    TOLERANCES,
    can_share_prefixes,
    random_rows,
    self_check,
)

CPU = torch.device("cpu")


def load(models, family, **settings):
    return AutoModel.from_pretrained(models / family, **settings).eval()


def check(backbone, max_length=512):
    vocab_size = backbone.model.get_input_embeddings().num_embeddings
    return self_check(backbone, random_rows(vocab_size, max_length, frozenset(range(10))))


class Wrapped(nn.Module):
    """A model that changes what it hands on; everything else is the model's."""

    def __init__(self, model):
        super().__init__()
        self.inner = model

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)


class DropsBoundaries(Wrapped):
    def forward(self, input_ids, token_type_ids=None, packed_rows=None, **rest):
        return self.inner(input_ids=input_ids, token_type_ids=token_type_ids, **rest)


class TakesAllForOneRow(Wrapped):
    def forward(self, input_ids, token_type_ids=None, packed_rows=None, **rest):
        if packed_rows is not None:
            packed_rows.runs = [(1, input_ids.shape[1])]
            rest["packed_rows"] = packed_rows
        return self.inner(input_ids=input_ids, token_type_ids=token_type_ids, **rest)


class NeverCallsIt(Wrapped):
    """As packed, but a row at a time through the attention that the model was loaded with."""

    def forward(self, input_ids, token_type_ids=None, packed_rows=None, position_ids=None, **rest):
        if packed_rows is None:
            return self.inner(input_ids=input_ids, **rest)
        lengths = [length for count, length in packed_rows.runs for _ in range(count)]
        self.inner.set_attn_implementation("sdpa")
        rows = [self.inner(input_ids=ids[None]) for ids in input_ids[0].split(lengths)]
        rows[0].last_hidden_state = torch.cat([row.last_hidden_state for row in rows], dim=1)
        return rows[0]


class RefusesSilently(Wrapped):
    def forward(self, input_ids, token_type_ids=None, packed_rows=None, **rest):
        if packed_rows is not None:
            raise RuntimeError
        return self.inner(input_ids=input_ids, token_type_ids=token_type_ids, **rest)


class RestartsAtZero(Backbone):
    """Gives every row positions from 0, as BERT wants them and RoBERTa does not."""

    def _positions(self, batch):
        return positions_in_rows(batch.lengths)


def test_a_sound_model_is_packed(models):
    backbone = Backbone(load(models, "bert-mean"), CPU)
    verdict = check(backbone)
    assert (verdict.path, verdict.reason) == ("packed", None)
    assert backbone.path == "packed"
    assert verdict.max_difference is not None
    # Two orders of magnitude below the limit, three below the smallest fault that was seen.
    assert verdict.max_difference < TOLERANCES[torch.float32] / 20


@pytest.mark.parametrize("family", ["roberta-mean", "xlmroberta-cls"])
def test_positions_that_restart_at_zero_are_refused_for_roberta(models, family):
    backbone = RestartsAtZero(load(models, family), CPU)
    verdict = check(backbone)
    assert verdict.path == backbone.path == "equal-length"
    assert verdict.max_difference is not None
    assert verdict.max_difference > 1e-3
    assert verdict.reason is not None
    assert verdict.reason.startswith("packed rows differ from single rows by")


def test_rows_that_see_each_other_are_refused(models):
    verdict = check(Backbone(TakesAllForOneRow(load(models, "bert-mean")), CPU))
    assert verdict.path == "equal-length"
    assert verdict.max_difference is not None
    assert verdict.max_difference > 1e-3


def test_a_model_that_drops_the_boundaries_is_refused(models):
    verdict = check(Backbone(DropsBoundaries(load(models, "bert-mean")), CPU))
    assert (verdict.path, verdict.max_difference) == ("equal-length", None)
    assert verdict.reason == "the model does not hand the rows' boundaries to its attention layers"


def test_a_model_that_never_calls_the_function_is_refused_even_if_its_numbers_are_right(models):
    verdict = check(Backbone(NeverCallsIt(load(models, "bert-mean")), CPU))
    assert verdict.path == "equal-length"
    assert verdict.reason == "the model never calls a replaceable attention function"


def test_an_error_without_words_is_told_by_its_name(models):
    verdict = check(Backbone(RefusesSilently(load(models, "bert-mean")), CPU))
    assert (verdict.path, verdict.reason) == ("equal-length", "RuntimeError")


@pytest.mark.parametrize("family", ["mpnet-mean", "deberta-v2-mean"])
def test_models_with_relative_positions_run_at_equal_length(models, family):
    backbone = Backbone(load(models, family), CPU)
    verdict = check(backbone)
    assert verdict.path == backbone.path == "equal-length"
    assert verdict.reason


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_damaged_weights_are_an_error(models, value):
    model = load(models, "bert-mean")
    with torch.no_grad():
        model.encoder.layer[0].output.dense.weight[0, 0] = value
    with pytest.raises(ModelError, match="not finite for random tokens"):
        check(Backbone(model, CPU))


def test_a_short_model_is_checked_with_short_rows(models):
    model = load(models, "bert-mean")
    verdict = check(Backbone(model, CPU), max_length=3)
    assert verdict.path == "packed"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_checked_with_its_own_tolerance(models, dtype):
    verdict = check(Backbone(load(models, "bert-mean", dtype=dtype), CPU))
    assert verdict.path == "packed"
    assert verdict.max_difference is not None
    assert verdict.max_difference <= TOLERANCES[dtype]


class ForgetsThePrefix(Wrapped):
    """Counts positions behind a prefix from 0 again."""

    def forward(self, input_ids, packed_rows=None, position_ids=None, **rest):
        if packed_rows is not None and packed_rows.prefixes is not None:
            lengths = [length for count, length in packed_rows.runs for _ in range(count)]
            position_ids = torch.cat([torch.arange(length) for length in lengths])[None]
        return self.inner(input_ids=input_ids, packed_rows=packed_rows, position_ids=position_ids, **rest)


class SeesOnlyItself(Wrapped):
    """Takes rows behind a prefix for whole rows."""

    def forward(self, input_ids, packed_rows=None, **rest):
        if packed_rows is not None:
            packed_rows.prefixes = None
        return self.inner(input_ids=input_ids, packed_rows=packed_rows, **rest)


def shares(models, family, change=lambda model: model, max_length=512):
    backbone = Backbone(change(load(models, family)), CPU)
    vocab_size = backbone.model.get_input_embeddings().num_embeddings
    rows = random_rows(vocab_size, max_length, frozenset(range(10)))
    self_check(backbone, rows)
    path = backbone.path
    answer = can_share_prefixes(backbone, rows)
    assert backbone.path == path
    return answer


@pytest.mark.parametrize("family", ["llama-last", "mistral-last", "qwen2-last", "qwen3-last", "gpt2-seqcls"])
def test_causal_models_share_prefixes(models, family):
    assert shares(models, family)
    assert shares(models, family, max_length=9)


@pytest.mark.parametrize("family", ["bert-mean", "gemma3-bidirectional", "roberta-mean", "mpnet-mean"])
def test_models_that_are_not_causal_or_not_packed_share_no_prefixes(models, family):
    assert not shares(models, family)


@pytest.mark.parametrize("fault", [ForgetsThePrefix, SeesOnlyItself])
@pytest.mark.parametrize("family", ["llama-last", "gpt2-seqcls"])
def test_a_model_that_is_wrong_behind_a_prefix_shares_none(models, family, fault):
    assert not shares(models, family, fault)


def test_rows_too_short_for_a_prefix_share_none(models):
    assert not shares(models, "llama-last", max_length=7)


def test_random_rows_are_the_same_at_every_call_and_hold_no_special_token():
    special = frozenset({0, 3, 7, 99})
    rows = random_rows(100, 512, special)
    assert rows.token_ids.tolist() == random_rows(100, 512, special).token_ids.tolist()
    assert rows.lengths.tolist() == list(LENGTHS)
    assert len(rows.token_ids) == sum(LENGTHS)
    assert special.isdisjoint(rows.token_ids.tolist())
    assert set(rows.token_ids.tolist()) <= set(range(100))


def test_random_rows_keep_the_maximum_length():
    assert random_rows(100, 40, frozenset()).lengths.tolist() == [40, 40, 33, 33, 7, 2]


def ill_conditioned(models, factor):
    """A model that gives differences of rounding to its hidden states `factor` times as large."""
    model = load(models, "bert-mean")

    class Sharp(Wrapped):
        def forward(self, input_ids, **rest):
            output = self.inner(input_ids=input_ids, **rest)
            # Rounding that depends on how many tokens run together, and is gone in float64.
            noise = torch.finfo(self.inner.dtype).eps * factor * input_ids.shape[1]
            output.last_hidden_state = output.last_hidden_state * (1 + noise)
            return output

    return Backbone(Sharp(model), CPU)


def test_what_float32_cannot_tell_is_decided_in_float64(models):
    backbone = ill_conditioned(models, 10)
    before = {name: weight.clone() for name, weight in backbone.model.named_parameters()}
    verdict = check(backbone)
    assert verdict.path == "packed"
    assert verdict.max_difference > TOLERANCES[torch.float32]
    after = dict(backbone.model.named_parameters())
    assert all(
        after[name].dtype == torch.float32 and torch.equal(after[name], before[name]) for name in before
    )


def test_models_too_large_for_float64_are_judged_by_float32(models, monkeypatch):
    monkeypatch.setattr("poolembed.runner.self_check.MAX_FLOAT64_BYTES", 1000)
    verdict = check(ill_conditioned(models, 10))
    assert verdict.path == "equal-length"
    assert "differ from single rows by" in verdict.reason


class ShiftsALittle(Backbone):
    """Is off by little more than rounding, and not for its sake."""

    def forward(self, batch):
        return super().forward(batch) * (1 + 1e-3 * (self.path == "packed"))

    def count_packed_calls(self, batch):
        hidden_states, num_calls = super().count_packed_calls(batch)
        return hidden_states * (1 + 1e-3), num_calls


def test_a_small_fault_is_one_in_float64_too(models):
    verdict = check(ShiftsALittle(load(models, "bert-mean"), CPU))
    assert verdict.path == "equal-length"
    assert 5e-4 < verdict.max_difference < 2e-3
