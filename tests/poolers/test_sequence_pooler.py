from types import SimpleNamespace

import pytest
import torch
from torch import nn

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError
from poolembed.poolers import (
    ClassifierPoolerHead,
    CLSPool,
    ConcatPool,
    EmbeddingPoolerHead,
    LastPool,
    MeanPool,
    PoolerClassify,
    PoolerIdentity,
    PoolingParams,
    PoolingParamsUpdate,
    SequencePooler,
    pooler_for_classify,
    pooler_for_embed,
)
from poolembed.tasks import POOLING_TASKS
from tests.poolers.batches import FLOAT32, batch, packed, rows64

LENS = [3, 1, 4]
NO_LABELS = SimpleNamespace(hf_config=SimpleNamespace())


class IdReadingPool(CLSPool):
    def get_pooling_updates(self, task):
        return PoolingParamsUpdate(requires_token_ids=task == "embed")


def first_tokens(hidden_states, pooling_metadata):
    return hidden_states[pooling_metadata.get_pooling_cursor().first_token_indices_gpu]


def linear(out):
    torch.manual_seed(3)
    return nn.Linear(8, out).requires_grad_(False)


def means(hidden):
    return torch.stack([sum(row) / len(row) for row in rows64(hidden, LENS)])


def test_tasks_are_those_of_method_and_head():
    assert SequencePooler(MeanPool(), EmbeddingPoolerHead()).get_supported_tasks() == {"embed"}
    assert SequencePooler(MeanPool(), ClassifierPoolerHead()).get_supported_tasks() == {"classify"}
    assert SequencePooler(first_tokens, ClassifierPoolerHead()).get_supported_tasks() == {"classify"}


def test_callables_narrow_no_tasks():
    assert SequencePooler(first_tokens, lambda data, metadata: data).get_supported_tasks() == set(
        POOLING_TASKS
    )
    four = {"embed", "classify", "token_embed", "token_classify"}
    assert SequencePooler(MeanPool(), lambda data, metadata: data).get_supported_tasks() == four


def test_it_needs_what_the_method_needs():
    pooler = SequencePooler(IdReadingPool(), EmbeddingPoolerHead())
    assert pooler.get_pooling_updates("embed").requires_token_ids is True
    assert pooler.get_pooling_updates("classify").requires_token_ids is False
    assert (
        SequencePooler(first_tokens, EmbeddingPoolerHead()).get_pooling_updates("embed")
        == PoolingParamsUpdate()
    )


def test_the_head_gets_what_the_method_gives():
    hidden = packed(LENS)
    pooler = SequencePooler(first_tokens, lambda data, metadata: (data, metadata.tasks))
    data, tasks = pooler(hidden, batch(LENS))
    assert torch.equal(data, hidden[[0, 3, 4]])
    assert tasks == ["embed"] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_embed_is_method_projector_cut_and_norm_in_float32(dtype):
    hidden = packed(LENS, dtype=dtype)
    layer = linear(6)
    params = [PoolingParams(task="embed", dimensions=4) for _ in LENS]
    out = pooler_for_embed(PoolerConfig(pooling_type="MEAN"), layer)(hidden, batch(LENS, params=params))
    expected = (means(hidden) @ layer.weight.double().T + layer.bias.double())[:, :4]
    expected = expected / expected.square().sum(-1, keepdim=True).sqrt()
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), expected, **FLOAT32)


def test_embed_casts_to_float32_unless_told_otherwise():
    hidden = packed(LENS, dtype=torch.bfloat16)
    params = [PoolingParams(task="embed", use_activation=False) for _ in LENS]
    metadata = batch(LENS, params=params)
    config = PoolerConfig(pooling_type="CLS")
    assert pooler_for_embed(config)(hidden, metadata).dtype == torch.float32
    assert pooler_for_embed(config, head_dtype=None)(hidden, metadata).dtype == torch.bfloat16
    assert pooler_for_embed(config, head_dtype=torch.float16)(hidden, metadata).dtype == torch.float16


@pytest.mark.parametrize(("name", "kind"), [("LAST", LastPool), ("CLS+MEAN", ConcatPool)])
def test_the_configured_method_is_used(name, kind):
    config = PoolerConfig(pooling_type=name)
    assert type(pooler_for_embed(config).pooling) is kind
    assert type(pooler_for_classify(config, model_config=NO_LABELS).pooling) is kind


def test_a_method_must_be_configured_or_given():
    with pytest.raises(ConfigError, match="seq_pooling_type is not set"):
        pooler_for_embed(PoolerConfig())
    with pytest.raises(ConfigError, match="seq_pooling_type is not set"):
        pooler_for_classify(PoolerConfig(), model_config=NO_LABELS)
    with pytest.raises(NotImplementedError, match="FOO"):
        pooler_for_embed(PoolerConfig(seq_pooling_type="FOO"))


def test_classify_is_method_classifier_calibration_and_activation():
    hidden = packed(LENS, dtype=torch.bfloat16)
    layer = linear(3)
    config = PoolerConfig(pooling_type="MEAN", logit_mean=0.2, logit_sigma=0.5)
    pooler = pooler_for_classify(config, model_config=NO_LABELS, classifier=layer)
    logits = means(hidden) @ layer.weight.double().T + layer.bias.double()
    powers = ((logits - 0.2) / 0.5).exp()
    out = pooler(hidden, batch(LENS, "classify"))
    torch.testing.assert_close(out.double(), powers / powers.sum(-1, keepdim=True), **FLOAT32)


def test_classify_takes_a_given_method_and_activation():
    hidden = packed(LENS)
    pooler = pooler_for_classify(
        PoolerConfig(pooling_type="MEAN"), model_config=NO_LABELS, pooling=first_tokens, act_fn=torch.square
    )
    assert torch.equal(pooler(hidden, batch(LENS, "classify")), hidden[[0, 3, 4]].square())


def test_classify_asks_the_model_for_its_activation():
    model = SimpleNamespace(hf_config=SimpleNamespace(problem_type="regression"))
    pooler = pooler_for_classify(PoolerConfig(pooling_type="CLS"), model_config=model)
    assert type(pooler.head.activation) is PoolerIdentity
    # The width of the logits decides, not the declared number of labels.
    model = SimpleNamespace(hf_config=SimpleNamespace(num_labels=1))
    activation = pooler_for_classify(PoolerConfig(pooling_type="CLS"), model_config=model).head.activation
    assert type(activation) is PoolerClassify
    assert activation.num_labels is None


def test_classify_casts_to_float32_unless_told_otherwise():
    hidden = packed(LENS, dtype=torch.bfloat16)
    metadata = batch(LENS, params=[PoolingParams(task="classify", use_activation=False) for _ in LENS])
    config = PoolerConfig(pooling_type="CLS")
    assert pooler_for_classify(config, model_config=NO_LABELS)(hidden, metadata).dtype == torch.float32
    kept = pooler_for_classify(config, model_config=NO_LABELS, head_dtype=None)
    assert kept(hidden, metadata).dtype == torch.bfloat16
