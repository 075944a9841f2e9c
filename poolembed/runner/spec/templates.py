"""Texts that turn a query and a document into the prompt of a language-model reranker.

All are Jinja templates over two messages with roles `query` and `document`, as rerankers of
sentence-transformers ship them; the built-in ones stand in for checkpoints that ship none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import USER, Declared, read_document, read_text

_RESERVED = ("tokenize", "tools")

# Jinja drops one final newline of a template's text; inside an expression it stays.
_PARTS = (
    "{%- set query = (messages | selectattr('role', 'equalto', 'query') | first).content -%}"
    "{%- set document = (messages | selectattr('role', 'equalto', 'document') | first).content -%}"
)

_QWEN3 = (
    "{{- '<|im_start|>system\\nJudge whether the Document meets the requirements based on the Query and "
    'the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>\\n'
    "<|im_start|>user\\n<Instruct>: ' + (instruction | default('Given a web search query, retrieve "
    "relevant passages that answer the query')) + '\\n<Query>: ' + query + '\\n<Document>: ' + document + "
    "'<|im_end|>\\n<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' -}}"
)

_MXBAI_V2 = (
    "{{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    "<|im_end|>\\n<|im_start|>user\\n' + ('instruction: ' + instruction + '\\n' if instruction else '') + "
    "'query: ' + query + '\\ndocument: ' + document + '\\nYou are a search relevance expert who evaluates "
    "how well documents match search queries. For each query-document pair, carefully analyze the semantic "
    "relationship between them, then provide your binary relevance judgment (0 for not relevant, 1 for "
    "relevant).\\nRelevance:<|im_end|>\\n<|im_start|>assistant\\n' -}}"
)

_BGE_GEMMA = (
    "{{- 'A: ' + query + '\\nB: ' + document + '\\n' + (instruction | default(\"Given a query A and a "
    "passage B, determine whether the passage contains an answer to the query by providing a prediction of "
    "either 'Yes' or 'No'.\")) -}}"
)

BUILT_IN: dict[str, str] = {
    "qwen3-reranker": _PARTS + _QWEN3,
    "mxbai-rerank-v2": _PARTS + _MXBAI_V2,
    "bge-reranker-v2-gemma": _PARTS + _BGE_GEMMA,
}
"""Prompts of released rerankers, after their model cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTemplate:
    """A prompt for a pair of texts.

    Attributes:
        name: `declared` for the checkpoint's own, else a name of `BUILT_IN`.
        jinja: template over `messages` with roles `query` and `document`; built-in ones and most
            others also take `instruction`.
        kwargs: variables that the checkpoint sets.
    """

    name: str
    jinja: str
    kwargs: Mapping[str, object] = field(default_factory=dict)


def built_in(name: str, source: str) -> Declared[PairTemplate | None]:
    """Return one of our templates.

    Args:
        name: a key of `BUILT_IN`.
        source: who asks for it.
    """
    return Declared(PairTemplate(name=name, jinja=BUILT_IN[name]), source)


def chosen_template(checkpoint: Checkpoint) -> Declared[PairTemplate | None] | None:
    """Return what the user chose with `--set template=...`; None when they chose nothing.

    Raises:
        ConfigError: the name is unknown.
    """
    chosen = checkpoint.user.text("template")
    if chosen is None:
        return None
    if chosen.value == "none":
        return Declared(None, USER)
    if chosen.value == "declared":
        return Declared(require_declared(checkpoint, "--set template=declared").value, USER)
    if chosen.value in BUILT_IN:
        return built_in(chosen.value, USER)
    raise ConfigError(
        f"--set template={chosen.value}: unknown template",
        f"known: {', '.join(('none', 'declared', *BUILT_IN))}",
    )


def require_declared(checkpoint: Checkpoint, asked_by: str) -> Declared[PairTemplate]:
    """Return the checkpoint's own chat template, with the variables it sets.

    Args:
        checkpoint: what the folder holds.
        asked_by: file and key that ask for a template, for the message.

    Raises:
        ModelError: there is none, or it is called in a way that is not supported.
    """
    settings = checkpoint.transformer.section("processing_kwargs").section("chat_template")
    reserved = [key for key in _RESERVED if key in settings.data]
    if reserved:
        raise ModelError(
            f"{settings.name}: {', '.join(reserved)} is not supported", "remove it from the file"
        )
    name = settings.text("chat_template")
    templates = read_chat_templates(checkpoint)
    key = name.value if name else "default"
    if name and key not in templates and "{" in key:
        jinja, source = key, name.source
    elif key in templates:
        jinja, source = templates[key]
    else:
        raise ModelError(
            f"{asked_by} asks for the chat template {key!r}, which the checkpoint does not have",
            f"download the tokenizer files again, or --set template= one of {', '.join(BUILT_IN)}",
        )
    kwargs = {k: v for k, v in settings.data.items() if k not in ("chat_template", "restore_suffix")}
    return Declared(PairTemplate(name="declared", jinja=jinja, kwargs=kwargs), source)


def read_chat_templates(checkpoint: Checkpoint) -> dict[str, tuple[str, str]]:
    """Return the chat templates by name, each with its source.

    They are a file of their own, a string, or a list of named strings in tokenizer_config.json.
    """
    folder = checkpoint.folder / checkpoint.subfolder
    found: dict[str, tuple[str, str]] = {}
    config = checkpoint.tokenizer_config
    if isinstance(config.data.get("chat_template"), list):
        for named in config.entries("chat_template"):
            name, template = named.text("name"), named.text("template")
            if name and template:
                found[name.value] = (template.value, config.source("chat_template"))
    else:
        text = config.text("chat_template")
        found.update({"default": (text.value, text.source)} if text else {})
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        place = f"additional_chat_templates/{path.name}"
        found[path.stem] = (read_text(path, place), place)
    single = read_document(folder, "chat_template.json").text("chat_template")
    if single:
        found["default"] = (single.value, single.source)
    own = folder / "chat_template.jinja"
    if own.is_file():
        found["default"] = (read_text(own, own.name), own.name)
    return found
