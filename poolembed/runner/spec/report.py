"""ModelSpec as a table and as JSON, for `poolembed inspect`."""

from typing import TYPE_CHECKING

from poolembed.runner.spec.dense import DenseSpec
from poolembed.runner.spec.kinds import LIBRARY_CLASSES
from poolembed.runner.spec.late_interaction import PUNCTUATION
from poolembed.runner.spec.pooling import POOLING_NAMES

if TYPE_CHECKING:
    from poolembed.runner.spec.record import ModelSpec

Row = tuple[str, object, str]

_LIBRARY_NAMES = {ours: theirs for theirs, ours in POOLING_NAMES.items()}
_HEADS = ("cross-encoder", "classifier", "token-classifier", "reward", "process-reward")


def to_json(spec: "ModelSpec") -> dict[str, object]:
    """Return a spec as plain values that JSON can hold.

    Pooling, activations and classes go by the names of sentence-transformers here. Settings that have no
    meaning for a kind of model are left out.
    """
    result: dict[str, object] = {
        "name": spec.name,
        "kind": spec.kind,
        "tasks": purposes(spec),
        "task": spec.task,
        "architecture": spec.architecture,
        "model_type": spec.model_type,
        "sentence_transformers_class": LIBRARY_CLASSES.get(spec.kind),
        "hidden_size": spec.hidden_size,
        "dtype": spec.dtype,
        "is_causal": spec.is_causal,
        "max_length": spec.max_length,
        "max_positions": spec.max_positions,
        "do_lower_case": spec.do_lower_case,
        "token_types": spec.token_types,
        "prompts": dict(spec.prompts),
        "default_prompt_name": spec.default_prompt_name,
        "activation": spec.activation if spec.use_activation else "none",
        "tokenizer": {name: getattr(spec.tokenizer, name) for name in spec.tokenizer.__slots__},
        "weight_files": list(spec.weight_files),
    }
    result.update(_head_json(spec) if spec.kind in _HEADS else _embedding_json(spec))
    result["warnings"] = list(spec.warnings)
    result["sources"] = dict(spec.sources)
    return result


def rows(spec: "ModelSpec") -> tuple[Row, ...]:
    """Return (setting, value, source) for every setting that means something for this kind of model."""
    values = to_json(spec)
    values.update(
        pooling=spec.pooling,
        tok_pooling=spec.tok_pooling,
        padding_side=spec.padding_side,
        template=spec.template.name if spec.template else None,
        tokenizer=spec.tokenizer.class_in_config,
    )
    return tuple((name, values[name], source) for name, source in spec.sources.items())


def purposes(spec: "ModelSpec") -> list[str]:
    """Return the tasks of a spec, with `score` where scoring pairs is what the model is for."""
    if spec.kind == "cross-encoder" and spec.num_labels == 1:
        return ["score", *spec.tasks]
    return [*spec.tasks, "score"] if spec.kind == "late-interaction" else list(spec.tasks)


def _head_json(spec: "ModelSpec") -> dict[str, object]:
    result: dict[str, object] = {
        "num_labels": spec.num_labels,
        "labels": list(spec.labels),
        "problem_type": spec.problem_type,
        "chat_template": spec.template is not None,
    }
    if spec.template:
        result["template"] = spec.template.name
    if spec.classifier_pooling:
        result["classifier_pooling"] = spec.classifier_pooling
    if spec.step_tag_id is not None:
        result["step_tag_id"] = spec.step_tag_id
    if spec.logit_head:
        result["logit_method"] = spec.logit_head.method
        result["token_ids"] = list(spec.logit_head.token_ids)
        if spec.logit_head.num_outputs == 1:
            result["yes"] = spec.logit_head.token_ids[-1]
        if spec.logit_head.method == "from_2_way_softmax":
            result["no"] = spec.logit_head.token_ids[0]
    return result


def _embedding_json(spec: "ModelSpec") -> dict[str, object]:
    result: dict[str, object] = {
        "similarity": spec.similarity,
        "dense": [_dense_json(layer) for layer in spec.dense],
        "dimension": spec.embedding_size,
        "is_matryoshka": spec.is_matryoshka,
        "matryoshka_dimensions": list(spec.matryoshka_dimensions) if spec.matryoshka_dimensions else None,
    }
    if spec.bge_m3:
        result["bge_m3"] = {"colbert": spec.bge_m3.colbert, "sparse": spec.bge_m3.sparse}
    late = spec.late_interaction
    if late is None:
        names = [_LIBRARY_NAMES.get(name, name) for name in spec.pooling.split("+")]
        result["pooling_type"] = names[0] if len(names) == 1 else names
        result["pooling_includes_prompt"] = spec.include_prompt
        return result
    result.update({name: getattr(late, name) for name in late.__slots__})
    result["dim"] = spec.embedding_size
    result["skiplist"] = "punctuation" if late.skiplist == PUNCTUATION else list(late.skiplist)
    return result


def _dense_json(layer: DenseSpec) -> dict[str, object]:
    return {
        "in": layer.in_features,
        "out": layer.out_features,
        "bias": layer.bias,
        "activation": layer.activation.lower(),
    }
