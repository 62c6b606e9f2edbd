"""What keeps an owner as a whole from being ready: deletion, pause, its namespace, an operator that does not run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from ocf.objects import Manifest, ObjectKey
from ocf.objects.manifest import PREFIX
from ocf.ownership import values
from ocf.ownership.relations import operators_of
from ocf.ownership.snapshot import SnapshotIndex
from ocf.ownership.status import has_optional_status, observed_generation
from ocf.ownership.tree import CauseStep

__all__ = ["deletion", "has_given_up", "pause", "stale", "stopped_operator", "terminating_namespace"]

# Annotations with which users pause other operators, and the values that do; None for any value.
_PAUSES: Final = {
    "cluster.x-k8s.io/paused": None,
    "crossplane.io/paused": "true",
    "strimzi.io/pause-reconciliation": "true",
    "eck.k8s.elastic.co/managed": "false",
}
_PAUSE_FIELDS: Final = {"paused": "paused", "pause": "paused", "suspend": "suspended", "suspended": "suspended"}
_OF_COLLECTOR: Final = {"foregroundDeletion": "the garbage collector deletes its dependents first"}
_FINAL: Final = frozenset({"Failed", "Stalled"})
_GRACE: Final = timedelta(seconds=30)
_SKEW: Final = timedelta(minutes=2)
_LONGEST_LEASE: Final = 86_400


class Pause(NamedTuple):
    """What pauses or suspends an owner: its operator does nothing for it, or has scaled it to zero."""

    by: str
    since: datetime | None
    word: str = "paused"


def terminating_namespace(owner: Manifest, index: SnapshotIndex) -> CauseStep | None:
    """Return that the namespace of an owner is being deleted, with what remains in it; None if it is not."""
    name = values.text(owner, "metadata", "namespace")
    namespace = index.find("", "Namespace", "", name) if name else None
    since = values.time_of(namespace, "metadata", "deletionTimestamp")
    if namespace is None or since is None:
        return None
    wanted = ("NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure")
    found = (values.condition(namespace, one) for one in wanted)
    said = [values.one_line(values.text(one, "message")) for one in found if one and one.get("status") == "True"]
    text = f"the namespace {name} is being deleted for {values.age(since, index.now)}"
    return CauseStep(f"{text}: {said[0]}" if said and said[0] else text, ObjectKey.of(namespace))


def deletion(owner: Manifest) -> Iterator[CauseStep]:
    """Yield why an owner that is being deleted still exists: its finalizers, and who holds them."""
    key = ObjectKey.of(owner)
    clean_up = (one for one in values.conditions(owner) if one["type"].endswith("/CleanedUp"))
    said = next((values.one_line(values.text(one, "message")) for one in clean_up), "")
    finalizers = values.field(owner, "metadata", "finalizers")
    for name in finalizers if isinstance(finalizers, list) else ():
        holder = _holder(owner, str(name))
        by = f", which {holder} has set," if holder else ""
        why = _OF_COLLECTOR.get(str(name), said)
        text = f"the finalizer {values.one_line(str(name))}{by} has not been removed"
        yield CauseStep(f"{text}: {why}" if why else text, key)


def _holder(owner: Manifest, finalizer: str) -> str:
    for entry in values.members(owner, "metadata", "managedFields"):
        if f'v:"{finalizer}"' in values.mapping(entry, "fieldsV1", "f:metadata", "f:finalizers"):
            name = values.one_line(values.text(entry, "manager"))
            operator, *rest = name.split("/")
            return f"the operator {operator}" if rest[1:] == ["finalizer", values.uid(owner)] else name
    return ""


def pause(owner: Manifest) -> Pause | None:
    """Return what pauses or suspends an owner; None if nothing does."""
    listed = (one for one in values.conditions(owner) if one["type"].rpartition("/")[2] == "Paused")
    found = next((one for one in listed if one.get("status") == "True"), None)
    since = values.time_of(found, "lastTransitionTime")
    for name, value in values.mapping(owner, "metadata", "annotations").items():
        is_ours = str(name).endswith(f".{PREFIX}/paused") and value == "true"
        if is_ours or (name in _PAUSES and _PAUSES[name] in (None, value)):
            return Pause(f'the annotation {values.one_line(str(name))}: "{values.one_line(str(value))}"', since)
    for name, word in _PAUSE_FIELDS.items():
        if values.field(owner, "spec", name) is True:
            return Pause(f"the field spec.{name}: true", since, word)
    return Pause("its condition Paused", since) if found is not None else None


def stale(owner: Manifest, index: SnapshotIndex) -> CauseStep | None:
    """Return that the operator of an owner has not seen its last spec; None if it has, or if that is not known."""
    generation, observed = values.generation(owner), observed_generation(owner)
    changed = _last_change(owner)
    if has_optional_status(owner):
        return None
    if changed is not None and index.now - changed < _GRACE:
        return None
    since = f" since {values.age(changed, index.now)}" if changed is not None else ""
    if observed is not None and observed < generation:
        text = f"its operator has observed generation {observed} and not {generation}{since}"
        return CauseStep(text, ObjectKey.of(owner))
    is_lacking = not values.mapping(owner, "status") and generation and changed is not None
    if is_lacking and index.has_status(*values.group_kind(owner)):
        return CauseStep(f"no operator has written a status for it{since}", ObjectKey.of(owner))
    return None


def has_given_up(owner: Manifest) -> bool:
    """Return whether the controller of an owner reports that it has failed for good.

    Source: `Stalled` of kstatus; `Failed` of Jobs; the deadline of a Deployment, as in `kubectl rollout status`.
    """
    observed = observed_generation(owner)
    if observed is not None and observed < values.generation(owner):
        return False
    deadline = values.condition(owner, "Progressing")
    if values.text(deadline, "reason") == "ProgressDeadlineExceeded":
        return True
    return any(one["type"] in _FINAL and one.get("status") == "True" for one in values.conditions(owner))


def _last_change(owner: Manifest) -> datetime | None:
    """Return when the owner was written last outside of its status."""
    entries = values.members(owner, "metadata", "managedFields")
    times = [values.time_of(one, "time") for one in entries if not values.text(one, "subresource")]
    return max((one for one in times if one is not None), default=values.created(owner))


def stopped_operator(owner: Manifest, index: SnapshotIndex) -> CauseStep | None:
    """Return that the operator of an owner does not run, as its Lease shows; None if it does, or if that is not known.

    A Lease belongs to an operator if its name is that of the operator, of the field manager of the owner's status, or
    ends with the group of the owner, as with kubebuilder.
    """
    group = values.group_kind(owner)[0]
    writers = {
        values.text(one, "manager")
        for one in values.members(owner, "metadata", "managedFields")
        if values.text(one, "subresource") == "status"
    }
    operators = operators_of(owner, index.made_for.get(values.uid(owner), []))
    names = {*operators, *writers} - {"", "manager"}
    written = _last_write(owner, index, operators)
    leases = [
        lease
        for lease in index.of_kind("coordination.k8s.io", "Lease")
        if _is_of(values.text(lease, "metadata", "name"), names, group)
    ]
    ages = [(found, lease) for lease in leases if (found := _silence(lease, index.now)) is not None]
    # Several operators may match; if one of them runs, nothing is claimed.
    if not ages or len(ages) < len(leases):
        return None
    (renewed, holder), lease = max(ages, key=lambda one: one[0][0])
    if written is not None and written > renewed + _SKEW:
        # Another release of the operator may have had this Lease.
        return None
    key = ObjectKey.of(lease)
    who = f"its Lease {key.namespace}/{key.name} was renewed {values.age(renewed, index.now)} ago for the last time"
    who = who if holder else f"no process holds its Lease {key.namespace}/{key.name}"
    name = next(iter(operators), "")
    return CauseStep(f"the operator{f' {name}' if name else ''} does not run: {who}", key)


def _last_write(owner: Manifest, index: SnapshotIndex, operators: list[str]) -> datetime | None:
    """Return when the operator of an owner has written last: the status of the owner, or an object for it."""
    entries = [
        one for one in values.members(owner, "metadata", "managedFields") if values.text(one, "subresource") == "status"
    ]
    for live in index.made_for.get(values.uid(owner), []):
        listed = values.members(live, "metadata", "managedFields")
        entries += [one for one in listed if values.text(one, "manager").split("/")[0] in operators]
    times = (values.time_of(one, "time") for one in entries)
    return max((one for one in times if one is not None), default=None)


def _is_of(lease: str, names: set[str], group: str) -> bool:
    return lease in names or (bool(group) and (lease == group or lease.endswith(f".{group}")))


def _silence(lease: Manifest, now: datetime) -> tuple[datetime, str] | None:
    """Return when an expired Lease was renewed last, and its holder; None for one that is held."""
    renewed = values.time_of(lease, "spec", "renewTime") or values.created(lease)
    duration = values.count(lease, "spec", "leaseDurationSeconds") or 15
    holder = values.text(lease, "spec", "holderIdentity")
    # The clocks of the reader and the operator may differ, and a Lease may have any number.
    expires = max(2 * timedelta(seconds=min(max(duration, 0), _LONGEST_LEASE)), _SKEW)
    if renewed is None or (holder and now - renewed <= expires):
        return None
    return renewed, holder
