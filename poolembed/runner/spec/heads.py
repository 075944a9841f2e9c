"""Output of models with a head: classifiers, cross-encoders, reward models."""

from poolembed.errors import ConfigError, ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import UNDECLARED, USER, Declared
from poolembed.runner.spec.draft import Draft
from poolembed.runner.spec.families import DECODERS, T5_ENCODERS
from poolembed.runner.spec.labels import HeadSettings, read_head
from poolembed.runner.spec.pooling import read_bidirectional
from poolembed.runner.spec.rerank import CAUSAL_SUFFIXES, LogitHead, read_logit_head, read_template
from poolembed.runner.spec.tokenizer import Vocabulary

STEP_TOKEN = "<extra_0>"
"""Token that ends a step in Qwen's reward models."""

_REWARD_LABELS = {"reward": ("reward",), "process-reward": ("bad", "good")}
_RAW_ARCHITECTURES = frozenset({"JambaForSequenceClassification"})
"""Architectures whose scores the reference gives without activation."""


def fill_classifier(checkpoint: Checkpoint, draft: Draft) -> None:
    """Fill in labels, activation and pooling of a sequence or token classifier.

    Args:
        checkpoint: what the folder holds.
        draft: the spec in the making; filled in.

    Raises:
        ModelError: the head has no weights, or its labels or activation are not understood.
    """
    _put_head(checkpoint, draft, read_head(checkpoint, draft.warnings))


def fill_cross_encoder(checkpoint: Checkpoint, draft: Draft) -> None:
    """Fill in the head of a model that scores pairs, and the prompt it puts them in.

    Args:
        checkpoint: what the folder holds.
        draft: the spec in the making; filled in.

    Raises:
        ModelError: a module is not supported, or head, tokens or template are missing.
    """
    extra = [module.kind for module in (checkpoint.modules or ())[1:] if module.kind != "LogitScore"]
    if extra:
        raise ModelError(
            f"modules.json: a cross-encoder of Transformer, {', '.join(extra)} is not supported",
            "score pairs with sentence-transformers",
        )
    logit_head = read_logit_head(checkpoint)
    if logit_head:
        draft.put("logit_head", logit_head, "token_ids")
    num_outputs = logit_head.value.num_outputs if logit_head else None
    _put_head(checkpoint, draft, read_head(checkpoint, draft.warnings, (), num_outputs))
    draft.put("template", read_template(checkpoint, draft.warnings))


def fill_reward(checkpoint: Checkpoint, draft: Draft) -> None:
    """Fill in a reward model: one value a token, or one judgement a step.

    Args:
        checkpoint: what the folder holds.
        draft: the spec in the making; filled in.

    Raises:
        ModelError: the head has no weights, or nothing says which token ends a step.
        ConfigError: a language model is to judge steps without being told how.
    """
    if checkpoint.architecture.endswith(CAUSAL_SUFFIXES):
        _read_vocabulary_reward(checkpoint, draft)
        return
    is_process = checkpoint.architecture == "Qwen2ForProcessRewardModel"
    labels = _REWARD_LABELS["process-reward" if is_process else "reward"]
    _put_head(checkpoint, draft, read_head(checkpoint, draft.warnings, labels))
    step = checkpoint.user.integer("step_tag_id") or _step_token(checkpoint)
    if step:
        draft.put("step_tag_id", step)
    if is_process:
        if step is None:
            raise ModelError(
                f"tokenizer.json has no {STEP_TOKEN}, which ends a step for a process-reward model",
                "name the token that does: --step-tag-id N",
            )
        draft.put("tok_pooling", Declared("STEP", checkpoint.config.source("architectures")))
    elif checkpoint.architecture == "Qwen2ForRewardModel":
        draft.put("use_activation", Declared(value=False, source=checkpoint.config.source("architectures")))


def _read_vocabulary_reward(checkpoint: Checkpoint, draft: Draft) -> None:
    """Read a language model that judges steps by the probabilities of a few answers, as Math-Shepherd does.

    The answers are rows of the language-model head; the reference takes them for columns of the hidden state.
    """
    answers = checkpoint.user.integers("returned_token_ids")
    step = checkpoint.user.integer("step_tag_id")
    if answers is None or step is None:
        raise ConfigError(
            f"{checkpoint.architecture} judges steps only when told how",
            "give --step-tag-id and --returned-token-ids, as the model card says",
        )
    vocabulary = Vocabulary(checkpoint.tokenizer)
    labels = tuple(vocabulary.token(token_id) or f"LABEL_{token_id}" for token_id in answers.value)
    head = LogitHead(token_ids=answers.value, method="no_post_processing")
    draft.put("logit_head", Declared(head, answers.source), "token_ids")
    _put_head(checkpoint, draft, read_head(checkpoint, draft.warnings, labels, len(labels)))
    draft.put("step_tag_id", step)
    draft.put("tok_pooling", Declared("STEP", USER))


def _step_token(checkpoint: Checkpoint) -> Declared[int] | None:
    token_id = Vocabulary(checkpoint.tokenizer).token_id(STEP_TOKEN)
    return None if token_id is None else Declared(token_id, f"tokenizer.json: {STEP_TOKEN}")


def _put_head(checkpoint: Checkpoint, draft: Draft, head: HeadSettings) -> None:
    draft.put("labels", head.labels)
    draft.put("problem_type", head.problem_type)
    draft.put("activation", head.activation)
    is_raw = checkpoint.architecture in _RAW_ARCHITECTURES
    draft.put("use_activation", Declared(not is_raw, head.activation.source))
    if head.classifier_pooling.value:
        draft.put("classifier_pooling", head.classifier_pooling)
    draft.put("pooling", _head_pooling(checkpoint, head.classifier_pooling))


def _head_pooling(checkpoint: Checkpoint, declared: Declared[str | None]) -> Declared[str]:
    """Return which token a classification head of transformers looks at.

    Raises:
        ConfigError: the user chooses another one for a head that looks at a fixed one.
    """
    family = checkpoint.model_type
    chosen = checkpoint.user.text("pooling")
    if chosen and family in DECODERS:
        return chosen
    if chosen:
        raise ConfigError(
            f"the head of {checkpoint.architecture} has a pooling of its own", "leave out the pooling"
        )
    if declared.value:
        return Declared(declared.value.upper(), declared.source)
    own = read_bidirectional(checkpoint)
    if own:
        return own
    is_last = family in DECODERS | T5_ENCODERS | {"xlnet"} or checkpoint.architecture.endswith(
        CAUSAL_SUFFIXES
    )
    return Declared("LAST" if is_last else "CLS", UNDECLARED)
