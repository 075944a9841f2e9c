"""What the user sets: `--set key=value` and the options, checked and typed, as one document.

A key is a setting of ModelSpec or a key of config.json; any other is an error with near misses.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import fields

from poolembed.config import PoolerConfig
from poolembed.errors import ConfigError
from poolembed.runner.spec.document import USER, Document
from poolembed.runner.spec.settings import CONFIG_KEYS, SETTINGS

_OF_EVERY_KIND = frozenset(
    {
        "default_prompt_name",
        "do_lower_case",
        "kind",
        "max_length",
        "padding_side",
        "prompts",
        "returned_token_ids",
        "step_tag_id",
        "task",
        "tok_pooling",
        "token_types",
        "use_activation",
    }
)
_OF_A_HEAD = frozenset({"activation", "labels", "pooling"})
_OF_KIND: dict[str, frozenset[str]] = {
    "embedding": frozenset({"pooling", "include_prompt", "normalize", "similarity"}),
    "sparse": frozenset({"similarity"}),
    "late-interaction": frozenset(
        {
            "attend_to_expansion",
            "document_length",
            "document_prefix",
            "expansion_length",
            "query_expansion",
            "query_length",
            "query_prefix",
            "skiplist",
        }
    ),
    "cross-encoder": _OF_A_HEAD | {"template"},
}

_OPTIONS = {
    "dimensions": "--dimensions",
    "enable_chunked_processing": "--on-long windows",
    "pooling_type": "--pooling",
    "returned_token_ids": "--returned-token-ids",
    "seq_pooling_type": "--pooling",
    "tok_pooling_type": "--tok-pooling-type",
    "use_activation": "--activation or --no-activation",
}
"""What says on the command line what a field of PoolerConfig says, where `--set` does not."""


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


def check_meaning(user: Document, kind: str) -> None:
    """Check that everything the user chose has a meaning for a kind of model.

    Args:
        user: what the user chose.
        kind: what the model is.

    Raises:
        ConfigError: something would be ignored; lists every such setting.
    """
    foreign = sorted(set(user.data) - _OF_EVERY_KIND - _OF_KIND.get(kind, _OF_A_HEAD))
    if {"normalize", "use_activation"} <= set(user.data):
        foreign.append("normalize together with use_activation")
    if foreign:
        raise ConfigError(
            f"{', '.join(foreign)}: no meaning for a model of kind {kind!r}",
            "leave it out, or choose the kind with --set kind=...",
        )


def _pooler_options(config: PoolerConfig) -> dict[str, object]:
    kind = config.pooling_type
    tokens = config.tok_pooling_type or (kind if kind in ("ALL", "STEP") else None)
    options: dict[str, object] = {
        "task": config.task,
        "pooling": config.seq_pooling_type or (None if kind in ("ALL", "STEP") else kind),
        "tok_pooling": tokens,
        "use_activation": config.use_activation,
        "step_tag_id": config.step_tag_id,
        "returned_token_ids": list(config.returned_token_ids) if config.returned_token_ids else None,
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
    if key in _OPTIONS:
        return f"--set {key}: this is an option of its own, {_OPTIONS[key]}"
    if key in {field.name for field in fields(PoolerConfig)}:
        return f"--set {key}: this can be set in Python only, by PoolerConfig({key}=...)"
    near = difflib.get_close_matches(key, [*SETTINGS, *CONFIG_KEYS, *config.data], n=3)
    return f"--set {key}: unknown setting" + (f", did you mean {' or '.join(near)}?" if near else "")
