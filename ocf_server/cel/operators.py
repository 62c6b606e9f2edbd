"""Operators of CEL; integers have 64 bits.

Source: https://github.com/google/cel-spec/blob/master/doc/langdef.md#list-of-standard-definitions.
"""

import math
from collections.abc import Callable
from typing import Any, Final

from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.values import EvaluationError, Items, Uint, equal, require_valid

__all__ = ["OPERATORS", "natural", "whole"]

_LEAST, _MOST = -(2**63), 2**63 - 1


def whole(value: int) -> int:
    """Return an integer after a check of its range.

    Raises:
        EvaluationError: If it needs more than 64 bits.
    """
    if not _LEAST <= value <= _MOST:
        raise EvaluationError("integer overflow")
    return value


def natural(value: int) -> Uint:
    """Return an unsigned integer after a check of its range.

    Raises:
        EvaluationError: If it is negative or needs more than 64 bits.
    """
    if not 0 <= value < 2**64:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


def _natural(run: Callable[[int, int], int]) -> Callable[[int, int], Uint]:
    return lambda left, right: natural(run(int(left), int(right)))


def _divided(left: int, right: int) -> int:
    """Return the quotient of two integers, rounded towards zero."""
    if right == 0:
        raise EvaluationError("division by zero")
    return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)


def _rest(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _ratio(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _float(run: Callable[[float, float], float]) -> Callable[[float, float], float]:
    def never_raising(left: float, right: float) -> float:
        try:
            return run(left, right)
        except OverflowError:
            return math.inf

    return never_raising


def _moment(run: Callable[[Any, Any], Any], text: str) -> Callable[[Any, Any], Any]:
    def within(left: Any, right: Any) -> Any:
        try:
            return run(left, right)
        except OverflowError:
            raise EvaluationError(text) from None

    return within


def _joined(left: list[Any], right: list[Any]) -> list[Any]:
    return left.joined(right) if isinstance(left, Items) else left + right


def _indexed(items: list[Any], index: int) -> Any:
    if not 0 <= index < len(items):
        raise EvaluationError(f"index out of bounds: {index}")
    return require_valid(items[index])


def _found(values: dict[Any, Any], key: Any) -> Any:
    if not _has(key, values):
        raise EvaluationError(f"no such key: {key}")
    return require_valid(values[key])


def _has(key: Any, values: dict[Any, Any]) -> bool:
    if not isinstance(key, str | bool | int | float):
        raise EvaluationError("unsupported key type")
    return key in values


def _number_of(index: float) -> int:
    if not float(index).is_integer():
        raise EvaluationError(f"unsupported index value {index} in list")
    return int(index)


_COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": lambda left, right: left < right,
    "_<=_": lambda left, right: left <= right,
    "_>_": lambda left, right: left > right,
    "_>=_": lambda left, right: left >= right,
}
_ORDERED: Final = (
    *(f"{left}, {right}" for left in ("int", "uint", "double") for right in ("int", "uint", "double")),
    *("bool, bool", "string, string", "bytes, bytes"),
    *("timestamp, timestamp", "duration, duration"),
)

OPERATORS: Final[tuple[Function, ...]] = (
    *(overload(f"{name}: {kinds} -> bool", run) for name, run in _COMPARED.items() for kinds in _ORDERED),
    overload("_==_: A, A -> bool", equal),
    overload("_!=_: A, A -> bool", lambda left, right: not equal(left, right)),
    overload("@in: A, list(A) -> bool", lambda item, items: any(equal(item, each) for each in items)),
    overload("@in: A, map(A, B) -> bool", _has),
    overload("_[_]: list(A), int -> A", _indexed),
    overload("_[_]: list(A), double -> A", lambda items, index: _indexed(items, _number_of(index)), dynamic=True),
    overload("_[_]: list(A), uint -> A", _indexed, dynamic=True),
    overload("_[_]: map(A, B), A -> B", _found),
    overload("!_: bool -> bool", lambda value: not value),
    overload("-_: double -> double", lambda value: -value),
    overload("-_: int -> int", lambda value: whole(-value)),
    overload("_+_: int, int -> int", lambda left, right: whole(left + right)),
    overload("_+_: double, double -> double", _float(lambda left, right: left + right)),
    overload("_+_: string, string -> string", lambda left, right: left + right),
    overload("_+_: bytes, bytes -> bytes", lambda left, right: left + right),
    overload("_+_: list(A), list(A) -> list(A)", _joined),
    overload("_+_: timestamp, duration -> timestamp", _moment(lambda at, by: at + by, "timestamp overflow")),
    overload("_+_: duration, timestamp -> timestamp", _moment(lambda by, at: at + by, "timestamp overflow")),
    overload("_+_: duration, duration -> duration", _moment(lambda left, right: left + right, "duration overflow")),
    overload("_-_: int, int -> int", lambda left, right: whole(left - right)),
    overload("_-_: double, double -> double", _float(lambda left, right: left - right)),
    overload("_-_: timestamp, timestamp -> duration", lambda left, right: left - right),
    overload("_-_: timestamp, duration -> timestamp", _moment(lambda at, by: at - by, "timestamp overflow")),
    overload("_-_: duration, duration -> duration", _moment(lambda left, right: left - right, "duration overflow")),
    overload("_*_: int, int -> int", lambda left, right: whole(left * right)),
    overload("_*_: double, double -> double", _float(lambda left, right: left * right)),
    overload("_/_: int, int -> int", lambda left, right: whole(_divided(left, right))),
    overload("_/_: double, double -> double", _ratio),
    overload("_%_: int, int -> int", _rest),
    *(
        overload(f"{name}: uint, uint -> uint", _natural(run))
        for name, run in {
            "_+_": lambda left, right: left + right,
            "_-_": lambda left, right: left - right,
            "_*_": lambda left, right: left * right,
            "_/_": _divided,
            "_%_": _rest,
        }.items()
    ),
)
"""The overloads of the operators, with the names in error messages."""
