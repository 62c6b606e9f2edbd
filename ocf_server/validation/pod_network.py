"""Validation of names and addresses of a pod in the network.

Source: `validatePodDNSConfig`, `validatePodHostName` and `ValidateHostAliases` in
`pkg/apis/core/validation/validation.go` of Kubernetes.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ocf.objects.field_errors import FieldError, forbidden, invalid, required, too_long
from ocf.objects.name_validation import dns_subdomain
from ocf_server.validation.fields import each_problem

__all__ = ["dns_errors", "host_alias_errors", "hostname_errors", "ip_errors"]

_Json: TypeAlias = Mapping[str, Any]

# MaxDNSNameservers, MaxDNSSearchPaths and MaxDNSSearchListChars of pkg/apis/core/validation.
_MOST_SERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_LONGEST_SEARCH: Final = 2048
_LONGEST_NAME: Final = 253
# HOST_NAME_MAX of Linux.
_LONGEST_HOST: Final = 64
_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_DOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_is_domain: Final = re.compile(_DOMAIN).fullmatch
_has_leading_zero: Final = re.compile(r"(^|[.:])0[0-9]+\.|\.0[0-9]+$").search
_NO_DOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    f"start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_DOMAIN}')"
)


def ip_errors(value: str, path: str) -> Iterator[FieldError]:
    """Yield the errors of an IP address in a field that accepts any notation of it."""
    leading = _has_leading_zero(value)
    text = re.sub(r"(?<![0-9a-fA-F])0+(?=[0-9])", "", value) if leading else value
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if address is None or "%" in value:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        return
    if leading:
        yield invalid(path, value, "must not have leading 0s")
    elif isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        yield invalid(path, value, "must not be an IPv4-mapped IPv6 address")


def _search_domain(text: str) -> list[str]:
    found = [f"must be no more than {_LONGEST_NAME} characters"] if len(text) > _LONGEST_NAME else []
    return found if _is_domain(text) else [*found, _NO_DOMAIN]


def dns_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the DNS configuration of a pod."""
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield required(f"{path}.nameservers", detail)
            return
    if config is not None:
        yield from _config_errors(config, path)


def _config_errors(config: _Json, path: str) -> Iterator[FieldError]:
    servers, searches = config.get("nameservers", []), config.get("searches", [])
    if len(servers) > _MOST_SERVERS:
        yield invalid(f"{path}.nameservers", servers, f"must not have more than {_MOST_SERVERS} nameservers")
    for index, server in enumerate(servers):
        yield from ip_errors(server, f"{path}.nameservers[{index}]")
    if len(searches) > _MOST_SEARCHES:
        yield invalid(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _LONGEST_SEARCH:
        detail = f"must not have more than {_LONGEST_SEARCH} characters (including spaces) in the search list"
        yield invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        # A single dot is the root: no search.
        if search != ".":
            yield from each_problem(_search_domain, search.removesuffix("."), f"{path}.searches[{index}]")
    for index, option in enumerate(config.get("options", ())):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def hostname_errors(spec: _Json, path: str) -> Iterator[FieldError]:
    """Yield the errors of the name that overrides the host name of a pod."""
    name, place = spec.get("hostnameOverride"), f"{path}.hostnameOverride"
    if name is None:
        return
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(place, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        yield forbidden(place, "may not be specified when hostNetwork is true")
    if len(name.encode(errors="surrogatepass")) > _LONGEST_HOST:
        yield too_long(place, _LONGEST_HOST)
    yield from each_problem(dns_subdomain, name, place)


def host_alias_errors(aliases: Sequence[_Json], path: str) -> Iterator[FieldError]:
    """Yield the errors of entries of the hosts file."""
    for index, alias in enumerate(aliases):
        yield from ip_errors(alias.get("ip", ""), f"{path}[{index}].ip")
        for position, name in enumerate(alias.get("hostnames", ())):
            yield from each_problem(dns_subdomain, name, f"{path}[{index}].hostnames[{position}]")
