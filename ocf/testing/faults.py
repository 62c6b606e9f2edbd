"""Faults between an operator and its cluster.

A fault states *what* happens and *when*: which requests it hits, from which matching request on, and how often. No
random numbers are involved, so a failing test fails again. `FaultyCluster` injects the faults.

Every function of this module returns a `Fault` and takes the keywords of `When`::

    conflict(kind="Deployment")                    the first write to a Deployment
    server_error(503, first=3, times=None)         every request from the third on
    stale(versions=2, kind="Shop", name="demo")    the next read of that Shop
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias, TypedDict, Unpack

from ocf.cluster import Request, Subresource, Verb
from ocf.errors import ApiError, BuildError, api_error

__all__ = [
    "Refusal",
    "Stale",
    "When",
    "conflict",
    "dropped_event",
    "expired",
    "lost_reply",
    "meanwhile",
    "rejected",
    "server_error",
    "stale",
    "timeout",
    "too_many_requests",
    "webhook_down",
    "webhook_responds",
    "webhook_slow",
    "webhook_untrusted",
]

_WRITES: Final = frozenset(verb for verb in Verb if not verb.is_read)
_ANY_SUBRESOURCE: Final = "*"
_SUBRESOURCES: Final = frozenset({_ANY_SUBRESOURCE, "", *Subresource})


@dataclass(frozen=True, slots=True)
class Refusal:
    """The request fails and has no effect.

    Args:
        error: The error; each request raises a copy.
    """

    error: ApiError


@dataclass(frozen=True, slots=True)
class LostReply:
    """The write succeeds, but the caller gets an error instead of the response."""


@dataclass(frozen=True, slots=True)
class Stale:
    """A read returns an older version of an object, like a cache that lags behind.

    Args:
        versions: How many versions older.
    """

    versions: int = 1


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """Something happens before the request reaches the server: another client writes, or time elapses.

    Args:
        hook: Awaited before the request is sent.
    """

    hook: Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class DroppedEvent:
    """An event of a watch is lost; bookmarks are not."""


@dataclass(frozen=True, slots=True)
class UnreachedWebhook:
    """A webhook cannot be called.

    Args:
        problem: Why, as the API server reports it.
    """

    problem: str


@dataclass(frozen=True, slots=True)
class SlowWebhook:
    """The request of the API server reaches a webhook late.

    Args:
        delay: How much later.
    """

    delay: timedelta


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """Something else than the webhook responds, such as a proxy.

    Args:
        body: The body of the response.
        status: Its HTTP status.
    """

    body: str
    status: int


WebhookEffect: TypeAlias = UnreachedWebhook | SlowWebhook | WebhookResponse
"""The effect of a fault between the API server and a webhook."""

Effect: TypeAlias = Refusal | LostReply | Stale | Meanwhile | DroppedEvent | WebhookEffect
"""The effect of a fault."""

_ALLOWED_VERBS: Final[dict[type, frozenset[Verb]]] = {
    Refusal: frozenset(Verb),
    LostReply: _WRITES,
    Stale: frozenset({Verb.GET, Verb.LIST}),
    Meanwhile: frozenset(Verb),
    DroppedEvent: frozenset({Verb.WATCH}),
    **dict.fromkeys(
        (UnreachedWebhook, SlowWebhook, WebhookResponse), frozenset({Verb.CREATE, Verb.UPDATE, Verb.DELETE})
    ),
}


class When(TypedDict, total=False):
    """The keywords of every function of this module: which requests a fault hits. An omitted keyword matches all.

    Attributes:
        verbs: The verbs; the default depends on the effect.
        api_version: Group and version of the kind.
        kind: The kind.
        namespace: The namespace; requests for all namespaces have none.
        name: Name of the object; for a stale list, the objects that are returned in an older version.
        subresource: `status`, `scale`, empty for the object itself, or `*` for all of these.
        first: The first matching request that is hit, counted from 1.
        times: How many matching requests in a row are hit; None for all that follow.
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
    """An effect and the requests it hits; created by the functions of this module.

    Args:
        effect: What happens.
        verbs: The verbs; empty for all to which the effect can happen.
        api_version: Group and version; empty for all.
        kind: The kind; empty for all.
        namespace: The namespace; empty for all.
        name: Name of the object; empty for all.
        subresource: The subresource; empty for the object itself, `*` for all.
        first: The first matching request that is hit, counted from 1.
        times: How many matching requests in a row are hit; None for all that follow.

    Raises:
        BuildError: If the fault could never happen; lists every reason.

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
    subresource: str = _ANY_SUBRESOURCE
    first: int = 1
    times: int | None = 1

    def __post_init__(self) -> None:
        problems = list(self._problems())
        if problems:
            raise BuildError(problems)

    def _problems(self) -> list[str]:
        allowed = _ALLOWED_VERBS[type(self.effect)]
        invalid = sorted(set(self.verbs) - allowed)
        effect = type(self.effect).__name__
        found = {
            f"{effect} cannot happen to {', '.join(invalid)}; it can to {', '.join(sorted(allowed))}": bool(invalid),
            f"first is counted from 1, got {self.first}": self.first < 1,
            f"times must be at least 1, or None for ever, got {self.times}": self.times is not None and self.times < 1,
            f'subresource must be "status", "scale", "" or "*", got "{self.subresource}"': (
                self.subresource not in _SUBRESOURCES
            ),
            "a stale read is at least 1 version behind": (isinstance(self.effect, Stale) and self.effect.versions < 1),
        }
        return [problem for problem, holds in found.items() if holds]

    def matches(self, request: Request) -> bool:
        """Return whether a request counts for this fault."""
        if request.verb not in (self.verbs or _ALLOWED_VERBS[type(self.effect)]):
            return False
        if self.subresource not in (_ANY_SUBRESOURCE, request.subresource or ""):
            return False
        wanted = [(self.api_version, request.api_version), (self.kind, request.kind)]
        if not (isinstance(self.effect, Stale) and request.verb is Verb.LIST):
            wanted += [(self.namespace, request.namespace), (self.name, request.name)]
        return all(mine in ("", theirs) for mine, theirs in wanted)

    def is_due(self, number: int) -> bool:
        """Return whether a matching request is hit.

        Args:
            number: Number of the request among the matching ones, from 1.
        """
        return number >= self.first and (self.times is None or number < self.first + self.times)


def rejected(error: ApiError, **when: Unpack[When]) -> Fault:
    """Reject a request with any error.

    Args:
        error: The error to raise, see `ocf.errors.api_error`.
        when: Which requests; every verb by default.
    """
    return Fault(effect=Refusal(error), **when)


def conflict(**when: Unpack[When]) -> Fault:
    """Reject a write because another client changed the object first (409).

    Args:
        when: Which requests; writes by default.

    Example:
        >>> conflict(kind="Shop", subresource="status").effect.error.code
        409
    """
    message = "the object has been modified; please apply your changes to the latest version and try again"
    return _by_default(_WRITES, Refusal(api_error(message, code=409, reason="Conflict")), when)


def too_many_requests(*, retry_after: float | None = 1.0, **when: Unpack[When]) -> Fault:
    """Reject a request because there are too many (429).

    Args:
        retry_after: The `Retry-After` of the response in seconds; None for none.
        when: Which requests; every verb by default.
    """
    message = "the server has received too many requests and has asked us to try again later"
    return rejected(api_error(message, code=429, reason="TooManyRequests", retry_after=retry_after), **when)


def server_error(code: int = 500, **when: Unpack[When]) -> Fault:
    """Fail a request with a server error; it has no effect.

    Args:
        code: HTTP status, 500 to 599.
        when: Which requests; every verb by default.

    Raises:
        BuildError: If the status is not a server error.
    """
    if code // 100 != 5:  # noqa: PLR2004 (the class of the status: RFC 9110, section 15.6)
        raise BuildError([f"a server error has a status from 500 to 599, got {code}"])
    reason = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}.get(code, "")
    return rejected(api_error("the server is currently unable to handle the request", code=code, reason=reason), **when)


def timeout(**when: Unpack[When]) -> Fault:
    """Lose a request before it reaches the server: there is no response, and the request has no effect.

    Args:
        when: Which requests; every verb by default.
    """
    return rejected(api_error("no answer arrived in time", code=0), **when)


def expired(**when: Unpack[When]) -> Fault:
    """Reject a watch or a list because its resource version is too old (410).

    Args:
        when: Which requests; watches by default.
    """
    error = api_error("too old resource version", code=410, reason="Expired")
    return _by_default(frozenset({Verb.WATCH}), Refusal(error), when)


def lost_reply(**when: Unpack[When]) -> Fault:
    """Lose the response of a write that succeeds, so that the caller cannot know whether it took effect.

    Args:
        when: Which requests; writes only.
    """
    return Fault(effect=LostReply(), **when)


def stale(*, versions: int = 1, **when: Unpack[When]) -> Fault:
    """Return older versions of objects; an object that did not exist then is not found, or missing in the list.

    Only versions that the faulty cluster has seen are available. If there are fewer, the oldest is returned.

    Args:
        versions: How many versions older.
        when: Which requests; gets and lists only.
    """
    return Fault(effect=Stale(versions), **when)


def meanwhile(hook: Callable[[], Awaitable[object]], **when: Unpack[When]) -> Fault:
    """Run a hook before a request reaches the server.

    Args:
        hook: Awaited before the request is sent: write as another client, advance a clock, wait for an event.
        when: Which requests; every verb by default.
    """
    return Fault(effect=Meanwhile(hook), **when)


def dropped_event(**when: Unpack[When]) -> Fault:
    """Lose an event of a watch; `first` and `times` count events, matched by namespace and name of their object.

    Args:
        when: Which events; of watches only.
    """
    return Fault(effect=DroppedEvent(), **when)


def webhook_down(**when: Unpack[When]) -> Fault:
    """Let the API server find a webhook down: no process listens.

    Faults of webhooks are for `ocf.testing.LocalWebhooks`. They count calls of webhooks: `verbs` are create, update and
    delete, whatever request of the client leads to them, and a write that two webhooks guard is two calls.

    Args:
        when: Which calls.

    Example:
        >>> webhook_down(kind="Pod", times=None).effect.problem
        'connect: connection refused'
    """
    return Fault(effect=UnreachedWebhook("connect: connection refused"), **when)


def webhook_untrusted(**when: Unpack[When]) -> Fault:
    """Let the API server not trust the certificate of a webhook, as while its `caBundle` is not the current one.

    Args:
        when: Which calls; see `webhook_down`.
    """
    problem = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    return Fault(effect=UnreachedWebhook(problem), **when)


def webhook_slow(delay: timedelta, **when: Unpack[When]) -> Fault:
    """Delay the call of a webhook; one that takes longer than its time limit fails. No wall clock time passes.

    Args:
        delay: How much later the request arrives.
        when: Which calls; see `webhook_down`.
    """
    return Fault(effect=SlowWebhook(delay), **when)


def webhook_responds(body: str = "<html>", *, status: int = 200, **when: Unpack[When]) -> Fault:
    """Let something else than the webhook respond, such as a proxy.

    Args:
        body: The body of the response.
        status: Its HTTP status.
        when: Which calls; see `webhook_down`.
    """
    return Fault(effect=WebhookResponse(body, status), **when)


def _by_default(verbs: frozenset[Verb], effect: Effect, when: When) -> Fault:
    given: When = {"verbs": verbs, **when}
    return Fault(effect=effect, **given)
