"""A name for the contents of a model folder, for models that have no revision."""

import hashlib

from poolembed.runner.spec import ModelSpec

_BLOCK_BYTES = 1 << 20


def weights_hash(spec: ModelSpec) -> str:
    """Return the SHA-256 of the transformer's weights, as `sha256:` and hexadecimal digits."""
    digest = hashlib.sha256()
    for name in spec.weight_files:
        with (spec.folder / name).open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    return f"sha256:{digest.hexdigest()}"
