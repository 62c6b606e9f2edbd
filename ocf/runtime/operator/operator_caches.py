"""The caches of the operators of a process, which outlive its terms as the leader if it waits with full caches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

from ocf.runtime.operator.declared_kinds import DeclaredKinds
from ocf.runtime.operator.owners import SelectedObjects, content_needed
from ocf.runtime.sharding.sharded_children import ShardedChildren
from ocf.runtime.sharding.sharded_objects import ShardedObjects

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster, Selection
    from ocf.cluster.cache.serialization import CacheEntry
    from ocf.cluster.cache.transform import NeedsContent
    from ocf.runtime.operator.operator import Kind, Operator
    from ocf.runtime.sharding.slots import Slots

__all__ = ["OperatorCaches", "divided_kinds", "read_by_name", "selection_problems", "selections"]

_MakeCache = Callable[["Cluster", "Mapping[Kind, NeedsContent] | None", bool], "CachedCluster"]

# Seconds between two checks for watches whose task has died; a watch that only failed retries by itself.
_WATCH_CHECK_PERIOD: Final = 10.0
# Of these, a cluster has thousands, and an operator mostly reads few that owners name.
_READ_BY_NAME: Final = (("v1", "ConfigMap"), ("v1", "Secret"))


def selections(operators: Sequence[Operator[Any]]) -> dict[Kind, Selection]:
    """Return what the operators of a process select of kinds that none of them declares without a selection."""
    whole = {kind for each in operators for kind in each.declared_kinds if kind not in each.selections}
    return {kind: one for each in operators for kind, one in each.selections.items() if kind not in whole}


def read_by_name(operators: Sequence[Operator[Any]]) -> dict[Kind, Callable[[CacheEntry], bool]]:
    """Return the kinds whose objects are watched alone while none of the operators makes one, or declares the kind.

    A selection takes the place of this, also one that selects all objects.
    """
    declared = {kind for each in operators for kind in each.declared_kinds}
    declared |= {kind for kind, one in selections(operators).items() if one.selects_all}
    owners = {each.owner_group_kind for each in operators}

    def is_own(entry: CacheEntry) -> bool:
        return entry.controller is not None and (entry.controller.group, entry.controller.kind) in owners

    return {kind: is_own for kind in _READ_BY_NAME if kind not in declared}


def divided_kinds(operators: Sequence[Operator[Any]], namespaces: Collection[str] = ()) -> set[Kind]:
    """Return the kinds of which a replica needs the objects in its own namespaces only, if these divide the owners.

    Those are the kinds of children that nothing else watches, or selects in its own way.

    Args:
        namespaces: The namespaces of the process, each of which has a cache of its own; empty for all.
    """
    others = {(watch.api_version, watch.kind) for each in operators for watch in each.kind_watches}
    others |= {each.owner_kind for each in operators} | {kind for each in operators for kind in each.selections}
    return set() if namespaces else {kind for each in operators for kind in each.owns} - others


def selection_problems(operators: Sequence[Operator[Any]]) -> list[str]:
    """Return a problem for each two operators that select objects of one kind, for one cache, in different ways."""
    return [
        f'"{one.name}" and "{other.name}" select objects of {api_version} {kind} in different ways, and a process has '
        "one cache: use the same Selection in both"
        for one, other in combinations(operators, 2)
        for api_version, kind in sorted(one.selections.keys() & other.selections.keys())
        if one.selections[api_version, kind] != other.selections[api_version, kind]
    ]


@dataclass(frozen=True, slots=True)
class OperatorCaches:
    """One cache for all kinds, and one for the owners of each operator that selects them by label or by slots.

    Args:
        shared: The cache for all kinds.
        selected: The caches of owners, by the name of the operator.
        sharded: With sharding, the clusters of these caches.
    """

    operators: Sequence[Operator[Any]]
    shared: CachedCluster
    selected: Mapping[str, CachedCluster]
    sharded: Mapping[str, ShardedObjects] = field(default_factory=dict)

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        cluster: Cluster,
        operators: Sequence[Operator[Any]],
        make: _MakeCache,
        slots: Slots | None = None,
        namespaces: Collection[str] = (),
    ) -> AsyncIterator[OperatorCaches]:
        """Make the caches for the duration of a block.

        Args:
            make: Makes a cache of a cluster, with the kinds of which not all content is held, and whether it lists each
                namespace by itself.
            slots: The slots whose owners are held; None for all owners.
            namespaces: The namespaces of the process; empty for all.
        """
        async with AsyncExitStack() as stack:
            needed = content_needed(operators, selections(operators))
            by_namespace = slots is not None and slots.sharding.by == "namespace"
            children = divided_kinds(operators, namespaces) if by_namespace else set()
            everything = ShardedChildren(cluster, children, slots) if slots is not None and children else cluster
            shared = await stack.enter_async_context(make(everything, needed, False))  # noqa: FBT003 (see above)
            chosen = {one.name: _selection(cluster, one, slots) for one in operators}
            selected = {
                one.name: await stack.enter_async_context(
                    make(chosen[one.name], _needed(one), bool(one.selection.namespaces))
                )
                for one in operators
                if chosen[one.name] is not cluster
            }
            sharded = {name: one for name, one in chosen.items() if isinstance(one, ShardedObjects)}
            yield cls(operators, shared, selected, sharded)

    @property
    def all(self) -> tuple[CachedCluster, ...]:
        """The caches; the one for all kinds is the first."""
        return (self.shared, *self.selected.values())

    def owners_of(self, operator: Operator[Any]) -> CachedCluster:
        """Return the cache of the owners of an operator."""
        return self.selected.get(operator.name, self.shared)

    def writing_to(self, cluster: Cluster) -> OperatorCaches:
        """Return the same caches for a term, whose requests go to a cluster that rejects writes without the lease.

        Informers read as before, and go on when the term ends.
        """
        selected = {
            one.name: self.selected[one.name].writing_to(_selection(cluster, one))
            for one in self.operators
            if one.name in self.selected
        }
        return OperatorCaches(self.operators, self.shared.writing_to(cluster), selected)

    def declared(self, namespaces: tuple[str, ...]) -> tuple[DeclaredKinds, ...]:
        """Return the declared kinds of each operator.

        Args:
            namespaces: The namespaces of the process; empty for all.
        """
        return tuple(DeclaredKinds(one, self.shared, self.owners_of(one), namespaces) for one in self.operators)

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


def _needed(operator: Operator[Any]) -> Mapping[Kind, NeedsContent] | None:
    """Return which owners are held as a whole in a cache of their own; None for all, which the API server selects."""
    return None if operator.selects_by_server else content_needed([operator])


def _selection(cluster: Cluster, operator: Operator[Any], slots: Slots | None = None) -> Cluster:
    if operator.selects_by_server:
        cluster = SelectedObjects(cluster, operator.owner_kind, operator.selection)
    return cluster if slots is None else ShardedObjects(cluster, operator.owner_kind, slots)
