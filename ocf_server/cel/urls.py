"""URLs in CEL, with the error texts of the Go package net/url.

Source: https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-url-library and
https://pkg.go.dev/net/url#ParseRequestURI.
"""

import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from ocf.objects.go_strings import go_quoted
from ocf_server.cel.network import AddressError, parse_address
from ocf_server.cel.overloads import Function, overload
from ocf_server.cel.types import URL
from ocf_server.cel.values import EvaluationError, Opaque

__all__ = ["URLS", "names_host", "uri_problem"]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PORT: Final = re.compile(r"(:[0-9]*)?")
_USER: Final = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_WELL_FORMED: Final = re.compile(r"%[0-9a-fA-F]{2}")
_IN_HOST: Final = re.compile(r"""[A-Za-z0-9._~!$&'()*+,;=:\[\]<>"-]""")
_IN_PATH: Final = "$&+,/:;=@"
_ENCODED_PATH: Final = re.compile(r"([A-Za-z0-9._~$&+,/:;=@!'()*\[\]-]|%[0-9a-fA-F]{2})*")
_PERCENT: Final = "%25"


class _UrlError(Exception):
    """A text is not a URL; the message is that of the Go package."""


@dataclass(frozen=True, slots=True)
class _Url(Opaque):
    """A URL.

    Args:
        scheme: Its scheme, in lower case; empty without a scheme.
        host: Its unescaped host, with the port.
        path: Its path, as written; empty for an opaque URL.
        query: Its query, as written.
    """

    text: str
    scheme: str = ""
    host: str = ""
    path: str = ""
    query: str = ""
    kind: str = field(default=URL.name, init=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Url) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def name_and_port(self) -> tuple[str, str]:
        """Return the name in the host, without brackets, and the port."""
        name, colon, port = self.host.rpartition(":")
        if not colon or (not port.isdecimal() and port):
            name, port = self.host, ""
        return (name[1:-1] if name.startswith("[") and name.endswith("]") else name), port

    def escaped_path(self) -> str:
        """Return the path with its characters escaped, where they need it."""
        if _ENCODED_PATH.fullmatch(self.path):
            return self.path
        return "*" if self.path == "*" else quote_from_bytes(unquote_to_bytes(self.path), safe=_IN_PATH)

    def parameters(self) -> dict[str, list[str]]:
        """Return the values of the query by their names; parts that cannot be parsed are left out."""
        found: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            if not part or ";" in part or _bad_escape(part):
                continue
            name, _, value = (_unescaped(side.replace("+", " ")) for side in part.partition("="))
            found.setdefault(name, []).append(value)
        return found


def _unescaped(text: str) -> str:
    return unquote_to_bytes(text).decode(errors="replace")


def _bad_escape(text: str) -> str:
    """Return the first malformed escape of a text; empty if there is none."""
    for found in re.finditer("%", text):
        if not _WELL_FORMED.match(text, found.start()):
            return text[found.start() : found.start() + 3]
    return ""


def _check_escapes(text: str) -> None:
    if bad := _bad_escape(text):
        raise _UrlError(f"invalid URL escape {go_quoted(bad)}")


def _parsed(text: str, *, request: bool) -> _Url:
    """Parse a URL; `request` demands an absolute URL or path, in which `#` has no meaning."""
    if _CONTROL.search(text):
        raise _UrlError("net/url: invalid control character in URL")
    if not text and request:
        raise _UrlError("empty url")
    if text == "*":
        return _Url(text, path="*")
    if text.startswith(":"):
        raise _UrlError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    rest, _, query = text[found.end() if found else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return _Url(text, scheme, query=query)
        if request:
            raise _UrlError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _UrlError("first path segment in URL cannot contain colon")
    host = ""
    if rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host_of(scheme, authority), slash + path
    _check_escapes(rest)
    return _Url(text, scheme, host, rest, query)


def _host_of(scheme: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    parsed = _host(scheme, host)
    if at:
        if not _USER.fullmatch(user):
            raise _UrlError("net/url: invalid userinfo")
        _check_escapes(user)
    return parsed


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _UrlError("invalid IP-literal")
    if bracket == 0:
        return _literal(host)
    first, last = host.find(":"), host.rfind(":")
    if first >= 0:
        _check_port(host[first if scheme in ("http", "https") else last :])
    return _unescaped_host(host)


def _literal(host: str) -> str:
    end = host.rfind("]")
    if end < 0:
        raise _UrlError("missing ']' in host")
    _check_port(host[end + 1 :])
    name, percent, zone = host[1:end].partition(_PERCENT)
    whole = _unescaped_host(name) + _unescaped(percent + zone)
    try:
        address, _ = parse_address(whole)
    except AddressError as error:
        raise _UrlError(f"invalid host: {error}") from None
    if address.version == 4:  # noqa: PLR2004
        raise _UrlError("invalid IP-literal")
    return f"[{whole}]{host[end + 1 :]}"


def _check_port(port: str) -> None:
    if not _PORT.fullmatch(port):
        raise _UrlError(f"invalid port {go_quoted(port)} after host")


def _unescaped_host(host: str) -> str:
    index = 0
    while index < len(host):
        char = host[index]
        if char == "%":
            escape = host[index : index + 3]
            # In a host only characters outside ASCII may be escaped, and the percent sign itself.
            if not _WELL_FORMED.fullmatch(escape) or (escape[1] in "01234567" and escape != _PERCENT):
                raise _UrlError(f"invalid URL escape {go_quoted(escape)}")
            index += 2
        elif char.isascii() and not _IN_HOST.fullmatch(char):
            raise _UrlError(f"invalid character {go_quoted(char)} in host name")
        index += 1
    return _unescaped(host)


def uri_problem(text: str) -> str:
    """Return the error of `url.ParseRequestURI` for a text; empty if it is a URL.

    Example:
        >>> uri_problem("a/b")
        'parse "a/b": invalid URI for request'
    """
    try:
        _parsed(text, request=True)
    except _UrlError as error:
        return f"parse {go_quoted(text)}: {error}"
    return ""


def names_host(text: str) -> bool:
    """Return whether a text is a URL with a scheme and a host."""
    try:
        url = _parsed(text, request=True)
    except _UrlError:
        return False
    return bool(url.scheme and url.host)


def _url(text: str) -> _Url:
    problem = uri_problem(text)
    if not problem:
        try:
            return _parsed(text.partition("#")[0], request=False)
        except _UrlError as error:
            problem = f"parse {go_quoted(text)}: {error}"
    raise EvaluationError(f"URL parse error during conversion from string: {problem}")


URLS: Final[tuple[Function, ...]] = (
    overload("url: string -> url", _url),
    overload("isURL: string -> bool", lambda text: not uri_problem(text)),
    overload("url on getScheme -> string", lambda url: url.scheme),
    overload("url on getHost -> string", lambda url: url.host),
    overload("url on getHostname -> string", lambda url: url.name_and_port()[0]),
    overload("url on getPort -> string", lambda url: url.name_and_port()[1]),
    overload("url on getEscapedPath -> string", _Url.escaped_path),
    overload("url on getQuery -> map(string, list(string))", _Url.parameters),
)
"""The functions of the library of URLs."""
