"""Dense layers after the pooling: sizes, activation, and that their weights are there."""

from dataclasses import dataclass

from poolembed.errors import ModelError
from poolembed.runner.spec.checkpoint import Checkpoint
from poolembed.runner.spec.document import Declared
from poolembed.runner.spec.modules import Module
from poolembed.runner.spec.weights import Weights, find_weights

WEIGHT_NAMES = ("linear.weight", "weight", "dense.weight")
BIAS_NAMES = ("linear.bias", "bias", "dense.bias")

ACTIVATIONS = frozenset(
    {
        "CELU",
        "ELU",
        "GELU",
        "Hardshrink",
        "Hardsigmoid",
        "Hardswish",
        "Hardtanh",
        "Identity",
        "LeakyReLU",
        "LogSigmoid",
        "Mish",
        "ReLU",
        "ReLU6",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softplus",
        "Softshrink",
        "Softsign",
        "Tanh",
        "Tanhshrink",
    }
)
"""Element-wise classes of torch.nn that need no argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseSpec:
    """One linear layer with activation.

    Attributes:
        folder: where its weights are, relative to the model folder.
        files: its weight files, relative to the model folder.
        in_features: width of its input.
        out_features: width of its output.
        bias: whether it has a bias.
        activation: class of torch.nn applied to its output, `Identity` for none.
    """

    folder: str
    files: tuple[str, ...]
    in_features: int
    out_features: int
    bias: bool
    activation: str


def read_dense(checkpoint: Checkpoint, module: Module, input_name: str) -> DenseSpec:
    """Return a Dense module.

    Args:
        checkpoint: the model.
        module: its entry in modules.json.
        input_name: what it must take: `sentence_embedding` or `token_embeddings`.

    Raises:
        ModelError: sizes, weights or activation are missing or not understood.
    """
    config = module.config
    residual = config.flag("use_residual")
    if residual and residual.value:
        raise ModelError(f"{residual.source}: a residual Dense is not supported", "use sentence-transformers")
    for key in ("module_input_name", "module_output_name"):
        name = config.text(key)
        if name and name.value != input_name:
            raise ModelError(
                f"{name.source} is {name.value!r}, expected {input_name!r}",
                "encode it with sentence-transformers",
            )
    sizes = [config.integer(key) for key in ("in_features", "out_features")]
    if sizes[0] is None or sizes[1] is None:
        raise ModelError(
            f"{config.name}: in_features or out_features is missing", "download the module's folder again"
        )
    bias = config.flag("bias")
    weights = find_weights(checkpoint.folder, module.folder)
    if weights is None:
        raise ModelError(
            f"{module.folder} declares a Dense layer but holds no model.safetensors and no pytorch_model.bin",
            "download the module's folder again",
        )
    dense = DenseSpec(
        folder=module.folder,
        files=weights.files,
        in_features=sizes[0].value,
        out_features=sizes[1].value,
        bias=bias.value if bias else True,
        activation=_activation(module),
    )
    _check_shapes(weights, dense)
    return dense


def class_name(declared: Declared[str]) -> str:
    """Return the class of torch.nn that a dotted name stands for.

    Raises:
        ModelError: it is code from elsewhere.
    """
    package, _, name = declared.value.rpartition(".")
    if not (package == "torch.nn" or package.startswith("torch.nn.modules")):
        raise ModelError(
            f"{declared.source} is {declared.value!r}, which is not one of torch.nn's modules",
            "activations are restricted to torch.nn.modules",
        )
    return name


def _activation(module: Module) -> str:
    declared = module.config.text("activation_function")
    if declared is None:
        # sentence-transformers constructs Dense with Tanh, PyLate without activation.
        return "Identity" if module.is_pylate else "Tanh"
    name = class_name(declared)
    if name not in ACTIVATIONS:
        raise ModelError(
            f"{declared.source}: the activation {name} is not supported",
            f"known: {', '.join(sorted(ACTIVATIONS))}",
        )
    return name


def _check_shapes(weights: Weights, dense: DenseSpec) -> None:
    if weights.shapes is None:
        return
    shape = weights.shape(*WEIGHT_NAMES)
    if shape != (dense.out_features, dense.in_features):
        raise ModelError(
            f"{weights.files[0]}: the weight has shape {shape}, {dense.folder}/config.json declares "
            f"{(dense.out_features, dense.in_features)}",
            "download the module's folder again",
        )
    if dense.bias and weights.shape(*BIAS_NAMES) is None:
        raise ModelError(
            f"{weights.files[0]} has no bias, {dense.folder}/config.json declares one",
            "correct its config.json",
        )
