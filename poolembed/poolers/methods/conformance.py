"""What every pooling method must keep, as one check that the tests of any package may call.

def test_my_method_is_a_pooling_method():
    check_pooling_method(MyPool())
"""

import torch
from torch import Tensor

from poolembed.config.params import PoolingParams
from poolembed.errors import PoolingStateError
from poolembed.poolers.base import PoolingParamsUpdate
from poolembed.poolers.metadata import PoolingMetadata, PoolingStates
from poolembed.poolers.methods.base import PoolingMethod, SequencePoolingMethod, TokenPoolingMethod
from poolembed.tasks import POOLING_TASKS, PoolingTask

LENS = [3, 1, 7, 2, 7]
TOLERANCE = 1e-5
"""Alone or in company, a row may differ by the rounding of float32."""


def check_pooling_method(method: PoolingMethod, hidden_size: int = 8, device: str = "cpu") -> None:
    """Check a pooling method; it is called with random batches.

    Args:
        method: an instance, of a sequence or a token method.
        hidden_size: width of the hidden states it is called with.
        device: where it is called.

    Raises:
        AssertionError: the message names the rule that is broken.
    """
    _require(isinstance(method, SequencePoolingMethod | TokenPoolingMethod), "is of no known kind")
    method = method.to(device)
    tasks = _check_tasks(method)
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(sum(LENS), hidden_size, generator=generator).to(device)
    excluded = [2, 0, 3, 0, 0]
    for task in tasks:
        together = _pool(method, hidden, LENS, task)
        _check_rows(method, together)
        _check_neighbours(method, hidden, task, together)
        _check_dtypes(method, hidden, task)
    if isinstance(method, SequencePoolingMethod):
        first = _pool(method, hidden, LENS, tasks[0], excluded)
        spoiled = hidden.clone()
        for start, end in ((0, 2), (4, 7)):
            spoiled[start:end] = 1000.0
        _check_same(
            first, _pool(method, spoiled, LENS, tasks[0], excluded), "excluded tokens change a result"
        )
    _require(len(_pool(method, hidden[:0], [], tasks[0])) == 0, "an empty batch gives results")
    _check_pieces(method, hidden, tasks[0])


def _check_tasks(method: PoolingMethod) -> list[PoolingTask]:
    tasks = sorted(method.get_supported_tasks())
    _require(len(tasks) > 0, "supports no task")
    _require(set(tasks) <= set(POOLING_TASKS), f"supports tasks that do not exist: {tasks}")
    for task in tasks:
        update = method.get_pooling_updates(task)
        _require(isinstance(update, PoolingParamsUpdate), f"get_pooling_updates({task!r}) gives {update!r}")
    return tasks


def _check_rows(method: PoolingMethod, rows: list[Tensor]) -> None:
    _require(len(rows) == len(LENS), f"gives {len(rows)} results for {len(LENS)} rows")
    num_dims = 1 if isinstance(method, SequencePoolingMethod) else 2
    for index, row in enumerate(rows):
        _require(row.dim() == num_dims, f"row {index} has {row.dim()} dimensions, not {num_dims}")
        _require(bool(row.isfinite().all()), f"row {index} is not finite")


def _check_neighbours(
    method: PoolingMethod, hidden: Tensor, task: PoolingTask, together: list[Tensor]
) -> None:
    before = hidden.clone()
    pieces = list(torch.split(hidden, LENS))
    alone = [_pool(method, piece, [len(piece)], task)[0] for piece in pieces]
    _check_same(together, alone, "a row depends on its neighbours")
    turned = _pool(method, torch.cat(pieces[::-1]), LENS[::-1], task)
    _check_same(together, turned[::-1], "results do not follow the order of the rows")
    _require(torch.equal(hidden, before), "changes the hidden states")


def _check_dtypes(method: PoolingMethod, hidden: Tensor, task: PoolingTask) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        for row in _pool(method, hidden.to(dtype), LENS, task):
            _require(row.is_floating_point(), f"{dtype} gives {row.dtype}")


def _check_pieces(method: PoolingMethod, hidden: Tensor, task: PoolingTask) -> None:
    metadata = _metadata([3], task, None, hidden.device)
    results: list[Tensor | None] = []
    try:
        for piece, done in ((hidden[:2], 2), (hidden[2:3], 3)):
            metadata.build_pooling_cursor(torch.tensor([len(piece)]), torch.tensor([done]), hidden.device)
            results = list(method(piece, metadata))
    except PoolingStateError:
        return
    whole = _pool(method, hidden[:3], [3], task)
    _require(len(results) == 1 and results[0] is not None, "gives no result after the last piece of a row")
    _check_same(whole, [row for row in results if row is not None], "pieces of a row give another result")


def _check_same(first: list[Tensor], second: list[Tensor], rule: str) -> None:
    for one, other in zip(first, second, strict=True):
        same = one.shape == other.shape and torch.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)
        _require(same, rule)


def _pool(
    method: PoolingMethod,
    hidden: Tensor,
    lens: list[int],
    task: PoolingTask,
    excluded: list[int] | None = None,
) -> list[Tensor]:
    metadata = _metadata(lens, task, excluded, hidden.device)
    whole = torch.tensor(lens, dtype=torch.int64)
    metadata.build_pooling_cursor(whole, whole, hidden.device)
    return list(method(hidden, metadata))


def _metadata(
    lens: list[int], task: PoolingTask, excluded: list[int] | None, device: torch.device
) -> PoolingMetadata:
    ids = torch.arange(sum(lens))
    return PoolingMetadata(
        prompt_lens=torch.tensor(lens, dtype=torch.int64),
        prompt_token_ids=ids.to(device),
        prompt_token_ids_cpu=ids,
        pooling_params=[PoolingParams(task=task) for _ in lens],
        pooling_states=[PoolingStates() for _ in lens],
        num_excluded_tokens_cpu=None if excluded is None else torch.tensor(excluded, dtype=torch.int64),
    )


def _require(holds: bool, rule: str) -> None:  # noqa: FBT001
    if not holds:
        raise AssertionError(f"pooling method {rule}")
