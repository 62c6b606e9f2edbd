"""What can go wrong between an operator and its cluster, as values.

A fault says *what* happens and *when*: to which requests, from the how-manieth on, and how often. Nothing is left to
chance, so a test that fails fails again. `FaultyCluster` makes them happen.

Every function here returns a `Fault` and takes the keywords of `When`::

    conflict(kind="Deployment")                    the first write to a Deployment
    server_error(503, first=3, times=None)         every request from the third on
    stale(versions=2, kind="Shop", name="demo")    the next read of that Shop
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeAlias, TypedDict, Unpack

from ocf.cluster import Request, Subresource, Verb
from ocf.errors import ApiError, BuildError, api_error

__all__ = [
    "DroppedEvent",
    "Effect",
    "Fault",
    "LostReply",
    "Meanwhile",
    "Refusal",
    "Stale",
    "When",
    "conflict",
    "dropped_event",
    "expired",
    "lost_reply",
    "meanwhile",
    "refused",
    "server_error",
    "stale",
    "timeout",
    "too_many_requests",
]

_WRITES: Final = frozenset(verb for verb in Verb if not verb.is_read)
_EVERY_PART: Final = "*"
_PARTS: Final = frozenset({_EVERY_PART, "", *Subresource})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The request fails and has done nothing.

    Args:
        error: What is raised, each time a new one like it.
    """

    error: ApiError


@dataclass(frozen=True, slots=True)
class LostReply:
    """The write is done, and the caller gets an error instead of the answer."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A read shows an object as it was, as a cache does that lags behind.

    Args:
        versions: How many versions of the object ago.
    """

    versions: int = 1


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Something happens while the request is on its way: somebody else writes, or time passes.

    Args:
        hook: Awaited before the request arrives.
    """

    hook: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class DroppedEvent:
    """An event of a watch never arrives; bookmarks do."""


Effect: TypeAlias = Refusal | LostReply | Stale | Meanwhile | DroppedEvent
"""What happens."""

_FITTING: Final[dict[type, frozenset[Verb]]] = {
    Refusal: frozenset(Verb),
    LostReply: _WRITES,
    Stale: frozenset({Verb.GET, Verb.LIST}),
    Meanwhile: frozenset(Verb),
    DroppedEvent: frozenset({Verb.WATCH}),
}


class When(TypedDict, total=False):
    """The keywords of every function of this module: which requests are hit. What is not said matches everything.

    Attributes:
        verbs: What the request does; where it is not said, what the effect usually befalls.
        api_version: Group and version of the kind.
        kind: The kind.
        namespace: The namespace; a request for all namespaces has none.
        name: Name of the object; of a stale list, which objects in it are shown as they were.
        subresource: `status`, `scale`, empty for the object itself, or `*` for all of these.
        first: The first of the matching requests that is hit, counted from 1.
        times: How many in a row are hit; None for all from there on.
    """

    verbs: Collection[Verb]
    api_version: str
    kind: str
    namespace: str
    name: str
    subresource: str
    first: int
    times: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that goes wrong, and when; made by the functions of this module.

    Args:
        effect: What happens.
        verbs: To which verbs; empty for all that the effect fits.
        api_version: To which group and version; empty for all, likewise the next ones.
        kind: To which kind.
        namespace: In which namespace.
        name: To which object.
        subresource: Through which subresource; empty for the object itself, `*` for all.
        first: The first of the matching requests that is hit, counted from 1.
        times: How many in a row are hit; None for all from there on.

    Raises:
        BuildError: If it could never happen; with every reason.

    Example:
        >>> second = Fault(effect=LostReply(), kind="Shop", first=2)
        >>> write = Request(Verb.UPDATE, "example.com/v1", "Shop", "eu", "demo")
        >>> second.matches(write), [number for number in range(1, 5) if second.is_due(number)]
        (True, [2])
    """

    effect: Effect
    verbs: Collection[Verb] = frozenset()
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = _EVERY_PART
    first: int = 1
    times: int | None = 1

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise BuildError(problems)

    def _problems(self) -> list[str]:
        fitting = _FITTING[type(self.effect)]
        unfit = sorted(set(self.verbs) - fitting)
        effect = type(self.effect).__name__
        found = {
            f"{effect} cannot happen to {', '.join(unfit)}; it can to {', '.join(sorted(fitting))}": bool(unfit),
            f"first is counted from 1, got {self.first}": self.first < 1,
            f"times must be at least 1, or None for ever, got {self.times}": self.times is not None and self.times < 1,
            f'subresource must be "status", "scale", "" or "*", got "{self.subresource}"': (
                self.subresource not in _PARTS
            ),
            "a stale read is at least 1 version behind": (isinstance(self.effect, Stale) and self.effect.versions < 1),
        }
        return [problem for problem, holds in found.items() if holds]

    def matches(self, request: Request) -> bool:
        """Tell whether a request is one of those that are counted for this fault.

        Args:
            request: The request.
        """
        if request.verb not in (self.verbs or _FITTING[type(self.effect)]):
            return False
        if self.subresource not in (_EVERY_PART, request.subresource or ""):
            return False
        wanted = [(self.api_version, request.api_version), (self.kind, request.kind)]
        if not (isinstance(self.effect, Stale) and request.verb is Verb.LIST):
            wanted += [(self.namespace, request.namespace), (self.name, request.name)]
        return all(mine in ("", theirs) for mine, theirs in wanted)

    def is_due(self, number: int) -> bool:
        """Tell whether one of the matching requests is hit.

        Args:
            number: The how-manieth it is, from 1.
        """
        return number >= self.first and (self.times is None or number < self.first + self.times)


def refused(error: ApiError, **when: Unpack[When]) -> Fault:
    """Refuse a request with any error.

    Args:
        error: What is raised, see `ocf.errors.api_error`.
        when: Which requests; every verb by default.
    """
    return Fault(effect=Refusal(error), **when)


def conflict(**when: Unpack[When]) -> Fault:
    """Refuse a write because somebody else was faster (409).

    Args:
        when: Which requests; writes by default.

    Example:
        >>> conflict(kind="Shop", subresource="status").effect.error.code
        409
    """
    message = "the object has been modified; please apply your changes to the latest version and try again"
    return _by_default(_WRITES, Refusal(api_error(message, code=409, reason="Conflict")), when)


def too_many_requests(*, retry_after: float | None = 1.0, **when: Unpack[When]) -> Fault:
    """Refuse a request because there are too many (429).

    Args:
        retry_after: Seconds that the server asks to wait; None if it does not say.
        when: Which requests; every verb by default.
    """
    message = "the server has received too many requests and has asked us to try again later"
    return refused(api_error(message, code=429, reason="TooManyRequests", retry_after=retry_after), **when)


def server_error(code: int = 500, **when: Unpack[When]) -> Fault:
    """Fail a request on the server's side, before it did anything.

    Args:
        code: HTTP status, 500 to 599.
        when: Which requests; every verb by default.

    Raises:
        BuildError: If the status is none of a server's failure.
    """
    if code // 100 != 5:  # noqa: PLR2004 (the class of the status: RFC 9110, section 15.6)
        raise BuildError([f"a failure of the server has a status from 500 to 599, got {code}"])
    reason = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}.get(code, "")
    return refused(api_error("the server is currently unable to handle the request", code=code, reason=reason), **when)


def timeout(**when: Unpack[When]) -> Fault:
    """Let a request be lost on its way there: no answer arrives, and nothing was done.

    Args:
        when: Which requests; every verb by default.
    """
    return refused(api_error("no answer arrived in time", code=0), **when)


def expired(**when: Unpack[When]) -> Fault:
    """Refuse a watch or a list because it starts too far in the past (410).

    Args:
        when: Which requests; watches by default.
    """
    error = api_error("too old resource version", code=410, reason="Expired")
    return _by_default(frozenset({Verb.WATCH}), Refusal(error), when)


def lost_reply(**when: Unpack[When]) -> Fault:
    """Do a write and lose the answer, so that the caller cannot know whether it was done.

    Args:
        when: Which requests; writes only.
    """
    return Fault(effect=LostReply(), **when)


def stale(*, versions: int = 1, **when: Unpack[When]) -> Fault:
    """Show objects as they were some versions ago; one that did not exist then is not found, or not in the list.

    Only versions that passed through the faulty cluster are known. Of an object with fewer the oldest is shown.

    Args:
        versions: How many versions ago.
        when: Which requests; gets and lists only.
    """
    return Fault(effect=Stale(versions), **when)


def meanwhile(hook: Callable[[], Awaitable[object]], **when: Unpack[When]) -> Fault:
    """Let something happen while a request is on its way.

    Args:
        hook: Awaited before the request arrives: write as somebody else, advance a clock, wait for an event.
        when: Which requests; every verb by default.
    """
    return Fault(effect=Meanwhile(hook), **when)


def dropped_event(**when: Unpack[When]) -> Fault:
    """Lose an event of a watch; what is counted are events, by the namespace and name of their object.

    Args:
        when: Which events; of watches only.
    """
    return Fault(effect=DroppedEvent(), **when)


def _by_default(verbs: frozenset[Verb], effect: Effect, when: When) -> Fault:
    given: When = {"verbs": verbs, **when}
    return Fault(effect=effect, **given)
