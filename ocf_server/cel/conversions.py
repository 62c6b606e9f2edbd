"""Conversion functions of CEL, and functions of timestamps and durations."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ocf.objects.timestamps import Fraction, format_time
from ocf_server.cel.operators import natural, whole
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.values import EvaluationError, Uint, kind_name, read_duration, read_instant

__all__ = ["CONVERSIONS", "shown"]

# Bounds of the powers of ten that Go's format %g writes without an exponent.
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


def _unsigned(text: str) -> Uint:
    if not _INTEGER.fullmatch(text) or text.startswith(("-", "+")) or int(text) >= 2**64:
        raise _unconvertible("uint")
    return Uint(text)


def _truncated_number(value: float, problem: str) -> int:
    if not math.isfinite(value):
        raise EvaluationError(problem)
    return math.trunc(value)


def _truncated(value: float) -> int:
    return whole(_truncated_number(value, "integer overflow"))


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
    "uint": str,
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


CONVERSIONS: Final[tuple[Function, ...]] = (
    overload("int: int -> int", lambda value: value),
    overload("int: double -> int", _truncated),
    overload("int: string -> int", _integer),
    overload("int: timestamp -> int", lambda at: math.floor(at.timestamp())),
    overload("int: duration -> int", lambda length: length // timedelta(microseconds=1) * 1000),
    overload("int: uint -> int", lambda value: whole(int(value))),
    overload("uint: uint -> uint", lambda value: value),
    overload("uint: int -> uint", natural),
    overload("uint: double -> uint", lambda value: natural(_truncated_number(value, "unsigned integer overflow"))),
    overload("uint: string -> uint", _unsigned),
    overload("double: uint -> double", float),
    overload("double: double -> double", lambda value: value),
    overload("double: int -> double", float),
    overload("double: string -> double", _double),
    *(
        overload(f"string: {kind} -> string", shown)
        for kind in ("string", "bool", "int", "uint", "double", "bytes", "timestamp", "duration")
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
)
"""The conversion functions, and the functions of timestamps and durations."""
