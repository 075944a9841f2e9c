"""How token vectors become one vector, as sentence-transformers' files declare it.

Reads both forms of a Pooling module: one flag a mode, and the compact name or list of names.
"""

from dataclasses import dataclass

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.dense import DenseSpec, read_dense
from poolembed.runner.spec.document import UNDECLARED, Declared, Document
from poolembed.runner.spec.families import DECODERS, ENCODERS
from poolembed.runner.spec.modules import Module

POOLING_NAMES: dict[str, str] = {
    "cls": "CLS",
    "max": "MAX",
    "mean": "MEAN",
    "mean_sqrt_len_tokens": "MEAN_SQRT_LEN",
    "weightedmean": "WEIGHTED_MEAN",
    "lasttoken": "LAST",
}
"""Our name of each mode of sentence-transformers, in the order in which it concatenates flags."""

_FLAGS: dict[str, str] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

_NO_FILES = "no sentence-transformers files: "


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings:
    """What follows the transformer of an embedding model.

    Attributes:
        pooling: names joined by `+`.
        include_prompt: whether the tokens of the prompt are pooled too.
        dense: the Dense layers in order.
        normalize: whether the result has length 1.
        pooled_size: width after pooling, before the Dense layers.
    """

    pooling: Declared[str]
    include_prompt: Declared[bool]
    dense: Declared[tuple[DenseSpec, ...]]
    normalize: Declared[bool]
    pooled_size: int

    @property
    def embedding_size(self) -> int:
        """Width of the result."""
        return self.dense.value[-1].out_features if self.dense.value else self.pooled_size


def read_embedding(checkpoint: Checkpoint, hidden_size: int, warnings: list[str]) -> EmbeddingSettings:
    """Return pooling, Dense layers and normalisation of an embedding model.

    Args:
        checkpoint: the model.
        hidden_size: width of its token vectors.
        warnings: gets a line when nothing declares the pooling and a default is taken.

    Raises:
        ModelError: modules in an order that is not computed, or nothing says how to pool.
    """
    declared = _read_modules(checkpoint) if checkpoint.modules else _without_modules(checkpoint, warnings)
    user = checkpoint.user
    pooling = user.text("pooling") or declared.pooling
    if pooling is None:
        raise ModelError(
            f"nothing declares how {checkpoint.architecture} pools its tokens, and the family "
            f"{checkpoint.model_type!r} is unknown",
            "say it: --pooling MEAN (or CLS, LAST)",
        )
    normalize = user.flag("use_activation") or user.flag("normalize") or declared.normalize
    pooled_size = _token_size(checkpoint, hidden_size, warnings) * len(pooling.value.split("+"))
    _check_chain(pooled_size, declared.dense.value)
    return EmbeddingSettings(
        pooling=pooling,
        include_prompt=user.flag("include_prompt") or declared.include_prompt,
        dense=declared.dense,
        normalize=normalize,
        pooled_size=pooled_size,
    )


def _token_size(checkpoint: Checkpoint, hidden_size: int, warnings: list[str]) -> int:
    """Return the width of a token vector; the Pooling module's word counts where config.json's differs."""
    for module in checkpoint.modules_of("Pooling"):
        declared = module.config.integer("embedding_dimension") or module.config.integer(
            "word_embedding_dimension"
        )
        if declared and declared.value != hidden_size:
            warnings.append(f"{declared.source} is {declared.value}, but config.json says {hidden_size}")
            return declared.value
    return hidden_size


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    pooling: Declared[str] | None
    include_prompt: Declared[bool]
    dense: Declared[tuple[DenseSpec, ...]]
    normalize: Declared[bool]


def _read_modules(checkpoint: Checkpoint) -> _Found:
    modules = [module for module in checkpoint.modules or () if module.kind != "Dropout"]
    kinds = [module.kind for module in modules[1:]]
    tail = kinds[1:]
    num_dense = tail.count("Dense")
    expected = ["Dense"] * num_dense + ["Normalize"] * (len(tail) - num_dense)
    if kinds[:1] != ["Pooling"] or tail != expected:
        raise ModelError(
            f"modules.json: the order Transformer, {', '.join(kinds)} is not supported",
            "supported is Transformer, Pooling, any number of Dense, Normalize",
        )
    _check_normalize(modules)
    dense = tuple(
        read_dense(checkpoint, module, "sentence_embedding") for module in modules if module.kind == "Dense"
    )
    include = modules[1].config.flag("include_prompt")
    return _Found(
        pooling=read_mode(modules[1]),
        include_prompt=include or Declared(value=True, source=f"default of {modules[1].config.name}"),
        dense=Declared(dense, "modules.json"),
        normalize=Declared("Normalize" in tail, "modules.json"),
    )


def _check_normalize(modules: list[Module]) -> None:
    for module in modules:
        name = module.config.text("module_input_name") if module.kind == "Normalize" else None
        if name and name.value != "sentence_embedding":
            raise ModelError(
                f"{name.source} is {name.value!r}, expected 'sentence_embedding'",
                "encode this model with sentence-transformers",
            )


def read_mode(module: Module) -> Declared[str]:
    """Return the pooling of a Pooling module, by our names.

    Raises:
        ModelError: a mode is unknown, or the module has no settings at all.
    """
    config = module.config
    if not config.data:
        raise ModelError(f"{config.name} is missing", "download the module's folder again")
    compact = config.declared("pooling_mode")
    if compact:
        modes = compact.value if isinstance(compact.value, list) else [compact.value]
        return Declared(
            "+".join(_pooling_name(mode, config, "pooling_mode") for mode in modes), compact.source
        )
    unknown = [key for key in config.data if key.startswith("pooling_mode_") and key not in _FLAGS]
    active = [key for key in (*_FLAGS, *unknown) if (flag := config.flag(key)) and flag.value]
    names = [_pooling_name(_FLAGS.get(key, key), config, key) for key in active]
    if not names:
        return Declared("MEAN", f"default of {config.name}, which sets no pooling_mode")
    return Declared("+".join(names), f"{config.name}: {', '.join(active)}")


def _pooling_name(mode: object, config: Document, key: str) -> str:
    if isinstance(mode, str) and mode in POOLING_NAMES:
        return POOLING_NAMES[mode]
    raise ModelError(
        f"{config.name}: {key}: the pooling mode {mode!r} is unknown",
        f"known modes: {', '.join(POOLING_NAMES)}; override with --pooling",
    )


def _without_modules(checkpoint: Checkpoint, warnings: list[str]) -> _Found:
    """Take the defaults of sentence-transformers for encoders, of the reference for all others.

    What the family of the checkpoint's own code is, nobody can tell: its pooling must be chosen, and vectors
    are normalised as the reference does where no modules.json speaks against it.
    """
    family = checkpoint.model_type
    pooling, normalize = read_bidirectional(checkpoint), Declared(value=True, source=UNDECLARED)
    if pooling is None and family in ENCODERS:
        pooling, normalize = Declared("MEAN", UNDECLARED), Declared(value=False, source=UNDECLARED)
        warnings.append(_NO_FILES + "pooled by MEAN and not normalised, as sentence-transformers does")
    elif pooling is None and (family in DECODERS or checkpoint.architecture.endswith("ForCausalLM")):
        pooling = Declared("LAST", UNDECLARED)
        warnings.append(_NO_FILES + "pooled by LAST and normalised, as is usual for decoders")
    elif pooling is None:
        warnings.append(_NO_FILES + "normalised, as is usual for embeddings; --no-activation leaves it out")
    return _Found(
        pooling=pooling,
        include_prompt=Declared(value=True, source=UNDECLARED),
        dense=Declared((), UNDECLARED),
        normalize=normalize,
    )


def read_bidirectional(checkpoint: Checkpoint) -> Declared[str] | None:
    """Return the pooling that configurations of LlamaBidirectional and its kin name; None for all others.

    Raises:
        ModelError: the name is unknown.
    """
    declared = checkpoint.config.text("pooling") if "Bidirectional" in checkpoint.architecture else None
    if declared is None:
        return None
    names = {"avg": "MEAN", "mean": "MEAN", "cls": "CLS", "last": "LAST"}
    if declared.value not in names:
        raise ModelError(f"{declared.source} is {declared.value!r}", f"known: {', '.join(names)}")
    return Declared(names[declared.value], declared.source)


def _check_chain(pooled_size: int, dense: tuple[DenseSpec, ...]) -> None:
    width = pooled_size
    for layer in dense:
        if layer.in_features != width:
            raise ModelError(
                f"{layer.folder}/config.json: in_features is {layer.in_features}, "
                f"but what comes before is {width} wide",
                "pooling and Dense layers do not fit together; correct the files or the pooling",
            )
        width = layer.out_features
