"""Output of models that give vectors: pooled ones, lexical ones, or one a token."""

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import UNDECLARED, Declared
from poolembed.runner.spec.draft import Draft
from poolembed.runner.spec.late_interaction import read_late_interaction
from poolembed.runner.spec.pooling import read_embedding
from poolembed.runner.spec.projection import read_projection
from poolembed.runner.spec.record import BgeM3Heads
from poolembed.runner.spec.settings import SIMILARITIES

_MLM_FRAGMENTS = ("predictions", "lm_head", "vocab_", "decoder", "head.dense", "pred_layer")
"""Parts of tensor names by which the masked-language heads of transformers are known."""

_BGE_M3_FILES = ("colbert_linear.pt", "sparse_linear.pt")


def fill_embedding(checkpoint: Checkpoint, draft: Draft) -> None:
    """Fill in pooling, Dense layers, normalisation, matryoshka sizes and similarity.

    Args:
        checkpoint: what the folder holds.
        draft: the spec in the making; filled in.

    Raises:
        ModelError: the modules describe another kind, or something does not fit together.
    """
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
    if declared and declared.value not in SIMILARITIES:
        raise ModelError(f"{declared.source} is {declared.value!r}", f"known: {', '.join(SIMILARITIES)}")
    draft.put("similarity", declared or Declared(default, UNDECLARED))


def fill_sparse(checkpoint: Checkpoint, draft: Draft) -> None:
    """Fill in a SPLADE model: the maximum over tokens of log(1 + relu(logits)) of a masked-language head.

    Args:
        checkpoint: what the folder holds.
        draft: the spec in the making; filled in.

    Raises:
        ModelError: another strategy or module is declared, or the head has no weights.
    """
    source = UNDECLARED
    if checkpoint.modules is None:
        draft.warnings.append(
            f"no sentence-transformers files: {checkpoint.architecture} is taken for a SPLADE model; "
            "for dense vectors choose a pooling (--pooling MEAN)"
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


def fill_late_interaction(checkpoint: Checkpoint, draft: Draft) -> None:
    """Fill in projection, markers, lengths, expansion and skip list.

    Args:
        checkpoint: what the folder holds.
        draft: the spec in the making; filled in.

    Raises:
        ModelError: a module is not supported, or the projection is missing.
    """
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
