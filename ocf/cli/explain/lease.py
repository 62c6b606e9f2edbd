"""`ocf explain lease/NAME`: which process leads, or which replica holds which slots of the owners."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ocf.errors import ConfigError, NotFoundError
from ocf.objects import ObjectKey
from ocf.objects.shards import consecutive
from ocf.objects.timestamps import Fraction, format_time
from ocf.ownership import values
from ocf.runtime.sharding.membership import group_label, replica_prefix, slot_name

if TYPE_CHECKING:
    from ocf.cli.explain.question import OwnerQuestion
    from ocf.cluster import Cluster
    from ocf.objects import Manifest

__all__ = ["HEADINGS", "LeaseView", "State", "lease_view", "leases_of", "read_lease"]

HEADINGS: Final = ("REPLICA", "LEASE", "SLOTS", "LAST TAKEN", "WHICH")
_KIND: Final = ("coordination.k8s.io/v1", "Lease")
_DIVISION: Final = re.compile(r"([1-9]\d{0,3}) slots by (uid|namespace), .*")
"""The holder of the Lease that replicas hold together, as `Membership` writes it."""
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,5}")


class State(StrEnum):
    """Whether a process renews its Lease, by the clock of the reader."""

    RENEWED = "renewed"
    EXPIRED = "expired"
    MISSING = "missing"
    """There is none, and slots name the process."""


class Slot(NamedTuple):
    """A slot that names its holder, and since when."""

    number: int
    since: datetime | None


class Replica(NamedTuple):
    """A process, with the slots that name it.

    Attributes:
        since: When it made its Lease.
        renewed: When it renewed that last.
    """

    identity: str
    state: State
    since: datetime | None = None
    renewed: datetime | None = None
    slots: tuple[Slot, ...] = ()


class LeaseView(NamedTuple):
    """A Lease, and what belongs to it.

    Attributes:
        holder: Who holds it, as written there.
        by: What the replicas divide the owners by; empty for one leader.
        total: The number of slots; 0 for one leader.
        replicas: The processes that have a Lease or are named by a slot, by identity; of one leader, that.
        free: The slots that name no holder, or have no Lease.
        beyond: The slots that have a Lease although the setting has fewer slots.
    """

    lease: ObjectKey
    now: datetime
    holder: str
    by: str
    total: int
    replicas: tuple[Replica, ...]
    free: tuple[int, ...] = ()
    beyond: tuple[int, ...] = ()

    @property
    def sentence(self) -> str:
        """What is most important."""
        running = [one for one in self.replicas if one.state is State.RENEWED]
        if self.by:
            held, one = sum(len(one.slots) for one in running), len(running) == 1
            does = "divides the owners by {}, and holds" if one else "divide the owners by {}, and hold"
            replicas = values.plural_count(len(running), "replica")
            return f"{replicas} {does.format(self.by)} {held} of {values.plural_count(self.total, 'slot')}"
        if not self.replicas:
            return f"no process holds the Lease {self.lease.name}"
        [leader] = self.replicas
        renewed = "" if leader.renewed is None else f", and renewed the Lease {_ago(leader.renewed, self.now)}"
        if not running:
            return f"no process leads: the last one was {leader.identity}{renewed}"
        since = "" if leader.since is None else f" for {values.age(leader.since, self.now)}"
        return f"{leader.identity} leads{since}{renewed}"

    def remarks(self) -> Iterator[str]:
        """Yield what is not as it is in the long run."""
        if self.free:
            yield f"Slots without a holder: {_ranges(self.free)}"
        lost = [slot.number for one in self.replicas if one.state is not State.RENEWED for slot in one.slots]
        if lost:
            yield f"Slots of replicas that do not run, which others take when the Lease has ended: {_ranges(lost)}"
        idle = [one.identity for one in self.replicas if one.state is State.RENEWED and not one.slots]
        if idle and self.by:
            why = " (there are more replicas than slots)" if len(self.replicas) > self.total else ""
            yield f"Replicas without a slot{why}: {', '.join(idle)}"
        if self.beyond:
            yield f"Slots beyond the {self.total} of the setting, which a replica deletes: {_ranges(self.beyond)}"

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of a table of the replicas."""
        return [self._row(one) for one in self.replicas]

    def _row(self, one: Replica) -> tuple[str, ...]:
        renewed = "" if one.renewed is None else _ago(one.renewed, self.now)
        lease = {
            State.RENEWED: f"renewed {renewed}",
            State.EXPIRED: f"expired, renewed {renewed}" if renewed else "expired",
            State.MISSING: "missing",
        }[one.state]
        taken = max((each.since for each in one.slots if each.since is not None), default=None)
        last = "" if taken is None else _ago(taken, self.now)
        return one.identity, lease, str(len(one.slots)), last, _ranges(each.number for each in one.slots)

    def to_json(self) -> dict[str, Any]:
        """Return all as JSON values."""
        return {
            "sentence": self.sentence,
            "remarks": [*self.remarks()],
            "lease": {"namespace": self.lease.namespace, "name": self.lease.name, "holder": self.holder},
            "by": self.by or None,
            "slots": self.total or None,
            "replicas": [
                {
                    "identity": one.identity,
                    "state": one.state,
                    "since": _time(one.since),
                    "renewed": _time(one.renewed),
                    "slots": [{"slot": each.number, "since": _time(each.since)} for each in one.slots],
                }
                for one in self.replicas
            ],
            "free": [*self.free],
            "beyond": [*self.beyond],
        }


def read_lease(question: OwnerQuestion, now: datetime | None) -> LeaseView:
    """Read a Lease with those of its slots and replicas.

    Args:
        now: The time of the files; None for the current time.

    Raises:
        ConfigError: If it does not exist.
        ApiError: If it cannot be read.
    """
    from ocf.concepts import SystemClock

    lease, leases = _of_files(question) if question.files else asyncio.run(_of_cluster(question))
    return lease_view(lease, leases, now or SystemClock().now())


def lease_view(lease: Manifest, leases: Iterable[Manifest], now: datetime) -> LeaseView:
    """Return what Leases say at a time.

    Args:
        lease: The Lease of a leader, or the one that replicas hold together.
        leases: Those of its namespace.
    """
    key = ObjectKey.of(lease)
    holder = values.text(lease, "spec", "holderIdentity")
    division = _DIVISION.fullmatch(holder)
    if division is None:
        return LeaseView(key, now, holder, "", 0, (_process(lease, now),) if holder else ())
    total = int(division[1])
    start, own = slot_name(key.name, 0).removesuffix("0"), replica_prefix(key.name)
    numbered: dict[int, Manifest] = {}
    found: dict[str, Replica] = {}
    for one in leases:
        name = values.text(one, "metadata", "name")
        number = name.removeprefix(start)
        if name.startswith(start) and _NUMBER.fullmatch(number):
            numbered[int(number)] = one
        elif name.startswith(own) and values.text(one, "spec", "holderIdentity"):
            replica = _process(one, now)
            found[replica.identity] = replica
    held: dict[str, list[Slot]] = {}
    for slot, one in sorted(numbered.items()):
        if slot < total and (by := values.text(one, "spec", "holderIdentity")):
            held.setdefault(by, []).append(Slot(slot, values.time_of(one, "spec", "acquireTime")))
    replicas = [
        found.get(identity, Replica(identity, State.MISSING))._replace(slots=tuple(held.get(identity, ())))
        for identity in sorted({*found, *held})
    ]
    taken = {each.number for slots in held.values() for each in slots}
    free = tuple(number for number in range(total) if number not in taken)
    beyond = tuple(sorted(number for number in numbered if number >= total))
    return LeaseView(key, now, holder, division[2], total, tuple(replicas), free, beyond)


def _process(lease: Manifest, now: datetime) -> Replica:
    """Return the process that a Lease names."""
    since, renewed = (values.time_of(lease, "spec", name) for name in ("acquireTime", "renewTime"))
    lasts = values.count(lease, "spec", "leaseDurationSeconds") or 0
    # A clock that is behind shows times of the future.
    is_renewed = renewed is not None and (now - renewed).total_seconds() <= lasts
    state = State.RENEWED if is_renewed else State.EXPIRED
    return Replica(values.text(lease, "spec", "holderIdentity"), state, since, renewed)


async def _of_cluster(question: OwnerQuestion) -> tuple[Manifest, Sequence[Manifest]]:
    from ocf.cli.autoscaler_clients import context_namespace
    from ocf.cluster.client import ApiServerCluster

    namespace = question.namespace or context_namespace(question.kubeconfig, question.context)
    async with await ApiServerCluster.connect(question.kubeconfig, context=question.context) as cluster:
        return await leases_of(cluster, question.name, namespace)


async def leases_of(cluster: Cluster, name: str, namespace: str) -> tuple[Manifest, Sequence[Manifest]]:
    """Read a Lease, and those of its slots and replicas, if it has some: reading a leader's needs no right to list.

    Raises:
        ConfigError: If it does not exist.
        ApiError: If it cannot be read.
    """
    from ocf.cluster import ListOptions

    try:
        lease = await cluster.get(ObjectKey(*_KIND, name, namespace))
    except NotFoundError as error:
        raise ConfigError(f"Lease {name} does not exist in namespace {namespace}") from error
    if _DIVISION.fullmatch(values.text(lease, "spec", "holderIdentity")) is None:
        return lease, ()
    labels = ",".join(f"{label}={value}" for label, value in group_label(name).items())
    return lease, (await cluster.list(*_KIND, ListOptions(namespace=namespace, label_selector=labels))).items


def _of_files(question: OwnerQuestion) -> tuple[Manifest, Sequence[Manifest]]:
    from ocf.cli.explain.owner import newest, owners_in_files, read_objects

    objects = newest(read_objects(question.files))
    [key] = owners_in_files(question, objects)
    leases = [one for one in objects if values.group_kind(one) == key.group_kind]
    homes = [one for one in leases if values.text(one, "metadata", "namespace") == key.namespace]
    return next(one for one in homes if values.text(one, "metadata", "name") == key.name), homes


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers as ranges, `0-3,7`."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in consecutive(numbers))


def _ago(since: datetime, now: datetime) -> str:
    return f"{values.age(since, now)} ago"


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else format_time(instant, Fraction.NONE)
