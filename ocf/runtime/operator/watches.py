"""Watches: which owners an object affects that they neither control nor read."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from ocf.cluster import Cluster, WatchEvent
from ocf.component.author_code import is_cancelled
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ConfigError, ServerError, TooManyRequestsError
from ocf.lazy_types.signatures import required_parameters
from ocf.objects import Manifest

if TYPE_CHECKING:
    from datetime import timedelta

__all__ = ["ALL", "AllOwners", "NamedOwners", "OwnersOf", "Watch", "mapped"]

_log: Final = logging.getLogger(__name__)
_BOTH: Final = 2
_DELAYS: Final = ExponentialBackoff()


class AllOwners(Enum):
    """The type of `ALL`."""

    ALL = "all"

    def __repr__(self) -> str:
        return self.name


ALL: Final = AllOwners.ALL
"""All owners of an operator."""

NamedOwners: TypeAlias = Iterable[tuple[str, str]] | AllOwners
"""Owners as pairs of namespace (empty for none) and name, or `ALL`."""
OwnersOf: TypeAlias = (
    Callable[[Manifest], NamedOwners | Awaitable[NamedOwners]]
    | Callable[[WatchEvent, Cluster], NamedOwners | Awaitable[NamedOwners]]
)
"""Returns the owners that an object affects. It may be a coroutine function, and may take the event and the cluster."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A watch of objects that affect owners which neither control them nor read them by name.

    Args:
        api_version: Group and version.
        owners: Returns the owners to reconcile, as pairs of namespace (empty for none) and name, or `ALL`; or `ALL`
            itself. A function of one argument gets an object: of a modification first the state before it, then the new
            one, so that no owner that an object has left is forgotten. A function of two arguments is called once, with
            the event, whose `old` is the state before a modification, and the cluster, which reads from the cache.
            Either may be a coroutine function. An exception is logged, and the change triggers nothing; only where the
            API server could not answer, the call is repeated with backoff until it can.

    Raises:
        ConfigError: If `owners` is neither a function nor `ALL`.
    """

    api_version: str
    kind: str
    owners: OwnersOf | AllOwners

    def __post_init__(self) -> None:
        if self.owners is not ALL and not callable(self.owners):
            raise ConfigError(f"a Watch of {self.kind} needs a function or ALL as `owners`, got {self.owners!r:.60}")

    @property
    def maps_at_once(self) -> bool:
        """Whether its owners are found without waiting: by a function of the object alone, or `ALL`."""
        if isinstance(self.owners, AllOwners):
            return True
        call = getattr(self.owners, "__call__", None)  # noqa: B004 (the method itself may be a coroutine function)
        is_async = inspect.iscoroutinefunction(self.owners) or inspect.iscoroutinefunction(call)
        return not is_async and required_parameters(self.owners) < _BOTH

    def owners_of(self, live: Manifest) -> NamedOwners:
        """Return the owners that one state of an object affects, of a watch that maps at once."""
        if isinstance(self.owners, AllOwners):
            return ALL
        return _checked(cast("Callable[[Manifest], object]", self.owners)(live))

    async def owners_at(self, event: WatchEvent, cluster: Cluster) -> NamedOwners:
        """Return the owners that an event affects."""
        function = cast("Callable[..., Any]", self.owners)
        if required_parameters(function) >= _BOTH:
            answers = [function(event, cluster)]
        else:
            answers = [function(state) for state in (event.old, event.object) if state is not None]
        found: list[tuple[str, str]] = []
        for answer in answers:
            names = _checked(await answer if inspect.isawaitable(answer) else answer)
            if isinstance(names, AllOwners):
                return ALL
            found += names
        return found


def _checked(names: Any) -> NamedOwners:
    if isinstance(names, AllOwners):
        return names
    found = list(names)
    for one in found:
        if not (isinstance(one, tuple) and list(map(type, one)) == [str, str]):
            raise ConfigError(f"a watch must name owners by pairs of namespace and name, got {one!r:.60}")
    return found


async def mapped(
    watch: Watch,
    event: WatchEvent,
    cluster: Cluster,
    *,
    name: str,
    timeout: timedelta,  # noqa: ASYNC109 (it ends in a log line of its own)
) -> NamedOwners:
    """Return the owners that an event affects; none, with a log line, if the author's function fails.

    A change must not be lost because the API server could not answer: then the function is called again, with backoff.

    Args:
        name: Name of the operator.
        timeout: How long one call may take.
    """
    failures = 0
    while True:
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                return await watch.owners_at(event, cluster)
        except (ServerError, TooManyRequestsError) as error:
            failures += 1
            delay = max(_DELAYS.after(failures).total_seconds(), error.retry_after or 0)
            text = "%s: a watch of %s could not read what it needs, again in %.3g s: %s"
            _log.warning(text, name, watch.kind, delay, error)
            await asyncio.sleep(delay)
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled(error):
                raise
            _log.exception("%s: a watch could not map a change of %s to owners", name, watch.kind)
            return ()
