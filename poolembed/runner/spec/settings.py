"""The keys that `--set` takes, and how the text of each becomes a value."""

import json
from collections.abc import Callable

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

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
"""How two vectors can be compared."""

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
    "similarity": _choice(*SIMILARITIES),
    "prompts": _json(dict, """a JSON object of strings, such as {"query": "query: "}"""),
    "default_prompt_name": str,
    "labels": _strings,
    "template": str,
    "query_prefix": str,
    "document_prefix": str,
    "query_length": _count,
    "document_length": _count,
    "query_expansion": _flag,
    "expansion_length": _count,
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
