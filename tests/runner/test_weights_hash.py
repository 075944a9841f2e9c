"""The name of a model without a revision is that of its weights' bytes."""

import hashlib
from types import SimpleNamespace

from poolembed.runner.weights_hash import weights_hash


def spec_of(folder, **files):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return SimpleNamespace(folder=folder, weight_files=tuple(files))


def test_it_is_the_sha256_of_all_files_in_order(tmp_path):
    # More than a block, so that blocks are put together.
    first, second = b"a" * (3 << 20), b"b" * 7
    found = weights_hash(spec_of(tmp_path, one=first, two=second))
    assert found == "sha256:" + hashlib.sha256(first + second).hexdigest()


def test_one_other_byte_gives_another_name(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    one = weights_hash(spec_of(tmp_path / "x", file=b"abc"))
    other = weights_hash(spec_of(tmp_path / "y", file=b"abd"))
    assert one != other
    assert one == weights_hash(spec_of(tmp_path / "y", file=b"abc"))
