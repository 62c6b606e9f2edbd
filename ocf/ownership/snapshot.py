"""The snapshot that is explained, and an index of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from ocf.errors import ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import PREFIX, split_api_version
from ocf.objects.owner_references import owner_uids
from ocf.ownership import values

__all__ = ["FORBIDDEN", "EventFacts", "OwnerSnapshot", "SnapshotIndex", "UnreadKind", "made_for"]

FORBIDDEN: Final = " is forbidden: "
"""What messages of the API server about a missing permission have in them."""
_RECENT: Final = timedelta(hours=1)
# The name of a component's field manager is <operator>/<kind>/<component>/<uid>, and may go on.
_UID_AT: Final = 3
_MARK: Final = f".{PREFIX}/for-"


@dataclass(frozen=True, slots=True)
class UnreadKind:
    """Objects that could not be read.

    Args:
        resource: Their plural name with the group, `pods` or `deployments.apps`.
        namespace: The namespace; empty for all, and for cluster-scoped objects.
        why: Why they could not be read, as the API server says.
    """

    resource: str
    namespace: str
    why: str

    def __str__(self) -> str:
        """Return what may not be read, and where."""
        return f"{self.resource} may not be read{f' in {self.namespace}' if self.namespace else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSnapshot:
    """What was read about an owner.

    Args:
        objects: The owner, and other objects: what it made, and what that uses. Secrets need no data.
        now: The time of the snapshot.
        events: Events of `v1` or of `events.k8s.io/v1`; only those of the last hour before `now` count.
        unread: What could not be read.
        complete: Group, kind and namespace, empty for all, of the lists that `objects` has as a whole: only what is
            absent from one of them counts as missing.
        with_status: Group and kind of what the API server serves with a subresource `status`: an owner of such a kind
            without a status was not seen by its operator. Of other kinds, another object with a status shows it.

    Example:
        >>> from datetime import UTC
        >>> shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "town"}}
        >>> snapshot = OwnerSnapshot(objects=[shop], now=datetime(2026, 1, 31, 12, tzinfo=UTC))
    """

    objects: Sequence[Manifest]
    now: datetime
    events: Sequence[Manifest] = ()
    unread: Sequence[UnreadKind] = ()
    complete: Collection[tuple[str, str, str]] = frozenset()
    with_status: Collection[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class EventFacts:
    """What an event reports."""

    reason: str
    message: str
    is_warning: bool
    first: datetime
    last: datetime
    times: int

    @classmethod
    def of(cls, event: Manifest) -> EventFacts | None:
        """Read an event; None if it has no time."""
        series = values.mapping(event, "series")
        created, micro = values.created(event), values.time_of(event, "eventTime")
        ends = (
            values.time_of(series, "lastObservedTime"),
            *(values.time_of(event, name) for name in ("lastTimestamp", "deprecatedLastTimestamp")),
        )
        begins = (values.time_of(event, "firstTimestamp"), values.time_of(event, "deprecatedFirstTimestamp"))
        times = [one for one in (*ends, *begins, micro, created) if one is not None]
        if not times:
            return None
        counted = (values.count(series, "count"), values.count(event, "count"), values.count(event, "deprecatedCount"))
        return cls(
            values.text(event, "reason"),
            values.one_line(values.text(event, "message") or values.text(event, "note")),
            values.text(event, "type") == "Warning",
            min(times),
            max(times),
            max((one for one in counted if one), default=1),
        )


class SnapshotIndex:
    """A snapshot in which objects and events are found.

    Args:
        snapshot: The snapshot; objects without kind and name are left out.
    """

    def __init__(self, snapshot: OwnerSnapshot) -> None:
        self.snapshot = snapshot
        self.now = snapshot.now
        self.objects = [*_known(snapshot.objects)]
        self.by_uid = {uid: live for live in self.objects if (uid := values.uid(live))}
        self._by_name = {_name(live): live for live in self.objects}
        self._labels: dict[tuple[str, str], dict[tuple[str, str, Any], list[Manifest]]] = {}

    def find(self, group: str, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return an object; None if the snapshot has none of that name."""
        return self._by_name.get((group, kind, namespace, name))

    def find_key(self, key: ObjectKey) -> Manifest | None:
        """Return an object, in any version of its API; None if the snapshot does not have it."""
        return self._by_name.get(key.unversioned)

    def of_kind(self, group: str, kind: str, namespace: str = "") -> list[Manifest]:
        """Return the objects of a kind, of one namespace or of all."""
        found = self._by_kind.get((group, kind), [])
        return [one for one in found if namespace in {"", values.text(one, "metadata", "namespace")}]

    def is_missing(self, group: str, kind: str, namespace: str, name: str) -> bool:
        """Return whether an object is known not to exist."""
        return self.is_complete(group, kind, namespace) and self.find(group, kind, namespace, name) is None

    def is_complete(self, group: str, kind: str, namespace: str = "") -> bool:
        """Return whether all objects of a kind in a namespace are known."""
        return not {(group, kind, namespace), (group, kind, "")}.isdisjoint(self.snapshot.complete)

    def unread(self, resource: str) -> UnreadKind | None:
        """Return why the objects of a resource could not be read; None if they could."""
        return next((one for one in self.snapshot.unread if one.resource == resource), None)

    def events(self, live: Manifest) -> list[EventFacts]:
        """Return the events of the last hour about an object, the latest first."""
        listed = [*self._events[values.uid(live)], *self._events[_place(live)]]
        facts = (one for event in listed if (one := EventFacts.of(event)) is not None)
        recent = [one for one in facts if self.now - one.last <= _RECENT]
        return sorted(recent, key=lambda one: one.last, reverse=True)

    def raw_events(self, live: Manifest) -> list[Manifest]:
        """Return the events about an object, as they were read."""
        return [*self._events[values.uid(live)], *self._events[_place(live)]]

    def has_status(self, group: str, kind: str) -> bool:
        """Return whether objects of a kind have a status: the kind is served with one, or one of them has it."""
        if (group, kind) in self.snapshot.with_status:
            return True
        return any(values.mapping(one, "status") for one in self._by_kind.get((group, kind), ()))

    def labelled(self, group: str, kind: str, namespace: str, labels: Manifest) -> list[Manifest]:
        """Return the objects of a kind in a namespace that have some labels; at least one label is given."""
        listed = self._by_label(group, kind)
        fewest = min((listed.get((namespace, name, value), []) for name, value in labels.items()), key=len)
        return [one for one in fewest if labels.items() <= values.mapping(one, "metadata", "labels").items()]

    def _by_label(self, group: str, kind: str) -> dict[tuple[str, str, Any], list[Manifest]]:
        if (group, kind) not in self._labels:
            found: dict[tuple[str, str, Any], list[Manifest]] = defaultdict(list)
            for live in self.of_kind(group, kind):
                namespace = values.text(live, "metadata", "namespace")
                for name, value in values.mapping(live, "metadata", "labels").items():
                    if isinstance(value, str):
                        found[namespace, name, value].append(live)
            self._labels[group, kind] = found
        return self._labels[group, kind]

    @cached_property
    def _by_kind(self) -> dict[tuple[str, str], list[Manifest]]:
        found: dict[tuple[str, str], list[Manifest]] = defaultdict(list)
        for live in self.objects:
            found[values.group_kind(live)].append(live)
        return found

    @cached_property
    def _events(self) -> dict[Any, list[Manifest]]:
        """Events by the uid of their object, and those that name no uid by its kind and name."""
        found: dict[Any, list[Manifest]] = defaultdict(list)
        for event in self.snapshot.events:
            about = values.mapping(event, "involvedObject") or values.mapping(event, "regarding")
            uid = values.text(about, "uid")
            place = tuple(values.text(about, name) for name in ("kind", "namespace", "name"))
            found[uid or place].append(event)
        return found

    @cached_property
    def owned(self) -> dict[str, list[Manifest]]:
        """Objects by the uid of each object that they refer to as an owner, the oldest first."""
        found: dict[str, list[Manifest]] = defaultdict(list)
        for live in sorted(self.objects, key=_order):
            for uid in dict.fromkeys(owner_uids(live)):
                found[uid].append(live)
        return found

    @cached_property
    def made_for(self) -> dict[str, list[Manifest]]:
        """Objects by the uid of each owner in the name of a field manager or of a label of ocf."""
        found: dict[str, list[Manifest]] = defaultdict(list)
        for live in self.objects:
            for uid in dict.fromkeys(made_for(live)):
                found[uid].append(live)
        return found


def made_for(live: Manifest) -> Iterator[str]:
    """Yield the uids in names of field managers and labels as those of ocf are: that of the owner is among them."""
    for entry in values.members(live, "metadata", "managedFields"):
        yield from values.text(entry, "manager").split("/")[_UID_AT:]
    for name in values.mapping(live, "metadata", "labels"):
        before, separator, uid = str(name).rpartition(_MARK)
        if separator and before:
            yield uid


def _known(objects: Iterable[Manifest]) -> Iterator[Manifest]:
    for live in objects:
        try:
            ObjectKey.of(live)
            split_api_version(live["apiVersion"])
        except (ManifestError, AttributeError, ValueError):
            continue
        yield live


def _name(live: Manifest) -> tuple[str, str, str, str]:
    return ObjectKey.of(live).unversioned


def _place(live: Manifest) -> tuple[str, str, str]:
    metadata = values.mapping(live, "metadata")
    return values.text(live, "kind"), values.text(metadata, "namespace"), values.text(metadata, "name")


def _order(live: Manifest) -> tuple[str, str, str]:
    metadata = values.mapping(live, "metadata")
    return values.text(metadata, "creationTimestamp"), values.text(live, "kind"), values.text(metadata, "name")
