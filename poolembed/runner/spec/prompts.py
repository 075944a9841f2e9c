"""Prompts that a checkpoint declares, that its family is known for, or that the user sets."""

from dataclasses import dataclass

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import UNDECLARED, Declared, Document
from poolembed.runner.spec.families import known_prompts

_ROLES = ("query", "document")


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a model.

    Attributes:
        texts: text by name.
        default_name: the one put before every row unless the user says otherwise; None for none.
    """

    texts: Declared[dict[str, str]]
    default_name: Declared[str | None]


def read_prompts(checkpoint: Checkpoint, kind: str, warnings: list[str]) -> Prompts:
    """Return the prompts: the user's, sentence-transformers', config.json's, the family's.

    sentence-transformers writes empty placeholders for models without prompts; a set of nothing but
    those counts as none declared. Next to a real prompt an empty one is kept: it says "no prompt here".

    Args:
        checkpoint: the model.
        kind: what it is; only embedding models are looked up by family.
        warnings: gets a line when a family that needs prompts declares none.

    Raises:
        ModelError: the default prompt has a name that no prompt has.
    """
    texts = _declared(checkpoint)
    if texts and kind == "late-interaction" and "query_prefix" not in checkpoint.library.data:
        # sentence-transformers 6 keeps the markers of the two roles as prompts; they are read as markers.
        texts = Declared({k: v for k, v in texts.value.items() if k not in _ROLES}, texts.source)
    if texts is None:
        family = known_prompts(checkpoint.name) if kind == "embedding" else {}
        texts = Declared(family, f"known family ({checkpoint.name})") if family else Declared({}, UNDECLARED)
        if family:
            listed = ", ".join(f"{name} ({text!r})" for name, text in family.items())
            warnings.append(
                f"{checkpoint.name} is trained with prompts but declares none, and none is put before the "
                f"rows; choose with --prompt-name one of: {listed}"
            )
    default = checkpoint.user.text("default_prompt_name") or checkpoint.library.text("default_prompt_name")
    placeholders = checkpoint.library.section("prompts").data
    if default is None or (default.value not in texts.value and default.value in placeholders):
        return Prompts(texts, Declared(None, UNDECLARED))
    if default.value not in texts.value:
        raise ModelError(
            f"{default.source}: default_prompt_name is {default.value!r}, which is no prompt of this model",
            f"declared prompts: {', '.join(texts.value) or 'none'}",
        )
    return Prompts(texts, Declared(default.value, default.source))


def _declared(checkpoint: Checkpoint) -> Declared[dict[str, str]] | None:
    for document, key in (
        (checkpoint.user, "prompts"),
        (checkpoint.library, "prompts"),
        (checkpoint.config, "task_instructions"),
    ):
        texts = _texts(document, key)
        if any(texts.values()):
            return Declared(texts, document.source(key))
    return None


def _texts(document: Document, key: str) -> dict[str, str]:
    section = document.section(key)
    found = {name: section.text(name) for name in section.data}
    return {name: text.value if text else "" for name, text in found.items()}
