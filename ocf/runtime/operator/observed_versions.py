"""Object versions that reconciles have observed.

A reconcile records the version of each object that it reads, by name or in a list, and of each that it writes. An event
whose version the owner's last reconcile has observed triggers no reconcile; any other event does. So an operator's own
writes trigger nothing, and every other change does, independent of its author and of the changed fields.

Of several reads of an object the first one counts, because a decision may depend on it. A write replaces it, because
the stored object contains that decision, but only where nothing else came in between. To know that, a write names the
version that was read. If the API server answers that another writer was faster, the write is repeated without the
version, and no version of the object counts as observed. Comparing the answer with what was read would not do: defaults
and mutating webhooks change fields that were not sent, and a cache does not know who owns which field.

The same records show which objects an owner depends on without controlling them: those that its last reconcile read,
and those that its lists select, whether they existed or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from ocf.cluster.cache.list_filter import ListFilter
from ocf.cluster.cache.serialization import CacheEntry, pack, unpack
from ocf.cluster.cache.subscriptions import CacheChange
from ocf.cluster.indexes import Index, IndexKey
from ocf.cluster.packed import PackedList
from ocf.objects import Manifest, ObjectKey
from ocf.objects.owner_references import ControllerReference, controller_of

__all__ = ["Followed", "ListScope", "ObservationIndex", "ObservedVersions", "RunningReconcile"]

_ABSENT: Final = ""
# No version is equal to it.
_UNKNOWN: Final = "?"
Followed: TypeAlias = tuple[str, str, str]
"""apiVersion, kind and namespace (empty for all) that are watched."""
_Group: TypeAlias = tuple[str, str, str, tuple[str, ...] | IndexKey]
_NAME: Final = "metadata.name"
# What a write of the owner may change without a reconcile that follows: what the API server derives, and what
# controllers set to hold a deletion.
_UNREAD: Final = frozenset({"finalizers", "generation", "managedFields", "resourceVersion"})


class ListScope(NamedTuple):
    """The objects that a list selects, whether they exist or not.

    Args:
        namespace: Namespace; empty for all namespaces.
        selected: The selectors; None if only the API server can evaluate them, so that any object may be meant.
        controller: Uid of the controller of the objects; empty for any.
        indexed: The key that they have in an index; None for any.
    """

    api_version: str
    kind: str
    namespace: str
    selected: ListFilter | None
    controller: str = ""
    indexed: IndexKey | None = None

    def covers(
        self,
        key: ObjectKey,
        labels: Mapping[str, str],
        controller: ControllerReference | None,
        content: Callable[[], Manifest],
    ) -> bool:
        """Return whether the list selects an object.

        Args:
            content: Returns the object.
        """
        if (key.api_version, key.kind) != (self.api_version, self.kind) or self.namespace not in ("", key.namespace):
            return False
        if self.controller and (controller is None or controller.uid != self.controller):
            return False
        if self.selected is not None and not self.selected.matches((key.namespace, key.name), labels):
            return False
        return self.indexed is None or self.indexed.selects(content())

    @property
    def group(self) -> _Group:
        """What all objects that the list selects have in common, so that a change need not be compared with each list.

        Beside kind and namespace this is the key of an index, the name that it selects, or the first label of which it
        selects one value.
        """
        if self.indexed is not None:
            return self.api_version, self.kind, self.namespace, self.indexed
        common: tuple[str, ...] = ()
        if self.selected is not None:
            names = [(term.value,) for term in self.selected.terms if term.path == _NAME and term.operator == "="]
            common = next(iter(names), self.selected.one_value or ())
        return self.api_version, self.kind, self.namespace, common


class ObservedVersions:
    """Versions that one reconcile has observed."""

    __slots__ = (
        "_final",
        "_owner_as_read",
        "_uids",
        "followed",
        "lists",
        "owner",
        "requested",
        "superseded",
        "uid",
        "uncontrolled",
        "versions",
    )

    def __init__(self, owner: ObjectKey) -> None:
        self.owner: Final = owner
        self.uid = ""
        """The uid of the owner; empty until it has been read."""
        self.followed: AbstractSet[Followed] = frozenset()
        """What it has requested, as the kinds and namespaces that are followed because of it."""
        self.versions: dict[ObjectKey, str] = {}
        self.lists: list[ListScope] = []
        """Lists that the reconcile has requested so far, answered or not."""
        self.uncontrolled: set[ObjectKey] = set()
        """Objects that it has read by name or written, and that the owner does not control."""
        self.requested: set[ObjectKey] = set()
        """Objects that the reconcile has requested so far, answered or not."""
        self.superseded: set[tuple[ObjectKey, str]] = set()
        """Versions that the reconcile has observed and then replaced by its own writes."""
        self._uids: dict[ObjectKey, str] = {}
        self._owner_as_read: CacheEntry | None = None
        self._final: frozenset[int] = frozenset()
        """Hashes of what was observed, once the reconcile has ended: lists of many objects would take much memory."""

    def record(self, key: ObjectKey, live: Manifest | None) -> None:
        """Record an object as it was read by name.

        Args:
            live: The object; None if it does not exist.
        """
        listed_absent = live is not None and key not in self.versions and self._is_listed(key, live)
        self._read(key, _ABSENT if listed_absent else _version(live), None if live is None else _uid(live))
        self._note_dependency(key, live)
        if key == self.owner and live is not None and self._owner_as_read is None:
            self._owner_as_read = pack(live)
            self.uid = _uid(live)

    def record_list(self, items: Iterable[Manifest]) -> None:
        """Record objects as a list returned them; what its `ListScope` selects and is not among them did not exist."""
        for live in items:
            self._read(ObjectKey.of(live), _version(live), _uid(live))

    def record_packed(self, api_version: str, kind: str, found: PackedList) -> None:
        """Record objects as a cache holds them; as with a list, others of the kind did not exist."""
        for (namespace, name), one in found.items():
            self._read(ObjectKey(api_version, kind, name, namespace), one.version, one.uid)

    def record_write(self, key: ObjectKey, live: Manifest, manager: str, *, whole: bool = True) -> None:
        """Record an object as a write of the reconcile returned it.

        The version counts as observed if the write has named the version that was read, or has created the object.
        A write of the owner that changed what the reconcile has read of it does not count.

        Args:
            whole: Whether the object was written, and not a subresource of it.
        """
        known = self.versions.get(key)
        if known is None and self._is_listed(key, live):
            known = _ABSENT
        if self._is_foreign(key, live, known, manager) or (whole and self._changes_owner(key, live)):
            self.invalidate(key)
        elif known != _UNKNOWN:
            self.superseded.add((key, known or _ABSENT))
            self.versions[key] = _version(live)
        self._uids[key] = _uid(live)
        self._note_dependency(key, live)

    def record_delete(self, key: ObjectKey) -> None:
        """Record that the reconcile has deleted an object; its event triggers a reconcile."""
        if key in self.versions and self.versions[key] != _UNKNOWN:
            self.superseded.add((key, self.versions[key]))
            self.versions[key] = _ABSENT

    def invalidate(self, key: ObjectKey) -> None:
        """Record that another writer was faster: treat every later event for this object as not observed."""
        self.versions[key] = _UNKNOWN

    @property
    def existing(self) -> list[ObjectKey]:
        """The objects that existed when they were observed last."""
        return [key for key, version in self.versions.items() if version not in {_ABSENT, _UNKNOWN}]

    def version_of(self, key: ObjectKey) -> str:
        """Return the version that a write has to name; empty if the object was not read or is not there."""
        known = self.versions.get(key, _ABSENT)
        return "" if known == _UNKNOWN else known

    def follow(self, scope: Followed) -> None:
        """Record what is followed because of a request."""
        if scope not in self.followed:
            self.followed = self.followed | {scope}

    def has_seen(self, key: ObjectKey, version: str) -> bool:
        """Return whether the reconcile has observed a version of an object.

        Only equal versions count: after a restore from a backup, new changes have lower versions.
        """
        if version == _ABSENT:
            return False
        observed = (key, version)
        return self.versions.get(key) == version or observed in self.superseded or hash(observed) in self._final

    def depends_on(self, key: ObjectKey, states: Iterable[CacheEntry]) -> bool:
        """Return whether the reconcile has requested an object so far, by name or in a list.

        Args:
            states: The object before and after a change.
        """
        return key in self.requested or _are_covered(self.lists, key, states)

    def end(self) -> None:
        """Drop the records that matter only while the reconcile runs."""
        self._final = frozenset(map(hash, self.versions.items()))
        self.versions = {}
        self.requested = set()
        self.superseded = set()
        self._uids = {}
        self._owner_as_read = None

    def _read(self, key: ObjectKey, version: str, uid: str | None) -> None:
        """Record a version; the uid is None for an object that does not exist."""
        known = self.versions.setdefault(key, version)
        if known != version:
            self.invalidate(key)
        elif uid is not None:
            self._uids[key] = uid

    def _is_listed(self, key: ObjectKey, live: Manifest) -> bool:
        """Return whether a list that selects an object was requested."""
        labels, controller = live["metadata"].get("labels") or {}, controller_of(live)
        return any(scope.covers(key, labels, controller, lambda: live) for scope in self.lists)

    def _is_foreign(self, key: ObjectKey, live: Manifest, known: str | None, manager: str) -> bool:
        """Return whether an object that was written is another one than was read, or exists although none was found."""
        if known == _ABSENT:
            entries = live["metadata"].get("managedFields") or ()
            return any(entry.get("manager") != manager for entry in entries)
        return self._uids.get(key, _uid(live)) != _uid(live)

    def _changes_owner(self, key: ObjectKey, live: Manifest) -> bool:
        if key != self.owner or self._owner_as_read is None:
            return False
        return _content(unpack(self._owner_as_read)) != _content(live)

    def _note_dependency(self, key: ObjectKey, live: Manifest | None) -> None:
        if key != self.owner and (live is None or not self._controls(key, live)):
            self.uncontrolled.add(key)
        else:
            self.uncontrolled.discard(key)

    def _controls(self, key: ObjectKey, live: Manifest) -> bool:
        """Return whether events of an object reach the owner through the object's owner reference."""
        controller = controller_of(live)
        return controller is not None and controller.refers_to(self.owner, self.uid, namespace=key.namespace)


@dataclass(frozen=True, slots=True)
class RunningReconcile:
    """A running reconcile, and what has changed meanwhile: of each object all changes as one."""

    observed: ObservedVersions
    changes: dict[ObjectKey, CacheChange] = field(default_factory=dict)

    def record(self, key: ObjectKey, change: CacheChange) -> None:
        """Add a change of an object."""
        earlier = self.changes.get(key)
        self.changes[key] = change if earlier is None else earlier.followed_by(change)

    def unseen(self) -> dict[ObjectKey, CacheChange]:
        """Return the changes that the reconcile has not observed."""
        return {key: one for key, one in self.changes.items() if not self.observed.has_seen(key, one.version)}


class ObservationIndex:
    """Versions that the last reconcile of each owner has observed."""

    def __init__(self) -> None:
        self._of: dict[ObjectKey, ObservedVersions] = {}
        self._dependents: dict[ObjectKey, set[ObjectKey]] = {}
        self._listing: dict[_Group, dict[ListScope, set[ObjectKey]]] = {}
        """The owners that have requested a list."""
        self._indexes: dict[tuple[str, str], Counter[Index[Any]]] = {}
        """How many lists use an index, by kind."""
        self._equal: dict[AbstractSet[Followed], AbstractSet[Followed]] = {}
        """What is followed because of an owner; most owners of an operator share one set."""

    def __len__(self) -> int:
        return len(self._of)

    @property
    def owners(self) -> Collection[ObjectKey]:
        """The owners that were reconciled."""
        return self._of.keys()

    def replace(self, observed: ObservedVersions) -> None:
        """Replace the records of an owner's previous reconcile."""
        owner = observed.owner
        self.forget(owner)
        self._of[owner] = observed
        observed.followed = self._equal.setdefault(observed.followed, observed.followed)
        for key in observed.uncontrolled:
            self._dependents.setdefault(key, set()).add(owner)
        # Of what it controls itself, an owner is found by the owner references.
        observed.lists = [scope for scope in observed.lists if not scope.controller]
        for scope in observed.lists:
            self._listing.setdefault(scope.group, {}).setdefault(scope, set()).add(owner)
            if scope.indexed is not None:
                self._indexes.setdefault((scope.api_version, scope.kind), Counter())[scope.indexed.index] += 1

    def forget(self, owner: ObjectKey) -> None:
        """Drop the records of an owner."""
        observed = self._of.pop(owner, None)
        if observed is None:
            return
        for key in observed.uncontrolled:
            owners = self._dependents[key]
            owners.discard(owner)
            if not owners:
                del self._dependents[key]
        for scope in observed.lists:
            group = scope.group
            lists = self._listing[group]
            lists[scope].discard(owner)
            if not lists[scope]:
                del lists[scope]
            if not lists:
                del self._listing[group]
            if scope.indexed is not None:
                used = self._indexes[scope.api_version, scope.kind]
                used[scope.indexed.index] -= 1
                if not used[scope.indexed.index]:
                    del used[scope.indexed.index]

    def has_seen(self, owner: ObjectKey, key: ObjectKey, version: str) -> bool:
        """Return whether the last reconcile of an owner has observed a version of an object."""
        observed = self._of.get(owner)
        return observed is not None and observed.has_seen(key, version)

    def uid(self, owner: ObjectKey) -> str | None:
        """Return the uid that an owner had in its last reconcile; None before its first one."""
        observed = self._of.get(owner)
        return observed.uid if observed is not None else None

    def followers(self, scope: Followed) -> list[ObjectKey]:
        """Return the owners whose last reconcile has requested something, whatever the answer was."""
        return [owner for owner, observed in self._of.items() if scope in observed.followed]

    @property
    def followed(self) -> set[Followed]:
        """What the last reconcile of any owner has requested."""
        self._equal = {observed.followed: observed.followed for observed in self._of.values()}
        return {scope for followed in self._equal for scope in followed}

    def dependents(self, key: ObjectKey, states: Collection[CacheEntry]) -> Iterator[ObjectKey]:
        """Yield the owners whose last reconcile read an object that they do not control, or a list that selects it.

        Args:
            states: The object before and after a change.
        """
        yield from self._dependents.get(key, ())
        if not self._listing:
            return
        indexes = self._indexes.get((key.api_version, key.kind), ())
        for group in _groups(key, states, indexes):
            for scope, owners in self._listing.get(group, {}).items():
                if _are_covered([scope], key, states):
                    yield from owners


def _groups(key: ObjectKey, states: Iterable[CacheEntry], indexes: Collection[Index[Any]]) -> Iterator[_Group]:
    """Yield the groups of all lists that may select an object."""
    labels = dict.fromkeys(label for state in states for label in state.labels.items())
    contents = [unpack(state) for state in states] if indexes else []
    keys = dict.fromkeys(index.at(each) for index in indexes for live in contents for each in index.keys_of(live))
    for namespace in dict.fromkeys((key.namespace, "")):
        alike: tuple[tuple[str, ...] | IndexKey, ...] = ((), (key.name,), *labels, *keys)
        for common in alike:
            yield key.api_version, key.kind, namespace, common


def _are_covered(scopes: Iterable[ListScope], key: ObjectKey, states: Iterable[CacheEntry]) -> bool:
    return any(scope.covers(key, state.labels, state.controller, state.unpack) for scope in scopes for state in states)


def _version(live: Manifest | None) -> str:
    return _ABSENT if live is None else str(live["metadata"].get("resourceVersion") or "")


def _uid(live: Manifest) -> str:
    return str(live["metadata"].get("uid") or "")


def _content(live: Manifest) -> Manifest:
    """Return what a reconcile reads of its owner beside the status, which is its own."""
    metadata = {name: value for name, value in live["metadata"].items() if name not in _UNREAD}
    return {**{name: value for name, value in live.items() if name != "status"}, "metadata": metadata}
