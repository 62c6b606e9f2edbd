"""Numbers of custom resources, as Go's JSON decoder and encoder treat them.

A value without a Go type is an int64 if its text is an integer of 64 bits, and a float64 otherwise. The encoder writes
a float64 without a fraction as an integer: 1.0 is stored, and read again, as 1.
"""

from decimal import Decimal
from typing import Any, Final

from ocf.objects import copy_json

__all__ = ["decoded_numbers", "encoded_numbers", "go_int64", "go_number", "is_multiple", "is_whole"]

_INT64: Final = 2**63


def decoded_numbers(value: Any) -> Any:
    """Return a copy of a JSON value whose integers of more than 64 bits are floating-point numbers.

    Example:
        >>> decoded_numbers([1, 2**63, 1.0])
        [1, 9.223372036854776e+18, 1.0]
    """
    return _decoded(value) if _has_long(value) else copy_json(value)


def encoded_numbers(value: Any) -> Any:
    """Return a JSON value as it is after it was encoded and decoded; the same value if that changes nothing.

    Example:
        >>> encoded_numbers({"sizes": [1.0, 1.5, -0.0, 1e19]})
        {'sizes': [1, 1.5, 0, 1e+19]}
    """
    return _encoded(value) if _has_whole(value) else value


# Nearly no value has such numbers. To look for them takes a fifth of the time that a copy of the value takes.
_NOT_LONG: Final = frozenset({str, float, bool, type(None)})
_NOT_WHOLE: Final = frozenset({str, int, bool, type(None)})


def _has_long(value: Any) -> bool:
    kind = value.__class__
    if kind is dict or kind is list:
        for item in value.values() if kind is dict else value:
            inner = item.__class__
            if inner in _NOT_LONG:
                continue
            if (not -_INT64 <= item < _INT64) if inner is int else _has_long(item):
                return True
        return False
    return kind is int and not -_INT64 <= value < _INT64


def _has_whole(value: Any) -> bool:
    kind = value.__class__
    if kind is dict or kind is list:
        for item in value.values() if kind is dict else value:
            if item.__class__ not in _NOT_WHOLE and _has_whole(item):
                return True
        return False
    return kind is float and _is_whole(value)


def _is_whole(value: float) -> bool:
    return value.is_integer() and -_INT64 <= value < _INT64


def _decoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    return float(value) if isinstance(value, int) and not -_INT64 <= value < _INT64 else value


def _encoded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _encoded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return int(value) if isinstance(value, float) and _is_whole(value) else value


def go_number(value: float) -> str:
    """Return a number in the default format of Go, an integer as an int64 and any other as a float64.

    Example:
        >>> [go_number(value) for value in (3000000, 1.0, 0.5, 123456.0, 1234567.0, 0.00001, 1e300, -0.0)]
        ['3000000', '1', '0.5', '123456', '1.234567e+06', '1e-05', '1e+300', '-0']
    """
    if isinstance(value, int):
        return str(value)
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    exponent = len(digits) + int(power) - 1 if value else 0
    if _LOWEST_EXPONENT <= exponent < _FIRST_WITH_EXPONENT:
        return repr(value).removesuffix(".0")
    first, *others = map(str, digits)
    return f"{'-' * sign}{first}{'.' if others else ''}{''.join(others)}e{exponent:+03d}"


_LOWEST_EXPONENT: Final = -4
_FIRST_WITH_EXPONENT: Final = 6


_EXACT: Final = 2.0**53 - 1
_EPSILON: Final = 1e-9


def go_int64(value: float) -> int:
    """Return a number as an int64 of Go on amd64: without its fraction; the lowest one if it is out of range.

    Example:
        >>> [go_int64(value) for value in (2.9, -0.1, 1e300)]
        [2, 0, -9223372036854775808]
    """
    return int(value) if -_INT64 <= value < _INT64 else -_INT64


def is_multiple(value: float, factor: float) -> bool:
    """Return whether a number is a multiple of a positive factor, as the validation of an API server decides it.

    Two integers are divided; otherwise the quotient may differ from an integer by rounding. Source: `MultipleOf` in
    k8s.io/kube-openapi/pkg/validation/validate.

    Example:
        >>> [is_multiple(value, 0.1) for value in (0.3, 0.7, 0.35, 1e300)]
        [True, True, False, False]
    """
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    quotient = 1 / factor * value if factor < 1 else float(value) / factor
    return is_whole(quotient)


def is_whole(number: float) -> bool:
    """Return whether the validation of an API server takes a floating-point number as an integer.

    Source: `IsFloat64AJSONInteger` in github.com/go-openapi/swag.

    Example:
        >>> [is_whole(number) for number in (3.0, 0.1, 2.0000000001, -2.0, 1e300)]
        [True, False, True, True, False]
    """
    if not -_EXACT <= number <= _EXACT:
        return False
    # Go converts it to an uint64, which wraps for a negative number.
    whole = float(int(number) % 2**64)
    if number in {whole, float(int(number))}:
        return True
    return whole != 0 and abs(number - whole) / (abs(number) + whole) < _EPSILON
