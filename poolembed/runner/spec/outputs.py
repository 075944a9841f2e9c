"""What follows the transformer, by kind of model: the part of a spec that decides its output."""

from collections.abc import Callable

from poolembed.errors import ConfigError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import Document
from poolembed.runner.spec.draft import Draft
from poolembed.runner.spec.embeddings import fill_embedding, fill_late_interaction, fill_sparse
from poolembed.runner.spec.heads import fill_classifier, fill_cross_encoder, fill_reward

_READERS: dict[str, Callable[[Checkpoint, Draft], None]] = {
    "embedding": fill_embedding,
    "sparse": fill_sparse,
    "late-interaction": fill_late_interaction,
    "cross-encoder": fill_cross_encoder,
    "reward": fill_reward,
    "process-reward": fill_reward,
}


def read_output(checkpoint: Checkpoint, kind: str, draft: Draft) -> None:
    """Fill a draft with what follows the transformer.

    Args:
        checkpoint: the model.
        kind: what it is.
        draft: holds `hidden_size` already.

    Raises:
        ModelError: something is declared that cannot be computed, or weights are missing.
    """
    draft.values.update(
        tok_pooling="ALL",
        include_prompt=True,
        dense=(),
        embedding_size=draft.values["hidden_size"],
        similarity="cosine",
        labels=(),
        problem_type=None,
        classifier_pooling=None,
        logit_head=None,
        template=None,
        late_interaction=None,
        bge_m3=None,
        step_tag_id=None,
        is_matryoshka=False,
        matryoshka_dimensions=None,
    )
    _READERS.get(kind, fill_classifier)(checkpoint, draft)
    _apply_user(checkpoint.user, draft)


def _apply_user(user: Document, draft: Draft) -> None:
    tok_pooling, step = user.text("tok_pooling"), user.integer("step_tag_id")
    if tok_pooling:
        draft.put("tok_pooling", tok_pooling)
    if step:
        draft.put("step_tag_id", step)
        if draft.values["tok_pooling"] != "STEP":
            raise ConfigError(
                "step_tag_id has no meaning without the pooling STEP", "add --tok-pooling-type STEP"
            )
    if user.integers("returned_token_ids") and draft.values["tok_pooling"] != "STEP":
        raise ConfigError(
            "returned_token_ids has no meaning without the pooling STEP", "add --tok-pooling-type STEP"
        )
    use_activation = user.flag("use_activation")
    if use_activation:
        draft.put("use_activation", use_activation)
    source = draft.sources.pop("use_activation")
    if not draft.values["use_activation"]:
        draft.sources["activation"] = source
