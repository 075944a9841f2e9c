"""The layers that make the token vectors of a late-interaction model smaller."""

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.dense import DenseSpec, read_dense
from poolembed.runner.spec.document import Declared, read_document
from poolembed.runner.spec.late_interaction import METADATA_FILE


def read_projection(checkpoint: Checkpoint, hidden_size: int) -> Declared[tuple[DenseSpec, ...]]:
    """Return the layers that make token vectors smaller.

    Args:
        checkpoint: the model.
        hidden_size: width of a token vector of the transformer.

    Raises:
        ModelError: there is none, its weights are missing, or it does not fit.
    """
    if checkpoint.modules is not None:
        modules = checkpoint.modules_of("Dense")
        layers = tuple(read_dense(checkpoint, module, "token_embeddings") for module in modules)
        source = "modules.json"
    else:
        layers, source = (_inline_projection(checkpoint, hidden_size),), checkpoint.weights.files[0]
    width = hidden_size
    for layer in layers:
        if layer.in_features != width:
            raise ModelError(
                f"{layer.folder or 'the projection'}: in_features is {layer.in_features}, "
                f"but what comes before is {width} wide",
                "download the model again",
            )
        width = layer.out_features
    return Declared(layers, source)


def _inline_projection(checkpoint: Checkpoint, hidden_size: int) -> DenseSpec:
    """Return Stanford's projection, which lies next to the encoder's weights as `linear.weight`."""
    shape = checkpoint.weights.shape("linear.weight")
    if checkpoint.weights.shapes is not None and shape is None:
        raise ModelError(
            f"{checkpoint.weights.files[0]} has no linear.weight, the projection of a ColBERT model",
            "download the model again",
        )
    size = read_document(checkpoint.folder, METADATA_FILE).integer("dim") or checkpoint.config.integer("dim")
    if shape is None and size is None:
        raise ModelError(
            f"{METADATA_FILE}: dim is missing, and pickled weights do not tell it",
            "convert them to safetensors",
        )
    rows, columns = shape if shape and len(shape) == 2 else (size.value if size else 0, hidden_size)
    return DenseSpec(
        folder=checkpoint.subfolder,
        files=checkpoint.weights.files,
        in_features=columns,
        out_features=rows,
        bias=False,
        activation="Identity",
    )
