"""Validation of IP addresses and CIDRs.

Source: `pkg/util/validation/ip.go` of apimachinery, with strict validation as the feature gate `StrictIPCIDRValidation`
sets it by default, and `ValidateEndpointIP` in `pkg/apis/core/validation/validation.go` of Kubernetes.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from ocf.objects.field_errors import FieldError, invalid

__all__ = [
    "Address",
    "Network",
    "address_errors",
    "address_warnings",
    "endpoint_errors",
    "network_errors",
    "network_warnings",
    "parse_address",
    "parse_network",
]

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

# An IPv4 address is the last 32 of the 128 bits.
_MAPPED_BITS: Final = 96
_LINK_LOCAL_MULTICAST: Final = (IPv4Network("224.0.0.0/24"), IPv6Network("ff02::/16"))


def parse_address(text: str) -> Address | None:
    """Return an address as the API server reads it, or None if it is malformed.

    Numbers of an IPv4 address may have leading zeros, and an IPv4-mapped IPv6 address is an IPv4 address.

    Example:
        >>> parse_address("010.0.0.1"), parse_address("::ffff:10.0.0.1"), parse_address("10.0.0")
        (IPv4Address('10.0.0.1'), IPv4Address('10.0.0.1'), None)
    """
    if "%" in text:
        return None
    try:
        address = ip_address(_without_zeros(text))
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def parse_network(text: str) -> Network | None:
    """Return a CIDR as the API server reads it, without the bits of the host, or None if it is malformed.

    Example:
        >>> parse_network("10.0.0.1/8"), parse_network("10.0.0.0")
        (IPv4Network('10.0.0.0/8'), None)
    """
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or not length.isascii() or "%" in address:
        return None
    try:
        network = ip_network((_without_zeros(address), int(length)), strict=False)
    except ValueError:
        return None
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:
        return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def _without_zeros(text: str) -> str:
    """Return an IPv4 address without leading zeros; other texts are returned as they are."""
    parts = text.split(".")
    if ":" in text or not all(part.isdecimal() and part.isascii() for part in parts):
        return text
    return ".".join(str(int(part)) for part in parts)


def address_errors(text: str, path: str, *, canonical: bool = False) -> Iterator[FieldError]:
    """Yield the errors of an IP address.

    Args:
        canonical: Whether only the canonical form is valid, as in newer fields.
    """
    address = parse_address(text)
    if address is None:
        yield invalid(path, text, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    elif isinstance(address, IPv4Address) and ":" in text:
        yield invalid(path, text, "must not be an IPv4-mapped IPv6 address")
    elif _without_zeros(text) != text:
        yield invalid(path, text, "must not have leading 0s")
    elif canonical and str(address) != text:
        yield invalid(path, text, f'must be in canonical form ("{address}")')


def network_errors(text: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of a CIDR."""
    network = parse_network(text)
    address, _, length = text.partition("/")
    if network is None:
        yield invalid(path, text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    elif _without_zeros(address) != address or (length.startswith("0") and length != "0"):
        yield invalid(path, text, "must not have leading 0s in IP or prefix length")
    elif isinstance(parse_address(address), IPv4Address) and ":" in address:
        yield invalid(path, text, "must not have an IPv4-mapped IPv6 address")
    elif parse_address(address) != network.network_address:
        yield invalid(path, text, "must not have bits set beyond the prefix length")


def _is_mapped(address: str) -> bool:
    return isinstance(parse_address(address), IPv4Address) and ":" in address


def address_warnings(text: str, path: str) -> Iterator[str]:
    """Yield the warnings about an IP address that is valid, but not in the canonical form.

    Example:
        >>> print(*address_warnings("010.0.0.1", "ip"))
        ip: non-standard IP address "010.0.0.1" is invalid: use "10.0.0.1"
    """
    address = parse_address(text)
    if address is None:
        return
    if _without_zeros(text) != text or _is_mapped(text):
        yield f'{path}: non-standard IP address "{text}" is invalid: use "{address}"'
    elif isinstance(address, IPv6Address) and str(address) != text:
        yield f'{path}: IPv6 address "{text}" should be in RFC 5952 canonical format ("{address}")'


def network_warnings(text: str, path: str) -> Iterator[str]:
    """Yield the warnings about a CIDR that is valid, but not in the canonical form.

    Example:
        >>> print(*network_warnings("10.0.0.1/8", "cidr"))
        cidr: CIDR value "10.0.0.1/8" is ambiguous in this context (should be "10.0.0.0/8" or "10.0.0.1/32"?)
    """
    network = parse_network(text)
    start, _, length = text.partition("/")
    address = parse_address(start)
    if network is None or address is None:
        return
    is_ambiguous = address != network.network_address
    if is_ambiguous:
        single = f"{address}/{network.max_prefixlen}"
        yield f'{path}: CIDR value "{text}" is ambiguous in this context (should be "{network}" or "{single}"?)'
    if _without_zeros(start) != start or (length.startswith("0") and length != "0") or _is_mapped(start):
        yield f'{path}: non-standard CIDR value "{text}" is invalid: use "{network}"'
    elif not is_ambiguous and isinstance(network, IPv6Network) and str(network) != text:
        yield f'{path}: IPv6 CIDR value "{text}" should be in RFC 5952 canonical format ("{network}")'


def endpoint_errors(text: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of an address that cannot be that of an endpoint."""
    address = parse_address(text)
    if address is None:
        yield invalid(path, text, "must be a valid IP address")
        return
    if address.is_unspecified:
        yield invalid(path, text, f"may not be unspecified ({text})")
    if address.is_loopback:
        yield invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        yield invalid(path, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if any(address in network for network in _LINK_LOCAL_MULTICAST):
        yield invalid(path, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
