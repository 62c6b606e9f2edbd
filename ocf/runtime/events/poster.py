"""What an operator did, posted to the cluster as events on the owner.

A pass only puts what it tells into a queue; a task of its own posts it. So a slow or broken cluster costs events, and
never a pass: the queue is bounded, an event that is refused is dropped, and one that cannot be delivered is tried
again a few times. Equal events become one with a count (`ocf.runtime.events.series`), and one object gets only so many
(`ocf.runtime.events.rate_limit`). Numbers and rules are those of client-go's `tools/events`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from typing import Final

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.concepts import Attempt, Clock, Event, SystemClock
from ocf.concepts.backoff import with_jitter
from ocf.errors import (
    AlreadyExistsError,
    ApiError,
    ConfigError,
    ConflictError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
)
from ocf.objects import Manifest, ObjectKey
from ocf.objects.timestamps import format_micro_time
from ocf.runtime.events.rate_limit import TokenBucket
from ocf.runtime.events.series import EventSeries, Instant, Write

__all__ = ["Drop", "EventBroadcaster", "broadcasting_events"]

_log: Final = logging.getLogger(__name__)

_API_VERSION: Final = "events.k8s.io/v1"
# The limits of the API (`pkg/apis/core/validation/events.go`): bytes, and characters of a qualified name.
_LONGEST_NOTE: Final = 1024
_LONGEST_INSTANCE: Final = 128
_CONTROLLER: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
# A name has 253 characters, 17 of which are a dot and the instant.
_LONGEST_STEM: Final = 236
_FIELD_MANAGER: Final = 128

_QUEUED: Final = 1000
_TRIES: Final = 12
_RETRY_AFTER: Final = timedelta(seconds=10)
# So that the operators of a cluster do not come back all at once.
_JITTER: Final = 0.25
_SWEEP: Final = timedelta(minutes=1)
_FAREWELL: Final = timedelta(seconds=5)


class Drop(StrEnum):
    """Why an event was dropped."""

    QUEUE_FULL = "queue full"
    """More was told than could be posted."""
    TOO_MANY = "too many"
    """The object had its share of events."""
    REFUSED = "refused"
    """The cluster does not want it."""
    UNDELIVERED = "undelivered"
    """The cluster could not be reached, or failed, again and again."""


class EventBroadcaster:
    """A recorder that posts events; `broadcasting_events` makes one with a task that posts by itself.

    It belongs to the event loop that it is used in.

    Args:
        cluster: Where the events go.
        controller: Who reports them, a name such as `example.com/shop-operator`.
        clock: Stamps the events, and measures the intervals.
        instance: Which process reports them; the controller and the name of the machine by default.
        queued: How many events may wait to be posted; what comes while as many wait is dropped.
        chance: Draws a number from 0 up to 1.

    Raises:
        ConfigError: If the API would refuse the controller's name.

    Attributes:
        dropped: How many events were dropped, and why.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        controller: str,
        clock: Clock,
        instance: str = "",
        queued: int = _QUEUED,
        chance: Callable[[], float] = random.random,
    ) -> None:
        if not _CONTROLLER.fullmatch(controller):
            raise ConfigError(
                f'controller must be a qualified name such as "example.com/shop-operator", got {controller!r}'
            )
        self._cluster = cluster
        self._controller = controller
        self._instance = (instance or f"{controller}-{socket.gethostname()}")[:_LONGEST_INSTANCE]
        self._clock = clock
        self._queued = queued
        self._chance = chance
        self._queue: deque[tuple[Event, Instant]] = deque()
        self._writes: deque[Write] = deque()
        self._going_on = EventSeries()
        self._allowance = TokenBucket()
        self._tries = 0
        self._retry_at = timedelta.min
        self._sweep_at = timedelta.min
        self._last_name = 0
        self._dropped: Counter[Drop] = Counter()
        self._lock = asyncio.Lock()
        self._told = asyncio.Event()

    @property
    def dropped(self) -> Mapping[Drop, int]:
        """How many events were dropped, and why."""
        return dict(self._dropped)

    def attempted(self, attempt: Attempt) -> None:
        """Take an attempt, of which no event is made.

        Args:
            attempt: What was tried.
        """

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Take the conditions of an owner, of which no event is made.

        Args:
            owner: The owner.
            conditions: All of them.
        """

    def happened(self, event: Event) -> None:
        """Take an event, to be posted later.

        Args:
            event: What was done.
        """
        if len(self._queue) >= self._queued:
            self._drop(Drop.QUEUE_FULL, event.reason)
            return
        self._queue.append((event, self._instant()))
        self._told.set()

    async def flush(self) -> timedelta | None:
        """Post what there is to be posted, unless the cluster failed a moment ago.

        Returns:
            When to call again even if nothing happens until then; None where there is nothing to wait for.
        """
        async with self._lock:
            if self._clock.elapsed() >= self._retry_at:
                self._sweep(self._clock.elapsed())
                await self._post_all()
            if self._writes:
                return max(self._retry_at - self._clock.elapsed(), timedelta(0))
            return _SWEEP if self._going_on else None

    async def close(self, limit: timedelta = _FAREWELL) -> None:
        """Post what is left, the last counts included; what cannot be posted now is dropped.

        Args:
            limit: How long it may take.
        """
        async with self._lock:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit.total_seconds()):
                    await self._post_all()
                    if not self._writes:
                        self._writes.extend(self._going_on.all_ended(self._clock.elapsed()))
                        await self._post_all()
            left = len(self._writes) + len(self._queue)
            if left:
                self._dropped[Drop.UNDELIVERED] += left
                _log.warning("%d events were not posted before the end", left)
            self._writes.clear()
            self._queue.clear()

    async def run(self) -> None:
        """Post whatever is told, until cancelled."""
        while True:
            wait = await self.flush()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wait is None else wait.total_seconds()):
                    await self._told.wait()
            self._told.clear()

    def _sweep(self, elapsed: timedelta) -> None:
        """Look for counts that are to be written; now and then, because that looks at everything that goes on."""
        if elapsed >= self._sweep_at:
            self._sweep_at = elapsed + _SWEEP
            self._writes.extend(self._going_on.ended(elapsed))
            self._writes.extend(self._going_on.heartbeats(elapsed))

    async def _post_all(self) -> None:
        """Post writes, and then the queue, one event at a time; a failing cluster ends it."""
        while True:
            while self._writes:
                if not await self._post(self._writes[0]):
                    return
                self._writes.popleft()
            if not self._queue:
                return
            self._prepare(*self._queue.popleft())

    def _prepare(self, event: Event, at: Instant) -> None:
        """Turn an event into what is to be written for it."""
        self._writes.extend(self._going_on.ended(at.elapsed))
        if event in self._going_on:
            again = self._going_on.repeated(event, at)
            if again is not None:
                self._writes.append(again)
        elif self._allowance.take((event.owner, event.owner_uid), at.elapsed):
            self._writes.append(self._going_on.first(event, self._manifest(event, at), at))
        else:
            self._drop(Drop.TOO_MANY, event.reason)

    async def _post(self, write: Write) -> bool:
        """Write one thing; tell whether that is settled, for better or worse."""
        try:
            await self._send(write)
        except AlreadyExistsError:
            pass  # An earlier try arrived whose answer did not.
        except (ServerError, TooManyRequestsError, ConflictError) as error:
            return self._tried(write, error)
        except ApiError as error:
            self._drop(Drop.REFUSED, write.manifest["reason"], error)
        except Exception as error:  # noqa: BLE001 (nothing that is wrong here may end the task)
            self._drop(Drop.REFUSED, write.manifest["reason"], error)
        self._tries = 0
        return True

    async def _send(self, write: Write) -> None:
        manager = self._controller[-_FIELD_MANAGER:]
        if write.series is not None:
            with suppress(NotFoundError):
                key = ObjectKey.of(write.manifest)
                patch = {"series": write.series}
                await self._cluster.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager=manager))
                return
            # It has expired, or never arrived.
            await self._cluster.create({**write.manifest, "series": write.series}, field_manager=manager)
            return
        await self._cluster.create(write.manifest, field_manager=manager)

    def _tried(self, write: Write, error: ApiError) -> bool:
        self._tries += 1
        if self._tries >= _TRIES:
            self._tries = 0
            self._drop(Drop.UNDELIVERED, write.manifest["reason"], error)
            return True
        asked = timedelta(seconds=error.retry_after or 0)
        wait = with_jitter(_RETRY_AFTER, _JITTER, self._chance)
        self._retry_at = self._clock.elapsed() + max(wait, asked)
        return False

    def _drop(self, why: Drop, reason: str, error: Exception | None = None) -> None:
        self._dropped[why] += 1
        expected = error is None or (isinstance(error, ApiError) and _is_ending(error))
        level = logging.DEBUG if expected else logging.WARNING
        _log.log(level, "event %s dropped: %s%s", reason, why, f": {error}" if error else "", extra={"reason": reason})

    def _instant(self) -> Instant:
        return Instant(self._clock.now(), self._clock.elapsed())

    def _manifest(self, event: Event, at: Instant) -> Manifest:
        # Named by the instant, as everybody's events are; a clock that stands still must not give a name twice.
        self._last_name = max(self._last_name + 1, int(at.now.timestamp() * 1_000_000) * 1000)
        return {
            "apiVersion": _API_VERSION,
            "kind": "Event",
            "metadata": {
                "name": f"{event.owner.name[:_LONGEST_STEM].rstrip('-.')}.{self._last_name:x}",
                "namespace": event.owner.namespace or "default",
            },
            "type": event.type,
            "eventTime": format_micro_time(at.now),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "regarding": {**_reference(event.owner), "uid": event.owner_uid},
            "related": _reference(event.resource),
            "reason": event.reason,
            "action": event.action,
            "note": _shortened(event.note),
        }


@asynccontextmanager
async def broadcasting_events(
    cluster: Cluster, *, controller: str, clock: Clock | None = None, instance: str = ""
) -> AsyncIterator[EventBroadcaster]:
    """Post events for as long as the block runs, and what is left of them on the way out.

    Args:
        cluster: Where the events go.
        controller: Who reports them, a name such as `example.com/shop-operator`.
        clock: Stamps the events; the machine's clock by default.
        instance: Which process reports them; the controller and the name of the machine by default.

    Yields:
        The recorder for `reconciling`.

    Raises:
        ConfigError: If the API would refuse the controller's name.

    Example:
        >>> from ocf.embedded import EmbeddedCluster
        >>> async def operate() -> str:
        ...     cluster = EmbeddedCluster()
        ...     async with broadcasting_events(cluster, controller="example.com/shop-operator") as recorder:
        ...         recorder.happened(Event(
        ...             owner=ObjectKey("example.com/v1", "Shop", "corner", "default"), owner_uid="1",
        ...             resource=ObjectKey("apps/v1", "Deployment", "backend", "default"),
        ...             reason="CreatedDeployment", action="Create", note="Created Deployment 'backend'"))
        ...     events = await cluster.list("events.k8s.io/v1", "Event")
        ...     return events.items[0]["note"]
        >>> asyncio.run(operate())
        "Created Deployment 'backend'"
    """
    poster = EventBroadcaster(cluster, controller=controller, clock=clock or SystemClock(), instance=instance)
    task = asyncio.create_task(poster.run(), name=f"events of {controller}")
    try:
        yield poster
    finally:
        task.cancel()
        await asyncio.wait({task})
        await poster.close()


def _is_ending(error: ApiError) -> bool:
    """Tell whether the namespace is on its way out, which takes no more events."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


def _reference(key: ObjectKey) -> Manifest:
    place = {"namespace": key.namespace} if key.namespace else {}
    return {"apiVersion": key.api_version, "kind": key.kind, "name": key.name, **place}


def _shortened(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= _LONGEST_NOTE:
        return note
    return encoded[: _LONGEST_NOTE - len("…".encode())].decode(errors="ignore") + "…"
