"""Labels of a classifier in the order of its outputs, and the activation that its authors meant."""

from dataclasses import dataclass

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.dense import ACTIVATIONS, class_name
from poolembed.runner.spec.document import UNDECLARED, USER, Declared

_DEFAULT_NUM_LABELS = 2
_HEAD_WEIGHTS = (
    "classifier.out_proj.weight",
    "classifier.weight",
    "score.weight",
    "v_head.weight",
    "classification_head.out_proj.weight",
    "logits_proj.weight",
    "sequence_summary.summary.weight",
)
_HEAD_FRAGMENTS = (
    "classifier",
    "score",
    "classification_head",
    "logits_proj",
    "summary",
    "v_head",
    "qa_outputs",
)
_PROBLEM_ACTIVATIONS = {"regression": "none", "multi_label_classification": "sigmoid"}
_PROBLEMS = (*_PROBLEM_ACTIVATIONS, "single_label_classification")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSettings:
    """What a classification head declares.

    Attributes:
        labels: name of every output, in order.
        problem_type: transformers' problem type; None when undeclared.
        activation: `none`, `sigmoid`, `softmax`, or a class of torch.nn.
        classifier_pooling: `cls` or `mean` where the architecture lets the checkpoint choose.
    """

    labels: Declared[tuple[str, ...]]
    problem_type: Declared[str | None]
    activation: Declared[str]
    classifier_pooling: Declared[str | None]


def read_head(
    checkpoint: Checkpoint,
    warnings: list[str],
    defaults: tuple[str, ...] = (),
    num_outputs: int | None = None,
) -> HeadSettings:
    """Return labels, problem type and activation of a classification head.

    Args:
        checkpoint: the model.
        warnings: gets a line when names are missing for some outputs.
        defaults: labels of an architecture whose outputs have a fixed meaning.
        num_outputs: number of outputs when it does not follow from the weights.

    Raises:
        ModelError: head weights are missing, or labels, problem type or activation are not understood.
    """
    if num_outputs is None:
        require_head(checkpoint)
    labels = _read_labels(checkpoint, warnings, defaults, num_outputs)
    problem = checkpoint.config.text("problem_type")
    if problem and problem.value not in _PROBLEMS:
        raise ModelError(f"{problem.source} is {problem.value!r}", f"known: {', '.join(_PROBLEMS)}")
    pooling = checkpoint.config.text("classifier_pooling")
    if pooling and pooling.value not in ("cls", "mean"):
        raise ModelError(f"{pooling.source} is {pooling.value!r}", "known: cls, mean")
    return HeadSettings(
        labels=labels,
        problem_type=Declared(problem.value, problem.source) if problem else Declared(None, UNDECLARED),
        activation=_read_activation(checkpoint, problem, len(labels.value)),
        classifier_pooling=Declared(pooling.value, pooling.source) if pooling else Declared(None, UNDECLARED),
    )


def require_head(checkpoint: Checkpoint) -> None:
    """Check that the classification head has weights.

    Raises:
        ModelError: no tensor belongs to a head; it would be made up at random.
    """
    if checkpoint.weights.lacks(*_HEAD_FRAGMENTS):
        raise ModelError(
            f"{checkpoint.weights.files[0]}: the head of {checkpoint.architecture} has no weights",
            "use the fine-tuned checkpoint, or --set kind=embedding for its vectors",
        )


def declared_num_labels(checkpoint: Checkpoint) -> int:
    """Return how many outputs a sequence classifier has, by weights, names or number, in that order."""
    return len(_read_labels(checkpoint, [], (), None).value)


def _read_labels(
    checkpoint: Checkpoint, warnings: list[str], defaults: tuple[str, ...], num_outputs: int | None
) -> Declared[tuple[str, ...]]:
    names, source = _named_labels(checkpoint)
    size, size_source = _num_outputs(checkpoint, num_outputs)
    if size is None:
        size = max(names) + 1 if names else len(defaults) or _DEFAULT_NUM_LABELS
    surplus = [name for index, name in names.items() if index >= size]
    if surplus:
        raise ModelError(
            f"{source} names {len(names)} labels ({', '.join(surplus[:3])} among them), "
            f"but {size_source} has {size} outputs",
            "correct id2label in config.json",
        )
    if names and len(names) < size:
        warnings.append(
            f"{source} names {len(names)} of {size} labels; the others are called LABEL_N by their index N"
        )
    if not names and len(defaults) == size:
        return Declared(defaults, UNDECLARED)
    labels = tuple(names.get(index, f"LABEL_{index}") for index in range(size))
    return Declared(labels, source if names else UNDECLARED)


def _named_labels(checkpoint: Checkpoint) -> tuple[dict[int, str], str]:
    chosen = checkpoint.user.strings("labels")
    if chosen:
        return dict(enumerate(chosen.value)), USER
    config = checkpoint.config
    by_id = config.section("id2label")
    try:
        if by_id.data:
            return {int(key): str(name) for key, name in by_id.data.items()}, config.source("id2label")
        by_name = config.section("label2id")
        return {int(str(index)): name for name, index in by_name.data.items()}, config.source("label2id")
    except ValueError as error:
        raise ModelError(
            "config.json: id2label or label2id: an index is not a whole number",
            "correct the labels in config.json",
        ) from error


def _num_outputs(checkpoint: Checkpoint, num_outputs: int | None) -> tuple[int | None, str]:
    if num_outputs is not None:
        return num_outputs, "the head"
    # A head of several layers, as reward models have, ends with the last of them.
    shape = checkpoint.weights.shape(*_HEAD_WEIGHTS, *checkpoint.weights.layers("score")[-1:])
    if shape and len(shape) == 2:
        return shape[0], f"{checkpoint.weights.files[0]}"
    declared = checkpoint.config.integer("num_labels")
    return (declared.value, declared.source) if declared else (None, "")


def _read_activation(checkpoint: Checkpoint, problem: Declared[str] | None, num_labels: int) -> Declared[str]:
    """Return the output activation: user, sentence-transformers, problem type, config.json, number of labels.

    Source: vLLM 0.33 `get_act_fn` for the order in config.json, and sentence-transformers 6.2
    `CrossEncoder`, which keeps the function in config_sentence_transformers.json.
    """
    several = "softmax" if num_labels > 1 else "sigmoid"
    chosen = checkpoint.user.text("activation")
    if chosen:
        return chosen
    library = checkpoint.library.text("activation_fn")
    if library:
        return _named_activation(library, several)
    if problem:
        return Declared(_PROBLEM_ACTIVATIONS.get(problem.value, several), problem.source)
    nested = checkpoint.config.section("sentence_transformers").text("activation_fn")
    named = nested or checkpoint.config.text("sbert_ce_default_activation_function")
    if named:
        return _named_activation(named, several)
    return Declared(several, UNDECLARED)


def _named_activation(declared: Declared[str], several: str) -> Declared[str]:
    name = class_name(declared)
    if name == "Identity":
        return Declared("none", declared.source)
    if name == "Sigmoid":
        return Declared("sigmoid", declared.source)
    if name == "Softmax":
        # A softmax over one output is always 1.
        return Declared(several, declared.source)
    if name in ACTIVATIONS:
        return Declared(name, declared.source)
    raise ModelError(
        f"{declared.source}: the activation {name} is not supported",
        "override it: --set activation=none (or sigmoid, softmax)",
    )
