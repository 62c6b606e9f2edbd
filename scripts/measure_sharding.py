"""Measure three replicas on kube-apiserver: what each of them has of the owners, with and without ShardedListAndWatch.

    python -m scripts.measure_sharding [OWNERS]

First one process has all owners, which is the whole that the others are compared with. Then, in each mode, three
processes divide the owners, all of which are edited once; at last the second process is killed. Memory is what is
resident after the first reconciles, most of it modules: so it is compared with that of a process in a cluster which has
only a third of the owners. The results are those of docs/operators/sharding.md. Other work on the machine changes the
seconds, and where a process stands still for longer than its Lease, owners move.
"""

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.errors import AlreadyExistsError
from ocf.objects import ObjectKey
from ocf.objects.shards import shard_hash
from ocf.testing.envtest import ControlPlane
from tests.runtime.operator.conftest import DEFINITION, shop

ROOT: Final = Path(__file__).parents[1]
OWNERS: Final = 10_000
NAMES: Final = ("one", "two", "three")
MODES: Final = ("uid", "namespace")
WHOLE: Final = ("whole",)
_PER_NAMESPACE: Final = 10
_AT_ONCE: Final = 32
_MERGE: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="me")
_CHILDREN: Final = ("ConfigMap", "Service")
_RESIDENT: Final = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
_NOTHING: Final[dict[str, Any]] = {"writes": {}, "events": {}}


class Reconcile(NamedTuple):
    """A line of a process."""

    replica: str
    begin: float
    end: float
    uid: str


class Fleet:
    """The processes of one mode, and what they have written to their files."""

    def __init__(self, folder: Path, kubeconfig: Path, by: str, names: Sequence[str] = NAMES) -> None:
        self._folder = folder
        command = [sys.executable, "-m", "tests.runtime.operator.sharded_process", str(kubeconfig)]
        self.processes = {
            name: subprocess.Popen([*command, name, "default", by, str(folder / name)], cwd=ROOT)  # noqa: S603
            for name in names
        }

    def _lines(self, name: str, start: str) -> list[Any]:
        path = self._folder / name
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(one) for one in lines if one.startswith(start) and one.endswith(("]", "}"))]

    def reconciles(self, since: float = 0) -> list[Reconcile]:
        """Return the reconciles that began since a time."""
        found = (Reconcile(*one) for name in self.processes for one in self._lines(name, "["))
        return [one for one in found if one.begin >= since]

    def costs(self) -> dict[str, Any]:
        """Return what each process has used so far."""
        return {name: (self._lines(name, "{") or [_NOTHING])[-1] for name in self.processes}

    def resident(self) -> dict[str, int]:
        """Return the resident memory of each process in MiB."""
        found = {name: Path(f"/proc/{one.pid}/status").read_text() for name, one in self.processes.items()}
        return {name: int(_RESIDENT.findall(text)[0]) // 1024 for name, text in found.items()}

    def end(self) -> None:
        """End the processes."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait()


async def at_once(calls: Iterable[Callable[[], Awaitable[object]]]) -> None:
    """Send requests, some of them at the same time."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def send(call: Callable[[], Awaitable[object]]) -> None:
        async with free:
            await call()

    await asyncio.gather(*(send(call) for call in calls))


async def create(cluster: Cluster, count: int) -> None:
    """Create owners in namespaces whose names have nothing in common."""
    homes = [f"{shard_hash(str(number)):016x}" for number in range(max(1, count // _PER_NAMESPACE))]

    async def make(manifest: dict[str, Any]) -> None:
        try:
            await cluster.create(manifest, field_manager="me")
        except AlreadyExistsError:
            return

    def call(manifest: dict[str, Any]) -> Callable[[], Awaitable[object]]:
        return lambda: make(manifest)

    await at_once(call({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": one}}) for one in homes)
    owners = [shop(f"shop-{number}") for number in range(count)]
    for number, owner in enumerate(owners):
        owner["metadata"]["namespace"] = homes[number % len(homes)]
    await at_once(map(call, owners))


async def until(done: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    began = time.monotonic()
    while not done():
        if time.monotonic() - began > 3_600:  # noqa: PLR2004 (an hour)
            raise TimeoutError(what)
        await asyncio.sleep(2)


async def held_evenly(cluster: Cluster) -> None:
    """Wait until the processes hold the slots."""
    while True:
        leases = (await cluster.list("coordination.k8s.io/v1", "Lease")).items
        slots = [each["spec"].get("holderIdentity") for each in leases if "-slot-" in each["metadata"]["name"]]
        if {slots.count(name) for name in NAMES} == {21, 22}:
            return
        await asyncio.sleep(1)


async def edited(cluster: Cluster, fleet: Fleet, count: int, motto: str) -> dict[str, list[Reconcile]]:
    """Edit all owners, print what each process did about it, and return its reconciles."""
    resident = await rested(fleet, count)
    keys = [ObjectKey.of(live) for live in (await cluster.list("example.com/v1", "Shop")).items]

    def edit(key: ObjectKey, text: str) -> Callable[[], Awaitable[object]]:
        return lambda: cluster.patch(key, {"spec": {"motto": text}}, _MERGE)

    before, began = fleet.costs(), time.monotonic()
    await at_once(edit(key, motto) for key in keys)
    await until(lambda: len({one.uid for one in fleet.reconciles(began)}) == count, "reconciles of the edit")
    await asyncio.sleep(10)
    after, reconciles = fleet.costs(), fleet.reconciles(began)
    found = {name: [one for one in reconciles if one.replica == name] for name in fleet.processes}
    for name, own in found.items():
        written, seen = (_grown(before[name][what], after[name][what]) for what in ("writes", "events"))
        children = sum(seen.get(kind, 0) for kind in _CHILDREN)
        print(
            f"  {name}: {len({one.uid for one in own})} owners, {len(own)} reconciles, "
            f"{sum(written.values()) - written.get('Lease', 0)} writes, {seen.get('Shop', 0)} events of owners, "
            f"{children} of children, {resident[name]} MiB",
            flush=True,
        )
    return found


async def rested(fleet: Fleet, count: int) -> dict[str, int]:
    """Wait until the owners have been reconciled first; return the resident memory of each process in MiB."""
    await until(lambda: len({one.uid for one in fleet.reconciles()}) == count, "first reconciles")
    await asyncio.sleep(10)
    return fleet.resident()


async def measure(cluster: Cluster, fleet: Fleet, count: int, motto: str) -> None:
    """Edit all owners, kill a process, and print what the others have done then."""
    await held_evenly(cluster)
    found = await edited(cluster, fleet, count, motto)
    theirs = {one.uid for one in found["two"]}
    fleet.processes["two"].kill()
    killed = time.monotonic()
    await until(lambda: theirs <= {one.uid for one in fleet.reconciles(killed)}, "takeover")
    taken: dict[str, float] = defaultdict(lambda: float("inf"))
    for one in fleet.reconciles(killed):
        taken[one.uid] = min(taken[one.uid], one.begin - killed)
    live = (await cluster.list("v1", "ConfigMap")).items
    left = count - sum(one.get("data", {}).get("motto") == motto for one in live)
    ordered = sorted(fleet.reconciles(), key=lambda one: (one.uid, one.begin))
    twice = sum(one.uid == other.uid and other.begin < one.end for one, other in pairwise(ordered))
    times = [taken[uid] for uid in theirs]
    print(
        f"  taken over after {min(times):.1f} to {max(times):.1f} s; twice at once: {twice}; left: {left}", flush=True
    )


def _grown(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {kind: count - before.get(kind, 0) for kind, count in after.items()}


async def main(count: int) -> None:
    """Run each mode."""
    with ControlPlane() as plane:
        plane.install_crds(DEFINITION)
        async with await plane.cluster() as cluster:
            await create(cluster, count // 3)
            with running(plane, "none", WHOLE) as first:
                await rested(first, count // 3)
            with running(plane, "none", WHOLE) as third:
                resident = await rested(third, count // 3)
            print(f"a process that is alone with {count // 3} owners: {resident['whole']} MiB", flush=True)
    for gate in (True, False):
        with ControlPlane(feature_gates={"ShardedListAndWatch": gate} if gate else None) as plane:
            plane.install_crds(DEFINITION)
            async with await plane.cluster() as cluster:
                began = time.monotonic()
                await create(cluster, count)
                print(f"{count} owners created in {time.monotonic() - began:.0f} s", flush=True)
                # Who comes first creates the children of all owners, which none of the others does.
                with running(plane, "none", WHOLE) as first:
                    await rested(first, count)
                print("one process has all:", flush=True)
                with running(plane, "none", WHOLE) as whole:
                    await edited(cluster, whole, count, f"whole-{gate}")
                for by in MODES:
                    print(f"by {by}, the API server {'selects' if gate else 'sends all'}:", flush=True)
                    with running(plane, by) as fleet:
                        await measure(cluster, fleet, count, f"{by}-{gate}")


@contextmanager
def running(plane: ControlPlane, by: str, names: Sequence[str] = NAMES) -> Iterator[Fleet]:
    """Run the processes of a mode until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), plane.kubeconfig, by, names)
        try:
            yield fleet
        finally:
            fleet.end()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else OWNERS))
