"""The timeline of the page: what the last reconciles of a process did, bounded, and filled only while there is a page.

It receives what a reconcile emits anyway: its attempts as a `Recorder`, its requests as a wrapper of its cluster, and
from the controller which change enqueued the owner. Records are kept as bytes, so that their size is known.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.cluster.interceptor import InterceptingCluster, is_write, key_of
from ocf.cluster.packed import PackedList, list_packed
from ocf.cluster.protocol import ObjectList, Subresource
from ocf.cluster.request_log import Request, Verb
from ocf.component.diff import changed_fields
from ocf.concepts.recorder import Attempt, Event
from ocf.errors import failure_text
from ocf.objects import Manifest, ObjectKey
from ocf.objects.json_equality import equal_json
from ocf.objects.redaction import redacted
from ocf.objects.timestamps import format_time, parse_time
from ocf.runtime.workqueue import Priority, WorkQueue

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.subscriptions import CacheChange
    from ocf.concepts import Clock
    from ocf.runtime.workqueue.metrics import QueueMetrics
    from ocf.runtime.workqueue.queue import RateLimiter

__all__ = ["FieldChange", "OperatorTimeline", "Reconcile", "Step", "Timeline", "Write", "differing"]

_MOST: Final = 50
"""Reconciles that are kept of one owner, and shown of all."""
_MOST_BYTES: Final = 1_600_000
_RECORD_BYTES: Final = 28_000
# What a record takes beside its bytes, if it is the only one of its owner.
_OVERHEAD: Final = 700
_MOST_OWNERS: Final = 1_000
_MOST_TRIGGERS: Final = 4
_MOST_STEPS: Final = 60
_MOST_WRITES: Final = 30
_MOST_FIELDS: Final = 20
_LONGEST: Final = 160
_LONGEST_PROBLEM: Final = 600
# Shorter values, such as "true", are parts of many texts; only a text that is equal to one is hidden.
_SHORTEST_PART: Final = 6
_HIDDEN: Final = "not shown: may be secret"
_DIGEST: Final = "redacted, sha256 "
_SECRET: Final = ("", "Secret")
# What the API server sets in each write.
_NOISE: Final = frozenset({"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"})


class FieldChange(NamedTuple):
    """A field that a write changed; a value that is not set is empty."""

    path: str
    before: str
    after: str


class Write(NamedTuple):
    """A write of a reconcile.

    Attributes:
        verb: The verb of the request, `apply`; `create` for an apply of an object that did not exist.
        key: The object.
        part: The subresource; empty for the object itself.
        problem: Why it failed; empty if it did not.
        fields: The fields that it changed, of many the first ones.
        note: Why there are no fields, or how many more there are; may be empty.
    """

    verb: str
    key: ObjectKey
    part: str
    problem: str
    fields: tuple[FieldChange, ...]
    note: str


class Step(NamedTuple):
    """An attempt to bring an object of a component to its desired state.

    Attributes:
        done: What was done and why, `Updated: changed`.
    """

    component: str
    resource: ObjectKey
    done: str


class Reconcile(NamedTuple):
    """One reconcile.

    Attributes:
        number: Number of the reconcile in its process, from 1.
        began: When it began.
        seconds: How long it took.
        triggers: What enqueued the owner, of many the first ones.
        problem: Why it failed; empty if it did not.
    """

    number: int
    operator: str
    owner: ObjectKey
    began: datetime
    seconds: float
    triggers: tuple[str, ...]
    steps: tuple[Step, ...]
    writes: tuple[Write, ...]
    problem: str


class Timeline:
    """The last reconciles of a process: the last 50 of each owner, within 2 MB in all.

    Example:
        >>> Timeline().latest()
        ()
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        # A dictionary is a queue whose first entry is the oldest.
        self._records: dict[int, tuple[ObjectKey, bytes]] = {}
        self._of_owner: dict[ObjectKey, list[int]] = {}
        self.count = 0
        """Number of reconciles so far."""

    def add(self, record: Reconcile) -> None:
        """Keep a reconcile, and as many earlier ones as there is room for."""
        packed = _packed(record)
        self._records[record.number] = record.owner, packed
        self._bytes += sys.getsizeof(packed) + _OVERHEAD
        own = self._of_owner.setdefault(record.owner, [])
        own.append(record.number)
        if len(own) > _MOST:
            self._drop(own[0])
        while self._bytes > self._most_bytes and len(self._records) > 1:
            self._drop(next(iter(self._records)))

    def latest(self, owner: ObjectKey | None = None) -> tuple[Reconcile, ...]:
        """Return the last reconciles of an owner, or of all, at most 50, the latest first."""
        numbers = self._of_owner.get(owner, ()) if owner is not None else [*self._records][-_MOST:]
        return tuple(_unpacked(self._records[number][1]) for number in reversed(numbers))

    def _drop(self, number: int) -> None:
        owner, packed = self._records.pop(number)
        self._bytes -= sys.getsizeof(packed) + _OVERHEAD
        own = self._of_owner[owner]
        # Of one owner the oldest is dropped first, too.
        own.pop(0)
        if not own:
            del self._of_owner[owner]


class OperatorTimeline:
    """The part of one operator in a timeline, as the recorder of its reconciles.

    Args:
        within: Returns another block for each reconcile.
    """

    def __init__(
        self,
        timeline: Timeline,
        operator: str,
        clock: Clock,
        within: Callable[[ObjectKey], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._within = within
        self._timeline = timeline
        self._operator = operator
        self._clock = clock
        self._running: dict[ObjectKey, _Running] = {}
        self._triggers: dict[ObjectKey, list[str]] = {}

    def queue(self, name: str, *, delays: RateLimiter, metrics: QueueMetrics | None) -> WorkQueue[ObjectKey]:
        """Return a queue for the operator, which notes why owners are added."""
        return _NotedQueue(name, self._note_queued, delays=delays, metrics=metrics)

    def changed(self, owners: Iterable[ObjectKey], key: ObjectKey, change: CacheChange) -> None:
        """Note which owners a change enqueues, or is to be seen by again."""
        text = _short(f"{key.kind} {key.name} {change.type.lower()}")
        for owner in owners:
            self._note(owner, text)

    def _note_queued(self, owner: ObjectKey, priority: Priority, failures: int) -> None:
        """Note why an owner is added to the queue, where no change is the reason."""
        if priority is Priority.SCHEDULED:
            self._note(owner, f"retry {failures} after a failure" if failures else "asked for by the last reconcile")
        elif priority is Priority.UNCHANGED:
            self._note(owner, "start, or regular reconcile of all owners")

    def _note(self, owner: ObjectKey, text: str) -> None:
        noted = self._triggers.setdefault(owner, [])
        if text not in noted and len(noted) < _MOST_TRIGGERS:
            noted.append(text)
        if len(self._triggers) > _MOST_OWNERS:
            del self._triggers[next(iter(self._triggers))]

    @contextmanager
    def reconciling(self, owner: ObjectKey) -> Iterator[None]:
        """Record the reconcile of an owner for as long as the block runs."""
        loop = asyncio.get_running_loop()
        began, start = self._clock.now(), loop.time()
        running = self._running[owner] = _Running()
        triggers = tuple(self._triggers.pop(owner, ()))
        try:
            with self._within(owner):
                yield
        except BaseException as error:
            running.problem = running.shown(failure_text(error), _LONGEST_PROBLEM)
            raise
        finally:
            del self._running[owner]
            self._timeline.count += 1
            self._timeline.add(
                Reconcile(
                    self._timeline.count,
                    self._operator,
                    owner,
                    began,
                    round(loop.time() - start, 6),
                    triggers,
                    tuple(running.steps),
                    tuple(running.writes),
                    running.problem,
                )
            )

    def recording(self, owner: ObjectKey, cluster: Cluster, *caches: CachedCluster) -> Cluster:
        """Return the cluster of a running reconcile, whose writes are recorded.

        Args:
            caches: What holds the objects before a write.
        """
        return _RecordedCluster(cluster, self._running[owner], caches)

    def attempted(self, attempt: Attempt) -> None:
        """Record a step of a running reconcile."""
        running = self._running.get(attempt.owner)
        if running is not None and len(running.steps) < _MOST_STEPS:
            done = f"{attempt.operation}: {attempt.why}" if attempt.operation is not None else str(attempt.why)
            running.steps.append(Step(attempt.component, attempt.resource, done.removeprefix("None: ")))

    def happened(self, event: Event) -> None:
        """Do nothing: the writes say the same."""

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        """Do nothing: the owner is in the cache."""


class _NotedQueue(WorkQueue[ObjectKey]):
    """A queue that reports why owners are added."""

    def __init__(
        self,
        name: str,
        queued: Callable[[ObjectKey, Priority, int], None],
        *,
        delays: RateLimiter,
        metrics: QueueMetrics | None,
    ) -> None:
        super().__init__(name, delays=delays, metrics=metrics)
        self._queued = queued

    def add(self, key: ObjectKey, *, priority: Priority = Priority.CHANGED) -> None:
        """Add a key."""
        self._queued(key, priority, self.failures(key))
        super().add(key, priority=priority)


class _Running:
    """What a running reconcile has done so far."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.writes: list[Write] = []
        self.problem = ""
        self._secrets: set[str] = set()

    def has_seen(self, secret: Manifest) -> None:
        """Remember the values of a Secret, which no text may contain."""
        for name in ("data", "stringData"):
            values = secret.get(name)
            for value in values.values() if isinstance(values, dict) else ():
                if isinstance(value, str) and value:
                    self._secrets.add(value)
                    self._secrets |= {text for text in _decoded(value) if text} if name == "data" else set()

    def shown(self, text: str, longest: int = _LONGEST) -> str:
        """Return a text without values of Secrets that the reconcile has read or written."""
        if text.startswith(_DIGEST):
            # The value could be found by computing the digests of all short values.
            return _HIDDEN
        if any(value == text or (len(value) >= _SHORTEST_PART and value in text) for value in self._secrets):
            return _HIDDEN
        return _short(text, longest)


class _RecordedCluster(InterceptingCluster):
    """The cluster of a reconcile, which records its writes, and remembers the Secrets that it sees."""

    def __init__(self, cluster: Cluster, running: _Running, caches: Sequence[CachedCluster]) -> None:
        super().__init__(cluster)
        self._running = running
        self._caches = caches

    async def list_packed(self, api_version: str, kind: str, namespace: str = "") -> PackedList | None:
        """Return the objects of a kind as they are in memory."""
        return await list_packed(self._inner, api_version, kind, namespace)

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, and record it if it is a write."""
        key = key_of(request)
        if not is_write(request):
            answer = await send()
            if key.group_kind == _SECRET and request.verb is not Verb.WATCH:
                for live in answer.items if isinstance(answer, ObjectList) else (answer,):
                    self._running.has_seen(live)
            return answer
        before, is_known = self._stored(key)
        if key.group_kind == _SECRET and before is not None:
            self._running.has_seen(before)
        part = str(request.subresource or "")
        try:
            answer = await send()
        except Exception as error:
            self._record(str(request.verb), key, part, problem=failure_text(error))
            raise
        verb = str(request.verb)
        if verb == Verb.APPLY and is_known and before is None and not part:
            verb = str(Verb.CREATE)
        if key.group_kind == _SECRET and isinstance(answer, dict):
            self._running.has_seen(answer)
        known = before if is_known else None
        after = (
            answer if isinstance(answer, dict) and (request.subresource or Subresource.STATUS).shows_object else None
        )
        if request.verb is Verb.DELETE or after is None or (not is_known and verb != Verb.CREATE):
            note = "" if request.verb is Verb.DELETE or is_known else "not in the cache: the fields are not compared"
            self._record(verb, key, part, note=note)
        else:
            self._record(verb, key, part, fields=self._changed(key, known, after, part))
        return answer

    def _stored(self, key: ObjectKey) -> tuple[Manifest | None, bool]:
        """Return an object as it is in memory, and whether that is what the API server has."""
        for cache in self._caches:
            entry = cache.entry(key)
            if entry is not None:
                return (None, False) if entry.metadata_only else (entry.unpack(), True)
        return None, any(cache.lacks(key) for cache in self._caches)

    def _changed(self, key: ObjectKey, before: Manifest | None, after: Manifest, part: str) -> Iterator[FieldChange]:
        if key.group_kind == _SECRET:
            # Its annotations may have values of its data, as that of `kubectl apply` does.
            sides = [_content(one, part) for one in (before or {}, after)]
            for name in sorted({*sides[0], *sides[1]}):
                if sides[0].get(name) != sides[1].get(name):
                    shown = [_HIDDEN if name in side else "" for side in sides]
                    yield FieldChange(name, *shown)
            return
        kind = {name: after.get(name) for name in ("apiVersion", "kind")}
        pair = differing(*(_content(one, part) for one in (before or {"metadata": {}}, after)))
        # Most of an object is the same, and comparing field by field takes much longer.
        for changed in changed_fields(*(_content(redacted({**kind, **one}), part) for one in pair)):
            yield FieldChange(
                self._running.shown(changed.path),
                self._running.shown(_text(changed.before)),
                self._running.shown(_text(changed.after)),
            )

    def _record(
        self,
        verb: str,
        key: ObjectKey,
        part: str,
        *,
        problem: str = "",
        note: str = "",
        fields: Iterable[FieldChange] = (),
    ) -> None:
        if len(self._running.writes) == _MOST_WRITES:
            return
        listed = tuple(fields)
        more = len(listed) - _MOST_FIELDS
        note = note or (f"and {more} more" if more > 0 else "")
        text = self._running.shown(problem, _LONGEST_PROBLEM)
        self._running.writes.append(Write(verb, key, part, text, listed[:_MOST_FIELDS], note))


def _content(manifest: Manifest, part: str) -> Manifest:
    """Return what a write of an object, or of a part of it, may change."""
    if part == Subresource.STATUS:
        return {"status": manifest.get("status") or {}}
    metadata = {name: value for name, value in (manifest.get("metadata") or {}).items() if name not in _NOISE}
    kept = {name: value for name, value in manifest.items() if name not in {"status", "apiVersion", "kind", "metadata"}}
    # What an author decides comes first, since of many fields the first ones are kept.
    return kept | {"metadata": metadata}


def differing(before: Manifest, after: Manifest) -> tuple[Manifest, Manifest]:
    """Return two maps without the fields that are the same in both; a map of which nothing would remain is whole."""
    left, right = dict(before), dict(after)
    for name in before.keys() & after.keys():
        if equal_json(before[name], after[name]):
            del left[name], right[name]
        elif isinstance(before[name], dict) and isinstance(after[name], dict):
            left[name], right[name] = differing(before[name], after[name])
    if (before and not left) or (after and not right):
        return before, after
    return left, right


def _decoded(value: str) -> Iterator[str]:
    try:
        whole = b64decode(value, validate=True).decode()
    except (Base64Error, UnicodeDecodeError):
        return
    yield whole
    # A file, such as a kubeconfig, is used line by line.
    yield from (line for line in whole.split("\n") if len(line) >= _SHORTEST_PART)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _short(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _packed(record: Reconcile) -> bytes:
    """Serialize a reconcile; one that is too long loses fields of writes, and then its last writes."""
    left = _RECORD_BYTES - len(_dumped(record._replace(writes=())))
    kept: list[Write] = []
    for write in record.writes:
        size = len(_dumped(write))
        if size > left:
            write = write._replace(fields=(), note="too long: the fields are not shown")  # noqa: PLW2901 (the same one)
            size = len(_dumped(write))
        if size > left:
            break
        kept.append(write)
        left -= size + 1
    return _dumped(record._replace(writes=tuple(kept)))


def _dumped(value: tuple[Any, ...]) -> bytes:
    # A lone surrogate is a text of Python, but not one of UTF-8.
    return json.dumps(value, ensure_ascii=False, default=format_time).encode(errors="replace")


def _unpacked(packed: bytes) -> Reconcile:
    number, operator, owner, began, seconds, triggers, steps, writes, problem = json.loads(packed)
    return Reconcile(
        number,
        operator,
        ObjectKey(*owner),
        parse_time(began),
        seconds,
        tuple(triggers),
        tuple(Step(component, ObjectKey(*key), done) for component, key, done in steps),
        tuple(
            Write(verb, ObjectKey(*key), part, text, tuple(FieldChange(*one) for one in fields), note)
            for verb, key, part, text, fields, note in writes
        ),
        problem,
    )
