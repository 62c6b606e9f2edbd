"""The caches of the operators of a process, which outlive its terms as the leader if it waits with full caches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, Self

from ocf.runtime.operator.declared_kinds import DeclaredKinds
from ocf.runtime.operator.owners import SelectedObjects, content_needed

if TYPE_CHECKING:
    from types import TracebackType

    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.transform import NeedsContent
    from ocf.runtime.operator.operator import Kind, Operator

__all__ = ["OperatorCaches"]

_MakeCache = Callable[["Cluster", "Mapping[Kind, NeedsContent] | None"], "CachedCluster"]

# Seconds between two checks for watches whose task has died; a watch that only failed retries by itself.
_WATCH_CHECK_PERIOD: Final = 10.0


class OperatorCaches:
    """One cache for all kinds, and one for the owners of each operator that selects them by label.

    Args:
        make: Makes a cache of a cluster, with the kinds of which not all content is held.
    """

    def __init__(self, cluster: Cluster, operators: Sequence[Operator[Any]], make: _MakeCache) -> None:
        self._operators = operators
        self.shared: CachedCluster = make(cluster, content_needed(operators))
        self._selected: dict[str, CachedCluster] = {
            one.name: make(_selection(cluster, one), None) for one in operators if one.label_selector
        }
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for cache in self.all:
            await self._stack.enter_async_context(cache)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def all(self) -> tuple[CachedCluster, ...]:
        """The caches; the one for all kinds is the first."""
        return (self.shared, *self._selected.values())

    def owners_of(self, operator: Operator[Any]) -> CachedCluster:
        """Return the cache of the owners of an operator."""
        return self._selected.get(operator.name, self.shared)

    def writing_to(self, cluster: Cluster) -> OperatorCaches:
        """Return the same caches for a term, whose requests go to a cluster that rejects writes without the lease.

        Informers read as before, and go on when the term ends.
        """
        view = object.__new__(OperatorCaches)
        view.__dict__.update(self.__dict__)
        view.shared = self.shared.writing_to(cluster)
        view._selected = {
            one.name: self._selected[one.name].writing_to(_selection(cluster, one))
            for one in self._operators
            if one.name in self._selected
        }
        return view

    def declared(self, namespaces: tuple[str, ...]) -> tuple[DeclaredKinds, ...]:
        """Return the declared kinds of each operator.

        Args:
            namespaces: The namespaces of the process; empty for all.
        """
        return tuple(DeclaredKinds(one, self.shared, self.owners_of(one), namespaces) for one in self._operators)

    async def fill(self, declared: Sequence[DeclaredKinds]) -> None:
        """Follow the declared kinds, also between the terms of the process, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.revive())
            for one in declared:
                # The owners of a selection have a cache for themselves, which nothing else releases.
                tasks.create_task(one.read(self.shared.retain, lambda *_: None))

    async def revive(self, log: Callable[[], object] = lambda: None) -> None:
        """Restart the tasks of informers that have ended, until cancelled; without changes, no request would.

        Args:
            log: Called before each look.
        """
        while True:
            await asyncio.sleep(_WATCH_CHECK_PERIOD)
            log()
            for cache, state in [(one, state) for one in self.all for state in one.failing]:
                # The state of the watch has the problem, which may be any error, and belong to what one owner names.
                with suppress(Exception):
                    await cache.cache(state.api_version, state.kind, namespace=state.namespace)


def _selection(cluster: Cluster, operator: Operator[Any]) -> Cluster:
    return SelectedObjects(cluster, operator.owner_kind, operator.label_selector)
