"""Three processes on a real API server, with the feature gate on and off: no owner is reconciled twice at once."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.objects import ObjectKey
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Programs
from tests.support import eventually

from .conftest import DEFINITION, shop

OWNERS: Final = 120
NAMES: Final = ("one", "two", "three")
# Names that differ in more than their ends: see docs/operators/sharding.md.
NAMESPACES: Final = ("acorn", "birch", "cedar", "dates", "elms", "firs", "gums", "holly", "ivy", "jade", "kelp", "lime")


class Reconcile(NamedTuple):
    """One line of a process."""

    replica: str
    begin: float
    end: float
    uid: str


class Replicas:
    """The processes, and what they have done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def reconciles(self) -> list[Reconcile]:
        lines = [line for log in self.folder.iterdir() for line in log.read_text().splitlines()]
        return [Reconcile(*json.loads(line)) for line in lines if line.startswith("[") and line.endswith("]")]

    def reconciled(self, since: float) -> dict[str, set[str]]:
        """Return the owners that each process has reconciled since a time."""
        found: dict[str, set[str]] = defaultdict(set)
        for one in self.reconciles:
            if one.begin >= since:
                found[one.replica].add(one.uid)
        return found

    def overlaps(self) -> list[tuple[Reconcile, Reconcile]]:
        """Return the reconciles of one owner that ran at the same time."""
        ordered = sorted(self.reconciles, key=lambda one: (one.uid, one.begin))
        pairs = pairwise(ordered)
        return [(one, other) for one, other in pairs if one.uid == other.uid and other.begin < one.end]

    def start(self, name: str, kubeconfig: Path, by: str) -> None:
        command = [sys.executable, "-m", "tests.runtime.operator.sharded_process"]
        arguments = [str(kubeconfig), name, "default", by, str(self.folder / name)]
        root = Path(__file__).parents[3]
        self.processes[name] = subprocess.Popen([*command, *arguments], cwd=root)  # noqa: S603 (this program)


@contextmanager
def replicas(folder: Path) -> Iterator[Replicas]:
    found = Replicas(folder)
    try:
        yield found
    finally:
        for process in found.processes.values():
            process.kill()
            process.wait()


async def create(cluster: Cluster) -> None:
    for namespace in NAMESPACES:
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await cluster.create(home, field_manager="me")
    for number in range(OWNERS):
        made = shop(f"shop-{number}")
        made["metadata"]["namespace"] = NAMESPACES[number % len(NAMESPACES)]
        await cluster.create(made, field_manager="me")


async def edit(cluster: Cluster, motto: str) -> None:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="me")
    for live in (await cluster.list("example.com/v1", "Shop")).items:
        await cluster.patch(ObjectKey.of(live), {"spec": {"motto": motto}}, options)


async def every_owner(found: Replicas, since: float) -> dict[str, set[str]]:
    """Wait until each owner was reconciled since a time."""

    async def done() -> bool:
        return len(set().union(*found.reconciled(since).values())) == OWNERS

    await eventually(done)
    return found.reconciled(since)


@pytest.mark.promise("one-replica-per-owner", runs="three processes on a real API server, one of which is killed")
@pytest.mark.long
@pytest.mark.parametrize(("by", "gate"), [("uid", True), ("namespace", True), ("namespace", False)])
async def test_three_processes_divide_the_owners(
    envtest_programs: Programs, tmp_path: Path, by: str, *, gate: bool
) -> None:
    gates = {"ShardedListAndWatch": True} if gate else None
    with ControlPlane(envtest_programs, feature_gates=gates) as plane, replicas(tmp_path) as found:
        plane.install_crds(DEFINITION)
        async with await plane.cluster() as cluster:
            await create(cluster)
            for name in NAMES:
                found.start(name, plane.kubeconfig, by)

            async def all_hold() -> bool:
                leases = (await cluster.list("coordination.k8s.io/v1", "Lease")).items
                slots = [each["spec"]["holderIdentity"] for each in leases if "-slot-" in each["metadata"]["name"]]
                return {slots.count(name) for name in NAMES} == {21, 22}

            await eventually(all_hold)
            await every_owner(found, 0)
            edited = time.monotonic()
            await edit(cluster, "closed")
            shares = await every_owner(found, edited)
            assert sum(map(len, shares.values())) == OWNERS
            if by == "uid":
                assert min(map(len, shares.values())) > OWNERS / 5
            found.processes["two"].kill()
            killed = time.monotonic()
            await edit(cluster, "for sale")
            shares = await every_owner(found, killed)
            assert {*shares} - {"two"} == {"one", "three"}
            assert found.overlaps() == []
