"""sentence-transformers with one of its backends: torch, ONNX Runtime (float32, int8) or OpenVINO."""

import json
import shutil
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

from benchmarks.workers.protocol import Compute, Rows, arguments, serve


def load() -> tuple[Compute, dict[str, str]]:
    """Return a model's `encode` or `predict` at a batch size."""
    told = arguments()
    torch.set_num_threads(told.threads)
    make: Callable[..., Any] = CrossEncoder if told.kind == "pairs" else SentenceTransformer
    if told.backend == "torch":
        model = make(
            str(told.model),
            device="cpu",
            local_files_only=True,
            model_kwargs={"dtype": getattr(torch, told.dtype)},
        )
    else:
        folder, file_name = converted(make, told.model, told.backend, told.cache)
        given = {"file_name": file_name, **session(told.backend, told.threads)}
        backend = "openvino" if told.backend == "openvino" else "onnx"
        model = make(str(folder), backend=backend, device="cpu", local_files_only=True, model_kwargs=given)

    def compute(rows: Rows, batch_size: int | None) -> npt.NDArray[np.float32]:
        size = batch_size or 32
        if told.kind == "pairs":
            return np.asarray(model.predict(rows, batch_size=size, show_progress_bar=False))
        return np.asarray(model.encode(rows, batch_size=size, show_progress_bar=False))

    return compute, {name: version(name) for name in packages(told.backend)}


def packages(backend: str) -> list[str]:
    """Return the distributions that decide the speed of a backend."""
    engine = {"torch": [], "openvino": ["openvino"]}.get(backend, ["onnxruntime"])
    return ["sentence-transformers", "transformers", "torch", *engine]


def session(backend: str, threads: int) -> dict[str, Any]:
    """Return the arguments that hold an engine to `threads` threads."""
    if backend == "openvino":
        return {
            "ov_config": {
                "INFERENCE_NUM_THREADS": threads,
                "PERFORMANCE_HINT": "THROUGHPUT",
                "NUM_STREAMS": 1,
            }
        }
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return {"provider": "CPUExecutionProvider", "session_options": options}


def converted(make: Callable[..., Any], model: Path, backend: str, cache: Path) -> tuple[Path, str]:
    """Return a folder with the model in the form of a backend, made when it is not there, and its file.

    `backend` is `openvino`, `onnx`, or `onnx-` with the name of sentence-transformers' quantization.
    """
    kind, _, quantization = backend.partition("-")
    folder = cache / f"{model.name}-{kind}"
    plain = f"{kind}/{kind}_model.xml" if kind == "openvino" else f"{kind}/model.onnx"
    if not (folder / plain).is_file():
        exported = make(str(model), backend=kind, device="cpu", model_kwargs={"export": True})
        exported.save_pretrained(str(folder))
        # Of float32 the export keeps nothing that the next load would mistake for it.
        (folder / "model.safetensors").unlink(missing_ok=True)
    if not quantization:
        return folder, plain
    found = sorted((folder / kind).glob(f"model_q*int8_{quantization}.onnx"))
    if not found:
        found = [quantized(make, folder, plain, quantization)]
    return folder, f"{kind}/{found[0].name}"


def quantized(make: Callable[..., Any], folder: Path, plain: str, quantization: str) -> Path:
    """Write the dynamically quantized model beside the plain one and return its file."""
    from sentence_transformers import export_dynamic_quantized_onnx_model

    model = make(str(folder), backend="onnx", device="cpu", model_kwargs={"file_name": plain})
    apart = folder.with_name(folder.name + "-quantized")
    export_dynamic_quantized_onnx_model(model, quantization, str(apart))
    # Apart, because the export also writes a config.json that says less than the model's own.
    [made] = apart.rglob("model_q*int8_*.onnx")
    target = folder / "onnx" / made.name
    shutil.move(made, target)
    shutil.rmtree(apart)
    if "model_type" not in json.loads((folder / "config.json").read_text("utf-8")):
        raise RuntimeError(f"{folder}/config.json lost its model_type")
    return target


if __name__ == "__main__":
    serve(load)
