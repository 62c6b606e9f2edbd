"""Go arithmetic, as the controller computes.

The controller is a Go program on 64-bit machines: replica counts are integers of 32 bits, amounts are thousandths in
integers of 64 bits, and ratios are doubles. Integers wrap around, integer division truncates toward zero, doubles can
be divided by zero, and a double that does not fit an integer becomes the smallest integer (as on amd64). Python does
none of this, and a decision that is off by one pod is wrong, so each such operation is a function here.

Amounts and proposals are the exception: a sum that wraps around would shrink a workload because it needs too much.
`saturate64` and `saturating_ceil32` keep such a number at the largest one.
"""

import math
from typing import Final

__all__ = [
    "INT32_MAX",
    "INT64_MAX",
    "ceil32",
    "ceil64",
    "divide",
    "ratio",
    "saturate64",
    "saturating_ceil32",
    "to_int32",
    "wrap32",
]

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
_INT32_MIN: Final = -(2**31)
_INT64_MIN: Final = -(2**63)
_INT32_END: Final = 2.0**31
_INT64_END: Final = 2.0**63


def wrap32(number: int) -> int:
    """Return the lowest 32 bits of a sum or product as a signed integer.

    Example:
        >>> wrap32(2**31 - 1), wrap32(2**31)
        (2147483647, -2147483648)
    """
    if _INT32_MIN <= number <= INT32_MAX:
        return number
    return (number - _INT32_MIN) % 2**32 + _INT32_MIN


def saturate64(number: int) -> int:
    """Return the nearest integer of 64 bits.

    Example:
        >>> saturate64(5), saturate64(2**63) == 2**63 - 1
        (5, True)
    """
    if _INT64_MIN <= number <= INT64_MAX:
        return number
    return INT64_MAX if number > 0 else _INT64_MIN


def divide(number: int, divisor: int) -> int:
    """Divide integers, truncating toward zero.

    Example:
        >>> divide(7, 2), divide(-7, 2)
        (3, -3)
    """
    if number >= 0 and divisor > 0:
        return number // divisor
    quotient = abs(number) // abs(divisor)
    return quotient if (number < 0) == (divisor < 0) else -quotient


def ratio(number: float, divisor: float) -> float:
    """Divide doubles; division by zero gives an infinity or NaN.

    Example:
        >>> ratio(1, 4), ratio(1, 0), ratio(0, 0)
        (0.25, inf, nan)
    """
    if divisor:
        return float(number) / float(divisor)
    return math.nan if not number or math.isnan(number) else math.copysign(math.inf, number)


def to_int32(number: float) -> int:
    """Truncate a double toward zero; a result out of range becomes -2147483648.

    Example:
        >>> to_int32(-1.5), to_int32(3e9)
        (-1, -2147483648)
    """
    # What is out of range is up to the processor in Go; amd64 (CVTTSD2SL) gives the smallest integer, also for NaN,
    # which no comparison lets through here either. The bounds are those of the truncated number, so -2147483648.9 is
    # within them.
    return int(number) if -_INT32_END - 1 < number < _INT32_END else _INT32_MIN


def ceil32(number: float) -> int:
    """Round a double up to an integer of 32 bits; a result out of range becomes -2147483648.

    Example:
        >>> ceil32(2.0), ceil32(2.0000001), ceil32(-0.5), ceil32(float("nan"))
        (2, 3, 0, -2147483648)
    """
    if -_INT32_END - 1 < number <= _INT32_END - 1:
        return math.ceil(number)
    return _INT32_MIN


def saturating_ceil32(number: float) -> int:
    """Round a double up to an integer of 32 bits; a result that is too large becomes the largest one.

    Example:
        >>> saturating_ceil32(2.5), saturating_ceil32(1e300) == INT32_MAX
        (3, True)
    """
    return INT32_MAX if number > INT32_MAX else ceil32(number)


def ceil64(number: float) -> int:
    """Round a double up to an integer of 64 bits; a result out of range becomes the smallest integer."""
    return math.ceil(number) if -_INT64_END <= number < _INT64_END else _INT64_MIN
