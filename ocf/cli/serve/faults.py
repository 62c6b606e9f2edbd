"""Faults in the format of the command line and of requests to a running server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ocf.cluster.request_log import Verb
from ocf.errors import BuildError, ConfigError
from ocf.testing import faults
from ocf.testing.faults import Fault

__all__ = ["read_fault", "read_faults"]

_MAKERS: Final[Mapping[str, Callable[..., Fault]]] = {
    made.__name__: made
    for made in (
        faults.conflict,
        faults.dropped_event,
        faults.expired,
        faults.lost_reply,
        faults.server_error,
        faults.stale,
        faults.timeout,
        faults.too_many_requests,
    )
}
_OWN: Final[Mapping[str, Mapping[str, Callable[[str], Any]]]] = {
    "server_error": {"code": int},
    "stale": {"versions": int},
    "too_many_requests": {"retry_after": float},
}
_FOREVER: Final = "forever"


def _times(text: str) -> int | None:
    return None if text == _FOREVER else int(text)


def _verbs(text: str) -> frozenset[Verb]:
    return frozenset(map(Verb, text.split("+")))


_WHEN: Final[Mapping[str, Callable[[str], Any]]] = {
    "api_version": str,
    "first": int,
    "kind": str,
    "name": str,
    "namespace": str,
    "subresource": str,
    "times": _times,
    "verbs": _verbs,
}


def read_fault(text: str) -> Fault:
    """Parse a fault.

    Example:
        >>> read_fault("server-error,code=503,verbs=get+list,times=forever").verbs == {Verb.GET, Verb.LIST}
        True
    """
    name, *pairs = (part.strip() for part in text.split(","))
    maker = _MAKERS.get(name.replace("-", "_"))
    if maker is None:
        raise ConfigError(f'unknown fault "{name}": must be one of {", ".join(sorted(_MAKERS))}')
    known = {**_WHEN, **_OWN.get(maker.__name__, {})}
    try:
        return maker(**dict(_keyword(pair, known, text) for pair in pairs))
    except BuildError as error:
        raise ConfigError(f'fault "{text}": {"; ".join(error.problems)}') from error


def _keyword(pair: str, known: Mapping[str, Callable[[str], Any]], text: str) -> tuple[str, Any]:
    name, _, value = pair.partition("=")
    name = name.replace("-", "_")
    if name not in known:
        raise ConfigError(f'fault "{text}": unknown keyword "{name}": must be one of {", ".join(sorted(known))}')
    try:
        return name, known[name](value)
    except ValueError:
        allowed = f"{', '.join(Verb)}, joined by +" if name == "verbs" else "a number"
        raise ConfigError(f'fault "{text}": {name} must be {allowed}, got "{value}"') from None


def read_faults(texts: Iterable[str]) -> list[Fault]:
    """Parse several faults; see `read_fault`."""
    return [read_fault(text) for text in texts]
