"""Where a model runs and in which precision, from what the user asked and what the machine has."""

import torch

from poolembed.config import DType
from poolembed.errors import ConfigError

# Activations of these models leave the range of float16; their authors refuse it.
NEVER_FLOAT16 = ("gemma2", "gemma3", "gemma3_text", "glm4")

# Layers of eight bits are made of a model in float32.
_BY_NAME = {
    "int8": torch.float32,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def resolve_device(name: str) -> torch.device:
    """Return the device of that name.

    Args:
        name: `auto` (CUDA, else Apple's MPS, else the CPU), `cpu`, `cuda`, `cuda:N` or `mps`.

    Raises:
        ConfigError: this machine, or this build of torch, has no such device.
    """
    if name == "auto":
        if torch.cuda.is_available():  # pragma: no cover - needs CUDA
            return torch.device("cuda", 0)
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    device = torch.device(name)
    if device.type == "cuda":
        count = torch.cuda.device_count()
        if (device.index or 0) >= count:
            raise ConfigError(f"--device {name}: torch sees {count} CUDA devices", "use --device auto or cpu")
        return torch.device("cuda", device.index or 0)  # pragma: no cover - needs CUDA
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("--device mps: torch has no MPS device here", "use --device auto or cpu")
    return device


def resolve_dtype(name: DType, *, device: torch.device, stored: torch.dtype, model_type: str) -> torch.dtype:
    """Return the precision that the transformer runs in; heads and pooling always run in float32.

    `auto` never loses accuracy: float32 on the CPU and for float32 checkpoints, and the checkpoint's own
    half precision on a GPU.

    Args:
        name: `auto`, `float32`, `bfloat16`, `float16` or `int8`.
        device: where the model runs.
        stored: precision of the checkpoint's weights.
        model_type: the checkpoint's `model_type`.

    Raises:
        ConfigError: the model cannot run in the precision asked for.
    """
    if name == "int8" and device.type != "cpu":
        raise ConfigError(f"--dtype int8 is for the CPU, not for {device}", "use --dtype bfloat16")
    if name != "auto":
        dtype = _BY_NAME[name]
        if dtype is torch.float16 and model_type in NEVER_FLOAT16:
            raise ConfigError(
                f"{model_type} models overflow in float16", "use --dtype bfloat16 or --dtype float32"
            )
        return dtype
    if device.type != "cuda" or stored not in (torch.float16, torch.bfloat16):
        return torch.float32
    return torch.bfloat16 if model_type in NEVER_FLOAT16 else stored
