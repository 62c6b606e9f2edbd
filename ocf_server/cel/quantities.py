"""Quantities in CEL.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-quantity-library.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction
from functools import total_ordering
from typing import Final

from ocf.errors import QuantityError
from ocf.objects.quantity import Quantity
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import QUANTITY
from ocf_server.cel.values import EvaluationError, Opaque

__all__ = ["QUANTITIES"]

_NANO: Final = 10**9
_MOST_DIGITS: Final = 18
_TEXT: Final = re.compile(r"[+-]?([0-9]*)\.?([0-9]*)(.*)")
_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@total_ordering
@dataclass(frozen=True, slots=True)
class _Quantity(Opaque):
    """A quantity.

    Args:
        power: The power of ten of its last digit as the API server keeps it, which decides whether it is an integer;
            None if it has too many digits.
    """

    nano: int
    power: int | None = field(default=0, compare=False)
    kind: str = field(default=QUANTITY.name, init=False)

    def __lt__(self, other: "_Quantity") -> bool:
        return self.nano < other.nano

    @property
    def is_integer(self) -> bool:
        """Whether the API server keeps it as an integer of 64 bits, which it does not for `1.0`."""
        whole, rest = divmod(self.nano, _NANO)
        kept = self.power is not None and (self.power >= 0 or not self.nano)
        return kept and not rest and -(2**63) <= whole < 2**63

    def added(self, other: "_Quantity", sign: int = 1) -> "_Quantity":
        """Return the sum, or with the sign -1 the difference."""
        powers = [each.power for each in (self, other) if each.nano or each.power is None]
        power = None if None in powers else min((each for each in powers if each is not None), default=0)
        return _Quantity(self.nano + sign * other.nano, power)


def _quantity(text: str) -> _Quantity:
    try:
        return _Quantity(Quantity.parse(text).nano, _power(text))
    except QuantityError:
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def _power(text: str) -> int | None:
    found = _TEXT.fullmatch(text)
    whole, fraction, suffix = found.groups() if found else ("", "", "")
    if len(whole.lstrip("0")) + len(fraction) > _MOST_DIGITS:
        return None
    if suffix in _POWERS:
        return _POWERS[suffix] - len(fraction)
    if suffix.endswith("i"):
        return None if fraction else 0
    return int(suffix[1:]) - len(fraction)


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _integer(value: _Quantity) -> int:
    if not value.is_integer:
        raise EvaluationError("cannot convert value to integer")
    return value.nano // _NANO


def _whole(number: int) -> _Quantity:
    return _Quantity(number * _NANO)


QUANTITIES: Final[tuple[Function, ...]] = (
    overload("quantity: string -> quantity", _quantity),
    overload("isQuantity: string -> bool", _is_quantity),
    overload("sign: quantity -> int", lambda value: (value.nano > 0) - (value.nano < 0)),
    overload("quantity on isInteger -> bool", lambda value: value.is_integer),
    overload("quantity on asInteger -> int", _integer),
    overload("quantity on asApproximateFloat -> double", lambda value: float(Fraction(value.nano, _NANO))),
    overload("quantity on add: quantity -> quantity", _Quantity.added),
    overload("quantity on add: int -> quantity", lambda left, right: left.added(_whole(right))),
    overload("quantity on sub: quantity -> quantity", lambda left, right: left.added(right, -1)),
    overload("quantity on sub: int -> quantity", lambda left, right: left.added(_whole(right), -1)),
    overload("quantity on isGreaterThan: quantity -> bool", lambda left, right: left > right),
    overload("quantity on isLessThan: quantity -> bool", lambda left, right: left < right),
    overload("quantity on compareTo: quantity -> int", lambda left, right: (left > right) - (left < right)),
)
"""The functions of the library of quantities."""
