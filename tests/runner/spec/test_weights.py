from pathlib import Path

import numpy as np
import pytest

from poolembed.errors import ModelError
from poolembed.runner.spec.weights import describe_foreign_weights, find_weights
from tests.runner.spec.folders import Folder

# A regular file whose first bytes are mapped nowhere, so that reading them fails.
UNREADABLE = Path("/proc/self/mem")


def test_shapes_are_those_that_safetensors_wrote(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    tensors = {"a.weight": np.zeros((3, 2), np.float32), "b": np.zeros(5, np.float16)}
    numpy.save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    weights = find_weights(tmp_path)
    assert weights.files == ("model.safetensors",)
    assert weights.shapes == {"a.weight": (3, 2), "b": (5,)}
    assert weights.shape("nope", "b") == (5,)
    assert weights.shape("nope") is None
    assert weights.lacks("c.", "d.")
    assert not weights.lacks("weight")


def test_shards_are_read_together(tmp_path):
    folder = Folder(tmp_path)
    folder.write(
        "0_T/model.safetensors.index.json", {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    )
    folder.weights("0_T/one.safetensors", a=(1, 2)).weights("0_T/two.safetensors", b=(3,))
    weights = find_weights(tmp_path, "0_T")
    assert weights.files == ("0_T/one.safetensors", "0_T/two.safetensors")
    assert weights.shapes == {"a": (1, 2), "b": (3,)}


def test_safetensors_come_before_pickles_which_are_not_opened(tmp_path):
    folder = Folder(tmp_path).write("pytorch_model.bin", "anything")
    pickled = find_weights(tmp_path)
    assert (pickled.files, pickled.shapes, pickled.shape("a"), pickled.lacks("a")) == (
        ("pytorch_model.bin",),
        None,
        None,
        False,
    )
    folder.weights(a=(1,))
    assert find_weights(tmp_path).files == ("model.safetensors",)


@pytest.mark.parametrize("names", [{"a": "one.safetensors", "b": "two.safetensors"}, {}])
def test_a_missing_shard_is_named(tmp_path, names):
    folder = Folder(tmp_path).write("model.safetensors.index.json", {"weight_map": names})
    folder.weights("one.safetensors", a=(1, 2))
    with pytest.raises(
        ModelError, match=r"lists weight files that are missing: (two.safetensors|it lists none)"
    ):
        find_weights(tmp_path)


def test_no_weights_are_none(tmp_path):
    assert find_weights(tmp_path) is None
    assert describe_foreign_weights(tmp_path) == ""


@pytest.mark.skipif(not UNREADABLE.exists(), reason="needs a file that even root cannot read (Linux)")
def test_weights_that_the_system_does_not_give_are_an_error(tmp_path):
    (tmp_path / "model.safetensors").symlink_to(UNREADABLE)
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read"):
        find_weights(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "Git LFS pointer"),
        (b"", "no readable safetensors header"),
        (b"\xff" * 20, "no readable safetensors header"),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00[]", "no readable safetensors header"),
        (b'\x08\x00\x00\x00\x00\x00\x00\x00{"a": 1}', "no readable safetensors header"),
        (b'\x09\x00\x00\x00\x00\x00\x00\x00{"a": {}}', "no readable safetensors header"),
    ],
)
def test_a_damaged_header_is_an_error(tmp_path, content, message):
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match=rf"model.safetensors.*{message}"):
        find_weights(tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("model-q4.gguf", "GGUF"),
        ("onnx/model.onnx", "ONNX"),
        ("openvino/openvino_model.xml", "OpenVINO"),
        ("tf_model.h5", "TensorFlow"),
        ("flax_model.msgpack", "Flax"),
        ("weights.safetensors", "another name"),
        ("consolidated.bin", "another name"),
    ],
)
def test_weights_of_other_kinds_are_recognised(tmp_path, name, text):
    Folder(tmp_path).write(name, "")
    assert text in describe_foreign_weights(tmp_path)
