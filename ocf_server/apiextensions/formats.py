"""String formats that the API server validates in custom resources; it ignores all other formats.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from ocf.objects.data_validation import decode_base64
from ocf.objects.timestamps import parse_rfc3339

__all__ = ["is_of_format"]

_LABEL: Final = r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_LONGEST_HOSTNAME: Final = 255


def _reads(read: Callable[[str], object]) -> Callable[[str], bool]:
    """Return a check that succeeds if a function reads the text without an error."""

    def is_read(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return is_read


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda text: compiled.fullmatch(text) is not None


_IS_DATE: Final = _matches(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _uri(text: str) -> object:
    parts = urlsplit(text)
    if not parts.scheme and not text.startswith("/"):
        raise ValueError(text)
    return parts


_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": _reads(decode_base64),
    "cidr": lambda text: "/" in text and _reads(lambda given: ip_network(given, strict=False))(text),
    "date": lambda text: _IS_DATE(text) and _reads(date.fromisoformat)(text),
    "date-time": _reads(partial(parse_rfc3339, lower_case=True)),
    "datetime": _reads(partial(parse_rfc3339, lower_case=True)),
    "duration": _matches(
        r"\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h|d|w|sec|min|hour|day|week)s?(\s*\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h))*"
    ),
    "email": _matches(r"[^@\s<>]+@[^@\s<>]+"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": lambda text: (
        len(text) <= _LONGEST_HOSTNAME and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*\.?", text) is not None
    ),
    "ipv4": _reads(IPv4Address),
    "ipv6": _reads(IPv6Address),
    "mac": _matches(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}"),
    "uri": _reads(_uri),
    "uuid": lambda text: "-" in text and _reads(UUID)(text),
}


_NUMBERS: Final = frozenset({"int32", "int64", "float", "double"})


def is_known(name: str) -> bool:
    """Return whether the API server validates a format."""
    return name in _CHECKS or name in _NUMBERS


def is_of_format(text: str, name: str) -> bool:
    """Return whether a text has a format.

    Args:
        name: The format, `date-time`.

    Returns:
        False only if the API server would reject the text.

    Example:
        >>> is_of_format("2026-01-01", "date"), is_of_format("yesterday", "date"), is_of_format("any", "other")
        (True, False, True)
    """
    check = _CHECKS.get(name)
    return check is None or check(text)
