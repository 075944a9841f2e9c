"""What a checkpoint is made for: embedding, scoring, classifying, rewarding; and the tasks that follow."""

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import USER, Declared
from poolembed.runner.spec.labels import declared_num_labels
from poolembed.runner.spec.rerank import CAUSAL_SUFFIXES, is_causal_reranker
from poolembed.tasks import PoolingTask, check_task

TASKS: dict[str, tuple[PoolingTask, ...]] = {
    "embedding": ("embed", "token_embed"),
    "sparse": ("embed",),
    "late-interaction": ("token_embed",),
    "cross-encoder": ("classify",),
    "classifier": ("classify",),
    "token-classifier": ("token_classify",),
    "reward": ("token_classify", "classify"),
    "process-reward": ("token_classify",),
}
"""Tasks of each kind, the default one first."""

LIBRARY_CLASSES: dict[str, str] = {
    "embedding": "SentenceTransformer",
    "sparse": "SparseEncoder",
    "late-interaction": "MultiVectorEncoder",
    "cross-encoder": "CrossEncoder",
}
"""The class of sentence-transformers that opens each kind."""

_LIBRARY_TYPES: dict[str, str] = {
    "SentenceTransformer": "embedding",
    "SparseEncoder": "sparse",
    "MultiVectorEncoder": "late-interaction",
    "ColBERT": "late-interaction",
    "CrossEncoder": "cross-encoder",
}
_REWARDS: dict[str, str] = {
    "Qwen2ForRewardModel": "reward",
    "InternLM2ForRewardModel": "reward",
    "Qwen2ForProcessRewardModel": "process-reward",
}


def read_kind(checkpoint: Checkpoint) -> Declared[str]:
    """Return what the checkpoint is: by the user, sentence-transformers' files, then its architecture.

    Raises:
        ModelError: sentence-transformers' files name an unknown class, or the head is not supported.
    """
    chosen = checkpoint.user.text("kind")
    if chosen:
        return chosen
    return _by_library(checkpoint) or _by_modules(checkpoint) or _by_architecture(checkpoint)


def read_tasks(
    checkpoint: Checkpoint, kind: str, *, has_logit_head: bool, is_bge_m3: bool
) -> tuple[PoolingTask, ...]:
    """Return the tasks of a model, the one to perform first.

    Args:
        checkpoint: the model.
        kind: what it is.
        has_logit_head: whether its head is made of vocabulary entries.
        is_bge_m3: whether it carries BGE-M3's extra heads.

    Raises:
        ConfigError: the user asks for a task that it does not support.
    """
    tasks = TASKS[kind]
    if is_bge_m3:
        tasks = (*tasks, "token_classify")
    chosen = checkpoint.user.text("task")
    if chosen is None:
        return tasks
    task = check_task(chosen.value)
    possible = tasks
    if kind in ("classifier", "cross-encoder") and not has_logit_head:
        # The reference applies the same head to every token on request.
        possible = (*tasks, "token_classify")
    if task not in possible:
        raise ConfigError(
            f"{checkpoint.name} ({kind}) does not support the task {task!r}",
            f"supported: {', '.join(possible)}; or treat the model as another kind: --set kind=embedding",
        )
    return (task, *(other for other in tasks if other != task))


def _by_library(checkpoint: Checkpoint) -> Declared[str] | None:
    declared = checkpoint.library.text("model_type")
    if declared is None:
        return None
    kind = _LIBRARY_TYPES.get(declared.value)
    if kind is None:
        raise ModelError(f"{declared.source} is {declared.value!r}", f"known: {', '.join(_LIBRARY_TYPES)}")
    return Declared(kind, declared.source)


def _by_modules(checkpoint: Checkpoint) -> Declared[str] | None:
    if checkpoint.modules is None:
        return None
    if checkpoint.modules_of("SpladePooling"):
        return Declared("sparse", "modules.json")
    if checkpoint.modules_of("LogitScore"):
        return Declared("cross-encoder", "modules.json")
    if checkpoint.modules_of("MultiVectorMask") or any(module.is_pylate for module in checkpoint.modules):
        return Declared("late-interaction", "modules.json")
    return Declared("embedding", "modules.json")


def _by_architecture(checkpoint: Checkpoint) -> Declared[str]:
    name = checkpoint.architecture
    source = checkpoint.config.source("architectures")
    if "Reward" in name:
        return _reward_kind(name, source)
    if "ColBERT" in name:
        return Declared("late-interaction", source)
    if name.endswith("ForTokenClassification"):
        return Declared("token-classifier", source)
    if name.endswith("ForSequenceClassification"):
        return _sequence_kind(checkpoint, source)
    if name.endswith("ForMaskedLM"):
        return Declared("embedding", USER) if checkpoint.user.text("pooling") else Declared("sparse", source)
    if name.endswith(CAUSAL_SUFFIXES) and "returned_token_ids" in checkpoint.user.data:
        return Declared("process-reward", USER)
    return Declared("cross-encoder" if is_causal_reranker(checkpoint) else "embedding", source)


def _reward_kind(name: str, source: str) -> Declared[str]:
    if name not in _REWARDS:
        raise ModelError(
            f"{source}: {name} is not supported", f"supported reward heads: {', '.join(_REWARDS)}"
        )
    return Declared(_REWARDS[name], source)


def _sequence_kind(checkpoint: Checkpoint, source: str) -> Declared[str]:
    """Tell cross-encoders from classifiers: they say so, or have one output and no problem type."""
    config = checkpoint.config
    for document, key in (
        (checkpoint.library, "activation_fn"),
        (config.section("sentence_transformers"), "activation_fn"),
        (config, "sbert_ce_default_activation_function"),
    ):
        if document.declared(key):
            return Declared("cross-encoder", document.source(key))
    is_open = config.text("problem_type") is None
    return Declared(
        "cross-encoder" if is_open and declared_num_labels(checkpoint) == 1 else "classifier", source
    )
