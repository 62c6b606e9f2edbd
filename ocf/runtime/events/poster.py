"""Event broadcaster: posts the events of an operator to the cluster, on their owners.

A reconcile only puts its events into a queue, and a separate task posts them. So a slow or broken cluster costs events,
but never a reconcile: the queue is bounded, a rejected event is dropped, and an undelivered one is retried a few times.
Equal events become one with a count (`ocf.runtime.events.series`), and the events of one object are limited
(`ocf.runtime.events.rate_limit`). Numbers and rules are those of client-go's `tools/events`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import socket
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from typing import Final

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.cluster.request_purpose import Purpose, requests_for
from ocf.cluster.server_errors import is_namespace_ending
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
from ocf.objects.json_values import encodable
from ocf.objects.name_validation import dns_subdomain
from ocf.objects.timestamps import format_micro_time
from ocf.runtime.events.series import EventSeries, EventWrite, Instant

__all__ = ["Drop", "EventBroadcaster", "TokenBucket", "broadcasting_events"]

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
# How often an event gets another name if there is one of its name, and the most nanoseconds by which it differs.
_RENAMES: Final = 5
_RENAMED: Final = 1_000_000
_FIELD_MANAGER: Final = 128

_QUEUED: Final = 1000
_TRIES: Final = 12
_RETRY_AFTER: Final = timedelta(seconds=10)
# So that the operators of a cluster do not all retry at once.
_JITTER: Final = 0.25
_SWEEP: Final = timedelta(minutes=1)
_CLOSE_TIMEOUT: Final = timedelta(seconds=5)


class Drop(StrEnum):
    """Reason why an event was dropped."""

    QUEUE_FULL = "queue full"
    """Events arrived faster than they could be posted."""
    TOO_MANY = "too many"
    """The object has used up its events."""
    REFUSED = "refused"
    """The API server rejected it."""
    UNDELIVERED = "undelivered"
    """The cluster could not be reached, or failed, in every try."""


class EventBroadcaster:
    """A recorder that posts events; `broadcasting_events` creates one together with the task that posts.

    It must be used in one event loop.

    Args:
        cluster: The cluster of the events.
        controller: The reporting controller, a name such as `example.com/shop-operator`.
        clock: Clock of the timestamps and intervals.
        instance: The reporting instance; by default controller and host name.
        queued: How many events may wait to be posted; further events are dropped.
        random: Returns a random number in [0, 1), for jitter.

    Raises:
        ConfigError: If the API server would reject the controller's name.

    Attributes:
        dropped: Number of dropped events, by reason.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        controller: str,
        clock: Clock,
        instance: str = "",
        queued: int = _QUEUED,
        random: Callable[[], float] = random.random,
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
        self._random = random
        self._queue: deque[tuple[Event, Instant]] = deque()
        self._writes: deque[EventWrite] = deque()
        self._series = EventSeries()
        self._rate_limit = TokenBucket()
        self._tries = 0
        self._retry_at = timedelta.min
        self._sweep_at = timedelta.min
        self._last_name = 0
        self._dropped: Counter[Drop] = Counter()
        self._lock = asyncio.Lock()
        self._pending = asyncio.Event()

    @property
    def dropped(self) -> Mapping[Drop, int]:
        """Number of dropped events, by reason."""
        return dict(self._dropped)

    def attempted(self, attempt: Attempt) -> None:
        """Ignore an attempt: attempts are not events."""

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Ignore the conditions of an owner: conditions are not events."""

    def happened(self, event: Event) -> None:
        """Queue an event, to be posted later."""
        if len(self._queue) >= self._queued:
            self._drop(Drop.QUEUE_FULL, event.reason)
            return
        self._queue.append((event, self._instant()))
        self._pending.set()

    async def flush(self) -> timedelta | None:
        """Post everything that is due, unless a retry delay is running.

        Returns:
            When to call again if no event is queued until then; None if only a new event needs a call.
        """
        async with self._lock:
            if self._clock.elapsed() >= self._retry_at:
                self._sweep(self._clock.elapsed())
                await self._post_all()
            if self._writes:
                return max(self._retry_at - self._clock.elapsed(), timedelta(0))
            return _SWEEP if self._series else None

    async def close(self, limit: timedelta = _CLOSE_TIMEOUT) -> None:
        """Post the remaining events and series counts; drop those that cannot be posted now.

        Args:
            limit: How long it may take.
        """
        async with self._lock:
            with suppress(TimeoutError):
                async with asyncio.timeout(limit.total_seconds()):
                    await self._post_all()
                    if not self._writes:
                        self._writes.extend(self._series.all_ended(self._clock.elapsed()))
                        await self._post_all()
            left = len(self._writes) + len(self._queue)
            if left:
                self._dropped[Drop.UNDELIVERED] += left
                _log.warning("%d events were not posted before shutdown", left)
            self._writes.clear()
            self._queue.clear()

    async def run(self) -> None:
        """Post events until cancelled."""
        while True:
            wait = await self.flush()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wait is None else wait.total_seconds()):
                    await self._pending.wait()
            self._pending.clear()

    def _sweep(self, elapsed: timedelta) -> None:
        """Collect the series counts that are due; once per `_SWEEP`, because it visits every series."""
        if elapsed >= self._sweep_at:
            self._sweep_at = elapsed + _SWEEP
            self._writes.extend(self._series.ended(elapsed))
            self._writes.extend(self._series.heartbeats(elapsed))

    async def _post_all(self) -> None:
        """Post writes, and then the queue, one event at a time; stop if the cluster fails."""
        while True:
            while self._writes:
                if not await self._post(self._writes[0]):
                    return
                self._writes.popleft()
            if not self._queue:
                return
            event, at = self._queue.popleft()
            try:
                self._prepare(event, at)
            except Exception as error:  # noqa: BLE001 (an event of the author's that is none may not end the task)
                self._drop(Drop.REFUSED, str(event.reason), error)

    def _prepare(self, event: Event, at: Instant) -> None:
        """Convert an event into the write that it needs, if any."""
        self._writes.extend(self._series.ended(at.elapsed))
        if event in self._series:
            again = self._series.repeated(event, at)
            if again is not None:
                self._writes.append(again)
        elif self._rate_limit.take((event.owner, event.owner_uid), at.elapsed):
            self._writes.append(self._series.first(event, self._manifest(event, at), at))
        else:
            self._drop(Drop.TOO_MANY, event.reason)

    async def _post(self, write: EventWrite, *, renames: int = _RENAMES) -> bool:
        """Send one write; return whether it is finished: sent or dropped."""
        try:
            with requests_for(Purpose.EVENTS):
                await self._send(write)
        except AlreadyExistsError as error:
            # After a try without a response, it is the event itself. Otherwise another reporter has posted an event at
            # the same instant about an object of the same name, such as an owner of another kind or group.
            if not self._tries and write.series is None:
                if not renames:
                    self._drop(Drop.REFUSED, write.manifest["reason"], error)
                    return True
                self._last_name += 1 + int(self._random() * _RENAMED)
                regarding = write.manifest["regarding"]
                write.manifest["metadata"]["name"] = self._name_of(regarding["name"], regarding["uid"])
                return await self._post(write, renames=renames - 1)
        except (ServerError, TooManyRequestsError, ConflictError) as error:
            return self._tried(write, error)
        except ApiError as error:
            self._drop(Drop.REFUSED, write.manifest["reason"], error)
        except Exception as error:  # noqa: BLE001 (no error may end the task)
            self._drop(Drop.REFUSED, write.manifest["reason"], error)
        self._tries = 0
        return True

    async def _send(self, write: EventWrite) -> None:
        manager = self._controller[-_FIELD_MANAGER:]
        if write.series is not None:
            with suppress(NotFoundError):
                key = ObjectKey.of(write.manifest)
                patch = {"series": write.series}
                await self._cluster.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager=manager))
                return
            # The event has expired, or was never created.
            await self._cluster.create({**write.manifest, "series": write.series}, field_manager=manager)
            return
        await self._cluster.create(write.manifest, field_manager=manager)

    def _tried(self, write: EventWrite, error: ApiError) -> bool:
        self._tries += 1
        if self._tries >= _TRIES:
            self._tries = 0
            self._drop(Drop.UNDELIVERED, write.manifest["reason"], error)
            return True
        asked = timedelta(seconds=error.retry_after or 0)
        wait = with_jitter(_RETRY_AFTER, _JITTER, self._random)
        self._retry_at = self._clock.elapsed() + max(wait, asked)
        return False

    def _drop(self, why: Drop, reason: str, error: Exception | None = None) -> None:
        self._dropped[why] += 1
        expected = error is None or (isinstance(error, ApiError) and is_namespace_ending(error))
        level = logging.DEBUG if expected else logging.WARNING
        _log.log(level, "event %s dropped: %s%s", reason, why, f": {error}" if error else "", extra={"reason": reason})

    def _instant(self) -> Instant:
        return Instant(self._clock.now(), self._clock.elapsed())

    def _manifest(self, event: Event, at: Instant) -> Manifest:
        # Named by the time, as in client-go; the counter keeps names unique while the clock stands still.
        self._last_name = max(self._last_name + 1, int(at.now.timestamp() * 1_000_000) * 1000)
        version = {"resourceVersion": event.owner_version} if event.owner_version else {}
        return {
            "apiVersion": _API_VERSION,
            "kind": "Event",
            "metadata": {
                "name": self._name_of(event.owner.name, event.owner_uid),
                "namespace": event.owner.namespace or "default",
            },
            "type": event.type,
            "eventTime": format_micro_time(at.now),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "regarding": {**_reference(event.owner), "uid": event.owner_uid, **version},
            **({"related": _reference(event.resource)} if event.resource != event.owner else {}),
            "reason": event.reason,
            "action": event.action,
            "note": _shortened(event.note),
        }

    def _name_of(self, owner: str, uid: str) -> str:
        """Return the name of an event; names of some kinds, such as ClusterRoles, are not allowed for events."""
        stem = owner[:_LONGEST_STEM].rstrip("-.")
        return f"{uid if dns_subdomain(stem) else stem}.{self._last_name:x}"


@asynccontextmanager
async def broadcasting_events(
    cluster: Cluster, *, controller: str, clock: Clock | None = None, instance: str = ""
) -> AsyncIterator[EventBroadcaster]:
    """Post events for as long as the block runs; post the remaining ones at its end.

    Args:
        cluster: The cluster of the events.
        controller: The reporting controller, a name such as `example.com/shop-operator`.
        clock: Clock of the timestamps; the system clock by default.
        instance: The reporting instance; by default controller and host name.

    Yields:
        The recorder for `reconciling`.

    Raises:
        ConfigError: If the API server would reject the controller's name.

    Example:
        >>> from ocf_server import EmbeddedCluster
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


def _reference(key: ObjectKey) -> Manifest:
    namespace = {"namespace": key.namespace} if key.namespace else {}
    return {"apiVersion": key.api_version, "kind": key.kind, "name": key.name, **namespace}


def _shortened(note: str) -> str:
    encoded = encodable(note).encode()
    if len(encoded) <= _LONGEST_NOTE:
        return encoded.decode()
    return encoded[: _LONGEST_NOTE - len("…".encode())].decode(errors="ignore") + "…"


# Without it, an operator that never gets in sync would fill the cluster with events about the same object. The numbers
# are those of client-go (`tools/record/events_cache.go`): a burst of 25, and one more every five minutes.
_BURST: Final = 25
_REFILL: Final = timedelta(minutes=5)
_CAPACITY: Final = 4096


class TokenBucket:
    """A token bucket for each source of events.

    Args:
        capacity: Maximum number of buckets; beyond it the least recently used one is dropped, and its source starts
            with a full one.

    Example:
        >>> allowance = TokenBucket(burst=1, refill=timedelta(minutes=5))
        >>> [allowance.take("corner", timedelta(minutes=minute)) for minute in (0, 4, 6, 7)]
        [True, False, True, False]
    """

    def __init__(self, *, burst: int = _BURST, refill: timedelta = _REFILL, capacity: int = _CAPACITY) -> None:
        self._burst = burst
        self._refill = refill
        self._capacity = capacity
        self._left: OrderedDict[Hashable, tuple[float, timedelta]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def take(self, source: Hashable, elapsed: timedelta) -> bool:
        """Take one token of a source.

        Args:
            elapsed: The present `elapsed` of the clock.
        """
        left, since = self._left.pop(source, (float(self._burst), elapsed))
        left = min(float(self._burst), left + (elapsed - since) / self._refill)
        allowed = left >= 1
        self._left[source] = (left - 1 if allowed else left, elapsed)
        if len(self._left) > self._capacity:
            self._left.popitem(last=False)
        return allowed
