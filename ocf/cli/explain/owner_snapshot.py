"""Reads what an owner's explanation needs from a cluster: one list for each kind, with the rights of a reader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from ocf.errors import ApiError, ConfigError, ForbiddenError, NotFoundError
from ocf.objects.manifest import PREFIX, ObjectKey
from ocf.ownership import OwnerSnapshot, UnreadKind, values
from ocf.ownership.relations import operators_of
from ocf.ownership.snapshot import made_for

if TYPE_CHECKING:
    from ocf.cli.explain.served_kinds import JsonReader, ServedKind
    from ocf.objects import Manifest

__all__ = ["OwnerReading", "WantedOwners", "read_owners"]

# Of these only the metadata is requested: their content is never shown, and that of Secrets must not be.
_METADATA_ONLY: Final = frozenset({"configmaps", "secrets", "serviceaccounts"})
_METADATA_GROUPS: Final = frozenset({"rbac.authorization.k8s.io"})
# No owner has these, they are computed by the server, or they are read in another way.
_LEFT_OUT: Final = frozenset(
    {
        "bindings",
        "componentstatuses",
        "csinodes.storage.k8s.io",
        "endpoints",
        "events",
        "events.events.k8s.io",
        "controllerrevisions.apps",
        "leases.coordination.k8s.io",
        "limitranges",
        "nodes",
        "podtemplates",
        "resourcequotas",
        "volumeattachments.storage.k8s.io",
    }
)
_LEFT_OUT_GROUPS: Final = frozenset({"authorization.k8s.io", "metrics.k8s.io", "custom.metrics.k8s.io"})
# Named by claims, Ingresses and Gateways, and few.
_CLUSTER_KINDS: Final = frozenset(
    {
        "gatewayclasses.gateway.networking.k8s.io",
        "ingressclasses.networking.k8s.io",
        "storageclasses.storage.k8s.io",
    }
)
_NODE_GROUPS: Final = f"nodegroups.autoscaling.{PREFIX}"
_PARTIAL: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_AT_ONCE: Final = 12
_UNAUTHORIZED: Final = 401
_KEPT_METADATA: Final = frozenset(
    {
        "name",
        "namespace",
        "uid",
        "labels",
        "ownerReferences",
        "managedFields",
        "creationTimestamp",
        "deletionTimestamp",
        "finalizers",
        "generation",
    }
)


@dataclass(frozen=True, slots=True)
class OwnerReading:
    """What was read, and the owners that it explains."""

    snapshot: OwnerSnapshot
    owners: tuple[ObjectKey, ...]


@dataclass(frozen=True, slots=True)
class WantedOwners:
    """The owners to read.

    Args:
        namespace: Their namespace; of cluster-scoped ones, everything is read in all namespaces.
        name: The name of the one; empty for all.
    """

    kind: ServedKind
    namespace: str
    name: str


async def read_owners(
    cluster: JsonReader, wanted: WantedOwners, served: Sequence[ServedKind], now: datetime
) -> OwnerReading:
    """Read one owner, or all of a kind, with what belongs to it.

    Args:
        served: The kinds that the cluster serves.

    Raises:
        ConfigError: If it does not exist.
        ApiError: If it cannot be read.
    """
    kind, where = wanted.kind, wanted.namespace if wanted.kind.namespaced else ""
    try:
        answer = await cluster.read_path(kind.path(where, wanted.name))
    except NotFoundError as error:
        place = f" in namespace {where}" if where else ""
        problem = f"{kind.kind} {wanted.name} does not exist{place}: {error.message}"
        raise ConfigError(problem + _other_groups(kind, served)) from error
    owners = [_typed(one, kind) for one in ([answer] if wanted.name else answer.get("items") or ())]
    reader = _Reader(cluster)
    await reader.read(where, served)
    keys = {ObjectKey.of(one) for one in reader.objects}
    reader.objects += [one for one in owners if ObjectKey.of(one) not in keys]
    await reader.read_elsewhere(owners, served)
    await reader.read_node_groups(served)
    await asyncio.gather(*(reader.read_composite(one, served) for one in owners))
    with_status = {(each.group, each.kind) for each in served if each.has_status}
    return OwnerReading(
        replace(reader.snapshot(now), with_status=with_status), tuple(ObjectKey.of(one) for one in owners)
    )


def _other_groups(kind: ServedKind, served: Sequence[ServedKind]) -> str:
    """Return the hint that other kinds have the same plural: a user may have meant one of those."""
    others = sorted({one.group for one in served if one.plural == kind.plural} - {kind.group})
    names = [f"{kind.plural}.{group}" for group in others if group]
    return f"; did you mean {' or '.join(names)}?" if names else ""


@dataclass(slots=True)
class _Reader:
    cluster: JsonReader
    objects: list[Manifest] = field(default_factory=list)
    events: list[Manifest] = field(default_factory=list)
    unread: list[UnreadKind] = field(default_factory=list)
    complete: set[tuple[str, str, str]] = field(default_factory=set)
    _free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    def snapshot(self, now: datetime) -> OwnerSnapshot:
        return OwnerSnapshot(
            objects=self.objects, now=now, events=self.events, unread=self.unread, complete=frozenset(self.complete)
        )

    async def read(self, namespace: str, served: Sequence[ServedKind]) -> None:
        """Read the lists of a namespace, or of all, and the few cluster-scoped ones that matter to everyone."""
        lists = [self._read_list(each, namespace if each.namespaced else "") for each in _listed(served, namespace)]
        await asyncio.gather(*lists, self._read_events(namespace, served), self._read_namespace(namespace, served))

    async def read_elsewhere(self, owners: Iterable[Manifest], served: Sequence[ServedKind]) -> None:
        """Read the objects that cannot refer to their owner: cluster-scoped ones, and those of other namespaces.

        An owner in a namespace has a finalizer of its operator of ocf while it has such objects. The names of field
        managers lead to those, and no selector of the API server can select by them; in other namespaces a label does.
        """
        held = [one for one in owners if one["metadata"].get("namespace") and operators_of(one, [])]
        if not held:
            return
        kinds = [each for each in served if _is_read(each) and each.resource not in _CLUSTER_KINDS]
        uids = {str(one["metadata"].get("uid")) for one in held}
        operators = {operator for one in held for operator in operators_of(one, [])}
        marks = [f"{operator}.{PREFIX}/for-{uid}" for operator in sorted(operators) for uid in sorted(uids)]
        reads = [self._read_made(each, (), uids) for each in kinds if not each.namespaced]
        for mark in marks:
            query = (("labelSelector", mark),)
            reads += [self._read_made(each, query, uids) for each in kinds if each.namespaced]
        await asyncio.gather(*reads)

    async def read_node_groups(self, served: Sequence[ServedKind]) -> None:
        """Read the groups of nodes if a pod has no node; they are in a namespace of their own."""
        if any(one["kind"] == "Pod" and not values.text(one, "spec", "nodeName") for one in self.objects):
            for kind in served:
                if kind.resource == _NODE_GROUPS:
                    self.objects += [_typed(one, kind) for one in await self._items(kind, "") or ()]

    async def read_composite(self, owner: Manifest, served: Sequence[ServedKind]) -> None:
        """Read the composite resource that a claim of Crossplane names, and the cluster-scoped ones that this names."""
        composite = await self._read_one(values.mapping(owner, "spec", "resourceRef"), served)
        if composite is not None and values.mapping(composite, "spec", "claimRef"):
            listed = values.members(composite, "spec", "resourceRefs")
            await asyncio.gather(*(self._read_one(one, served) for one in listed))

    async def _read_one(self, reference: Manifest, served: Sequence[ServedKind]) -> Manifest | None:
        """Read a cluster-scoped object that another one names; None if there is none."""
        group, name = (values.text(reference, "apiVersion").rpartition("/")[0], values.text(reference, "name"))
        places = (each for each in served if (each.group, each.kind) == (group, reference.get("kind")))
        kind = next((each for each in places if not each.namespaced and _is_read(each) and not _is_partial(each)), None)
        if kind is None or not name:
            return None
        try:
            async with self._free:
                found = _typed(await self.cluster.read_path(kind.path(name=name)), kind)
        except NotFoundError:
            return None
        except ApiError as error:
            self.unread.append(UnreadKind(kind.resource, "", error.message))
            return None
        self.objects.append(found)
        return found

    async def _read_made(self, kind: ServedKind, query: Sequence[tuple[str, str]], uids: AbstractSet[str]) -> None:
        """Read the objects of a kind in all namespaces that were made for owners."""
        known = {ObjectKey.of(one) for one in self.objects}
        found = [_typed(one, kind, metadata_only=_is_partial(kind)) for one in await self._items(kind, "", query) or ()]
        made = [one for one in found if not uids.isdisjoint(made_for(one))]
        self.objects += [one for one in made if ObjectKey.of(one) not in known]

    async def _read_list(self, kind: ServedKind, namespace: str) -> None:
        items = await self._items(kind, namespace)
        if items is not None:
            self.objects += [_typed(one, kind, metadata_only=_is_partial(kind)) for one in items]
            self.complete.add((kind.group, kind.kind, namespace))

    async def _read_events(self, namespace: str, served: Sequence[ServedKind]) -> None:
        for kind in served:
            if kind.resource == "events":
                self.events += await self._items(kind, namespace) or []
            elif kind.resource == "leases.coordination.k8s.io":
                # That of the operator is in its own namespace, which is not known.
                items = await self._items(kind, "")
                self.objects += [_typed(one, kind) for one in items or ()]

    async def _read_namespace(self, namespace: str, served: Sequence[ServedKind]) -> None:
        kind = next((each for each in served if each.resource == "namespaces"), None)
        if not namespace or kind is None:
            return
        try:
            self.objects.append(_typed(await self.cluster.read_path(kind.path(name=namespace)), kind))
        except NotFoundError:
            return
        except ApiError as error:
            self.unread.append(UnreadKind(kind.resource, "", error.message))

    async def _items(
        self, kind: ServedKind, namespace: str, query: Sequence[tuple[str, str]] = ()
    ) -> list[Manifest] | None:
        """Return the objects of a list; None if it could not be read, which is noted."""
        accept = _PARTIAL if _is_partial(kind) else ""
        try:
            async with self._free:
                answer = await self.cluster.read_path(kind.path(namespace), query, accept=accept)
        except NotFoundError:
            # Its definition has been deleted meanwhile.
            return None
        except ApiError as error:
            if isinstance(error, ForbiddenError) and error.code == _UNAUTHORIZED:
                raise
            self.unread.append(UnreadKind(kind.resource, namespace, error.message))
            return None
        items = answer.get("items")
        return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []


def _listed(served: Iterable[ServedKind], namespace: str) -> Iterator[ServedKind]:
    """Yield the kinds that an owner's objects may have; the cluster-scoped ones only for a cluster-scoped owner."""
    for each in served:
        if _is_read(each) and (each.namespaced or not namespace or each.resource in _CLUSTER_KINDS):
            yield each


def _is_read(kind: ServedKind) -> bool:
    return "list" in kind.verbs and kind.resource not in _LEFT_OUT and kind.group not in _LEFT_OUT_GROUPS


def _is_partial(kind: ServedKind) -> bool:
    return kind.resource in _METADATA_ONLY or kind.group in _METADATA_GROUPS


def _typed(live: Manifest, kind: ServedKind, *, metadata_only: bool = False) -> Manifest:
    """Return an object with its type, which items of lists do not have; of some kinds without their content."""
    head = {"apiVersion": kind.api_version, "kind": kind.kind}
    if not metadata_only:
        return {**live, **head}
    metadata = live.get("metadata") or {}
    return {**head, "metadata": {name: value for name, value in metadata.items() if name in _KEPT_METADATA}}
