"""Choice of the proxy, as Go's `net/http` reads `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.

The rules are those of `golang.org/x/net/http/httpproxy`, so that a client of a cluster behaves as `kubectl` does in the
same environment: CIDR ranges, ports and `*.` are understood, names match their subdomains, `localhost` and loopback
addresses are never proxied, and `ALL_PROXY` is not read.
"""

from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from ocf.errors import ConfigError

__all__ = ["environment_proxy", "is_excluded", "proxy_address"]

_Address: TypeAlias = IPv4Address | IPv6Address
_Network: TypeAlias = IPv4Network | IPv6Network

_PORTS: Final = {"http": "80", "https": "443"}
_SUPPORTED: Final = ("http", "https")
_MAPPED_BITS: Final = 96  # of an IPv4 address inside IPv6


def environment_proxy(url: str, environ: Mapping[str, str]) -> str:
    """Return the proxy that the environment sets for an address.

    Args:
        environ: The environment variables; a name in upper case precedes the one in lower case.

    Returns:
        URL of the proxy; empty for a direct connection.

    Example:
        >>> environ = {"HTTPS_PROXY": "proxy:3128", "NO_PROXY": "10.0.0.0/8,.internal"}
        >>> environment_proxy("https://api.example.com:6443", environ)
        'http://proxy:3128'
        >>> environment_proxy("https://10.1.2.3:6443", environ)
        ''
    """
    scheme = urlsplit(url).scheme
    if scheme not in _PORTS:
        return ""
    name = f"{scheme}_proxy"
    proxy = _variable(environ, name)
    if not proxy or is_excluded(url, _variable(environ, "no_proxy")):
        return ""
    if scheme == "http" and environ.get("REQUEST_METHOD"):
        # A client of a CGI script sets HTTP_PROXY by a header "Proxy".
        raise ConfigError("HTTP_PROXY is not used in a CGI script; unset it, or set proxy-url in the kubeconfig")
    parts = urlsplit(proxy)
    if not (parts.scheme and parts.netloc):
        proxy = f"http://{proxy}"
    return proxy_address(proxy, name.upper())


def proxy_address(url: str, where: str) -> str:
    """Check the address of a proxy."""
    try:
        parts = urlsplit(url)
        valid, scheme = bool(parts.hostname) and parts.port != 0, parts.scheme
    except ValueError:
        valid, scheme = False, "http"
    if scheme not in _SUPPORTED:
        raise ConfigError(f"{where}: proxies of type {scheme!r} are not supported; supported: {', '.join(_SUPPORTED)}")
    if not valid:
        raise ConfigError(f"{where}: not the URL of a proxy; expected http://host:port")
    return url


def is_excluded(url: str, no_proxy: str) -> bool:
    """Return whether an address is connected to directly, although there is a proxy.

    Args:
        no_proxy: The value of `NO_PROXY`: names, addresses and CIDR ranges, separated by commas.
    """
    host, port = _host_and_port(url)
    address = _address(host.partition("%")[0])
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(entry.strip().lower(), host.lower(), port, address) for entry in no_proxy.split(","))


class _Entry(NamedTuple):
    host: str
    port: str


def _matches(entry: str, host: str, port: str, address: _Address | None) -> bool:
    """Return whether one entry of `NO_PROXY` names a server."""
    if entry == "*":
        return True
    network = _network(entry)
    if network is not None:
        return address is not None and address in network
    name = _split(entry) or _Entry(entry, "")
    if not name.host or (name.port and name.port != port):
        return False
    wanted = _address(name.host)
    if wanted is not None or address is not None:
        return wanted is not None and wanted == address
    suffix = name.host.removeprefix("*")
    if suffix.startswith("."):
        return host.endswith(_ascii(suffix))
    return host == _ascii(name.host) or host.endswith("." + _ascii(name.host))


def _split(text: str) -> _Entry | None:
    """Split host and port, as `net.SplitHostPort` does; None without a port, or if brackets or colons do not fit."""
    colon = text.rfind(":")
    if colon < 0:
        return None
    host, rest, port = text[:colon], text[:colon], text[colon + 1 :]
    if text.startswith("["):
        if text.find("]") != colon - 1:
            return None
        host = rest = text[1 : colon - 1]
    elif ":" in host:
        return None
    return None if set("[]") & set(rest + port) else _Entry(host, port)


def _address(text: str) -> _Address | None:
    """Return an IP address, one of IPv4 inside IPv6 as IPv4; None for anything else."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return None if address.scope_id else address.ipv4_mapped or address
    return address


def _network(text: str) -> _Network | None:
    """Return a CIDR range; None for anything else."""
    base, slash, bits = text.partition("/")
    if not slash or not (bits.isascii() and bits.isdigit()) or "%" in base:
        return None
    try:
        network = ip_network(f"{base}/{int(bits)}", strict=False)
    except ValueError:
        return None
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:
        return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def _host_and_port(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    _, _, location = parts.netloc.rpartition("@")
    split = _split(location)
    host, port = (split.host, split.port) if split else (location.strip("[]"), "")
    return _ascii(host), port or _PORTS.get(parts.scheme, "")


def _ascii(name: str) -> str:
    """Return an international name as it is sent to name servers; names that cannot be converted are kept."""
    if name.isascii():
        return name
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""
