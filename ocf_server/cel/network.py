"""IP addresses and CIDRs in CEL, with the error texts of the Go package net/netip.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-ip-address-library and
https://pkg.go.dev/net/netip#ParseAddr.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_interface
from typing import Any, Final, TypeAlias

from ocf.objects.go_strings import go_quoted
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import CIDR, IP
from ocf_server.cel.values import EvaluationError, Opaque

__all__ = ["NETWORK", "AddressError", "parse_address"]

_Address: TypeAlias = IPv4Address | IPv6Address

_GROUPS: Final = 8
_OCTETS: Final = 4
_MOST: Final = 255
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
_LINK_LOCAL_MULTICAST: Final = IPv4Network("224.0.0.0/24")
_LINK_SCOPE: Final = 2
_BROADCAST: Final = IPv4Address("255.255.255.255")


class AddressError(Exception):
    """A text is not an IP address; the message is that of `netip.ParseAddr`."""

    def __init__(self, text: str, problem: str, at: str = "") -> None:
        super().__init__(f"ParseAddr({go_quoted(text)}): {problem}{f' (at {go_quoted(at)})' if at else ''}")


@dataclass(frozen=True, slots=True)
class _Ip(Opaque):
    """An IP address."""

    address: _Address
    kind: str = field(default=IP.name, init=False)


@dataclass(frozen=True, slots=True)
class _Cidr(Opaque):
    """An IP address with the length of its prefix."""

    address: _Address
    length: int
    kind: str = field(default=CIDR.name, init=False)

    def masked(self, address: _Address | None = None) -> _Address:
        """Return the first bits of an address, by default of its own."""
        given = address or self.address
        free = given.max_prefixlen - self.length
        return type(given)(int(given) >> free << free)

    def contains(self, address: _Address) -> bool:
        """Return whether an address has the same prefix."""
        return address.version == self.address.version and self.masked(address) == self.masked()


def parse_address(text: str) -> tuple[_Address, str]:
    """Parse an IP address as `netip.ParseAddr` does.

    Returns:
        The address, and its zone; empty without a zone.

    Raises:
        AddressError: If the text is not an address.

    Example:
        >>> parse_address("fe80::1%eth0")
        (IPv6Address('fe80::1'), 'eth0')
    """
    first = re.search(r"[.:%]", text)
    if first is None:
        raise AddressError(text, "unable to parse IP")
    if first[0] == "%":
        raise AddressError(text, "missing IPv6 address")
    if first[0] == ".":
        _check_octets(text, text)
        return IPv4Address(text), ""
    address, percent, zone = text.partition("%")
    if percent and not zone:
        raise AddressError(text, "zone must be a non-empty string")
    _check_groups(address, text)
    return IPv6Address(address), zone


def _check_octets(part: str, text: str) -> None:
    octet, dots = "", 0
    for index, char in enumerate(part):
        if char in "0123456789":
            if octet == "0":
                raise AddressError(text, "IPv4 field has octet with leading zero")
            octet += char
            if int(octet) > _MOST:
                raise AddressError(text, "IPv4 field has value >255")
        elif char != ".":
            raise AddressError(text, "unexpected character", part[index:])
        elif not octet or index == len(part) - 1:
            raise AddressError(text, "IPv4 field must have at least one digit", part[index:])
        elif dots == _OCTETS - 1:
            raise AddressError(text, "IPv4 address too long")
        else:
            octet, dots = "", dots + 1
    if dots < _OCTETS - 1:
        raise AddressError(text, "IPv4 address too short")


def _check_groups(address: str, text: str) -> None:
    elided = address.startswith("::")
    rest = address[2:] if elided else address
    groups = 0
    while groups < _GROUPS and (rest or not elided):
        digits = _HEX.match(rest)
        size = len(digits[0]) if digits else 0
        _check_group(rest, size, text)
        if rest[size : size + 1] == ".":
            _check_embedded(rest, groups, text, elided=elided)
            groups, rest = groups + 2, ""
            break
        groups, rest = groups + 1, rest[size:]
        if not rest:
            break
        rest = _after_colon(rest, text)
        if rest[0] == ":":
            if elided:
                raise AddressError(text, "multiple :: in address", rest)
            elided, rest = True, rest[1:]
    _check_end(text, groups, rest, elided=elided)


def _after_colon(rest: str, text: str) -> str:
    if rest[0] != ":":
        raise AddressError(text, "unexpected character, want colon", rest)
    if rest == ":":
        raise AddressError(text, "colon must be followed by more characters", rest)
    return rest[1:]


def _check_end(text: str, groups: int, rest: str, *, elided: bool) -> None:
    if rest:
        raise AddressError(text, "trailing garbage after address", rest)
    if groups < _GROUPS and not elided:
        raise AddressError(text, "address string too short")
    if groups == _GROUPS and elided:
        raise AddressError(text, "the :: must expand to at least one field of zeros")


def _check_group(rest: str, size: int, text: str) -> None:
    if size > 4:  # noqa: PLR2004
        raise AddressError(text, "each group must have 4 or less digits", rest)
    if size == 0:
        raise AddressError(text, "each colon-separated field must have at least one digit", rest)


def _check_embedded(rest: str, groups: int, text: str, *, elided: bool) -> None:
    if not elided and groups != _GROUPS - 2:
        problem = "embedded IPv4 address must replace the final 2 fields of the address"
        raise AddressError(text, problem, rest)
    if groups > _GROUPS - 2:
        problem = "too many hex fields to fit an embedded IPv4 at the end of the address"
        raise AddressError(text, problem, rest)
    _check_octets(rest, text)


def _ip(text: str) -> _Ip:
    try:
        address, zone = parse_address(text)
    except AddressError as error:
        raise EvaluationError(
            f"IP Address {go_quoted(text)} parse error during conversion from string: {error}"
        ) from None
    if zone:
        raise EvaluationError(f"IP address {go_quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        raise EvaluationError(f"IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return _Ip(address)


def _is_mapped(address: _Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


_CONVERSION: Final = "network address parse error during conversion from string: "


def _cidr(text: str) -> _Cidr:
    address, slash, length = text.rpartition("/")
    problem = ""
    if not slash:
        problem = "no '/'"
    else:
        try:
            parsed, zone = parse_address(address)
        except AddressError as error:
            problem = str(error)
        else:
            problem = _prefix_problem(parsed, zone, length)
    if problem:
        raise EvaluationError(f"{_CONVERSION * 2}netip.ParsePrefix({go_quoted(text)}): {problem}")
    if _is_mapped(ip_address(address)):
        raise EvaluationError(f"{_CONVERSION}IPv4-mapped IPv6 address {go_quoted(text)} is not allowed")
    return _Cidr(ip_interface(address).ip, int(length))


def _prefix_problem(address: _Address, zone: str, length: str) -> str:
    if zone:
        return "IPv6 zones cannot be present in a prefix"
    if not re.fullmatch(r"0|[1-9][0-9]*", length):
        return f"bad bits after slash: {go_quoted(length)}"
    return "prefix length out of range" if int(length) > address.max_prefixlen else ""


def _parses(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def parses(text: str) -> bool:
        try:
            read(text)
        except EvaluationError:
            return False
        return True

    return parses


def _contains_text(network: _Cidr, text: str) -> bool:
    try:
        return network.contains(_ip(text).address)
    except EvaluationError:
        raise EvaluationError("no such overload") from None


def _contains(network: _Cidr, other: _Cidr) -> bool:
    return network.length <= other.length and network.contains(other.address)


def _is_link_local_multicast(address: _Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in _LINK_LOCAL_MULTICAST
    # The lower half of the second byte is the scope, whose value for a link is 2.
    return address.is_multicast and address.packed[1] & 0x0F == _LINK_SCOPE


def _is_global(address: _Address) -> bool:
    special = (address.is_unspecified, address.is_loopback, address.is_multicast, address.is_link_local)
    return not any(special) and address != _BROADCAST


def _text(value: _Ip) -> str:
    return str(value.address)


NETWORK: Final[tuple[Function, ...]] = (
    overload("ip: string -> ip", _ip),
    overload("isIP: string -> bool", _parses(_ip)),
    overload("ip.isCanonical: string -> bool", lambda text: _text(_ip(text)) == text),
    overload("string: ip -> string", _text),
    overload("ip on family -> int", lambda value: value.address.version),
    overload("ip on isUnspecified -> bool", lambda value: value.address.is_unspecified),
    overload("ip on isLoopback -> bool", lambda value: value.address.is_loopback),
    overload("ip on isLinkLocalMulticast -> bool", lambda value: _is_link_local_multicast(value.address)),
    overload("ip on isLinkLocalUnicast -> bool", lambda value: value.address.is_link_local),
    overload("ip on isGlobalUnicast -> bool", lambda value: _is_global(value.address)),
    overload("cidr: string -> cidr", _cidr),
    overload("isCIDR: string -> bool", _parses(_cidr)),
    overload("string: cidr -> string", lambda value: f"{value.address}/{value.length}"),
    overload("cidr on containsIP: string -> bool", _contains_text),
    overload("cidr on containsIP: ip -> bool", lambda network, value: network.contains(value.address)),
    overload("cidr on containsCIDR: string -> bool", lambda network, text: _contains(network, _cidr(text))),
    overload("cidr on containsCIDR: cidr -> bool", _contains),
    overload("cidr on ip -> ip", lambda network: _Ip(network.address)),
    overload("cidr on prefixLength -> int", lambda network: network.length),
    overload("cidr on masked -> cidr", lambda network: _Cidr(network.masked(), network.length)),
)
"""The functions of the libraries of IP addresses and CIDRs."""
