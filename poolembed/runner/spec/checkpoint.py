"""A model folder opened: its documents, modules and weights, or what is missing from it."""

from dataclasses import dataclass
from pathlib import Path

from poolembed.errors import ModelError
from poolembed.runner.spec.document import Document, read_document
from poolembed.runner.spec.modules import Module, read_modules
from poolembed.runner.spec.weights import Weights, describe_foreign_weights, find_weights

_TOKENIZER_FILES = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
    "tokenizer.model",
    "prophetnet.tokenizer",
    "bpe.codes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The files of a model folder, parsed once.

    Attributes:
        folder: the model folder.
        name: hub name or folder name; only tables of known families look at it.
        subfolder: where config.json, tokenizer and weights are, relative to `folder`.
        modules: entries of modules.json; None without that file.
        config: config.json with the user's changes.
        user: what the user chose, under the names of ModelSpec's settings.
        library: config_sentence_transformers.json.
        transformer: settings of the Transformer module (sentence_bert_config.json).
        tokenizer: tokenizer.json.
        tokenizer_config: tokenizer_config.json.
        weights: the transformer's weight files.
    """

    folder: Path
    name: str
    subfolder: str
    modules: tuple[Module, ...] | None
    config: Document
    user: Document
    library: Document
    transformer: Document
    tokenizer: Document
    tokenizer_config: Document
    weights: Weights

    @property
    def architecture(self) -> str:
        """The first declared architecture.

        Raises:
            ModelError: config.json names none.
        """
        names = self.config.strings("architectures")
        if names is None or not names.value:
            raise ModelError(
                "config.json: architectures is missing",
                """name the class that wrote the weights: --set 'architectures=["BertModel"]'""",
            )
        return names.value[0]

    @property
    def model_type(self) -> str:
        """The declared model type.

        Raises:
            ModelError: config.json names none.
        """
        model_type = self.config.text("model_type")
        if model_type is None:
            raise ModelError("config.json: model_type is missing", "name it: --set model_type=bert")
        return model_type.value

    def modules_of(self, *kinds: str) -> tuple[Module, ...]:
        """Return the modules of the given kinds, in order."""
        return tuple(module for module in self.modules or () if module.kind in kinds)


def locate_transformer(folder: Path) -> tuple[tuple[Module, ...] | None, str]:
    """Return the modules and the subfolder of the transformer.

    Raises:
        ModelError: the folder is missing, an adapter, or lists modules that cannot be computed.
    """
    if not folder.is_dir():
        raise ModelError(f"{folder} is not a folder", "give a model folder or a hub name")
    if (folder / "adapter_config.json").is_file():
        raise ModelError(
            "adapter_config.json: the folder holds an adapter (LoRA), not a whole model",
            "merge it into its base model (peft: merge_and_unload) and save that",
        )
    modules = read_modules(folder)
    if modules is None:
        return None, ""
    if not modules[0].kind.endswith("Transformer"):
        raise ModelError(
            f"modules.json starts with {modules[0].kind}, expected a Transformer",
            "encode this model with sentence-transformers",
        )
    return modules, modules[0].folder


def read_config(folder: Path, subfolder: str) -> Document:
    """Return config.json.

    Args:
        folder: the model folder.
        subfolder: the transformer's folder in it, empty for the model folder itself.

    Raises:
        ModelError: it is missing; the message says what the folder holds instead.
    """
    name = f"{subfolder}/config.json" if subfolder else "config.json"
    config = read_document(folder, name)
    if config.data:
        return Document("config.json", config.data)
    foreign = describe_foreign_weights(folder)
    raise ModelError(
        f"{name} is missing or empty in {folder}" + (f"; the folder holds {foreign}" if foreign else ""),
        "a checkpoint of transformers or sentence-transformers is needed, with config.json and safetensors",
    )


def require_weights(folder: Path, subfolder: str) -> Weights:
    """Return the transformer's weights.

    Args:
        folder: the model folder.
        subfolder: the transformer's folder in it, empty for the model folder itself.

    Raises:
        ModelError: there are none; the message says what the folder holds instead.
    """
    weights = find_weights(folder, subfolder)
    if weights is not None:
        return weights
    foreign = describe_foreign_weights(folder / subfolder)
    raise ModelError(
        f"{subfolder or 'the model folder'} holds no model.safetensors and no pytorch_model.bin"
        + (f", only {foreign}" if foreign else ""),
        "download the safetensors of the model, or convert it with transformers",
    )


def require_tokenizer(folder: Path, subfolder: str) -> None:
    """Check that a tokenizer is there.

    Args:
        folder: the model folder.
        subfolder: the transformer's folder in it, empty for the model folder itself.

    Raises:
        ModelError: none of the known tokenizer files exists.
    """
    if not any((folder / subfolder / name).is_file() for name in _TOKENIZER_FILES):
        raise ModelError(
            "the model folder holds no tokenizer.json", "download the tokenizer files of the model too"
        )
