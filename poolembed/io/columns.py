"""Which columns hold the texts, which are kept, and with which type when several files disagree."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

import pyarrow as pa

from poolembed.config import InputConfig
from poolembed.errors import ConfigError, InputError
from poolembed.io.arrow_texts import is_text
from poolembed.io.chunk import TextRole
from poolembed.io.parquet import METADATA_PREFIX
from poolembed.io.plan import Columns, ReadPlan
from poolembed.io.policy import RowPolicy

ID_COLUMN = "id"
"""Holds the name of each row where the user says nothing else."""

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
        config: the user's choice of columns.
        roles: the texts every row must bring.
        parts: the columns of each file, in reading order.

    Returns:
        The kept columns with the types of all files together, and the column of each role.

    Raises:
        InputError: no column can be taken for a role, a named one does not exist, or types conflict.
        ConfigError: `columns` is empty or names a column twice.
    """
    schema = _unified(parts)
    if not schema.names and all(part.may_miss for part in parts):
        kept, fields = _without_columns(config, roles)
    else:
        kept, fields = _kept(schema, config.columns), _text_columns(config, roles, schema, parts)
    return ReadPlan(
        kept,
        fields,
        _lists(roles),
        composed=any(role.is_column for role in roles),
        id_column=_id_column(config, schema),
        policy=RowPolicy.of(config),
    )


def _id_column(config: InputConfig, schema: pa.Schema) -> str | None:
    name = config.id_field
    if name is not None and schema.names and name not in schema.names:
        raise InputError(f"no column is named {name!r}", _suggestion(name, schema))
    if name is None and ID_COLUMN not in schema.names:
        if config.on_duplicate_id != "keep" and schema.names:
            raise InputError(
                f"--on-duplicate-id {config.on_duplicate_id} needs ids, and no column is named {ID_COLUMN!r}",
                f"{_listed(schema)}; --id-field names one",
            )
        return None
    return ID_COLUMN if name is None else name


def _without_columns(config: InputConfig, roles: Sequence[TextRole]) -> tuple[pa.Schema, dict[str, str]]:
    # An input without a single record names no column, so the user's names are taken as they are.
    names = {role.name: config.column_of(role.name) or role.candidates[0] for role in roles}
    kept = config.columns if config.columns is not None else tuple(names.values())
    lists = {names[role] for role in _lists(roles)}
    schema = pa.schema([(name, pa.list_(pa.string()) if name in lists else pa.string()) for name in kept])
    return schema, names


def _lists(roles: Sequence[TextRole]) -> frozenset[str]:
    return frozenset(role.name for role in roles if role.is_list)


def _text_columns(
    config: InputConfig, roles: Sequence[TextRole], schema: pa.Schema, parts: Sequence[Columns]
) -> dict[str, str]:
    chosen = {role.name: role.name for role in roles if role.is_column} | {
        role.name: name for role in roles if (name := config.column_of(role.name)) is not None
    }
    for name in chosen.values():
        if name not in schema.names:
            raise InputError(f"no column is named {name!r}", _suggestion(name, schema))
    fields = chosen | _default_columns([role for role in roles if role.name not in chosen], schema, parts)
    for role in roles:
        _check_column(role, fields[role.name], parts)
    return {role.name: fields[role.name] for role in roles}


def _check_column(role: TextRole, column: str, parts: Sequence[Columns]) -> None:
    wanted = "lists of texts" if role.is_list else "strings"
    for part in parts:
        if column not in part.schema.names:
            if not part.may_miss:
                raise InputError(f"{part.label}: has no column {column!r}", _listed(part.schema))
        elif column not in (part.lists if role.is_list else part.usable):
            strings = f"columns with strings: {', '.join(sorted(part.texts)) or 'none'}"
            hint = "lists hold strings, or objects with `text`" if role.is_list else strings
            raise InputError(
                f"{part.label}: the column {column!r} holds {part.schema.field(column).type}, not {wanted}",
                f"{hint}; {role.option} names one",
            )


def _default_columns(
    roles: Sequence[TextRole], schema: pa.Schema, parts: Sequence[Columns]
) -> dict[str, str]:
    """Return the first of the candidates that are all there; those of several roles belong together."""
    if not roles:
        return {}
    known = [dict(zip((role.name for role in roles), names, strict=True)) for names in _candidates(roles)]
    for fields in known:
        if set(fields.values()) <= set(schema.names):
            return fields
    strings: list[str] = [
        name
        for name in schema.names
        if all(name in part.texts for part in parts if name in part.schema.names)
    ]
    if len(roles) == 1 and roles[0].only_string_column and len(strings) == 1:
        return {roles[0].name: strings[0]}
    wanted = " or ".join(" with ".join(map(repr, fields.values())) for fields in known)
    raise InputError(
        f"no column {wanted} for the {' and the '.join(role.name for role in roles)}",
        f"{_listed(schema)}; {' and '.join(role.option for role in roles)} "
        f"{'names one' if len(roles) == 1 else 'name them'}",
    )


def _candidates(roles: Sequence[TextRole]) -> Iterator[tuple[str, ...]]:
    return zip(*(role.candidates for role in roles), strict=True)


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
    """Return the type that holds the values of `first` and of `second` exactly; None where there is none."""
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
