"""Which columns hold the texts, which are kept, and with which type when several files disagree."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import pyarrow as pa

from poolembed.config import InputConfig
from poolembed.errors import ConfigError, InputError
from poolembed.io.chunk import TextRole
from poolembed.io.parquet import METADATA_PREFIX, is_text
from poolembed.io.plan import Columns, ReadPlan

_METADATA_OF_COLUMNS = (
    b"ARROW:",
    b"pandas",
    b"huggingface",
    b"org.apache.spark.",
    b"parquet.",
    METADATA_PREFIX,
)
"""Beginnings of metadata keys that describe the columns of the file they came from, or an older run."""


def make_plan(config: InputConfig, roles: Sequence[TextRole], parts: Sequence[Columns]) -> ReadPlan:
    """Decide what is read.

    Args:
        config: the user's choice of columns; `text_field` is for the first role.
        roles: the texts every row must bring.
        parts: the columns of each file, in reading order.

    Raises:
        InputError: no column can be taken for a role, a named one does not exist, or types conflict.
        ConfigError: `columns` is empty or names a column twice.
    """
    schema = _unified(parts)
    if not schema.names and all(part.may_miss for part in parts):
        return _plan_without_columns(config, roles)
    fields = {
        role.name: _text_column(role, config.text_field if role is roles[0] else None, schema, parts)
        for role in roles
    }
    return ReadPlan(_kept(schema, config.columns), fields)


def _plan_without_columns(config: InputConfig, roles: Sequence[TextRole]) -> ReadPlan:
    # An input without a single record names no column, so the user's names are taken as they are.
    names = {role.name: role.candidates[0] for role in roles}
    if config.text_field is not None:
        names[roles[0].name] = config.text_field
    kept = config.columns if config.columns is not None else tuple(names.values())
    return ReadPlan(pa.schema([(name, pa.string()) for name in kept]), names)


def _text_column(role: TextRole, wanted: str | None, schema: pa.Schema, parts: Sequence[Columns]) -> str:
    if wanted is not None:
        if wanted not in schema.names:
            raise InputError(f"no column is named {wanted!r}", _suggestion(wanted, schema))
        column = wanted
    else:
        column = _default_text_column(role, schema, parts)
    for part in parts:
        if column in part.schema.names and column not in part.usable:
            kind = part.schema.field(column).type
            raise InputError(
                f"{part.label}: the column {column!r} holds {kind}, not strings",
                f"columns with strings: {', '.join(sorted(part.texts)) or 'none'}; --text-field names one",
            )
        if column not in part.schema.names and not part.may_miss:
            raise InputError(f"{part.label}: has no column {column!r}", _listed(part.schema))
    return column


def _default_text_column(role: TextRole, schema: pa.Schema, parts: Sequence[Columns]) -> str:
    for candidate in role.candidates:
        if candidate in schema.names:
            return candidate
    strings: list[str] = [
        name
        for name in schema.names
        if all(name in part.texts for part in parts if name in part.schema.names)
    ]
    if role.only_string_column and len(strings) == 1:
        return strings[0]
    if role.candidates == (role.name,) and not role.only_string_column:
        raise InputError(f"no column is named {role.name!r}", _suggestion(role.name, schema))
    wanted = " or ".join(repr(candidate) for candidate in role.candidates)
    raise InputError(f"no column {wanted} for the {role.name}", f"{_listed(schema)}; --text-field names one")


def _kept(schema: pa.Schema, columns: tuple[str, ...] | None) -> pa.Schema:
    if columns is None:
        return schema
    if not columns or len(set(columns)) != len(columns):
        raise ConfigError("--columns must name at least one column, and each only once")
    for name in columns:
        if name not in schema.names:
            raise InputError(f"no column is named {name!r}", _suggestion(name, schema))
    return pa.schema([schema.field(name) for name in columns], metadata=schema.metadata)


def _suggestion(name: str, schema: pa.Schema) -> str:
    close = get_close_matches(name, schema.names, n=1)
    return f"did you mean {close[0]!r}?" if close else _listed(schema)


def _listed(schema: pa.Schema, most: int = 50) -> str:
    names = [f"{field.name} ({field.type})" for field in schema][:most]
    return f"columns: {', '.join(names)}{', ...' if len(schema) > most else ''}"


def _unified(parts: Sequence[Columns]) -> pa.Schema:
    fields: dict[str, pa.Field] = {}
    origins: dict[str, str] = {}
    for part in parts:
        for field in part.schema:
            known = fields.get(field.name)
            if known is None:
                fields[field.name] = field
                origins[field.name] = part.label
                continue
            kind = common_type(known.type, field.type)
            if kind is None:
                raise InputError(
                    f"the column {field.name!r} holds {known.type} in {origins[field.name]} "
                    f"but {field.type} in {part.label}",
                    "convert one of the files, or leave the column out with --columns",
                )
            fields[field.name] = known.with_type(kind).with_nullable(known.nullable or field.nullable)
    final = [_finished(field, parts) for field in fields.values()]
    return pa.schema(final, metadata=_shared_metadata(part.schema.metadata or {} for part in parts))


def _finished(field: pa.Field, parts: Sequence[Columns]) -> pa.Field:
    if any(field.name not in part.schema.names for part in parts):
        field = field.with_nullable(nullable=True)
    if pa.types.is_null(field.type) and any(part.may_miss for part in parts):
        field = field.with_type(pa.string())
    return field


def _shared_metadata(each: Iterable[dict[bytes, bytes]]) -> dict[bytes, bytes]:
    items = [set(metadata.items()) for metadata in each]
    shared = set.intersection(*items) if items else set()
    return {key: value for key, value in sorted(shared) if not key.startswith(_METADATA_OF_COLUMNS)}


def common_type(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of both types exactly; None where there is none."""
    if first == second or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    if is_text(first) and is_text(second):
        return pa.large_string()
    if pa.types.is_integer(first) and pa.types.is_integer(second):
        return _common_integer(first, second)
    if _is_number(first) and _is_number(second):
        return _common_floating(first, second)
    return None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _common_integer(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    if pa.types.is_signed_integer(first) == pa.types.is_signed_integer(second):
        return first if first.bit_width > second.bit_width else second
    signed, unsigned = (first, second) if pa.types.is_signed_integer(first) else (second, first)
    width = max(signed.bit_width, 2 * unsigned.bit_width)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(width)


def _common_floating(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    # A double holds every integer of up to 32 bits, and every narrower float.
    widest = max((kind.bit_width for kind in (first, second) if pa.types.is_integer(kind)), default=0)
    return pa.float64() if widest <= 32 else None
