from types import SimpleNamespace

import pytest
import torch
from torch import nn

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError
from poolembed.poolers import (
    AllPool,
    PoolerClassify,
    PoolerIdentity,
    PoolingParams,
    PoolingParamsUpdate,
    StepPool,
    TokenClassifierPoolerHead,
    TokenEmbeddingPoolerHead,
    TokenPooler,
    pooler_for_token_classify,
    pooler_for_token_embed,
)
from poolembed.tasks import POOLING_TASKS
from tests.poolers.batches import FLOAT32, batch, packed

LENS = [3, 1, 4]
NO_LABELS = SimpleNamespace(hf_config=SimpleNamespace())


def split(hidden_states, pooling_metadata):
    return list(hidden_states.split(pooling_metadata.prompt_lens.tolist()))


def linear(out):
    torch.manual_seed(3)
    return nn.Linear(8, out).requires_grad_(False)


def test_tasks_are_those_of_method_and_head():
    assert TokenPooler(AllPool(), TokenEmbeddingPoolerHead()).get_supported_tasks() == {"token_embed"}
    assert TokenPooler(split, TokenClassifierPoolerHead()).get_supported_tasks() == {"token_classify"}
    assert TokenPooler(AllPool()).get_supported_tasks() == {"token_embed", "token_classify"}
    assert TokenPooler(split, lambda data, metadata: data).get_supported_tasks() == set(POOLING_TASKS)


def test_it_needs_what_the_method_needs():
    assert TokenPooler(StepPool()).get_pooling_updates("token_embed").requires_token_ids is True
    assert TokenPooler(AllPool()).get_pooling_updates("token_embed") == PoolingParamsUpdate()
    assert TokenPooler(split).get_pooling_updates("token_embed") == PoolingParamsUpdate()


def test_without_a_head_the_method_speaks():
    hidden = packed(LENS)
    rows = TokenPooler(AllPool())(hidden, batch(LENS, "token_embed"))
    assert torch.equal(torch.cat(rows), hidden)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_token_embed_is_method_projector_cut_and_norm_in_float32(dtype):
    hidden = packed(LENS, dtype=dtype)
    layer = linear(6)
    params = [PoolingParams(task="token_embed", dimensions=4) for _ in LENS]
    rows = pooler_for_token_embed(PoolerConfig(pooling_type="ALL"), layer)(hidden, batch(LENS, params=params))
    expected = (hidden.double() @ layer.weight.double().T + layer.bias.double())[:, :4]
    expected = expected / expected.square().sum(-1, keepdim=True).sqrt()
    assert [len(row) for row in rows] == LENS
    assert torch.cat(rows).dtype == torch.float32
    torch.testing.assert_close(torch.cat(rows).double(), expected, **FLOAT32)


def test_token_classify_is_method_classifier_calibration_and_activation():
    hidden = packed(LENS, dtype=torch.bfloat16)
    layer = linear(3)
    config = PoolerConfig(pooling_type="ALL", logit_mean=0.2, logit_sigma=0.5)
    pooler = pooler_for_token_classify(config, model_config=NO_LABELS, classifier=layer)
    rows = pooler(hidden, batch(LENS, "token_classify"))
    powers = ((hidden.double() @ layer.weight.double().T + layer.bias.double() - 0.2) / 0.5).exp()
    torch.testing.assert_close(torch.cat(rows).double(), powers / powers.sum(-1, keepdim=True), **FLOAT32)


@pytest.mark.parametrize(("name", "kind"), [("ALL", AllPool), ("STEP", StepPool)])
def test_the_configured_method_is_used(name, kind):
    config = PoolerConfig(pooling_type=name)
    assert type(pooler_for_token_embed(config).pooling) is kind
    assert type(pooler_for_token_classify(config, model_config=NO_LABELS).pooling) is kind


def test_a_method_must_be_configured_or_given():
    with pytest.raises(ConfigError, match="tok_pooling_type is not set"):
        pooler_for_token_embed(PoolerConfig(pooling_type="CLS"))
    with pytest.raises(ConfigError, match="tok_pooling_type is not set"):
        pooler_for_token_classify(PoolerConfig(), model_config=NO_LABELS)


def test_token_classify_takes_a_given_method_and_activation():
    hidden = packed(LENS)
    pooler = pooler_for_token_classify(
        PoolerConfig(), model_config=NO_LABELS, pooling=split, act_fn=torch.square
    )
    assert torch.equal(torch.cat(pooler(hidden, batch(LENS, "token_classify"))), hidden.square())


def test_token_classify_asks_the_model_for_its_activation():
    config = PoolerConfig(pooling_type="ALL")
    model = SimpleNamespace(hf_config=SimpleNamespace(problem_type="regression"))
    assert type(pooler_for_token_classify(config, model_config=model).head.activation) is PoolerIdentity
    model = SimpleNamespace(hf_config=SimpleNamespace(num_labels=1))
    activation = pooler_for_token_classify(config, model_config=model).head.activation
    assert type(activation) is PoolerClassify
    assert activation.num_labels is None


@pytest.mark.parametrize("head_dtype", [None, torch.float16])
def test_both_cast_to_float32_unless_told_otherwise(head_dtype):
    hidden = packed(LENS, dtype=torch.bfloat16)
    config = PoolerConfig(pooling_type="ALL")
    for task, default, changed in (
        (
            "token_embed",
            pooler_for_token_embed(config),
            pooler_for_token_embed(config, head_dtype=head_dtype),
        ),
        (
            "token_classify",
            pooler_for_token_classify(config, model_config=NO_LABELS),
            pooler_for_token_classify(config, model_config=NO_LABELS, head_dtype=head_dtype),
        ),
    ):
        metadata = batch(LENS, params=[PoolingParams(task=task, use_activation=False) for _ in LENS])
        assert default(hidden, metadata)[0].dtype == torch.float32
        assert changed(hidden, metadata)[0].dtype == (head_dtype or torch.bfloat16)
