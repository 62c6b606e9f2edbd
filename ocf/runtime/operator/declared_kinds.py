"""Kinds that an operator declares: they are watched from the start, and no reconcile begins before they are read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ocf import __version__
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects.manifest import split_api_version

if TYPE_CHECKING:
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.informer_state import InformerState
    from ocf.runtime.operator.observed_versions import Followed
    from ocf.runtime.operator.operator import Kind, Operator

__all__ = ["DeclaredKinds"]

_log: Final = logging.getLogger(__name__)
_Follow: TypeAlias = Callable[[str, str, str], None]
# Delays between questions for the scope of a kind; those of the informers' lists.
_DISCOVERY_DELAYS: Final = ExponentialBackoff(timedelta(seconds=0.5), timedelta(seconds=45))
# In this time a kind that was installed since the last look is looked for again, at the longest delay, and listed.
_LIST_GRACE: Final = timedelta(minutes=1)
_NOT_SERVED: Final = "the API server does not serve it"
_ADVICE: Final = (
    "; install its CustomResourceDefinition before the operator, or name the kind in `late_kinds` if it may come later"
)


class DeclaredKinds:
    """The declared kinds of one operator.

    Args:
        cache: The cache of the process.
        owners: The cache of the owners, which may be another one.
        namespaces: The namespaces of the process; empty for all.
    """

    def __init__(
        self, operator: Operator[Any], cache: CachedCluster, owners: CachedCluster, namespaces: tuple[str, ...]
    ) -> None:
        self._operator = operator
        self._cache = cache
        self._owners = owners
        self._namespaces = namespaces
        self._of: dict[Kind, tuple[str, ...]] = {}
        """The kinds, and the namespaces in which each is watched, one empty text for all."""
        self._unknown: dict[Kind, ApiError] = {}
        """Kinds whose scope could not be found out yet."""

    @property
    def scopes(self) -> set[Followed]:
        """The kinds that are watched so far, each with a namespace."""
        return {(*kind, namespace) for kind, namespaces in self._of.items() for namespace in namespaces}

    def include(self, state: InformerState) -> bool:
        """Return whether an informer is one of those that the operator declares.

        What one owner makes the operator read, another kind or another namespace, does not count.
        """
        return state.namespace in self._of.get((state.api_version, state.kind), ())

    def ready(self, *, without: Collection[tuple[str, str]] = ()) -> str:
        """Return which declared kinds are not in the cache yet, and why; empty if all are."""
        return "; ".join(
            f"{api_version} {kind} is not read yet{f': {why}' if why else ''}"
            for (api_version, kind), why in self._unread().items()
            if (split_api_version(api_version)[0], kind) not in without
        )

    async def sync(
        self,
        follow: _Follow,
        follow_owners: _Follow,
        closing: Callable[[], Awaitable[None]],
        *,
        timeout: timedelta,  # noqa: ASYNC109 (it ends in an error of its own)
    ) -> None:
        """Follow the declared kinds, and wait until each was listed once, or the operator stops.

        A reconcile that began before would take what it has not read yet for absent, and delete what is wanted. So the
        process ends after a while, as in controller-runtime, and another one may lead; the kubelet starts it again,
        and shows that it does not run. Only a kind that the author expects to be defined later has no end.

        Args:
            follow: Starts to watch a kind in a namespace.
            follow_owners: The same for the owners, if they have a cache of their own.
            closing: Waits until the operator stops.
        """
        synced = asyncio.ensure_future(self.read(follow, follow_owners))
        stopping = asyncio.ensure_future(closing())
        waiting: set[asyncio.Future[Any]] = {synced, stopping}
        limit = timeout
        served: set[Kind] = set()
        try:
            while True:
                await asyncio.wait(waiting, timeout=timeout.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
                if any(task.done() for task in waiting):
                    break
                unread = self._unread()
                missing = {kind for kind, why in unread.items() if why == _NOT_SERVED}
                timeout = limit
                if unread.keys() - (missing & {*self._operator.late_kinds}):
                    if found := await self._cache.missing_kinds.served_of(missing - served):
                        served |= found
                        timeout = _LIST_GRACE
                        continue
                    raise ConfigError(
                        f"{self._operator.name}: the caches did not sync within cache_sync_timeout, {limit}: "
                        f"{self.ready()}{_ADVICE if missing else ''}"
                    )
            if synced.done():
                synced.result()
                (api_version, kind), *more = self._operator.declared_kinds
                watched = f" and watches {', '.join(name for _, name in more)}" if more else ""
                places = ", ".join(self._namespaces) or "all namespaces"
                what = f"operator {self._operator.name} reconciles {kind} of {api_version}{watched} in {places}"
                _log.info("%s, with ocf %s", what, __version__)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def read(self, follow: _Follow, follow_owners: _Follow) -> None:
        """Follow the declared kinds, and wait until each was listed once; see `sync`."""
        apart = self._owners is not self._cache
        async with asyncio.TaskGroup() as tasks:
            for kind in self._operator.watched_kinds if apart else self._operator.declared_kinds:
                tasks.create_task(self._read_one(kind, follow, self._cache))
            if apart:
                tasks.create_task(self._read_one(self._operator.owner_kind, follow_owners, self._owners))

    async def _read_one(self, of: Kind, follow: _Follow, cache: CachedCluster) -> None:
        """Follow a declared kind, and wait until it was listed once."""
        apart = cache is self._owners and cache is not self._cache
        namespaces = self._of[of] = await (self.owner_namespaces() if apart else self.namespaces_of(*of))
        for namespace in namespaces:
            follow(*of, namespace)
        for namespace in namespaces:
            await cache.wait_for_sync(*of, namespace=namespace)

    async def owner_namespaces(self) -> tuple[str, ...]:
        """Return the namespaces in which the owners are watched: those that the operator selects, of the manager's.

        Raises:
            ConfigError: If there are none, or the owners are in no namespace.
        """
        chosen, kind = self._operator.selection.namespaces, self._operator.owner_kind
        if not chosen:
            return await self.namespaces_of(*kind)
        homes = await self.namespaces_of(*kind, within=tuple(chosen))
        if homes == ("",):
            raise ConfigError(f"{self._operator.name}: `select` names namespaces, but {kind[1]} is cluster-scoped")
        if not homes:
            raise ConfigError(
                f"{self._operator.name}: `select` names the namespaces {', '.join(chosen)}, of which none is one of "
                f"those of the process: {', '.join(self._namespaces)}"
            )
        return homes

    async def namespaces_of(self, api_version: str, kind: str, within: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the namespaces in which a kind is watched: those of the manager; one empty text for all.

        The objects of a cluster-scoped kind are in none of them, and are watched as if there was no restriction.

        Args:
            within: Only these of them; empty for all.
        """
        if not (self._namespaces or within):
            return ("",)
        homes = tuple(each for each in self._namespaces or within if not within or each in within)
        failures = 0
        while True:
            try:
                namespaced = await self._cache.is_namespaced(api_version, kind)
            except ApiError as error:
                failures += 1
                self._unknown[api_version, kind] = error
                await asyncio.sleep(_DISCOVERY_DELAYS.after(failures).total_seconds())
            else:
                self._unknown.pop((api_version, kind), None)
                return homes if namespaced else ("",)

    def _unread(self) -> dict[Kind, str]:
        """Return the declared kinds that are not in the cache, with the reason; empty while the first list goes on."""
        found: dict[Kind, str] = {}
        for kind in self._operator.declared_kinds:
            caches = dict.fromkeys((self._cache, self._owners))
            informers = [state for cache in caches for state in cache.informers_of(*kind)]
            states, error = [*filter(self.include, informers)], self._unknown.get(kind)
            unread = [each for each in states if not each.synced]
            if error is not None:
                found[kind] = _NOT_SERVED if isinstance(error, NotFoundError) else str(error)
            elif unread or not states:
                missing = any(each.missing for each in unread)
                found[kind] = _NOT_SERVED if missing else "; ".join(filter(None, (each.problem for each in unread)))
        return found
