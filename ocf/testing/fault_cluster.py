"""Cluster that injects faults as planned.

It wraps any `Cluster`, so an operator can use it in place of the real one. It records every injected fault, because a
test whose fault never happened proves nothing.
"""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ocf.cluster import ApplyCache, Cluster, ObjectList, Request, Verb, WatchEvent, WatchOptions
from ocf.cluster.interceptor import InterceptingCluster, describe, is_write, key_of
from ocf.cluster.protocol import EventType
from ocf.errors import ApiError, BuildError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.paths import get_field
from ocf.testing.faults import DroppedEvent, Fault, LostReply, Meanwhile, Refusal, Stale, WebhookEffect

__all__ = ["FaultyCluster", "Injection"]


class _ObjectHistory:
    """The latest versions of objects."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._versions: dict[ObjectKey, deque[Manifest | None]] = {}

    @property
    def is_kept(self) -> bool:
        """Whether older versions are kept."""
        return self._depth > 0

    def learn(self, key: ObjectKey, seen: Manifest | None) -> None:
        """Record the live version of an object, unless it is already the newest known one.

        Args:
            seen: The object; None if it does not exist.
        """
        versions = self._versions.setdefault(key, deque(maxlen=self._depth + 1))
        if not versions or _version(versions[-1]) != _version(seen):
            versions.append(copy_json(seen))

    def ago(self, key: ObjectKey, versions: int) -> Manifest | None:
        """Return an older version of an object.

        Args:
            versions: How many versions older; if fewer are known, the oldest is returned.

        Returns:
            A copy; None if the object did not exist at that version.
        """
        known = self._versions[key]
        found: Manifest | None = copy_json(known[max(0, len(known) - 1 - versions)])
        return found


def _version(manifest: Manifest | None) -> str | None:
    return None if manifest is None else get_field(manifest, ("metadata", "resourceVersion"))


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault that was injected.

    Args:
        request: The request it hit; for a dropped event the watch, with namespace and name of the event's object.
    """

    fault: Fault
    request: Request

    def __str__(self) -> str:
        return f"{type(self.fault.effect).__name__}: {describe(self.request)}"


class FaultyCluster(InterceptingCluster):
    """A cluster that wraps another one and injects faults.

    If several faults hit a request, they are injected in the order given, and the first that raises ends the request.
    Each fault counts its matching requests itself, from the creation of this cluster.

    Args:
        cluster: The wrapped cluster.
        faults: The faults; see `ocf.testing.faults`.
        apply_cache: The apply cache of the operator that uses this cluster; None shares that of `cluster`.

    Attributes:
        injected: The injected faults, oldest first. A stale read is listed only if it returned an older version.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> from ocf.testing import faults
        >>> cluster = FaultyCluster(EmbeddedCluster(), [faults.server_error(503)])
        >>> try:
        ...     asyncio.run(cluster.get(ObjectKey("v1", "Namespace", "default")))
        ... except ServerError as error:
        ...     print(error.code, [str(injection) for injection in cluster.injected])
        503 ['Refusal: get v1/Namespace/default']
    """

    def __init__(self, cluster: Cluster, faults: Iterable[Fault], *, apply_cache: ApplyCache | None = None) -> None:
        super().__init__(cluster, apply_cache=apply_cache)
        self._faults = tuple(faults)
        if any(isinstance(fault.effect, WebhookEffect) for fault in self._faults):
            raise BuildError(["faults of webhooks are for LocalWebhooks, which calls them; a cluster has none"])
        self._counts = [0] * len(self._faults)
        depths = [fault.effect.versions for fault in self._faults if isinstance(fault.effect, Stale)]
        self._history = _ObjectHistory(max(depths, default=0))
        self.injected: list[Injection] = []

    @property
    def not_injected(self) -> tuple[Fault, ...]:
        """The faults that have not happened."""
        return tuple(fault for fault in self._faults if all(one.fault is not fault for one in self.injected))

    def assert_all_injected(self) -> None:
        """Check that every fault happened, so that a test cannot succeed because no fault was injected.

        Raises:
            AssertionError: If some did not; names them.
        """
        __tracebackhide__ = True
        if self.not_injected:
            lines = [f"  {fault}" for fault in self.not_injected]
            raise AssertionError("\n".join(["these faults never happened, so the test proves nothing:", *lines]))

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request and inject the faults that are due."""
        due = self._due(request)
        for fault in due:
            await self._inject_before(fault, request)
        answer = await self._observed(request, send)
        for fault in due:
            match fault.effect:
                case LostReply():
                    self._record(fault, request)
                    raise ServerError("no answer arrived in time")
                case Stale(versions):
                    answer = self._aged(answer, request, fault, versions)
                case _:
                    pass
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events of a kind without the dropped ones."""
        events = super().watch(api_version, kind, options)
        try:
            async for event in events:
                if event.type is EventType.BOOKMARK or not self._drops(event):
                    yield event
        finally:
            await events.aclose()

    def _drops(self, event: WatchEvent) -> bool:
        key = ObjectKey.of(event.object)
        request = Request(Verb.WATCH, key.api_version, key.kind, key.namespace, key.name)
        due = self._due(request, events=True)
        for fault in due:
            self._record(fault, request)
        return bool(due)

    def _due(self, request: Request, *, events: bool = False) -> Sequence[Fault]:
        due = []
        for index, fault in enumerate(self._faults):
            if isinstance(fault.effect, DroppedEvent) is events and fault.matches(request):
                self._counts[index] += 1
                if fault.is_due(self._counts[index]):
                    due.append(fault)
        return due

    async def _inject_before(self, fault: Fault, request: Request) -> None:
        match fault.effect:
            case Refusal(error):
                self._record(fault, request)
                raise _copy_of(error)
            case Meanwhile(hook):
                self._record(fault, request)
                await hook()
            case _:
                pass

    def _record(self, fault: Fault, request: Request) -> None:
        self.injected.append(Injection(fault, request))

    async def _observed(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, and record the versions of the objects it concerns if a stale fault needs them.

        Returns:
            The response. A `NotFoundError` of a read is returned, because a stale read may still return the object.
        """
        if not self._history.is_kept or not _shows_object(request) or request.verb is Verb.WATCH:
            return await send()
        if is_write(request):
            await self._record_live(request)
            answer = await send()
            await self._record_live(replace(request, name=ObjectKey.of(answer).name) if answer is not None else request)
            return answer
        try:
            answer = await send()
        except NotFoundError as error:
            answer = error
        if request.verb is Verb.GET:
            self._history.learn(key_of(request), answer if isinstance(answer, dict) else None)
        elif isinstance(answer, ObjectList):
            for item in answer.items:
                self._history.learn(ObjectKey.of(item), item)
        return answer

    async def _record_live(self, request: Request) -> None:
        """Record the live version of an object."""
        try:
            self._history.learn(key_of(request), await self._inner.get(key_of(request)))
        except NotFoundError:
            self._history.learn(key_of(request), None)

    def _aged(self, answer: Any, request: Request, fault: Fault, versions: int) -> Any:
        if isinstance(answer, ObjectList):
            aged = [self._older(item, ObjectKey.of(item), fault, versions) for item in answer.items]
            then: Any = replace(answer, items=tuple(item for item in aged if item is not None))
            now: Any = answer
        elif request.verb is Verb.GET and _shows_object(request):
            now = answer if isinstance(answer, dict) else None
            then = self._older(now, key_of(request), fault, versions)
        else:
            return answer
        if then == now:
            return answer
        self._record(fault, request)
        return _absent(request) if then is None else then

    def _older(self, item: Manifest | None, key: ObjectKey, fault: Fault, versions: int) -> Manifest | None:
        if fault.name not in ("", key.name) or fault.namespace not in ("", key.namespace):
            return item
        return self._history.ago(key, versions)


def _shows_object(request: Request) -> bool:
    return request.subresource is None or request.subresource.shows_object


def _copy_of(error: ApiError) -> ApiError:
    """Return a new error with the same content; the original may carry the traceback of an earlier injection."""
    return type(error)(
        error.message, code=error.code, reason=error.reason, causes=error.causes, retry_after=error.retry_after
    )


def _absent(request: Request) -> NotFoundError:
    return NotFoundError(f'{request.kind} "{request.name}" not found', code=404, reason="NotFound")
