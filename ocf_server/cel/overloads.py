"""Overloads of functions: signatures, and the selection of an overload by the types of the arguments.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#overloading.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf_server.cel.assignability import Bindings
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
    URL,
    CelType,
    list_of,
    map_of,
    optional_of,
    variable,
)
from ocf_server.cel.values import EvaluationError, kind_name

__all__ = ["Function", "chosen", "fitting", "overload"]

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


def fitting(
    functions: Sequence[Function], given: Sequence[CelType], bindings: Bindings
) -> tuple[list[Function], CelType]:
    """Return the overloads that accept arguments of some types.

    Args:
        bindings: The types of type variables; those of the arguments are added to it.

    Returns:
        The matching overloads, and the type of their results: `dyn` if the types differ.
    """
    found: list[Function] = []
    gives: CelType | None = None
    for function in functions:
        if function.dynamic and not any(bindings.resolved(kind).is_open for kind in given):
            continue
        result, *takes = bindings.instantiated([function.gives, *function.takes])
        if not bindings.assign(given, takes):
            continue
        found.append(function)
        kind = bindings.resolved(result)
        gives = kind if gives is None or gives == kind else ANY
    return found, gives or ANY


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
