"""The modules of a sentence-transformers folder: modules.json, checked against what can be computed.

Reads the type ids of sentence-transformers 2 to 6 and of PyLate; any other module is an error.
"""

from dataclasses import dataclass
from pathlib import Path

from poolembed.errors import ModelError
from poolembed.runner.spec.document import Document, read_document, read_json

MODULES_FILE = "modules.json"

TRANSFORMER_CONFIGS: tuple[str, ...] = tuple(
    f"sentence_{family}_config.json"
    for family in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
"""Names under which releases of sentence-transformers kept the Transformer module's settings."""

COMPUTED = frozenset(
    {
        "Transformer",
        "MLMTransformer",
        "Pooling",
        "Dense",
        "Normalize",
        "Dropout",
        "SpladePooling",
        "LogitScore",
        "MultiVectorMask",
    }
)
"""Modules that are understood; Dropout does nothing outside training."""

_REFUSED: dict[str, str] = {
    "LayerNorm": "a LayerNorm after the pooling",
    "CNN": "a convolution over token vectors",
    "LSTM": "a recurrent network over token vectors",
    "BoW": "bag-of-words vectors",
    "WordEmbeddings": "static word vectors",
    "WordWeights": "word weights",
    "StaticEmbedding": "static token vectors",
    "WeightedLayerPooling": "a weighted sum over layers",
    "CLIPModel": "an image and text model",
    "Router": "different modules for queries and documents",
    "Asym": "different modules for queries and documents",
    "SparseAutoEncoder": "a sparse autoencoder",
    "SparseStaticEmbedding": "static sparse vectors",
    "HierarchicalTokenPooling": "clustering of token vectors",
    "LambdaTokenPooling": "clustering of token vectors",
}


@dataclass(frozen=True, slots=True)
class Module:
    """One entry of modules.json.

    Attributes:
        kind: class name, such as `Pooling`.
        folder: its folder relative to the model folder; empty for the root.
        config: its settings.
        is_pylate: whether PyLate wrote it, whose defaults differ.
    """

    kind: str
    folder: str
    config: Document
    is_pylate: bool = False


def read_modules(folder: Path) -> tuple[Module, ...] | None:
    """Return the modules in order; None when there is no modules.json.

    Raises:
        ModelError: the file is damaged, or lists a module that cannot be computed.
    """
    path = folder / MODULES_FILE
    if not path.is_file():
        return None
    entries = read_json(path, MODULES_FILE)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise ModelError(f"{MODULES_FILE} holds no list of modules", "download the model again")
    return tuple(
        _read_module(folder, Document(f"{MODULES_FILE}[{i}]", entry)) for i, entry in enumerate(entries)
    )


def read_transformer_config(folder: Path, prefix: str) -> Document:
    """Return the Transformer module's settings, under whichever name they are kept.

    Args:
        folder: the model folder.
        prefix: path of the module's folder in it, with its slash; empty for the model folder itself.

    Raises:
        ModelError: the file is not JSON.
    """
    documents = [read_document(folder, prefix + name) for name in TRANSFORMER_CONFIGS]
    return next((document for document in documents if document.data), documents[0])


def _read_module(folder: Path, entry: Document) -> Module:
    kind = _kind(entry)
    path = entry.text("path")
    place = path.value.strip("/") if path else ""
    if ".." in Path(place).parts or Path(place).is_absolute():
        raise ModelError(
            f"{entry.source('path')} {place!r} leads out of the model folder", "correct the file"
        )
    prefix = f"{place}/" if place else ""
    if kind.endswith("Transformer"):
        config = read_transformer_config(folder, prefix)
    else:
        config = read_document(folder, prefix + "config.json")
    return Module(kind, place, config, str(entry.data["type"]).startswith("pylate."))


def _kind(entry: Document) -> str:
    type_id = entry.text("type")
    if type_id is None:
        raise ModelError(f"{entry.name} names no type", "download the model again")
    package, _, kind = type_id.value.rpartition(".")
    if package.partition(".")[0] not in ("sentence_transformers", "pylate"):
        raise ModelError(
            f"{type_id.source} {type_id.value!r} is Python code of the checkpoint, which is not run",
            "use a checkpoint without custom modules",
        )
    if kind in _REFUSED:
        raise ModelError(
            f"{type_id.source} {kind} ({_REFUSED[kind]}) is not supported",
            "encode this model with sentence-transformers",
        )
    if kind not in COMPUTED:
        raise ModelError(
            f"{type_id.source} {type_id.value!r} is unknown", f"known modules: {', '.join(sorted(COMPUTED))}"
        )
    return kind
