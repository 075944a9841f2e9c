"""What the user sets: `--set key=value` and the options, checked and typed, as one document.

A key is a setting of ModelSpec or a key of config.json; any other is an error with near misses.
"""

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner.spec.document import USER, Document

KINDS = (
    "embedding",
    "sparse",
    "late-interaction",
    "cross-encoder",
    "classifier",
    "token-classifier",
    "reward",
    "process-reward",
)
"""What a checkpoint can be."""

Parser = Callable[[str], object]


def _choice(*names: str) -> Parser:
    def parse(text: str) -> object:
        if text in names:
            return text
        raise ValueError(f"one of {', '.join(names)}")

    return parse


def _flag(text: str) -> object:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    raise ValueError("true or false")


def _count(text: str) -> object:
    if text.isdigit() and text.isascii():
        return int(text)
    raise ValueError("a whole number, not negative")


def _json(kind: type, expected: str) -> Parser:
    def parse(text: str) -> object:
        try:
            value = json.loads(text)
        except json.JSONDecodeError:
            value = None
        items = value.values() if isinstance(value, dict) else value
        if (
            isinstance(value, kind)
            and isinstance(items, (list, type({}.values())))
            and all(isinstance(item, str) for item in items)
        ):
            return value
        raise ValueError(expected)

    return parse


_strings = _json(list, """a JSON list of strings, such as ["a", "b"]""")

SETTINGS: dict[str, Parser] = {
    "kind": _choice(*KINDS),
    "pooling": str,
    "include_prompt": _flag,
    "normalize": _flag,
    "activation": _choice("none", "sigmoid", "softmax"),
    "max_length": _count,
    "padding_side": _choice("left", "right"),
    "do_lower_case": _flag,
    "token_types": _flag,
    "similarity": _choice("cosine", "dot", "euclidean", "manhattan", "MaxSim"),
    "prompts": _json(dict, """a JSON object of strings, such as {"query": "query: "}"""),
    "default_prompt_name": str,
    "labels": _strings,
    "template": str,
    "query_prefix": str,
    "document_prefix": str,
    "query_length": _count,
    "document_length": _count,
    "query_expansion": _flag,
    "attend_to_expansion": _flag,
    "skiplist": _strings,
    "step_tag_id": _count,
}
"""Settings of ModelSpec that `--set` takes, with the parser of each."""

CONFIG_KEYS: dict[str, type] = {
    "architectures": list,
    "classifier_from_token": list,
    "classifier_pooling": str,
    "id2label": dict,
    "is_causal": bool,
    "is_matryoshka": bool,
    "is_original_qwen3_reranker": bool,
    "matryoshka_dimensions": list,
    "max_position_embeddings": int,
    "method": str,
    "model_type": str,
    "num_labels": int,
    "pad_token_id": int,
    "problem_type": str,
    "use_bidirectional_attention": bool,
}
"""Keys of config.json that are read here and may be missing from the file."""


def split_settings(
    settings: Mapping[str, str], config: Document
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the user's settings of ModelSpec and the changed keys of config.json, typed.

    Args:
        settings: text by key, as given with `--set key=value`.
        config: config.json as it is on disk; its keys may be changed to values of the same type.

    Raises:
        ConfigError: an unknown key or a value of the wrong type; lists every problem.
    """
    spec: dict[str, object] = {}
    changed: dict[str, object] = {}
    problems: list[str] = []
    for key, text in settings.items():
        try:
            if key in SETTINGS:
                spec[key] = SETTINGS[key](text)
            elif key in config.data or key in CONFIG_KEYS:
                changed[key] = _config_value(key, text, config)
            else:
                problems.append(_unknown(key, config))
        except ValueError as error:
            problems.append(f"--set {key}={text}: expected {error}")
    if problems:
        raise ConfigError("; ".join(problems))
    return spec, changed


def user_document(
    spec: Mapping[str, object], pooler_config: PoolerConfig, max_length: int | None
) -> Document:
    """Return everything the user chose under the names of ModelSpec's settings.

    Args:
        spec: settings from `--set`.
        pooler_config: options of the pooler.
        max_length: most tokens of a row.

    Raises:
        ConfigError: an option and `--set` name the same thing.
    """
    chosen = _pooler_options(pooler_config)
    if max_length is not None:
        chosen["max_length"] = max_length
    both = sorted(set(chosen) & set(spec))
    if both:
        raise ConfigError(f"{', '.join(both)} given both as an option and with --set", "give it once")
    merged = {**chosen, **spec}
    return Document(USER, merged, dict.fromkeys(merged, USER))


def _pooler_options(config: PoolerConfig) -> dict[str, object]:
    kind = config.pooling_type
    tokens = config.tok_pooling_type or (kind if kind in ("ALL", "STEP") else None)
    options: dict[str, object] = {
        "task": config.task,
        "pooling": config.seq_pooling_type or (None if kind in ("ALL", "STEP") else kind),
        "tok_pooling": tokens,
        "use_activation": config.use_activation,
        "step_tag_id": config.step_tag_id,
    }
    return {name: value for name, value in options.items() if value is not None}


def _config_value(key: str, text: str, config: Document) -> object:
    present = config.data.get(key)
    expected = CONFIG_KEYS.get(key, type(present) if present is not None else None)
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError:
        value = text
    if expected is str and not isinstance(value, str):
        value = text
    if expected is float and type(value) is int:
        value = float(value)
    if value is None or expected is None or type(value) is expected:
        return value
    names = {bool: "true or false", int: "a whole number", list: "a JSON list", dict: "a JSON object"}
    raise ValueError(names.get(expected, expected.__name__))


def _unknown(key: str, config: Document) -> str:
    if key in {field.name for field in fields(PoolerConfig)}:
        return f"--set {key}: this is an option of its own, --{key.replace('_', '-')}"
    near = difflib.get_close_matches(key, [*SETTINGS, *CONFIG_KEYS, *config.data], n=3)
    return f"--set {key}: unknown setting" + (f", did you mean {' or '.join(near)}?" if near else "")
