"""Which part of the API server limits sharding first: up to a million owners and a hundred replicas, in virtual time.

    python -m scripts.simulate_sharding

The requests for the Leases are counted: the replicas run their real code on Leases in memory, in virtual time. The CPU
of each kind of request is measured on kube-apiserver and etcd, so other work on the machine does not matter. Both give
the table of docs/operators/sharding.md: how many cores of the API server are busy, and with what.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ocf.cluster import Cluster, DeleteOptions, InterceptingCluster, ListOptions, ObjectList, Request, WatchOptions
from ocf.cluster.protocol import DEFAULT_DELETE_OPTIONS, DEFAULT_LIST_OPTIONS, Subresource
from ocf.errors import AlreadyExistsError, ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.leader import Timing
from ocf.runtime.sharding import Sharding
from ocf.runtime.sharding.membership import Membership, group_label, slot_name
from ocf.testing import LoopClock, run_in_virtual_time
from ocf.testing.envtest import ControlPlane

LEASE: Final = ObjectKey("coordination.k8s.io/v1", "Lease", "shops", "default")
REPLICAS: Final = (3, 10, 30, 100)
OWNERS: Final = (10_000, 100_000, 1_000_000)
_SETTLED, _COUNTED = 60, 30  # seconds
_REPEATS: Final = 500
_WATCHES: Final = 20
# As measured by `scripts.measure_sharding` of an edit: the one of the user, one of a child, one of the status.
_WRITES, _OWNER_EVENTS, _CHILD_EVENTS = 3, 2, 1
_HOUR: Final = 3_600


class Leases(InterceptingCluster):
    """Leases in memory, which are not copied, and a count of the requests."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, Manifest] = {}
        self.requests: Counter[str] = Counter()
        self.listed = 0
        self._version = 0

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        """Refuse what a replica never requests."""
        raise NotImplementedError(request.verb)

    def _store(self, manifest: Manifest) -> Manifest:
        self._version += 1
        metadata = {**manifest["metadata"], "uid": "u", "resourceVersion": str(self._version)}
        stored = self.objects[ObjectKey.of(manifest)] = {**manifest, "metadata": metadata}
        return stored

    async def get(self, key: ObjectKey, *, subresource: Subresource | None = None) -> Manifest:
        """Read a Lease."""
        del subresource
        self.requests["get"] += 1
        await asyncio.sleep(0.005)
        if key not in self.objects:
            raise NotFoundError("not found", code=404)
        return self.objects[key]

    async def list(self, api_version: str, kind: str, options: ListOptions = DEFAULT_LIST_OPTIONS) -> ObjectList:
        """List all Leases."""
        del api_version, kind, options
        self.requests["list"] += 1
        self.listed += len(self.objects)
        await asyncio.sleep(0.01)
        return ObjectList(tuple(self.objects.values()), str(self._version))

    async def create(self, manifest: Manifest, **_: Any) -> Manifest:
        """Create a Lease."""
        self.requests["write"] += 1
        await asyncio.sleep(0.005)
        if ObjectKey.of(manifest) in self.objects:
            raise AlreadyExistsError("exists", code=409)
        return self._store(manifest)

    async def update(self, manifest: Manifest, **_: Any) -> Manifest:
        """Replace a Lease."""
        self.requests["write"] += 1
        await asyncio.sleep(0.005)
        live = self.objects.get(ObjectKey.of(manifest))
        if live is None:
            raise NotFoundError("not found", code=404)
        if live["metadata"]["resourceVersion"] != manifest["metadata"]["resourceVersion"]:
            raise ConflictError("conflict", code=409)
        return self._store(manifest)

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        """Delete a Lease."""
        del options
        self.requests["write"] += 1
        self.objects.pop(key, None)


@dataclass(frozen=True, slots=True)
class Traffic:
    """The Leases of replicas, and what these request for them, each second."""

    leases: int
    writes: float
    lists: float


def traffic(replicas: int, slots: int) -> Traffic:
    """Return the requests of replicas that hold their shares."""

    async def work() -> Traffic:
        cluster, clock = Leases(), LoopClock()
        async with AsyncExitStack() as stack:
            for number in range(replicas):
                member = Membership(
                    cluster,
                    LEASE,
                    f"shop-operator-6d4cf56db6-{number:05}",
                    sharding=Sharding(slots=slots),
                    timing=Timing(),
                    clock=clock,
                    random=partial(float, number / replicas),
                )
                await stack.enter_async_context(member.joined())
                await asyncio.sleep(2 / replicas)
            await asyncio.sleep(_SETTLED)
            slotted = [one for key, one in cluster.objects.items() if "-slot-" in key.name]
            if len({one["spec"].get("holderIdentity") for one in slotted}) != replicas:
                raise RuntimeError(f"not each of {replicas} replicas holds a slot after {_SETTLED} s")
            cluster.requests.clear()
            await asyncio.sleep(_COUNTED)
            found = cluster.requests
            return Traffic(len(cluster.objects), found["write"] / _COUNTED, found["list"] / _COUNTED)

    return run_in_virtual_time(work())


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of the API server and etcd.

    Attributes:
        write: Of an update.
        listed: Of each Lease in a list.
        sent: Of an event that is sent to a watch.
        dropped: Of one that the shard selector of a watch leaves out.
    """

    write: float
    listed: float
    sent: float
    dropped: float


async def measure() -> Costs:
    """Measure the CPU of requests on kube-apiserver."""
    async with ControlPlane(feature_gates={"ShardedListAndWatch": True}) as plane, await plane.cluster() as cluster:
        folder = plane.kubeconfig.parent.name
        for number in range(139):
            metadata = {"name": slot_name("shops", number), "namespace": "default", "labels": group_label("shops")}
            spec = {"holderIdentity": "shop-operator-6d4cf56db6-00001", "leaseDurationSeconds": 15}
            lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
            await cluster.create(lease, field_manager="me")
        labels = ",".join(f"{name}={value}" for name, value in group_label("shops").items())
        options = ListOptions(namespace="default", label_selector=labels)
        began = _cpu(folder)
        for _ in range(_REPEATS // 5):
            await cluster.list(*LEASE[:2], options)
        listed = (_cpu(folder) - began) / (_REPEATS // 5) / 139
        write = await _writes(cluster, folder)
        sent = (await _watched(cluster, folder, "") - write) / _WATCHES
        # The namespace `default` has a hash in the upper half.
        nothing = "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"
        dropped = (await _watched(cluster, folder, nothing) - write) / _WATCHES
        return Costs(write, listed, max(sent, 0), max(dropped, 0))


async def _writes(cluster: Cluster, folder: str) -> float:
    """Return the CPU seconds of an update of a ConfigMap."""
    live = await cluster.apply(_settings("0"), field_manager="me", force=True)
    began = _cpu(folder)
    for number in range(_REPEATS):
        live = await cluster.update({**live, "data": {"motto": str(number)}}, field_manager="me")
    return (_cpu(folder) - began) / _REPEATS


async def _watched(cluster: Cluster, folder: str, selector: str) -> float:
    """Return the same while some watches are open."""
    version = (await cluster.list("v1", "ConfigMap", ListOptions(namespace="default"))).resource_version

    async def follow() -> None:
        watch = WatchOptions(namespace="default", resource_version=version, shard_selector=selector)
        async for _ in cluster.watch("v1", "ConfigMap", watch):
            pass

    watching = [asyncio.create_task(follow()) for _ in range(_WATCHES)]
    await asyncio.sleep(5)
    found = await _writes(cluster, folder)
    for each in watching:
        each.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return found


def _settings(motto: str) -> Manifest:
    metadata = {"name": "corner-settings", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"motto": motto}}


def _cpu(folder: str) -> float:
    """Return the CPU seconds of the programs whose arguments name a folder."""
    used = 0.0
    for process in Path("/proc").iterdir():
        try:
            command = (process / "cmdline").read_bytes().split(b"\0")
            if command[0].endswith((b"kube-apiserver", b"etcd")) and any(folder.encode() in one for one in command):
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                used += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError):
            continue
    return used


def main() -> None:
    """Print both tables."""
    costs = asyncio.run(measure())
    print(
        f"CPU of a write {costs.write * 1e3:.2f} ms, of a Lease in a list {costs.listed * 1e6:.0f} us, "
        f"of an event {costs.sent * 1e6:.0f} us, of one left out {costs.dropped * 1e6:.0f} us",
        flush=True,
    )
    for replicas in REPLICAS:
        slots = min(1024, max(64, 10 * replicas))
        found = traffic(replicas, slots)
        lists = found.lists * found.leases
        print(
            f"{replicas} replicas, {slots} slots: {found.leases} Leases, {found.writes:.1f} writes/s, "
            f"{found.lists:.1f} lists/s",
            flush=True,
        )
        for owners in OWNERS:
            edits = owners / _HOUR
            others = replicas - 1
            cores = {
                "Leases": found.writes * costs.write + lists * costs.listed,
                "writes": edits * _WRITES * costs.write,
                "by namespace": edits * (_OWNER_EVENTS + _CHILD_EVENTS) * (costs.sent + others * costs.dropped),
                "by uid": edits
                * (_OWNER_EVENTS * (costs.sent + others * costs.dropped) + _CHILD_EVENTS * replicas * costs.sent),
                "sends all": edits * (_OWNER_EVENTS + _CHILD_EVENTS) * replicas * costs.sent,
            }
            print(f"  {owners} owners: {', '.join(f'{name} {value:.3f}' for name, value in cores.items())}", flush=True)


if __name__ == "__main__":
    main()
