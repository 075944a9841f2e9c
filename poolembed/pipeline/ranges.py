"""Where the bounds of int8 and uint8 vectors come from: an earlier output or run, or the first rows."""

from collections.abc import Mapping
from dataclasses import replace

from poolembed.config import RANGED_DTYPES, EmbedConfig
from poolembed.errors import ConfigError
from poolembed.io import read_metadata
from poolembed.model.embed import CALIBRATION_ROWS, Embed
from poolembed.model.quantize import Ranges
from poolembed.pipeline.row_texts import RowTexts

_MUST_AGREE = ("revision", "pooling", "activation", "dimensions")
"""What decides the values of a vector, and so what bounds belong to."""


def with_ranges(operation: Embed, config: EmbedConfig, rows: RowTexts, known: Mapping[str, str]) -> Embed:
    """Return an operation that has the bounds it needs.

    Args:
        operation: the operation without bounds.
        config: says which type is stored, and whether bounds are given.
        rows: the input, whose first rows are computed where no bounds are given.
        known: settings of the run that is gone on with; its bounds stay, whatever the first rows are now.

    Raises:
        InputError: the earlier output cannot be read, or no row has a vector.
        ConfigError: the earlier output has no bounds, or those of another model.
    """
    if config.output_dtype not in RANGED_DTYPES:
        return operation
    if config.ranges_from is None and not _differences(known, operation) and "ranges" in known:
        return _given(operation, known)
    if config.ranges_from is None:
        texts = rows.first(CALIBRATION_ROWS)
        return operation if texts is None else operation.calibrated(texts)
    metadata = read_metadata(config.ranges_from)
    if "ranges" not in metadata:
        raise ConfigError(
            f"{config.ranges_from} has no bounds of dimensions",
            f"take an output of `poolembed embed --output-dtype {config.output_dtype}`",
        )
    other = _differences(metadata, operation)
    if other:
        raise ConfigError(f"the bounds in {config.ranges_from} are of other vectors: {'; '.join(other)}")
    return _given(operation, metadata)


def _differences(metadata: Mapping[str, str], operation: Embed) -> list[str]:
    own = operation.metadata
    return [
        f"{key} {metadata.get(key)}, not {own[key]}" for key in _MUST_AGREE if metadata.get(key) != own[key]
    ]


def _given(operation: Embed, metadata: Mapping[str, str]) -> Embed:
    dimensions = int(operation.metadata["dimensions"])
    return replace(operation, ranges=Ranges.parse(metadata["ranges"], dimensions))
