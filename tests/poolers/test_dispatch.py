from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from poolembed.config import PoolerConfig
from poolembed.errors import PoolingError
from poolembed.poolers import (
    AllPool,
    DispatchPooler,
    IdentityPooler,
    PoolingParams,
    StepPool,
    TokenPooler,
    pooler_for_classify,
    pooler_for_embed,
    pooler_for_token_embed,
)
from tests.poolers.batches import batch, packed

CONFIG = PoolerConfig(seq_pooling_type="MEAN", tok_pooling_type="ALL")
NO_LABELS = SimpleNamespace(hf_config=SimpleNamespace())


def linear(out):
    torch.manual_seed(3)
    return nn.Linear(8, out).requires_grad_(False)


def mixed(tasks, lens, **parts):
    return batch(lens, params=[PoolingParams(task=task) for task in tasks], **parts)


def test_a_pooler_must_support_its_task():
    with pytest.raises(ValueError, match=r"SequencePooler does not support task 'classify'.*\['embed'\]"):
        DispatchPooler({"classify": pooler_for_embed(CONFIG)})


def test_it_supports_the_tasks_it_has_poolers_for():
    assert DispatchPooler({"embed": pooler_for_embed(CONFIG)}).get_supported_tasks() == {"embed"}
    assert DispatchPooler.for_embedding(CONFIG).get_supported_tasks() == {"embed", "token_embed"}
    seq_cls = DispatchPooler.for_seq_cls(CONFIG, model_config=NO_LABELS)
    assert seq_cls.get_supported_tasks() == {"classify", "token_classify"}


def test_it_needs_what_the_pooler_of_the_task_needs():
    pooler = DispatchPooler(
        {"token_embed": TokenPooler(StepPool()), "token_classify": TokenPooler(AllPool())}
    )
    assert pooler.get_pooling_updates("token_embed").requires_token_ids is True
    assert pooler.get_pooling_updates("token_classify").requires_token_ids is False
    with pytest.raises(ValueError, match=r"unsupported task 'embed' .supported: token_classify, token_embed"):
        pooler.get_pooling_updates("embed")


def test_one_task_gives_what_its_pooler_gives():
    hidden = packed([3, 1])
    out = DispatchPooler.for_embedding(CONFIG)(hidden, batch([3, 1]))
    assert isinstance(out, torch.Tensor)
    assert torch.equal(out, pooler_for_embed(CONFIG)(hidden, batch([3, 1])))


@pytest.mark.parametrize("tasks", [["classify"], ["embed", "classify"]])
def test_a_task_without_a_pooler_is_refused(tasks):
    with pytest.raises(PoolingError, match=r"unsupported task 'classify' .supported: embed, token_embed"):
        DispatchPooler.for_embedding(CONFIG)(packed([3] * len(tasks)), mixed(tasks, [3] * len(tasks)))


def test_an_empty_batch_gives_nothing():
    assert DispatchPooler.for_embedding(CONFIG)(packed([]), batch([])) == []


def test_its_poolers_are_modules_of_it():
    pooler = DispatchPooler.for_embedding(CONFIG, linear(5))
    assert len(list(pooler.parameters())) == 2


ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(["embed", "token_embed"])), min_size=1, max_size=7
)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, exclude=st.booleans())
def test_mixed_tasks_equal_each_row_alone(rows, exclude):
    lens = [length for length, _ in rows]
    tasks = [task for _, task in rows]
    excluded = [length - 1 for length in lens] if exclude else None
    hidden = packed(lens)
    pooler = DispatchPooler.for_embedding(CONFIG, linear(5))
    together = pooler(hidden, mixed(tasks, lens, excluded=excluded))
    assert len(together) == len(rows)
    pieces = torch.split(hidden, lens)
    for index, (row, piece, task) in enumerate(zip(together, pieces, tasks, strict=True)):
        alone = pooler(piece, mixed([task], [len(piece)], excluded=excluded and excluded[index : index + 1]))
        torch.testing.assert_close(row, alone[0])


def test_rows_read_the_ids_of_their_own_group():
    pooler = DispatchPooler({"embed": pooler_for_embed(CONFIG), "token_embed": TokenPooler(StepPool())})
    params = [PoolingParams(task=task, step_tag_id=9) for task in ("token_embed", "embed", "token_embed")]
    hidden = packed([2, 3, 2])
    out = pooler(hidden, batch([2, 3, 2], params=params, ids=[[9, 1], [9, 9, 9], [1, 9]]))
    assert torch.equal(out[0], hidden[:1])
    assert torch.equal(out[2], hidden[6:])


def test_mixed_tasks_work_in_pieces():
    pooler = DispatchPooler(
        {"embed": pooler_for_embed(PoolerConfig(pooling_type="LAST")), "token_embed": TokenPooler(AllPool())}
    )
    hidden = packed([2, 3])
    out = pooler(hidden, mixed(["token_embed", "embed"], [5, 3], scheduled=[2, 3]))
    assert out[0] is None
    torch.testing.assert_close(out[1], nn.functional.normalize(hidden[4], dim=-1))


def test_for_embedding_hands_its_parts_to_both():
    layer = linear(5)
    pooler = DispatchPooler.for_embedding(CONFIG, layer, None)
    for part in pooler.poolers_by_task.values():
        assert part.head.projector is layer
        assert part.head.head_dtype is None
    for part in DispatchPooler.for_embedding(CONFIG).poolers_by_task.values():
        assert part.head.head_dtype == torch.float32
        assert part.head.projector is None


def test_for_seq_cls_classifies_tokens_as_they_are():
    """The given pooling holds the dense layer of a sequence classifier, which tokens do not pass."""
    layer = linear(3)
    hidden = packed([3, 2])

    def pooled(hidden_states, pooling_metadata):
        return hidden_states[pooling_metadata.get_pooling_cursor().first_token_indices_gpu].tanh()

    config = PoolerConfig(seq_pooling_type="LAST", tok_pooling_type="STEP")
    pooler = DispatchPooler.for_seq_cls(
        config, model_config=NO_LABELS, pooling=pooled, classifier=layer, act_fn=torch.square
    )
    torch.testing.assert_close(
        pooler(hidden, batch([3, 2], "classify")), layer(hidden[[0, 3]].tanh()).square()
    )
    tokens = pooler(hidden, batch([3, 2], "token_classify"))
    torch.testing.assert_close(torch.cat(tokens), layer(hidden).square())


def test_for_seq_cls_takes_the_configured_method():
    config = PoolerConfig(pooling_type="LAST", logit_mean=0.5)
    hidden = packed([3, 2])
    pooler = DispatchPooler.for_seq_cls(config, model_config=NO_LABELS, head_dtype=None)
    expected = pooler_for_classify(config, model_config=NO_LABELS)(hidden, batch([3, 2], "classify"))
    assert torch.equal(pooler(hidden, batch([3, 2], "classify")), expected)
    assert {part.head.head_dtype for part in pooler.poolers_by_task.values()} == {None}
    assert {part.head.logit_mean for part in pooler.poolers_by_task.values()} == {0.5}
    default = DispatchPooler.for_seq_cls(config, model_config=NO_LABELS)
    assert {part.head.head_dtype for part in default.poolers_by_task.values()} == {torch.float32}


def test_for_seq_cls_asks_the_model_for_the_activation():
    model = SimpleNamespace(hf_config=SimpleNamespace(problem_type="regression"))
    pooler = DispatchPooler.for_seq_cls(CONFIG, model_config=model)
    hidden = packed([2])
    assert torch.equal(pooler(hidden, batch([2], "token_classify"))[0], hidden)


def test_other_poolers_fit_in():
    pooler = DispatchPooler({"plugin": IdentityPooler(), "token_embed": pooler_for_token_embed(CONFIG)})
    hidden = packed([2])
    assert pooler(hidden, batch([2], "plugin")) is hidden
