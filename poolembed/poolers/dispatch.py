"""The pooler that serves several tasks, by handing each row to the pooler of its task."""

from collections.abc import Mapping, Set
from itertools import groupby

import torch
from torch import Tensor, nn

from poolembed.config import PoolerConfig
from poolembed.errors import PoolingError
from poolembed.poolers.act_fn import HasHfConfig
from poolembed.poolers.base import Pooler, PoolerOutput, PoolingParamsUpdate, TensorFn
from poolembed.poolers.metadata import PoolingMetadata
from poolembed.poolers.methods.base import SequencePoolingMethod
from poolembed.poolers.methods.tokens import AllPool
from poolembed.poolers.sequence_pooler import SequencePoolingFn, pooler_for_classify, pooler_for_embed
from poolembed.poolers.token_pooler import pooler_for_token_classify, pooler_for_token_embed
from poolembed.tasks import PoolingTask


class DispatchPooler(Pooler):
    """Hands each row to the pooler of its task.

    Args:
        poolers_by_task: a pooler for each task; it must support that task.

    Raises:
        PoolingError: a pooler does not support the task it is given for.

    Source:
        vLLM 0.33.0 `DispatchPooler`.
    """

    def __init__(self, poolers_by_task: Mapping[PoolingTask, Pooler]) -> None:
        super().__init__()
        for task, pooler in poolers_by_task.items():
            supported = pooler.get_supported_tasks()
            if task not in supported:
                raise PoolingError(
                    f"{type(pooler).__name__} does not support task {task!r}",
                    f"it supports {sorted(supported)}",
                )
        self.poolers_by_task = dict(poolers_by_task)
        self.poolers = nn.ModuleList(self.poolers_by_task.values())

    @classmethod
    def for_embedding(
        cls,
        pooler_config: PoolerConfig,
        projector: TensorFn | None = None,
        head_dtype: torch.dtype | None = torch.float32,
    ) -> "DispatchPooler":
        """Return the pooler of an embedding model, for `embed` and `token_embed`.

        Args and errors: see `pooler_for_embed` and `pooler_for_token_embed`.
        """
        return cls(
            {
                "token_embed": pooler_for_token_embed(pooler_config, projector, head_dtype),
                "embed": pooler_for_embed(pooler_config, projector, head_dtype),
            }
        )

    @classmethod
    def for_seq_cls(
        cls,
        pooler_config: PoolerConfig,
        *,
        model_config: HasHfConfig,
        pooling: SequencePoolingMethod | SequencePoolingFn | None = None,
        classifier: TensorFn | None = None,
        act_fn: TensorFn | None = None,
        head_dtype: torch.dtype | None = torch.float32,
    ) -> "DispatchPooler":
        """Return the pooler of a sequence classifier, for `classify` and `token_classify`.

        The tokens go through the same classifier as they are, without `pooling`.

        Args and errors: see `pooler_for_classify`.
        """
        return cls(
            {
                "token_classify": pooler_for_token_classify(
                    pooler_config,
                    model_config=model_config,
                    pooling=AllPool(),
                    classifier=classifier,
                    act_fn=act_fn,
                    head_dtype=head_dtype,
                ),
                "classify": pooler_for_classify(
                    pooler_config,
                    model_config=model_config,
                    pooling=pooling,
                    classifier=classifier,
                    act_fn=act_fn,
                    head_dtype=head_dtype,
                ),
            }
        )

    def get_supported_tasks(self) -> Set[PoolingTask]:
        """Return the tasks that there is a pooler for."""
        return set(self.poolers_by_task)

    def get_pooling_updates(self, task: PoolingTask) -> PoolingParamsUpdate:
        """Return what the pooler of `task` needs; a PoolingError when there is none."""
        return self._pooler_of(task).get_pooling_updates(task)

    def forward(self, hidden_states: Tensor, pooling_metadata: PoolingMetadata) -> PoolerOutput:
        """Return one result a row, see `Pooler.forward`; a list where the batch mixes tasks."""
        tasks = pooling_metadata.tasks
        if len(set(tasks)) == 1:
            output: PoolerOutput = self._pooler_of(tasks[0])(hidden_states, pooling_metadata)
            return output
        cursor = pooling_metadata.get_pooling_cursor()
        results: list[Tensor | None] = []
        start = 0
        for task, group in groupby(tasks):
            rows = slice(start, start + len(list(group)))
            pooler = self._pooler_of(task)
            results.extend(pooler(hidden_states[cursor.token_range(rows)], pooling_metadata[rows]))
            start = rows.stop
        return results

    def _pooler_of(self, task: PoolingTask) -> Pooler:
        if task not in self.poolers_by_task:
            raise PoolingError(
                f"unsupported task {task!r}", f"supported: {', '.join(sorted(self.poolers_by_task))}"
            )
        return self.poolers_by_task[task]
