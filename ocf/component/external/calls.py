"""Calls of external systems: limits, circuit breakers and backoff, which outlive a reconcile.

A call is a task of its own. A reconcile waits for it only briefly, so a target that hangs holds no worker; the answer
is taken by the next reconcile, which the end of the call asks for. All of it is kept in the memory of the process:
after a restart each target gets a new chance.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ocf.component.author_code import is_cancelled
from ocf.concepts import Clock
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ApiError, OcfError, ProviderUnavailableError, failure_text
from ocf.objects import Manifest

__all__ = ["ExternalCalls", "Failure", "Flight", "Health", "Held", "Known", "Verb", "failure_of"]

_log: Final = logging.getLogger(__name__)
_THRESHOLD: Final = 3
"""How many calls to a target fail in a row before it is not called for a while."""
_OPEN: Final = ExponentialBackoff(timedelta(seconds=5), timedelta(minutes=5), jitter=0)
_RETRY: Final = ExponentialBackoff(timedelta(seconds=1), timedelta(minutes=5), jitter=0)
_LONGEST: Final = timedelta(hours=1)
"""The longest delay of a `Retry-After` that is obeyed: a server that asks for a year would never be seen to recover."""
_HIGHEST: Final = 2 * _LONGEST.total_seconds()  # there are numbers that a timedelta does not hold
_END: Final = timedelta(seconds=2)
"""How long a call may take to end after its cancellation."""
_LATEST: Final = timedelta(minutes=5)
"""After which time at the latest an owner asks whether it is its turn at a target."""
_IDLE: Final = 2 * _LONGEST
"""After which time without a need for a call a target is forgotten: an owner that waits for one asks again before."""
_MOST: Final = 10_000
_WOKEN: Final = 2
_TOO_MANY, _SERVER_ERROR = 429, 500


class Verb(StrEnum):
    """A call of a client."""

    READ = "read"
    APPLY = "apply"
    DELETE = "delete"


class Held(NamedTuple):
    """Why an external resource is not in its desired state now.

    Attributes:
        text: For the message of the condition.
        retry_after: Time until something can have changed without an event; None if an event will come.
        failing: Whether a call failed, and not only waits.
    """

    text: str
    retry_after: timedelta | None = None
    failing: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call.

    Args:
        text: What failed, without the text of an unknown error, which may contain credentials.
        of_target: Whether the target does not answer, so that no other resource should call it now.
        retry_after: How long the target asks its callers to wait, at most an hour; None if it does not.
    """

    text: str
    of_target: bool = False
    retry_after: timedelta | None = None


def failure_of(error: Exception, limit: timedelta, now: datetime, call: str = "") -> Failure:
    """Return what an error of a call means.

    Args:
        limit: The time limit of the call.
        now: The time, for a `Retry-After` that is a date.
        call: The method, `Buckets.read`, for the text of an unknown error; empty to leave it out.

    Example:
        >>> noon, limit = datetime(2026, 1, 31, 12, 0, tzinfo=UTC), timedelta(seconds=10)
        >>> failure_of(TimeoutError(), limit, noon)
        Failure(text='no answer within 10 s', of_target=True, retry_after=None)
        >>> failure_of(ValueError("password=hunter2"), limit, noon)
        Failure(text='unexpected ValueError', of_target=False, retry_after=None)
    """
    if isinstance(error, TimeoutError):
        return Failure(f"no answer within {limit.total_seconds():g} s", of_target=True)
    status, asked = _status(error), _retry_after(error, now)
    lost = isinstance(error, ApiError) and not error.code
    unreachable = isinstance(error, ProviderUnavailableError | OSError) or lost or _is_connection_error(error)
    of_target = unreachable or asked is not None or status == _TOO_MANY or status >= _SERVER_ERROR
    if isinstance(error, OcfError):
        text = failure_text(error)
    elif status:
        text = f"HTTP status {status}"
    elif unreachable:
        text = f"no connection{_place(error)}: {type(error).__name__}"
    else:
        text = f"{call}: {_unknown(error)}" if call else _unknown(error)
    if asked is not None and asked > _LONGEST:
        # Not the delay itself: one until a date is another one each time, and the text is a part of the condition.
        text = f"{text} (it asks for a longer pause than {_LONGEST}, and is called after that)"
        return Failure(text, of_target=True, retry_after=_LONGEST)
    return Failure(text, of_target, asked)


def _unknown(error: Exception) -> str:
    """Return the text of an unknown error: its type, or what a session lacks that was never opened."""
    if isinstance(error, AttributeError) and error.name and error.obj is None:
        return f"None has no attribute {error.name}"
    return failure_text(error)


def _place(error: Exception) -> str:
    """Return to which host and port a client could not connect, if it knows; no path, which may have a token."""
    host, port = getattr(error, "host", None), getattr(error, "port", None)
    return f" to {host}:{port}" if isinstance(host, str) and isinstance(port, int) else ""


def _is_connection_error(error: Exception) -> bool:
    from aiohttp import ClientConnectionError  # only a call that failed needs it

    return isinstance(error, ClientConnectionError)


def _status(error: Exception) -> int:
    """Return the HTTP status of an error of a usual HTTP client, or of ours; 0 without one."""
    # One after the other: `code` of an error of aiohttp is deprecated, and asking for it a warning.
    for name, source in (("status", error), ("code", error), ("status_code", getattr(error, "response", None))):
        found = getattr(source, name, None)
        if isinstance(found, int) and not isinstance(found, bool):
            return found
    return 0


def _retry_after(error: Exception, now: datetime) -> timedelta | None:
    asked = getattr(error, "retry_after", None)
    if asked is None:
        headers = getattr(error, "headers", None) or getattr(getattr(error, "response", None), "headers", None)
        # Those of the standard library are no mapping, and a plain one may have any case.
        named = headers.items() if isinstance(headers, Mapping | Message) else ()
        asked = next((value for name, value in named if str(name).lower() == "retry-after"), None)
    if isinstance(asked, timedelta):
        return asked
    try:
        return None if asked is None else timedelta(seconds=min(max(float(asked), 0.0), _HIGHEST))
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        return max(parsedate_to_datetime(str(asked)).astimezone(UTC) - now, timedelta(0))
    except (TypeError, ValueError, OverflowError):
        return None


@dataclass(frozen=True, slots=True)
class Health:
    """What is known of a target: a circuit breaker.

    Args:
        failures: How many calls failed in a row because the target did not answer.
        closed_to: Until when it is not called, by `Clock.elapsed`; None if it is called.
        cause: The last failure.

    Example:
        >>> second = timedelta(seconds=1)
        >>> health = Health()
        >>> for _ in range(3):
        ...     health = health.failed(Failure("no answer", of_target=True), 10 * second)
        >>> health.closed_to.total_seconds(), health.rest(12 * second).total_seconds()
        (15.0, 3.0)
    """

    failures: int = 0
    closed_to: timedelta | None = None
    cause: str = ""

    def failed(self, failure: Failure, at: timedelta) -> Health:
        """Return the health after a failed call; only a target that does not answer counts."""
        if not failure.of_target:
            return Health()
        failures = self.failures + 1
        waits = [] if failures < _THRESHOLD else [_OPEN.after(failures - _THRESHOLD + 1)]
        if failure.retry_after is not None:
            waits.append(failure.retry_after)
        # A call that was sent before does not shorten what the target has asked for.
        ends = [at + wait for wait in waits] + ([self.closed_to] if self.closed_to is not None else [])
        return Health(failures, max(ends, default=None), failure.text)

    def rest(self, now: timedelta) -> timedelta | None:
        """Return how long the target is not called yet; None if it is."""
        return None if self.closed_to is None or self.closed_to <= now else self.closed_to - now


@dataclass(slots=True)
class Flight:
    """A call that is under way, or whose answer was not taken yet.

    Args:
        digest: Digest of the desired state that is applied.
        wake: Called when it has ended; None while a reconcile waits for it.
        started: When it was sent, by `Clock.elapsed`.
        ended: When it ended.
    """

    verb: Verb
    task: asyncio.Task[Any]
    started: timedelta
    digest: str = ""
    wake: Callable[[], object] | None = None
    ended: timedelta = timedelta(0)

    def is_overdue(self, limit: timedelta, now: timedelta) -> bool:
        """Return whether it goes on although it was cancelled at its time limit."""
        return not self.task.done() and now > self.started + limit + _END


@dataclass(slots=True)
class Known:
    """What the process knows of one external resource at one target.

    Args:
        observed: The resource as it was observed last; None if it did not exist.
        read_at: When that was, by `Clock.elapsed`; None if it must be read before anything is decided.
        failures: How often it has failed in a row.
        failed_digest: Digest of the desired state that failed; another one is tried at once.
        not_before: Until when it is not tried again.
        is_deleting: Whether a delete was sent, and the resource was not read since.
        record: Its record as it was set last, in case another writer of the status removes it.
        planned: The desired state that a dry run would apply, in the form of an object.
        has_turn: Whether it was read, and what follows from that waits for a free call: the next one is its own.
    """

    observed: Any = None
    read_at: timedelta | None = None
    flight: Flight | None = None
    failures: int = 0
    problem: str = ""
    failed_digest: str | None = None
    not_before: timedelta = timedelta(0)
    is_deleting: bool = False
    record: object = None
    planned: Manifest | None = None
    has_turn: bool = False

    def fail(self, failure: Failure, now: timedelta, digest: str | None) -> timedelta:
        """Record a failure; return the delay until the next try."""
        self.failures += 1
        self.problem, self.read_at = failure.text, None
        # What the target itself has failed on, another desired state would fail on, too.
        self.failed_digest = None if failure.of_target else digest
        delay = max(_RETRY.after(self.failures), failure.retry_after or timedelta(0))
        self.not_before = now + delay
        return delay

    def succeed(self) -> None:
        """Forget the failures."""
        self.failures, self.problem, self.failed_digest, self.not_before = 0, "", None, timedelta(0)


@dataclass(slots=True)
class _Target:
    """A target: its health, its calls, and who waits for it.

    Args:
        used: When a call of it was last wanted, by `Clock.elapsed`.
    """

    used: timedelta
    health: Health = field(default_factory=Health)
    running: int = 0
    waiting: OrderedDict[str, Callable[[], object]] = field(default_factory=OrderedDict)
    """What reconciles an owner again, by its mark."""
    next: OrderedDict[tuple[str, str], tuple[timedelta, Callable[[], object]]] = field(default_factory=OrderedDict)
    """Resources that were read: until when a call is reserved for each, and what reconciles its owner again.

    Otherwise the reads of others would take each free call, and what was read would be too old before its turn comes.
    """

    def reserved(self, now: timedelta) -> int:
        """Return how many calls are reserved; one that was not taken in time is not any more."""
        for place in [place for place, (until, _) in self.next.items() if until <= now]:
            del self.next[place]
        return len(self.next)


class ExternalCalls:
    """The external calls of a process."""

    def __init__(self) -> None:
        self._targets: OrderedDict[str, _Target] = OrderedDict()
        """By name, in the order of their last use."""
        self._known: OrderedDict[tuple[str, str], Known] = OrderedDict()
        self._has_ended = False

    def known(self, mark: str, identity: str) -> Known:
        """Return what is known of an external resource of an owner; it may be changed.

        Args:
            mark: `Owner.mark`, which is another one for each operator of the owner.
        """
        found = self._known.setdefault((mark, identity), Known())
        self._known.move_to_end((mark, identity))
        while len(self._known) > _MOST and next(iter(self._known.values())).flight is None:
            self._known.popitem(last=False)
        return found

    def forget(self, mark: str, identity: str) -> None:
        """Forget an external resource that is gone."""
        self._known.pop((mark, identity), None)

    def targets(self, now: timedelta) -> dict[str, tuple[int, bool]]:
        """Return how many calls are under way at each target, and whether it has answered the last one."""
        self._forget_idle(now)
        return {name: (one.running, not one.health.failures) for name, one in self._targets.items()}

    def _used(self, target: str, now: timedelta) -> _Target:
        """Return a target of which a call is wanted."""
        state = self._targets.setdefault(target, _Target(now))
        state.used = now
        self._targets.move_to_end(target)
        self._forget_idle(now)
        return state

    def _forget_idle(self, now: timedelta) -> None:
        """Forget targets that no resource needs any more, whose last failure would be reported for ever."""
        while self._targets:
            name, oldest = next(iter(self._targets.items()))
            if now - oldest.used <= _IDLE:
                return
            if not oldest.running:
                del self._targets[name]
                continue
            oldest.used = now
            self._targets.move_to_end(name)

    def refusal(
        self,
        target: str,
        place: tuple[str, str],
        now: timedelta,
        *,
        most: int,
        limit: timedelta,
        wake: Callable[[], object] | None,
        follows: bool,
    ) -> Held | None:
        """Return why a target is not called for a resource now; None if it is.

        Args:
            place: The mark of the owner, and the identity of the resource.
            most: How many calls to it may be under way.
            limit: The time limit of a call.
            wake: Reconciles the owner again, once a call to the target may be possible.
            follows: Whether the call follows from what was read just now, so that it comes before reads of others.
        """
        state = self._used(target, now)
        rest = state.health.rest(now)
        if rest is not None:
            # The same text for every resource at the target, and at any time: it is a part of the condition.
            return Held(state.health.cause, rest, failing=True)
        # After a pause, one call finds out whether the target answers again.
        probes = state.health.failures >= _THRESHOLD
        reserved = 0 if follows else state.reserved(now)
        if state.running + reserved < (1 if probes else most):
            state.next.pop(place, None)
            return None
        if wake is not None and follows:
            state.next.setdefault(place, (now + limit, wake))
        elif wake is not None:
            state.waiting[place[0]] = wake
        # Its turn wakes the owner. To ask before costs a reconcile, and with thousands that wait there are few others;
        # the end of the call that would have woken it may be lost with its owner.
        turns = 1 if wake is None or follows else 1 + len(state.waiting) // most
        rest = min(limit * turns, max(limit, _LATEST))
        if probes:
            return Held(state.health.cause, rest, failing=True)
        return Held(f"waiting, because {most} calls to the target are under way", rest)

    def start(
        self,
        known: Known,
        target: str,
        verb: Verb,
        call: Callable[[], Awaitable[Any]],
        *,
        limit: timedelta,
        clock: Clock,
        name: str,
    ) -> Flight:
        """Start a call; its name is for messages."""
        state = self._used(target, clock.elapsed())

        async def run() -> Any:
            failure: Failure | None = None
            try:
                async with asyncio.timeout(limit.total_seconds()):
                    return await call()
            except asyncio.CancelledError as error:
                if self._has_ended or is_cancelled(error):
                    raise
                failed = OcfError("the client cancelled the call")
                failure = failure_of(failed, limit, clock.now())
                raise failed from error
            except Exception as error:
                failure = failure_of(error, limit, clock.now())
                raise
            finally:
                flight.ended = clock.elapsed()
                state.running -= 1
                before = state.health
                state.health = before.failed(failure, flight.ended) if failure is not None else Health()
                if not self._has_ended:
                    if flight.wake is not None:
                        flight.wake()
                    # All that wait show once that the target is not called any more.
                    is_first = before.closed_to is None and state.health.closed_to is not None
                    self._wake(state, flight.ended, everyone=is_first)

        state.running += 1
        flight = Flight(verb, asyncio.create_task(run(), name=name), clock.elapsed())
        # An answer that no reconcile takes any more, because the owner is gone, is not an error of the loop.
        flight.task.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        known.flight = flight
        return flight

    async def cancel(self) -> None:
        """Cancel the calls that are under way, because the process ends or does not lead any more."""
        flights = [known.flight for known in self._known.values() if known.flight is not None]
        self._has_ended = True
        for flight in flights:
            # Whenever it ends, nothing waits for it any more.
            flight.wake = None
            flight.task.cancel()
        for state in self._targets.values():
            state.waiting.clear()
            state.next.clear()
        if flights:
            _, left = await asyncio.wait({flight.task for flight in flights}, timeout=_END.total_seconds())
            for task in left:
                text = "%s goes on after its cancellation, and is not awaited: the client must not catch CancelledError"
                _log.error(text, task.get_name())
        self._has_ended = False
        # A call that goes on keeps its resource and its place at the target, also if this process leads again.
        self._targets = OrderedDict((name, state) for name, state in self._targets.items() if state.running)
        for state in self._targets.values():
            state.health = Health()
        self._known = OrderedDict(
            (place, Known(flight=known.flight))
            for place, known in self._known.items()
            if known.flight is not None and not known.flight.task.done()
        )

    @staticmethod
    def _wake(state: _Target, now: timedelta, *, everyone: bool) -> None:
        """Reconcile two owners that wait for a target: one for the call that has ended, one more after a pause."""
        if everyone:
            for wake in state.waiting.values():
                wake()
            state.waiting.clear()
        elif state.health.rest(now) is None and state.reserved(now):
            for _, wake in [*state.next.values()][:_WOKEN]:
                wake()
        elif state.health.rest(now) is None:
            for _ in range(min(len(state.waiting), _WOKEN)):
                _, wake = state.waiting.popitem(last=False)
                wake()
