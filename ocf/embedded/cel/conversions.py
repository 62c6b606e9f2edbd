"""Conversion functions of CEL, and functions of timestamps, durations and quantities."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ocf.embedded.cel.operators import whole
from ocf.embedded.cel.overloads import Function, overload
from ocf.embedded.cel.values import EvaluationError, kind_name, read_duration, read_instant
from ocf.errors import QuantityError
from ocf.objects.quantity import Quantity
from ocf.objects.timestamps import Fraction, format_time

__all__ = ["CONVERSIONS", "shown"]

_NANO: Final = 10**9
_LEAST_POWER, _MOST_POWER = -4, 6
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|nan", re.IGNORECASE)
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _unconvertible(kind: str) -> EvaluationError:
    return EvaluationError(f"type conversion error from 'string' to '{kind}'")


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise _unconvertible("int")
    return int(text)


def _truncated(value: float) -> int:
    if not math.isfinite(value):
        raise EvaluationError("integer overflow")
    return whole(math.trunc(value))


def _double(text: str) -> float:
    if not _DECIMAL.fullmatch(text):
        raise _unconvertible("double")
    return float(text)


def _boolean(text: str) -> bool:
    if text not in _TRUE | _FALSE:
        raise _unconvertible("bool")
    return text in _TRUE


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _digits(value: float) -> str:
    """Return the shortest text of a number, with an exponent for very large and very small ones."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    if not value:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) - 1 + int(exponent)
    if _LEAST_POWER <= power < _MOST_POWER:
        return f"{Decimal(repr(value)).normalize():f}"
    body = "".join(map(str, digits))
    fraction = f".{body[1:]}" if len(body) > 1 else ""
    return f"{'-' if sign else ''}{body[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _seconds(value: timedelta) -> str:
    micro = value // timedelta(microseconds=1)
    sign = "-" if micro < 0 else ""
    seconds, fraction = divmod(abs(micro), 10**6)
    return f"{sign}{seconds}{f'.{fraction:06d}'.rstrip('0') if fraction else ''}s"


def _instant(value: datetime) -> str:
    whole, point, digits = format_time(value, Fraction.NONZERO).removesuffix("Z").partition(".")
    return f"{whole}{point}{digits.rstrip('0')}Z"


_SHOWN: Final[dict[str, Callable[[Any], str]]] = {
    "bool": lambda value: "true" if value else "false",
    "int": str,
    "double": _digits,
    "string": str,
    "bytes": _decoded,
    "timestamp": _instant,
    "duration": _seconds,
}


def shown(value: Any) -> str:
    """Return the result of `string()` for a value."""
    return _SHOWN[kind_name(value)](value)


def _read(read: Callable[[str], Any], kind: str) -> Callable[[str], Any]:
    def reading(text: str) -> Any:
        try:
            return read(text)
        except (ValueError, OverflowError):
            raise _unconvertible(kind) from None

    return reading


def _from_seconds(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise EvaluationError("timestamp overflow") from None


def _zone(name: str) -> tzinfo:
    if found := re.fullmatch(r"([+-]?)(\d\d):(\d\d)", name):
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name}") from None


_PARTS: Final[dict[str, Callable[[datetime], int]]] = {
    "getDate": lambda at: at.day,
    "getDayOfMonth": lambda at: at.day - 1,
    "getDayOfWeek": lambda at: at.isoweekday() % 7,
    "getDayOfYear": lambda at: at.timetuple().tm_yday - 1,
    "getFullYear": lambda at: at.year,
    "getHours": lambda at: at.hour,
    "getMilliseconds": lambda at: at.microsecond // 1000,
    "getMinutes": lambda at: at.minute,
    "getMonth": lambda at: at.month - 1,
    "getSeconds": lambda at: at.second,
}
_SPANS: Final = {
    "getHours": timedelta(hours=1),
    "getMinutes": timedelta(minutes=1),
    "getSeconds": timedelta(seconds=1),
    "getMilliseconds": timedelta(milliseconds=1),
}


def _in_zone(read: Callable[[datetime], int]) -> Callable[[datetime, str], int]:
    return lambda at, zone: read(at.astimezone(_zone(zone)))


def _spans(unit: timedelta) -> Callable[[timedelta], int]:
    return lambda span: abs(span) // unit * (-1 if span < timedelta() else 1)


def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError:
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _from_nano(nano: int) -> Quantity:
    return Quantity.parse(f"{nano}n")


CONVERSIONS: Final[tuple[Function, ...]] = (
    overload("int: int -> int", lambda value: value),
    overload("int: double -> int", _truncated),
    overload("int: string -> int", _integer),
    overload("int: timestamp -> int", lambda at: math.floor(at.timestamp())),
    overload("double: double -> double", lambda value: value),
    overload("double: int -> double", float),
    overload("double: string -> double", _double),
    *(
        overload(f"string: {kind} -> string", shown)
        for kind in ("string", "bool", "int", "double", "bytes", "timestamp", "duration")
    ),
    overload("bool: bool -> bool", lambda value: value),
    overload("bool: string -> bool", _boolean),
    overload("bytes: bytes -> bytes", lambda value: value),
    overload("bytes: string -> bytes", str.encode),
    overload("dyn: A -> any", lambda value: value),
    overload("duration: duration -> duration", lambda value: value),
    overload("duration: string -> duration", _read(read_duration, "google.protobuf.Duration")),
    overload("timestamp: timestamp -> timestamp", lambda value: value),
    overload("timestamp: string -> timestamp", _read(read_instant, "google.protobuf.Timestamp")),
    overload("timestamp: int -> timestamp", _from_seconds),
    *(overload(f"timestamp on {name} -> int", read) for name, read in _PARTS.items()),
    *(overload(f"timestamp on {name}: string -> int", _in_zone(read)) for name, read in _PARTS.items()),
    *(overload(f"duration on {name} -> int", _spans(unit)) for name, unit in _SPANS.items()),
    overload("quantity: string -> quantity", _quantity),
    overload("isQuantity: string -> bool", _is_quantity),
    overload("sign: quantity -> int", lambda value: (value.nano > 0) - (value.nano < 0)),
    overload("quantity on add: quantity -> quantity", lambda left, right: _from_nano(left.nano + right.nano)),
    overload("quantity on add: int -> quantity", lambda left, right: _from_nano(left.nano + right * _NANO)),
    overload("quantity on sub: quantity -> quantity", lambda left, right: _from_nano(left.nano - right.nano)),
    overload("quantity on sub: int -> quantity", lambda left, right: _from_nano(left.nano - right * _NANO)),
    overload("quantity on isGreaterThan: quantity -> bool", lambda left, right: left > right),
    overload("quantity on isLessThan: quantity -> bool", lambda left, right: left < right),
    overload("quantity on compareTo: quantity -> int", lambda left, right: (left > right) - (left < right)),
)
"""The conversion functions, and the functions of timestamps, durations and quantities."""
