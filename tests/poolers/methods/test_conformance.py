import pytest
import torch

from poolembed.errors import PoolingStateError
from poolembed.poolers import (
    AllPool,
    CLSPool,
    ConcatPool,
    LastPool,
    MeanPool,
    StepPool,
    check_pooling_method,
)
from poolembed.poolers.methods.registry import SEQUENCE_METHODS, TOKEN_METHODS
from poolembed.tasks import POOLING_TASKS

EVERY_METHOD = [*SEQUENCE_METHODS.builtin.values(), *TOKEN_METHODS.builtin.values()]


@pytest.mark.parametrize("method", EVERY_METHOD)
def test_every_built_in_method_conforms(method):
    check_pooling_method(method())


def test_concatenations_conform():
    check_pooling_method(ConcatPool([CLSPool(), MeanPool()]), hidden_size=3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("method", EVERY_METHOD)
def test_every_built_in_method_conforms_on_cuda(method):
    check_pooling_method(method(), device="cuda")


class Broken(CLSPool):
    """Breaks the rule that a test names."""

    def forward(self, hidden_states, pooling_metadata):
        return self.spoil(super().forward(hidden_states, pooling_metadata), hidden_states, pooling_metadata)


class NoTask(CLSPool):
    def get_supported_tasks(self):
        return set()


class StrangeTask(CLSPool):
    def get_supported_tasks(self):
        return {"embed", "dream"}


class StrangeUpdate(CLSPool):
    def get_pooling_updates(self, task):
        return {"requires_token_ids": True}


class OneRowTooFew(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled[:-1]


class Matrices(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled[:, None]


class Infinite(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled / 0


class Centred(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled - pooled.mean(0)


class Sorted(Broken):
    def spoil(self, pooled, hidden, metadata):
        # Looks right as long as rows keep their place: a row alone is always in order.
        shortest_first = metadata.prompt_lens.argsort(stable=True)
        return pooled[shortest_first]


class SlightlyCentred(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled + 1e-3 * len(hidden)


class WholeInHalfPrecision(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled if pooled.dtype == torch.float32 else pooled.long()


class LongestFirst(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled.flip(0) if metadata.prompt_lens[0] == 7 else pooled


class InPlace(Broken):
    def spoil(self, pooled, hidden, metadata):
        hidden[0] += 1e-7
        return pooled


class Whole(Broken):
    def spoil(self, pooled, hidden, metadata):
        return pooled.long() * 0


class PromptReader(LastPool):
    def forward(self, hidden_states, pooling_metadata):
        first = pooling_metadata.get_pooling_cursor().first_token_indices_gpu
        return super().forward(hidden_states, pooling_metadata) + hidden_states[first]


class ResultForNobody(LastPool):
    def forward(self, hidden_states, pooling_metadata):
        if len(hidden_states) == 0:
            return hidden_states.new_zeros(1, hidden_states.shape[1])
        return super().forward(hidden_states, pooling_metadata)


class ForgetsPieces(AllPool):
    def forward(self, hidden_states, pooling_metadata):
        for state in pooling_metadata.pooling_states:
            state.clean()
        return super().forward(hidden_states, pooling_metadata)


class NeverFinishes(AllPool):
    def forward(self, hidden_states, pooling_metadata):
        if pooling_metadata.get_pooling_cursor().partial_prefill:
            return [None]
        return super().forward(hidden_states, pooling_metadata)


class RefusesPieces(AllPool):
    def forward(self, hidden_states, pooling_metadata):
        if pooling_metadata.get_pooling_cursor().partial_prefill:
            raise PoolingStateError("whole rows only")
        return super().forward(hidden_states, pooling_metadata)


class OneTask(CLSPool):
    def get_supported_tasks(self):
        return {"embed"}


class EveryTask(CLSPool):
    def get_supported_tasks(self):
        return set(POOLING_TASKS)


class NotAMethod(torch.nn.Identity):
    pass


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        (NotAMethod, "is of no known kind"),
        (NoTask, "supports no task"),
        (StrangeTask, "supports tasks that do not exist.*dream"),
        (StrangeUpdate, "get_pooling_updates.'classify'. gives"),
        (OneRowTooFew, "gives 4 results for 5 rows"),
        (Matrices, "row 0 has 2 dimensions, not 1"),
        (Infinite, "row 0 is not finite"),
        (Centred, "a row depends on its neighbours"),
        (Sorted, "a row depends on its neighbours"),
        (SlightlyCentred, "a row depends on its neighbours"),
        (WholeInHalfPrecision, "torch.bfloat16 gives torch.int64"),
        (LongestFirst, "results do not follow the order of the rows"),
        (InPlace, "changes the hidden states"),
        (Whole, "torch.bfloat16 gives torch.int64"),
        (PromptReader, "excluded tokens change a result"),
        (ResultForNobody, "an empty batch gives results"),
        (ForgetsPieces, "pieces of a row give another result"),
        (NeverFinishes, "gives no result after the last piece"),
    ],
)
def test_a_method_that_breaks_a_rule_is_found_out(method, rule):
    with pytest.raises(AssertionError, match=f"pooling method {rule}"):
        check_pooling_method(method())


@pytest.mark.parametrize("method", [RefusesPieces, StepPool, OneTask, EveryTask])
def test_what_methods_may_do(method):
    check_pooling_method(method())
