"""A cluster on which things go wrong as planned.

It is a `Cluster` around any other, so it goes wherever an operator takes one. What it injected it keeps, because a
fault that never happened proves nothing.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ocf.cluster import ApplyCache, Cluster, EventType, ObjectList, Request, Subresource, Verb, WatchEvent, WatchOptions
from ocf.cluster.interceptor import InterceptingCluster, describe, is_write, key_of
from ocf.errors import ApiError, NotFoundError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.faults import DroppedEvent, Fault, LostReply, Meanwhile, Refusal, Stale
from ocf.testing.object_history import ObjectHistory

__all__ = ["FaultyCluster", "Injection"]


@dataclass(frozen=True, slots=True)
class Injection:
    """A fault that happened.

    Args:
        fault: The fault.
        request: To what; of a dropped event the watch, with namespace and name of the event's object.
    """

    fault: Fault
    request: Request

    def __str__(self) -> str:
        return f"{type(self.fault.effect).__name__}: {describe(self.request)}"


class FaultyCluster(InterceptingCluster):
    """A cluster around another one, on which faults happen.

    A request that several faults hit meets them in the order given; the first that raises ends it. Counting starts
    with the cluster and every fault counts for itself.

    Args:
        cluster: The cluster that does the work.
        faults: What goes wrong, and when; see `ocf.testing.faults`.
        apply_cache: The memory of the operator that uses this one; None shares that of `cluster`.

    Attributes:
        injected: What went wrong, oldest first. A stale read is among it only if it showed something old.

    Example:
        >>> import asyncio
        >>> from ocf.embedded import EmbeddedCluster
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
        self._counts = [0] * len(self._faults)
        depths = [fault.effect.versions for fault in self._faults if isinstance(fault.effect, Stale)]
        self._history = ObjectHistory(max(depths, default=0))
        self.injected: list[Injection] = []

    @property
    def missed(self) -> tuple[Fault, ...]:
        """The faults that never happened."""
        return tuple(fault for fault in self._faults if all(one.fault is not fault for one in self.injected))

    def assert_all_injected(self) -> None:
        """Demand that every fault happened, so that a test does not pass because nothing went wrong.

        Raises:
            AssertionError: Naming the faults that did not.
        """
        __tracebackhide__ = True
        if self.missed:
            lines = [f"  {fault}" for fault in self.missed]
            raise AssertionError("\n".join(["these faults never happened, so the test proves nothing:", *lines]))

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request, and let happen to it what is due."""
        due = self._due(request)
        for fault in due:
            await self._on_the_way(fault, request)
        answer = await self._observed(request, send)
        for fault in due:
            match fault.effect:
                case LostReply():
                    self._note(fault, request)
                    raise ServerError("no answer arrived in time")
                case Stale(versions):
                    answer = self._aged(answer, request, fault, versions)
                case _:
                    pass
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def watch(self, api_version: str, kind: str, options: WatchOptions) -> AsyncGenerator[WatchEvent, None]:
        """Report what happens to the objects of a kind, except for the events that are dropped."""
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
            self._note(fault, request)
        return bool(due)

    def _due(self, request: Request, *, events: bool = False) -> Sequence[Fault]:
        due = []
        for place, fault in enumerate(self._faults):
            if isinstance(fault.effect, DroppedEvent) is events and fault.matches(request):
                self._counts[place] += 1
                if fault.is_due(self._counts[place]):
                    due.append(fault)
        return due

    async def _on_the_way(self, fault: Fault, request: Request) -> None:
        match fault.effect:
            case Refusal(error):
                self._note(fault, request)
                raise _another(error)
            case Meanwhile(hook):
                self._note(fault, request)
                await hook()
            case _:
                pass

    def _note(self, fault: Fault, request: Request) -> None:
        self.injected.append(Injection(fault, request))

    async def _observed(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Send a request; note the versions of objects that are seen on the way, where they are needed.

        Returns:
            The answer; a `NotFoundError` of a read as a value, because a stale read may still see the object.
        """
        if not self._history.is_kept or request.subresource is Subresource.SCALE or request.verb is Verb.WATCH:
            return await send()
        if is_write(request):
            await self._look(request)
            answer = await send()
            await self._look(replace(request, name=ObjectKey.of(answer).name) if answer is not None else request)
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

    async def _look(self, request: Request) -> None:
        """Learn what an object is like now."""
        try:
            self._history.learn(key_of(request), await self._inner.get(key_of(request)))
        except NotFoundError:
            self._history.learn(key_of(request), None)

    def _aged(self, answer: Any, request: Request, fault: Fault, versions: int) -> Any:
        if isinstance(answer, ObjectList):
            aged = [self._older(item, ObjectKey.of(item), fault, versions) for item in answer.items]
            then: Any = replace(answer, items=tuple(item for item in aged if item is not None))
            now: Any = answer
        elif request.verb is Verb.GET and request.subresource is not Subresource.SCALE:
            now = answer if isinstance(answer, dict) else None
            then = self._older(now, key_of(request), fault, versions)
        else:
            return answer
        if then == now:
            return answer
        self._note(fault, request)
        return _absent(request) if then is None else then

    def _older(self, item: Manifest | None, key: ObjectKey, fault: Fault, versions: int) -> Manifest | None:
        if fault.name not in ("", key.name) or fault.namespace not in ("", key.namespace):
            return item
        return self._history.ago(key, versions)


def _another(error: ApiError) -> ApiError:
    """Return an error like this one; one that was raised before carries the way it took."""
    return type(error)(
        error.message, code=error.code, reason=error.reason, causes=error.causes, retry_after=error.retry_after
    )


def _absent(request: Request) -> NotFoundError:
    return NotFoundError(f'{request.kind} "{request.name}" not found', code=404, reason="NotFound")
