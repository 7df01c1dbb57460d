"""Dataclasses from plain mappings, with errors that name the key, the place and the nearest valid name."""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

Config = TypeVar("Config")


def from_mapping(kind: type[Config], values: Mapping[str, Any], where: str) -> Config:
    """Build the dataclass `kind` from `values`; nested dataclasses from nested mappings.

    where: how to call this place in an error, e.g. `systems.base.model`.
    Raises ValueError for an unknown or missing key, a value of the wrong type or outside a `Literal`.
    """
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}
    for key in values:
        if key not in fields:
            raise ValueError(
                f"{where}: unknown key `{key}`{nearest(key, fields)}; valid keys: {', '.join(sorted(fields))}"
            )
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and name not in values:
            raise ValueError(f"{where}: key `{name}` is missing")
    return kind(**{key: _convert(hints[key], value, f"{where}.{key}") for key, value in values.items()})


def nearest(name: str, valid: typing.Iterable[str]) -> str:
    """` (did you mean ...?)` for the closest valid name, or nothing."""
    close = difflib.get_close_matches(name, list(valid), n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, choices = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in choices:
            return None
        return _convert(next(choice for choice in choices if choice is not type(None)), value, where)
    if origin is typing.Literal:
        if value not in choices:
            suggestion = nearest(str(value), map(str, choices))
            raise ValueError(f"{where}: found {value!r}, expected one of {', '.join(map(str, choices))}{suggestion}")
        return value
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: found {value!r}, expected a mapping")
        return from_mapping(hint, value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is not bool and isinstance(value, bool)):
        raise ValueError(f"{where}: found {value!r}, expected a value of type {hint.__name__}")
    return value
