"""Where the bounds of int8 and uint8 vectors come from: an earlier output, or the first rows."""

from dataclasses import replace

from poolembed.config import RANGED_DTYPES, EmbedConfig
from poolembed.errors import ConfigError
from poolembed.io import read_metadata
from poolembed.model.embed import CALIBRATION_ROWS, Embed
from poolembed.model.quantize import Ranges
from poolembed.pipeline.row_texts import RowTexts

_MUST_AGREE = ("revision", "pooling", "activation", "dimensions")
"""What decides the values of a vector, and so what bounds belong to."""


def with_ranges(operation: Embed, config: EmbedConfig, rows: RowTexts) -> Embed:
    """Return an operation that has the bounds it needs.

    Args:
        operation: the operation without bounds.
        config: says which type is stored, and whether bounds are given.
        rows: the input, whose first rows are computed where no bounds are given.

    Raises:
        InputError: the earlier output cannot be read, or no row has a vector.
        ConfigError: the earlier output has no bounds, or those of another model.
    """
    if config.output_dtype not in RANGED_DTYPES:
        return operation
    if config.ranges_from is None:
        texts = rows.first(CALIBRATION_ROWS)
        return operation if texts is None else operation.calibrated(texts)
    metadata, own = read_metadata(config.ranges_from), operation.metadata
    if "ranges" not in metadata:
        raise ConfigError(
            f"{config.ranges_from} has no bounds of dimensions",
            f"take an output of `poolembed embed --output-dtype {config.output_dtype}`",
        )
    other = [
        f"{key} {metadata.get(key)}, not {own[key]}" for key in _MUST_AGREE if metadata.get(key) != own[key]
    ]
    if other:
        raise ConfigError(f"the bounds in {config.ranges_from} are of other vectors: {'; '.join(other)}")
    return replace(operation, ranges=Ranges.parse(metadata["ranges"], int(own["dimensions"])))
