"""Which weight files a folder holds and which tensors they contain, by their headers alone.

Never reads a tensor: of safetensors only the header, of pickled files only the name.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from poolembed.errors import ModelError
from poolembed.runner.spec.document import read_document

_SAFETENSORS = "model.safetensors"
_PICKLE = "pytorch_model.bin"
_HEADER_LIMIT_BYTES = 100 * 1024 * 1024

_FOREIGN_FORMATS: dict[str, str] = {
    "*.gguf": "GGUF weights, which llama.cpp reads",
    "**/*.onnx": "ONNX weights",
    "**/openvino_model.xml": "OpenVINO weights",
    "tf_model.h5": "TensorFlow weights",
    "flax_model.msgpack": "Flax weights",
    "*.safetensors": "safetensors under another name than model.safetensors",
    "*.bin": "pickled weights under another name than pytorch_model.bin",
}


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight files of a module and the tensors in them.

    Attributes:
        files: names relative to the model folder.
        shapes: shape of every tensor by name; None for pickled files, which are not opened.
    """

    files: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]] | None

    def shape(self, *names: str) -> tuple[int, ...] | None:
        """Return the shape of the first of `names` that exists; None when none does or it is unknown."""
        return (
            next((self.shapes[name] for name in names if name in self.shapes), None) if self.shapes else None
        )

    def layers(self, stem: str) -> tuple[str, ...]:
        """Return the names `stem`.N.weight there are, in the order of the numbers N."""
        prefix, suffix = f"{stem}.", ".weight"
        found = [
            int(number)
            for name in self.shapes or ()
            if name.startswith(prefix) and name.endswith(suffix)
            if (number := name[len(prefix) : -len(suffix)]).isdigit()
        ]
        return tuple(f"{prefix}{number}{suffix}" for number in sorted(found))

    def lacks(self, *fragments: str) -> bool:
        """Return whether it is certain that no tensor's name contains any of `fragments`."""
        if self.shapes is None:
            return False
        return not any(fragment in name for name in self.shapes for fragment in fragments)


def find_weights(folder: Path, subfolder: str = "") -> Weights | None:
    """Return the weights in `folder / subfolder`, safetensors before pickled files; None without any.

    Args:
        folder: the model folder.
        subfolder: a folder in it; empty for the model folder itself.

    Raises:
        ModelError: an index names a file that is missing, or a safetensors header is damaged.
    """
    prefix = f"{subfolder}/" if subfolder else ""
    for single, is_safe in ((_SAFETENSORS, True), (_PICKLE, False)):
        names: tuple[str, ...] = ()
        if (folder / prefix / single).is_file():
            names = (prefix + single,)
        elif (folder / prefix / f"{single}.index.json").is_file():
            names = _sharded(folder, prefix, f"{single}.index.json")
        if names:
            return Weights(names, _merged_shapes(folder, names) if is_safe else None)
    return None


def describe_foreign_weights(folder: Path) -> str:
    """Return what kinds of weights a folder holds that are not read; empty when none."""
    return ", ".join(text for pattern, text in _FOREIGN_FORMATS.items() if any(folder.glob(pattern)))


def _sharded(folder: Path, prefix: str, index_name: str) -> tuple[str, ...]:
    index = read_document(folder, prefix + index_name)
    listed = index.section("weight_map").data
    names = tuple(sorted({prefix + str(name) for name in listed.values()}))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing or not names:
        raise ModelError(
            f"{index.name} lists weight files that are missing: {', '.join(missing) or 'it lists none'}",
            "download the model again",
        )
    return names


def _merged_shapes(folder: Path, names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        shapes.update(_read_header(folder / name, name))
    return shapes


def _read_header(path: Path, name: str) -> dict[str, tuple[int, ...]]:
    """Return tensor shapes from the header: eight bytes of length, then JSON (the safetensors format)."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            header = file.read(length) if length <= _HEADER_LIMIT_BYTES else b""
    except OSError as error:
        raise ModelError(f"{name} cannot be read: {error}", "check its permissions") from error
    if start == b"version ":
        raise ModelError(f"{name} is a Git LFS pointer, not the weights", "fetch it with `git lfs pull`")
    try:
        entries = json.loads(header)
        return {key: tuple(entry["shape"]) for key, entry in entries.items() if key != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(f"{name} has no readable safetensors header", "download the model again") from error
