"""Evaluation of list, map and object literals, whose optional parts are left out if they have no value."""

from collections.abc import Sequence
from typing import Any

from ocf_server.cel.optional_values import Maybe
from ocf_server.cel.runtime import Frame, Run
from ocf_server.cel.values import EvaluationError, StructValue

__all__ = ["list_run", "map_run", "struct_run"]


def list_run(items: Sequence[tuple[Run, bool]]) -> Run:
    """Return the evaluation of a list literal.

    Args:
        items: The items, and whether they are optional.
    """

    def run(frame: Frame) -> list[Any]:
        frame.spend(len(items) + 1)
        return [value for item, is_optional in items for value in _values(item(frame), is_optional=is_optional)]

    return run


def map_run(entries: Sequence[tuple[Run, Run, bool]]) -> Run:
    """Return the evaluation of a map literal.

    Args:
        entries: The keys, the values, and whether the entries are optional.
    """

    def run(frame: Frame) -> dict[Any, Any]:
        frame.spend(len(entries) + 1)
        found: dict[Any, Any] = {}
        for key, value, is_optional in entries:
            name = _key(key(frame))
            for each in _values(value(frame), is_optional=is_optional):
                found[name] = each
        return found

    return run


def struct_run(kind: str, fields: Sequence[tuple[str, Run, bool]]) -> Run:
    """Return the evaluation of an object literal.

    Args:
        fields: The names and values of its fields, and whether they are optional.
    """

    def run(frame: Frame) -> StructValue:
        frame.spend(len(fields) + 1)
        parts = ((name, value(frame), is_optional) for name, value, is_optional in fields)
        return StructValue(
            kind, {name: each for name, value, is_optional in parts for each in _values(value, is_optional=is_optional)}
        )

    return run


def _values(value: Any, *, is_optional: bool) -> list[Any]:
    if not is_optional:
        return [value]
    if not isinstance(value, Maybe):
        raise EvaluationError("no such overload")
    return [value.value()] if value.is_present else []


def _key(value: Any) -> Any:
    if not isinstance(value, str | bool | int):
        raise EvaluationError("unsupported key type")
    return value
