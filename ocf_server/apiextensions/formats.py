"""Formats that the API server validates in custom resources; it ignores all other formats.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation,
`pkg/apiserver/validation/formats.go` in k8s.io/apiextensions-apiserver, and k8s.io/kube-openapi/pkg/validation/strfmt.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import IPv6Address
from typing import Final

from ocf.objects.name_validation import dns_label, dns_subdomain

__all__ = ["is_of_format", "is_supported"]

_INTEGERS: Final = frozenset({"int32", "int64"})
_NUMBERS: Final = frozenset({"float", "double"})


def is_supported(name: str, kind: str) -> bool:
    """Return whether the API server validates a format.

    Args:
        kind: The type of the schema; empty if it has none, or several.

    Example:
        >>> is_supported("date-time", "string"), is_supported("date-time", "integer"), is_supported("int32", "integer")
        (True, False, True)
    """
    if kind in {"", "string"}:
        return name.replace("-", "") in _CHECKS
    return name in _INTEGERS if kind == "integer" else kind == "number" and name in _NUMBERS


def is_of_format(text: str, name: str) -> bool:
    """Return whether a text has a format; True for those that texts do not have.

    Example:
        >>> is_of_format("2026-01-01", "date"), is_of_format("yesterday", "date")
        (True, False)
    """
    check = _CHECKS.get(name.replace("-", ""))
    return check is None or check(text)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


_HEX: Final = "[0-9a-fA-F]"
_IS_DATE: Final = _matches(r"\d{4}-\d{2}-\d{2}")
_IS_TIME: Final = _matches(r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(.\d+)?(z|[+-]\d{2}:\d{2})")


def _is_date(text: str) -> bool:
    if not _IS_DATE(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    day, separator, rest = text.lower().partition("t")
    return bool(separator) and _is_date(day) and _IS_TIME(rest.partition("t")[0])


_DURATION: Final = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
# One digit is enough, and many of them would take a time that grows faster than the text.
_WORDS: Final = re.compile(r"[0-9]\s*([A-Za-zµ]+)")
_UNITS: Final = frozenset({"ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"})
_LONG_UNITS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")


def _is_duration(text: str) -> bool:
    if _DURATION.fullmatch(text):
        return True
    found = (each[1].lower() for each in _WORDS.finditer(text))
    return any(unit in _UNITS or unit.startswith(_LONG_UNITS) for unit in found)


_LONGEST_HOSTNAME: Final = 255
_LONGEST_LABEL: Final = 63
_ANY: Final = r"[a-zA-Z0-9\p{S}\p{L}]"
_HOSTNAME: Final = (
    rf"^({_ANY}((-?[a-zA-Z0-9\p{{S}}\p{{L}}]{{0,62}})?)|"
    rf"({_ANY}(([a-zA-Z0-9-\p{{S}}\p{{L}}]{{0,61}}{_ANY})?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
)


def _is_hostname(text: str) -> bool:
    # Imported on first use: few definitions have this format.
    from ocf_server.cel.regexp import Regexp

    encoded = text.encode(errors="surrogatepass")
    if len(encoded) > _LONGEST_HOSTNAME or any(len(part) > _LONGEST_LABEL for part in encoded.split(b".")):
        return False
    return Regexp.parse(_HOSTNAME).matches(text)


def _is_uri(text: str) -> bool:
    from ocf_server.cel.urls import uri_problem

    return not uri_problem(text)


_ATOM: Final = r"[^\s\x00-\x1f\x7f()<>\[\]:;@\\,.\"]+"
_ADDRESS: Final = rf'({_ATOM}(\.{_ATOM})*|"([^"\\]|\\.)*")@({_ATOM}(\.{_ATOM})*|\[[^\[\]]*\])'
_IS_EMAIL: Final = _matches(rf'{_ADDRESS}|("([^"\\]|\\.)*"|[^\x00-\x1f\x7f()<>\[\]:;@\\,"])*<\s*{_ADDRESS}\s*>')
_BLANKS: Final = " \t\n\r\f\v"


def _is_email(text: str) -> bool:
    # Blanks are also part of a display name, so a pattern for both would try each way to divide them.
    return _IS_EMAIL(text.strip(_BLANKS))


def _is_ipv4(text: str) -> bool:
    parts = text.split(".")
    # Zeros in front are accepted, as earlier releases did.
    return len(parts) == _OCTETS and all(re.fullmatch(r"0*[0-9]{1,3}", part) and int(part) <= _OCTET for part in parts)


_OCTETS: Final = 4
_OCTET: Final = 255


def _is_ipv6(text: str, *, sloppy: bool = False) -> bool:
    start, colon, end = text.rpartition(":")
    if sloppy and colon and _is_ipv4(end):
        text = f"{start}:{'.'.join(str(int(part)) for part in end.split('.'))}"
    try:
        return not IPv6Address(text).scope_id and "%" not in text
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    address, slash, size = text.partition("/")
    most = 32 if _is_ipv4(address) else 128 if _is_ipv6(address, sloppy=True) else -1
    return bool(slash) and re.fullmatch(r"0*[0-9]{1,3}", size) is not None and int(size) <= most


_MAC: Final = re.compile(rf"{_HEX}{{2}}(([:-]){_HEX}{{2}})(\2{_HEX}{{2}})*|{_HEX}{{4}}(\.{_HEX}{{4}})+|{_HEX}+")
_MAC_DIGITS: Final = frozenset({12, 16, 40})


def _is_mac(text: str) -> bool:
    return _MAC.fullmatch(text) is not None and len(re.sub(r"[:.-]", "", text)) in _MAC_DIGITS


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text, flags=re.ASCII)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum(place * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]+", "", text, flags=re.ASCII)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


_IS_CARD: Final = _matches(
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}"
    r"|(2131|1800|35[0-9]{3})[0-9]{11}"
)


def _is_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return _IS_CARD(digits) and sum(number // 10 + number % 10 for number in doubled) % 10 == 0


def _uuid(third: str, fourth: str) -> Callable[[str], bool]:
    return _matches(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}")


_SHADE: Final = r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*"
_SSN: Final = 11
_BYTES: Final = "[A-Za-z0-9+/]"

_CHECKS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _matches(f"{_HEX}{{24}}"),
    "byte": _matches(f"({_BYTES}{{4}})*({_BYTES}{{2}}==|{_BYTES}{{3}}=|{_BYTES}{{4}})"),
    "cidr": _is_cidr,
    "creditcard": _is_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": _is_email,
    "hexcolor": _matches(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "hostname": _is_hostname,
    "ipv4": lambda text: _is_ipv4(text) or ("." in text and _is_ipv6(text, sloppy=True)),
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": lambda text: not dns_subdomain(text),
    "k8sshortname": lambda text: not dns_label(text),
    "mac": _is_mac,
    "password": lambda _text: True,
    "rgbcolor": _matches(rf"rgb\({_SHADE},{_SHADE},{_SHADE}\)"),
    "ssn": lambda text: len(text) == _SSN and re.fullmatch(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None,
    "uri": _is_uri,
    "uuid": _uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89abAB]{_HEX}{{3}}"),
}
