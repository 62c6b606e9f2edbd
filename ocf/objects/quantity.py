"""Quantities: the numbers with suffixes, `500m` or `1.5Gi`, of the Kubernetes API.

A quantity is an exact number, stored as an integer of billionths, the smallest unit of the API, so comparison, hashing
and rounding are exact. Its original text is stored too, because the API server keeps the notation (`1e6` stays `1e6`,
`1024Mi` becomes `1Gi`); the printed text is computed only when it is needed.
"""

import re
from functools import total_ordering
from typing import Final, NoReturn

from ocf.errors import QuantityError

__all__ = ["Quantity"]

# All real quantities are much shorter; a longer text is a mistake or an attack.
_MAX_LENGTH: Final = 1024
_MAX_EXPONENT: Final = 1024
_MAX_BITS: Final = 3 * _MAX_LENGTH
_MAX_SHOWN: Final = 40

_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -(2**63)
_NANO_DIGITS: Final = 9
_NANO: Final = 10**_NANO_DIGITS
_MICRO: Final = 10**6
_KIBI: Final = 1024
_LARGEST_BINARY: Final = _INT64_MAX * _NANO

_POWERS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BITS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_UNITS: Final = {suffix: 10 ** (power + _NANO_DIGITS) for suffix, power in _POWERS.items()} | {
    suffix: 2**bits * _NANO for suffix, bits in _BITS.items()
}
_DECIMAL_SUFFIXES: Final = {power: suffix for suffix, power in _POWERS.items()}
_BINARY_SUFFIXES: Final = ("", *_BITS)
_LARGEST_POWER: Final = max(_DECIMAL_SUFFIXES)
_BEYOND_THE_SHORT_CUT: Final = frozenset({"Pi", "Ei"})
_STEP: Final = 3
_DIGITS_OF_DOUBLE: Final = 15

# Matches every text in linear time. The suffix is looked up afterwards.
_split: Final = re.compile(r"([+-]?[0-9]*)\.?([0-9]*)(.*)", re.DOTALL).match
# The form of nearly all quantities, which allows a fast path.
_simple: Final = re.compile(r"([0-9]{1,30})([numkMGTPE]|[KMGTPE]i|)").fullmatch
_exponent: Final = re.compile(r"[eE]([+-]?[0-9]+)").fullmatch

_FORM: Final = (
    "write digits (2, 0.5, -1.25), then nothing, one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent (e3)"
)


@total_ordering
class Quantity:
    """An exact number of the Kubernetes API, such as `500m` or `1.5Gi`.

    Quantities compare and hash by their number: `1000m` equals `1`. As in the API server, numbers are rounded away from
    zero to whole billionths, numbers with a binary suffix are limited to 2^63-1, and a text without a digit before its
    suffix (`m`, `-`, `e3`) is zero. Unlike the API server:

    * texts of more than 1024 characters and exponents beyond 1024 are rejected;
    * decimal numbers of 1000E and more keep their suffix when printed;
    * `value` and `milli` are rounded away from zero for negative numbers too, and never overflow.

    Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/.

    Args:
        nano: The number in billionths.
        written: A text of that number; it determines the notation in which the quantity is printed.

    Example:
        >>> cpu = Quantity.parse("2.50")
        >>> str(cpu), cpu.milli, cpu.value
        ('2500m', 2500, 3)
        >>> Quantity.parse("1000m") == Quantity.parse(1) < Quantity.parse("1Ki")
        True
    """

    __slots__ = ("nano", "written")

    nano: int
    written: str

    def __init__(self, nano: int, written: str) -> None:
        object.__setattr__(self, "nano", nano)
        object.__setattr__(self, "written", written)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"cannot set {name!r}: a quantity is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"cannot delete {name!r}: a quantity is immutable")

    def __reduce__(self) -> tuple[type["Quantity"], tuple[int, str]]:
        return type(self), (self.nano, self.written)

    def __hash__(self) -> int:
        return hash(self.nano)

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: "Quantity") -> bool:
        return self.nano < other.nano if other.__class__ is Quantity else NotImplemented

    @classmethod
    def parse(cls, value: str | float) -> "Quantity":
        """Parse a quantity of a manifest.

        Args:
            value: A text or a JSON number. Spaces around a text are not allowed.

        Raises:
            QuantityError: If `value` is not a quantity.
        """
        text = value if isinstance(value, str) else _text(value)
        simple = _simple(text)
        if simple:
            digits, suffix = simple.groups()
            nano = int(digits) * _UNITS[suffix]
        else:
            whole, fraction, suffix = _parts(text)
            nano = _nano(whole, fraction, suffix, text)
        if not -_LARGEST_BINARY < nano < _LARGEST_BINARY and suffix in _BITS:
            nano = _LARGEST_BINARY if nano > 0 else -_LARGEST_BINARY
        return cls(nano, text)

    @classmethod
    def from_milli(cls, milli: int, *, binary: bool = False) -> "Quantity":
        """Return a quantity from thousandths, the unit of the HPA controller.

        Args:
            milli: The number in thousandths.
            binary: Whether to print it with the suffixes Ki, Mi, Gi …, as is usual for memory.

        Example:
            >>> str(Quantity.from_milli(1500)), str(Quantity.from_milli(2**20 * 1000, binary=True))
            ('1500m', '1Mi')
        """
        nano = milli * _MICRO
        return cls(nano, _in_powers_of_1024(nano) if binary else _in_powers_of_1000(nano))

    def __add__(self, other: "Quantity") -> "Quantity":
        """Return the exact sum, in the notation of this quantity, or of the other one if this is zero.

        Raises:
            QuantityError: If the API would cut the sum: with a binary suffix, at 2^63-1.

        Example:
            >>> sizes = [Quantity.parse(text) for text in ("500Mi", "1.5Gi", "24Mi")]
            >>> str(sum(sizes, Quantity.parse(0)))
            '2060Mi'
        """
        return self._plus(other, 1) if other.__class__ is Quantity else NotImplemented

    def __sub__(self, other: "Quantity") -> "Quantity":
        """Return the exact difference, as `+` does.

        Example:
            >>> str(Quantity.parse("2") - Quantity.parse("500m"))
            '1500m'
        """
        return self._plus(other, -1) if other.__class__ is Quantity else NotImplemented

    def _plus(self, other: "Quantity", sign: int) -> "Quantity":
        nano = self.nano + sign * other.nano
        _, _, suffix = _parts((self if self.nano else other).written)
        if suffix in _BITS:
            if abs(nano) > _LARGEST_BINARY:
                term = f"{self} {'+' if sign > 0 else '-'} {other}"
                raise QuantityError(f"{term} is more than the API allows with a binary suffix, 2^63-1")
            return type(self)(nano, _in_powers_of_1024(nano))
        return type(self)(nano, _in_powers_of_1000(nano, scientific=suffix not in _POWERS))

    @property
    def value(self) -> int:
        """The number as an integer, rounded away from zero and limited to 64 bits."""
        return _within_int64(_divided(self.nano, _NANO))

    @property
    def milli(self) -> int:
        """The number in thousandths, rounded away from zero and limited to 64 bits."""
        return _within_int64(_divided(self.nano, _MICRO))

    @property
    def is_as_written(self) -> bool:
        """Whether the API server prints its text as it was read; it computes that of all others.

        Example:
            >>> [Quantity.parse(text).is_as_written for text in ("500Mi", "1024Mi", "512Mi", "1k", "1000")]
            [True, False, False, True, False]
        """
        if not self.nano:
            return self.written == "0"
        whole, fraction, suffix = _parts(self.written)
        digits = whole.lstrip("+-0")
        if suffix in _BITS:
            return not fraction and _is_kept_binary(digits, _BITS[suffix])
        power = _POWERS.get(suffix)
        if power is None:
            power = _exponent_of(suffix, self.written)
        return digits != "" and _is_kept_decimal(digits + fraction, power - len(fraction))

    def __str__(self) -> str:
        """The text that the API server would store."""
        if not self.nano:
            return "0"
        if self.is_as_written:
            return self.written
        _, _, suffix = _parts(self.written)
        if suffix in _BITS:
            return _in_powers_of_1024(self.nano)
        return _in_powers_of_1000(self.nano, scientific=suffix not in _POWERS)

    def __repr__(self) -> str:
        return f"Quantity.parse({str(self)!r})"


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise QuantityError(
            f"{_shown(value)} is not a quantity: it must be a text or a number, not {type(value).__name__}"
        )
    # Converting a huge integer to text takes quadratic time, so its size is checked first.
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise QuantityError(
            f"an integer of {value.bit_length()} bits is not a quantity: at most {_MAX_BITS} bits are read"
        )
    return repr(value)


def _parts(text: str) -> tuple[str, str, str]:
    """Return sign and digits before the point, digits after it, and the suffix."""
    if len(text) > _MAX_LENGTH:
        raise _invalid(text, f"it has {len(text)} characters, at most {_MAX_LENGTH} are read")
    match = _split(text)
    # The pattern matches every text, but the type checker cannot know this.
    whole, fraction, suffix = match.groups() if match else ("", "", text)
    return whole, fraction, suffix


def _nano(whole: str, fraction: str, suffix: str, text: str) -> int:
    """Return the number of a quantity in billionths."""
    unit = _UNITS.get(suffix)
    try:
        number = int(whole + fraction)
    except ValueError:
        number = _number_without_digits(suffix, text)
    if unit is None:
        return _shifted(number, _exponent_of(suffix, text) - len(fraction) + _NANO_DIGITS)
    return _divided(number * unit, 10 ** len(fraction)) if fraction else number * unit


def _number_without_digits(suffix: str, text: str) -> int:
    """Return zero for `m`, `-` or `.Ki`, like the API server, which rejects suffixes that its fast path lacks."""
    short_cut = bool(text) and suffix not in _BEYOND_THE_SHORT_CUT
    if short_cut and suffix not in _UNITS:
        short_cut = _exponent_of(suffix, text) >= -_NANO_DIGITS
    if not short_cut:
        raise _invalid(text, _FORM)
    return 0


def _exponent_of(suffix: str, text: str) -> int:
    match = _exponent(suffix)
    if match is None:
        raise _invalid(text, _FORM)
    exponent = int(match[1])
    if abs(exponent) > _MAX_EXPONENT:
        raise _invalid(text, f"the exponent must lie between -{_MAX_EXPONENT} and {_MAX_EXPONENT}")
    return exponent


def _invalid(text: str, reason: str) -> QuantityError:
    return QuantityError(f"{_shown(text)} is not a quantity: {reason}")


def _shown(value: object) -> str:
    text = repr(value[: _MAX_SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _divided(number: int, divisor: int) -> int:
    """Return a quotient, rounded away from zero."""
    return -(-number // divisor) if number > 0 else number // divisor


def _shifted(number: int, places: int) -> int:
    return number * 10**places if places >= 0 else _divided(number, 10**-places)


def _within_int64(number: int) -> int:
    return max(_INT64_MIN, min(number, _INT64_MAX))


# The API server prints some texts unchanged: its fast path treats them as canonical, even `+1`, `01` and `1.500`.


def _is_kept_decimal(digits: str, power: int) -> bool:
    fits = len(digits) <= _LARGEST_POWER and power >= -_NANO_DIGITS
    return fits and power % _STEP == 0 and not digits.endswith("000")


def _is_kept_binary(digits: str, bits: int) -> bool:
    fits = len(digits) + bits * 3 // 10 < _DIGITS_OF_DOUBLE
    return fits and int(digits) % 8 != 0


def _in_powers_of_1024(nano: int) -> str:
    units, rest = divmod(nano, _NANO)
    if rest or -_KIBI < units < _KIBI:
        return _in_powers_of_1000(nano)
    power = 0
    while units % _KIBI == 0:
        units //= _KIBI
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"


def _in_powers_of_1000(nano: int, *, scientific: bool = False) -> str:
    digits = str(nano)
    zeros = len(digits) - len(digits.rstrip("0"))
    power = zeros // _STEP * _STEP - _NANO_DIGITS
    if not scientific:
        power = min(power, _LARGEST_POWER)
    number = digits[: len(digits) - power - _NANO_DIGITS]
    if scientific:
        return f"{number}e{power}" if power else number
    return f"{number}{_DECIMAL_SUFFIXES[power]}"
