"""What follows the transformer, by kind of model: the part of a spec that decides its output."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import UNDECLARED, Declared
from poolembed.runner.spec.families import DECODERS, T5_ENCODERS
from poolembed.runner.spec.labels import HeadSettings, read_head
from poolembed.runner.spec.late_interaction import read_late_interaction, read_projection
from poolembed.runner.spec.pooling import read_embedding
from poolembed.runner.spec.record import BgeM3Heads
from poolembed.runner.spec.rerank import CAUSAL_SUFFIXES, read_logit_head, read_template
from poolembed.runner.spec.tokenizer import Vocabulary

STEP_TOKEN = "<extra_0>"
"""Token that ends a step in Qwen's reward models."""

_REWARD_LABELS = {"reward": ("reward",), "process-reward": ("bad", "good")}
_MLM_FRAGMENTS = ("cls.predictions", "lm_head", "predictions", "vocab_", "decoder", "head.dense")
_RAW_ARCHITECTURES = frozenset({"JambaForSequenceClassification"})
_BGE_M3_FILES = ("colbert_linear.pt", "sparse_linear.pt")


@dataclass(slots=True)
class Draft:
    """The values of a spec while it is put together, and who declared each.

    Attributes:
        values: by field of ModelSpec.
        sources: by setting.
        warnings: what the user should know.
    """

    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def put(self, name: str, declared: Declared[Any], setting: str | None = None) -> None:
        """Store a value under a field's name, and its source under the name of the setting."""
        self.values[name] = declared.value
        self.sources[setting or name] = declared.source


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
    _READERS.get(kind, _read_classifier)(checkpoint, draft)
    tok_pooling = checkpoint.user.text("tok_pooling")
    if tok_pooling:
        draft.put("tok_pooling", tok_pooling)
    use_activation = checkpoint.user.flag("use_activation")
    if use_activation:
        draft.put("use_activation", use_activation)


def _read_embedding(checkpoint: Checkpoint, draft: Draft) -> None:
    if checkpoint.modules_of("SpladePooling", "LogitScore", "MultiVectorMask"):
        raise ModelError(
            "modules.json does not describe an embedding model", "leave out --set kind=embedding"
        )
    found = read_embedding(checkpoint, draft.values["hidden_size"], draft.warnings)
    draft.put("pooling", found.pooling)
    draft.put("include_prompt", found.include_prompt, "pooling_includes_prompt")
    draft.put("dense", found.dense)
    draft.put("embedding_size", Declared(found.embedding_size, found.dense.source), "dimension")
    draft.put("activation", Declared("normalize", found.normalize.source))
    draft.put("use_activation", found.normalize)
    _read_matryoshka(checkpoint, draft)
    _read_similarity(checkpoint, draft, "cosine")
    present = [name for name in _BGE_M3_FILES if (checkpoint.folder / name).is_file()]
    if present and len(present) < len(_BGE_M3_FILES):
        missing = next(name for name in _BGE_M3_FILES if name not in present)
        raise ModelError(f"{missing} is missing next to {present[0]}", "download the model again")
    if present:
        draft.values["bge_m3"] = BgeM3Heads(colbert=_BGE_M3_FILES[0], sparse=_BGE_M3_FILES[1])
        draft.sources["bge_m3"] = ", ".join(_BGE_M3_FILES)


def _read_matryoshka(checkpoint: Checkpoint, draft: Draft) -> None:
    sizes = checkpoint.config.integers("matryoshka_dimensions")
    flag = checkpoint.config.flag("is_matryoshka")
    width = draft.values["embedding_size"]
    if sizes and any(not 0 < size <= width for size in sizes.value):
        raise ModelError(
            f"{sizes.source} is {list(sizes.value)}, but embeddings are {width} wide", "correct the file"
        )
    allowed = bool((sizes and sizes.value) or (flag and flag.value))
    source = sizes or flag
    draft.put("is_matryoshka", Declared(allowed, source.source if source else UNDECLARED))
    if sizes and sizes.value:
        draft.put("matryoshka_dimensions", sizes)
    else:
        draft.sources["matryoshka_dimensions"] = UNDECLARED


def _read_similarity(checkpoint: Checkpoint, draft: Draft, default: str) -> None:
    declared = checkpoint.user.text("similarity") or checkpoint.library.text("similarity_fn_name")
    draft.put("similarity", declared or Declared(default, UNDECLARED))


def _read_sparse(checkpoint: Checkpoint, draft: Draft) -> None:
    """Read a SPLADE model: the maximum over tokens of log(1 + relu(logits)) of a masked-language head."""
    source = UNDECLARED
    if checkpoint.modules is None:
        draft.warnings.append(
            f"no sentence-transformers files: {checkpoint.architecture} is taken for a SPLADE model; "
            "for dense vectors choose a pooling (--pooling-type MEAN)"
        )
    for module in checkpoint.modules_of("SpladePooling"):
        source = module.config.name
        for key, supported in (("pooling_strategy", "max"), ("activation_function", "relu")):
            value = module.config.text(key)
            if value and value.value != supported:
                raise ModelError(
                    f"{value.source} is {value.value!r}, supported is {supported!r}",
                    "encode this model with sentence-transformers",
                )
    _require_splade_modules(checkpoint)
    if checkpoint.weights.lacks(*_MLM_FRAGMENTS):
        raise ModelError(
            f"{checkpoint.weights.files[0]} has no masked-language head, which SPLADE needs",
            "use the checkpoint with its head (…ForMaskedLM)",
        )
    vocab = checkpoint.config.integer("vocab_size")
    if vocab is None:
        raise ModelError("config.json: vocab_size is missing", "download config.json again")
    draft.put("pooling", Declared("MAX", source))
    draft.put("activation", Declared("log1p(relu)", source))
    draft.put("use_activation", Declared(value=True, source=source))
    draft.put("embedding_size", vocab, "dimension")
    _read_similarity(checkpoint, draft, "dot")


def _require_splade_modules(checkpoint: Checkpoint) -> None:
    kinds = [module.kind for module in (checkpoint.modules or ())[1:] if module.kind != "Dropout"]
    if checkpoint.modules is not None and kinds != ["SpladePooling"]:
        raise ModelError(
            f"modules.json: a sparse model of Transformer, {', '.join(kinds)} is not supported",
            "supported is Transformer, SpladePooling",
        )


def _read_late_interaction(checkpoint: Checkpoint, draft: Draft) -> None:
    kinds = {module.kind for module in (checkpoint.modules or ())[1:]}
    if kinds - {"Dense", "MultiVectorMask", "Normalize", "Dropout"}:
        raise ModelError(
            f"modules.json: a late-interaction model with {', '.join(sorted(kinds))} is not supported",
            "supported are Transformer, Dense, MultiVectorMask, Normalize",
        )
    settings, sources = read_late_interaction(checkpoint, draft.warnings)
    projection = read_projection(checkpoint, draft.values["hidden_size"])
    draft.put("dense", projection)
    width = projection.value[-1].out_features if projection.value else draft.values["hidden_size"]
    draft.put("embedding_size", Declared(width, projection.source), "dim")
    draft.values["late_interaction"] = settings
    draft.sources.update(sources)
    is_native = bool(checkpoint.modules_of("MultiVectorMask"))
    # Releases before MultiVectorMask normalised inside the model and listed no module for it.
    normalize = "Normalize" in kinds or not is_native
    draft.put("activation", Declared("normalize", "modules.json" if is_native else UNDECLARED))
    draft.put("use_activation", Declared(normalize, draft.sources["activation"]))
    draft.values["pooling"] = "ALL"
    _read_matryoshka(checkpoint, draft)
    draft.put("similarity", Declared("MaxSim", UNDECLARED))


def _read_classifier(checkpoint: Checkpoint, draft: Draft) -> None:
    head = read_head(checkpoint, draft.warnings)
    _put_head(checkpoint, draft, head)


def _read_cross_encoder(checkpoint: Checkpoint, draft: Draft) -> None:
    extra = [module.kind for module in (checkpoint.modules or ())[1:] if module.kind != "LogitScore"]
    if extra:
        raise ModelError(
            f"modules.json: a cross-encoder of Transformer, {', '.join(extra)} is not supported",
            "score pairs with sentence-transformers",
        )
    logit_head = read_logit_head(checkpoint)
    if logit_head:
        draft.put("logit_head", logit_head)
    num_outputs = logit_head.value.num_outputs if logit_head else None
    _put_head(checkpoint, draft, read_head(checkpoint, draft.warnings, (), num_outputs))
    draft.put("template", read_template(checkpoint, draft.warnings))


def _read_reward(checkpoint: Checkpoint, draft: Draft) -> None:
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
    """Return which token a classification head of transformers looks at."""
    if declared.value:
        return Declared(declared.value.upper(), declared.source)
    family = checkpoint.model_type
    is_last = family in DECODERS | T5_ENCODERS | {"xlnet"} or checkpoint.architecture.endswith(
        CAUSAL_SUFFIXES
    )
    return Declared("LAST" if is_last else "CLS", UNDECLARED)


_READERS: dict[str, Callable[[Checkpoint, Draft], None]] = {
    "embedding": _read_embedding,
    "sparse": _read_sparse,
    "late-interaction": _read_late_interaction,
    "cross-encoder": _read_cross_encoder,
    "reward": _read_reward,
    "process-reward": _read_reward,
}
