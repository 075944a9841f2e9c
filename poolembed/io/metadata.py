"""What an output of this tool says about itself."""

from pathlib import Path

import pyarrow as pa

from poolembed.errors import InputError
from poolembed.io.formats import FORMATS, format_of
from poolembed.io.names import PARTS_PATTERN
from poolembed.io.parquet import METADATA_PREFIX


def read_metadata(path: str) -> dict[str, str]:
    """Return what a run recorded in its output, without the prefix of the keys.

    Args:
        path: an output file of any format, or a directory of parts, whose first one is read.

    Raises:
        InputError: it does not exist, is of no known format, or was not written by this tool.
    """
    file = Path(path)
    if file.is_dir():
        parts = [part for part in sorted(file.glob(PARTS_PATTERN)) if format_of(part) is not None]
        file = parts[0] if parts else file
    kind = format_of(file) or FORMATS["parquet"]
    try:
        stored = kind.metadata(file)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{file}: cannot be read as an output of poolembed: {error}") from error
    found = {
        key.removeprefix(METADATA_PREFIX).decode(): value.decode()
        for key, value in stored.items()
        if key.startswith(METADATA_PREFIX)
    }
    if not found:
        raise InputError(f"{file}: was not written by poolembed")
    return found
