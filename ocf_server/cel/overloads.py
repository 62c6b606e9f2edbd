"""Overloads of functions: signatures, and the selection of an overload by the types of the arguments.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#overloading.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf_server.cel.types import (
    ANY,
    AUTHORIZER_TYPES,
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    FORMAT,
    INT,
    IP,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    UNRESOLVED,
    URL,
    CelType,
    list_of,
    map_of,
    optional_of,
    variable,
)
from ocf_server.cel.values import EvaluationError, kind_name

__all__ = ["Function", "chosen", "equivalent", "fitting", "joined", "overload"]

_WORDS: Final = {
    "any": ANY,
    "bool": BOOL,
    "bytes": BYTES,
    "cidr": CIDR,
    "double": DOUBLE,
    "duration": DURATION,
    "format": FORMAT,
    "int": INT,
    "ip": IP,
    "null": NULL,
    "quantity": QUANTITY,
    "semver": SEMVER,
    "string": STRING,
    "timestamp": TIMESTAMP,
    "type": TYPE,
    "uint": UINT,
    "url": URL,
    "A": variable("A"),
    "B": variable("B"),
    **AUTHORIZER_TYPES,
}
_LIST: Final = re.compile(r"list\((.*)\)")
_OPTIONAL: Final = re.compile(r"optional\((.*)\)")
_MAP: Final = re.compile(r"map\((\w+), (.*)\)")


@dataclass(frozen=True, slots=True)
class Function:
    """An overload of a function.

    Args:
        member: Whether it is called with a target, which is its first argument.
        dynamic: Whether only an argument of the type `dyn` selects it.
    """

    name: str
    member: bool
    takes: tuple[CelType, ...]
    gives: CelType
    run: Callable[..., Any]
    dynamic: bool = False


def overload(text: str, run: Callable[..., Any], *, dynamic: bool = False) -> Function:
    """Return an overload with a signature.

    Args:
        text: The signature: `size: string -> int`, or with a target `string on trim -> string`.
        dynamic: Whether only an argument of the type `dyn` selects it.

    Example:
        >>> print(*overload("list(A) on indexOf: A -> int", list.index).takes)
        list(A) A
    """
    head, _, gives = text.rpartition(" -> ")
    before, _, rest = head.rpartition(" on ")
    name, _, arguments = rest.partition(": ")
    takes = [before] if before else []
    takes += [word for word in re.split(r", (?![^(]*\))", arguments) if word]
    return Function(name.removesuffix(":"), bool(before), tuple(map(_kind, takes)), _kind(gives), run, dynamic)


def _kind(text: str) -> CelType:
    if found := _LIST.fullmatch(text):
        return list_of(_kind(found[1]))
    if found := _OPTIONAL.fullmatch(text):
        return optional_of(_kind(found[1]))
    if found := _MAP.fullmatch(text):
        return map_of(_kind(found[1]), _kind(found[2]))
    return _WORDS[text]


def _may_be_null(kind: CelType) -> bool:
    return kind.fields is not None or kind in (TIMESTAMP, DURATION, NULL)


def joined(left: CelType, right: CelType) -> CelType | None:
    """Return the common type of two types; None if there is no such type."""
    for one, other in ((left, right), (right, left)):
        if one.unresolved or (one == NULL and _may_be_null(other)):
            return other
    if ANY in (left, right):
        return ANY
    if left.name == right.name == TYPE.name:
        return TYPE
    if left.name != right.name or len(left.of) != len(right.of):
        return None
    below = [joined(*pair) for pair in zip(left.of, right.of, strict=True)]
    if any(kind is None for kind in below):
        return None
    return CelType(left.name, tuple(kind for kind in below if kind), left.fields) if below else left


def equivalent(left: CelType, right: CelType) -> bool:
    """Return whether two types are the same, with parameters that are the same or not known."""
    if left.name != right.name or len(left.of) != len(right.of):
        return False
    return all(ANY in pair or equivalent(*pair) for pair in zip(left.of, right.of, strict=True))


def _fits(wanted: CelType, given: CelType, bound: dict[str, CelType]) -> bool:
    if wanted.free:
        known = bound.get(wanted.name, given)
        both = joined(known, given)
        if both is not None:
            bound[wanted.name] = both
        return both is not None
    if ANY in (wanted, given):
        return True
    if wanted.of and wanted.name == given.name:
        return all(_fits(*pair, bound) for pair in zip(wanted.of, given.of, strict=True))
    return joined(wanted, given) is not None


def _filled(kind: CelType, bound: dict[str, CelType]) -> CelType:
    if kind.free:
        return bound.get(kind.name, UNRESOLVED)
    return CelType(kind.name, tuple(_filled(below, bound) for below in kind.of), kind.fields) if kind.of else kind


def fitting(functions: Sequence[Function], given: Sequence[CelType]) -> tuple[list[Function], CelType]:
    """Return the overloads that accept arguments of some types.

    Returns:
        The matching overloads, and the type of their results: `dyn` if the types differ.
    """
    found: list[Function] = []
    gives: list[CelType] = []
    for function, bound in _bound(functions, given):
        found.append(function)
        gives.append(_filled(function.gives, bound))
    return found, gives[0] if gives and all(kind == gives[0] for kind in gives) else ANY


def _bound(functions: Sequence[Function], given: Sequence[CelType]) -> Iterator[tuple[Function, dict[str, CelType]]]:
    for function in functions:
        bound: dict[str, CelType] = {}
        if function.dynamic and ANY not in given:
            continue
        if len(function.takes) == len(given) and all(
            _fits(wanted, kind, bound) for wanted, kind in zip(function.takes, given, strict=True)
        ):
            yield function, bound


def chosen(functions: Sequence[Function], values: Sequence[Any]) -> Function:
    """Return the overload for the run-time types of the arguments.

    Raises:
        EvaluationError: If no overload matches.
    """
    for function in functions:
        if all(map(_takes, function.takes, values)):
            return function
    raise EvaluationError(f"no such overload{_call_text(functions[0], values)}")


def _call_text(function: Function, values: Sequence[Any]) -> str:
    """Return the part of a call that a real API server includes in its error text."""
    name = function.name
    if name == "_[_]":
        raise EvaluationError(f"no such key: {values[1]}")
    match values:
        case [_]:
            return "" if name in ("!_", "-_") else f": {name}"
        case [left, _]:
            return f": {name}" if left is None and not function.member else ""
        case _:
            return f": {name}({', '.join(map(kind_name, values))})"


def _takes(wanted: CelType, value: Any) -> bool:
    return wanted.free or wanted == ANY or wanted.name == kind_name(value)
