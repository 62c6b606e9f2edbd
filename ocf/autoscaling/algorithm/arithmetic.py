"""Numbers as the controller computes with them.

The controller is a Go program on 64-bit machines: its counts are integers of 32 bits, its amounts are thousandths in
integers of 64 bits, its ratios are doubles. Integers wrap around, divisions of them are cut off toward zero, doubles
divide by zero, and a double that fits no integer becomes the smallest one (as on amd64). Python does none of that by
itself, and a decision that is off by one pod is a wrong decision, so every such step is spelled out here.
"""

import math
from typing import Final

__all__ = ["INT32_MAX", "INT64_MAX", "ceil32", "ceil64", "divide", "ratio", "to_int32", "wrap32", "wrap64"]

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_INT32_MIN: Final = -(2**31)
_INT64_MIN: Final = -(2**63)
_INT32_END: Final = 2.0**31
_INT64_END: Final = 2.0**63


def wrap32(number: int) -> int:
    """Keep the lowest 32 bits of a sum or product, with their sign.

    Example:
        >>> wrap32(2**31 - 1), wrap32(2**31)
        (2147483647, -2147483648)
    """
    if _INT32_MIN <= number <= INT32_MAX:
        return number
    return (number - _INT32_MIN) % 2**32 + _INT32_MIN


def wrap64(number: int) -> int:
    """Keep the lowest 64 bits of a sum or product, with their sign."""
    if _INT64_MIN <= number <= INT64_MAX:
        return number
    return (number - _INT64_MIN) % 2**64 + _INT64_MIN


def divide(number: int, divisor: int) -> int:
    """Divide integers, cutting off toward zero.

    Example:
        >>> divide(7, 2), divide(-7, 2)
        (3, -3)
    """
    if number >= 0 and divisor > 0:
        return number // divisor
    quotient = abs(number) // abs(divisor)
    return wrap64(quotient if (number < 0) == (divisor < 0) else -quotient)


def ratio(number: float, divisor: float) -> float:
    """Divide doubles; by zero there is an infinity, or no number at all.

    Example:
        >>> ratio(1, 4), ratio(1, 0), ratio(0, 0)
        (0.25, inf, nan)
    """
    if divisor:
        return float(number) / float(divisor)
    return math.nan if not number or math.isnan(number) else math.copysign(math.inf, number)


def to_int32(number: float) -> int:
    """Cut a double off toward zero; what does not fit becomes -2147483648.

    Example:
        >>> to_int32(-1.5), to_int32(3e9)
        (-1, -2147483648)
    """
    return int(number) if -_INT32_END - 1 < number < _INT32_END else _INT32_MIN


def ceil32(number: float) -> int:
    """Round a double up to an integer of 32 bits; what does not fit becomes -2147483648.

    Example:
        >>> ceil32(2.0), ceil32(2.0000001), ceil32(-0.5), ceil32(float("nan"))
        (2, 3, 0, -2147483648)
    """
    if -_INT32_END - 1 < number <= _INT32_END - 1:
        return math.ceil(number)
    return _INT32_MIN


def ceil64(number: float) -> int:
    """Round a double up to an integer of 64 bits; what does not fit becomes the smallest one."""
    return math.ceil(number) if -_INT64_END <= number < _INT64_END else _INT64_MIN
