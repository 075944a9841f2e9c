"""What an output of this tool says about itself."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from poolembed.errors import InputError
from poolembed.io.parquet import METADATA_PREFIX


def read_metadata(path: str) -> dict[str, str]:
    """Return what a run recorded in its output, without the prefix of the keys.

    Args:
        path: an output file, or a directory of parts, whose first one is read.

    Raises:
        InputError: it does not exist, is no Parquet file, or was not written by this tool.
    """
    file = Path(path)
    if file.is_dir():
        file = min(file.glob("*.parquet"), default=file)
    try:
        stored = pq.read_schema(file).metadata or {}
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{file}: cannot be read as a Parquet file: {error}") from error
    found = {
        key.removeprefix(METADATA_PREFIX).decode(): value.decode()
        for key, value in stored.items()
        if key.startswith(METADATA_PREFIX)
    }
    if not found:
        raise InputError(f"{file}: was not written by poolembed")
    return found
