"""Numbers of custom resources, as Go's JSON decoder and encoder treat them.

A value without a Go type is an int64 if its text is an integer of 64 bits, and a float64 otherwise. The encoder writes
a float64 without a fraction as an integer: 1.0 is stored, and read again, as 1.
"""

from typing import Any, Final

__all__ = ["decoded_numbers", "encoded_numbers", "go_number"]

_UNCHANGED: Final = frozenset({str, bool, type(None)})
_INT64: Final = 2**63


def decoded_numbers(value: Any) -> Any:
    """Return a copy of a JSON value whose integers of more than 64 bits are floating-point numbers.

    Example:
        >>> decoded_numbers([1, 2**63, 1.0])
        [1, 9.223372036854776e+18, 1.0]
    """
    # As in `copy_json`, a call for each scalar would take half of the time.
    if isinstance(value, dict):
        return {key: item if item.__class__ in _UNCHANGED else decoded_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if item.__class__ in _UNCHANGED else decoded_numbers(item) for item in value]
    return float(value) if isinstance(value, int) and not -_INT64 <= value < _INT64 else value


def encoded_numbers(value: Any) -> Any:
    """Return a JSON value as it is after it was encoded and decoded; it shares the parts that do not change.

    Example:
        >>> encoded_numbers({"sizes": [1.0, 1.5, -0.0, 1e19]})
        {'sizes': [1, 1.5, 0, 1e+19]}
    """
    if isinstance(value, dict):
        changed = {
            key: new
            for key, item in value.items()
            if item.__class__ not in _UNCHANGED and (new := encoded_numbers(item)) is not item
        }
        return {**value, **changed} if changed else value
    if isinstance(value, list):
        items = [item if item.__class__ in _UNCHANGED else encoded_numbers(item) for item in value]
        return items if any(new is not item for new, item in zip(items, value, strict=True)) else value
    is_whole = isinstance(value, float) and value.is_integer() and -_INT64 <= value < _INT64
    return int(value) if is_whole else value


def go_number(value: float) -> str:
    """Return a number in the default format of Go.

    Example:
        >>> [go_number(value) for value in (1, 1.0, 0.5, 1e20, 1e21, 0.00001)]
        ['1', '1', '0.5', '100000000000000000000', '1e+21', '1e-05']
    """
    return str(int(value)) if float(value).is_integer() and abs(value) < _FIRST_WITH_EXPONENT else str(value)


_FIRST_WITH_EXPONENT: Final = 1e21
