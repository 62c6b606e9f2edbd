"""Faults: a task that runs once, beside a Job controller and a TTL controller that are as fast as can be.

Each is at work after every single write of the operator, not only between its reconciles: a Job that exists has
finished, and one with a time to live is gone. So whatever a process has written last before it dies, the next one finds
what these controllers have made of it. https://github.com/openstack-k8s-operators/lib-common/pull/78 is a report of an
operator that ran a Job twice, because the Job was gone before its end was stored.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ApplyCache, DeleteOptions, ListOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.cache import CachedCluster
from ocf.component import Component, reconciling
from ocf.errors import OcfError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import job
from ocf.testing import InterceptingCluster, VirtualClock, assert_quiet, crash_at_each_write
from ocf.testing.simulated_process import Disturbance
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster, Request

SHOP: Final[Manifest] = {
    "apiVersion": "example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner", "namespace": "town"},
    "spec": {"schema": "1"},
}
OWNER: Final = ObjectKey.of(SHOP)
JOB: Final[Manifest] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "migration", "namespace": "town"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "job:1"}]}}},
}
NOW: Final = "2026-01-31T12:00:00Z"
HELD: Final = {"status": "True", "lastTransitionTime": NOW, "lastProbeTime": NOW}
ENDS: Final[dict[str, Manifest]] = {
    "Complete": {
        "startTime": NOW,
        "completionTime": NOW,
        "conditions": [{"type": one, **HELD} for one in ("SuccessCriteriaMet", "Complete")],
    },
    "Failed": {"startTime": NOW, "conditions": [{"type": one, **HELD} for one in ("FailureTarget", "Failed")]},
}


class World(InterceptingCluster):
    """A cluster whose controllers work after each request.

    Attributes:
        runs: The key of each run that has finished, in order.
    """

    def __init__(self, *, end: str = "Complete") -> None:
        self.clock = VirtualClock()
        self.end = end
        self.runs: list[str] = []
        super().__init__(
            EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=("town",), now=self.clock.now),
            apply_cache=ApplyCache(),
        )

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await send()
        finally:
            if not request.verb.is_read:
                await self._controllers()

    async def _controllers(self) -> None:
        for found in (await self._inner.list("batch/v1", "Job", ListOptions(namespace="town"))).items:
            live, key = found, ObjectKey.of(found)
            if not live.get("status", {}).get("conditions"):
                self.runs.append(live["metadata"]["labels"]["ocf.dev/run"])
                live = {**live, "status": ENDS[self.end]}
                await self._inner.update(live, field_manager="job", subresource=Subresource.STATUS)
            if "ttlSecondsAfterFinished" in live["spec"]:
                await self._inner.delete(key, DeleteOptions())


def subject(owner: Manifest) -> Component:
    made = job.Builder(JOB).run_once(owner["spec"]["schema"], ttl=timedelta(0))
    return component.Builder("migration", condition_type="Migrated").with_resource(made).build()


async def reconcile(cluster: Cluster) -> None:
    owner = await cluster.get(OWNER)
    async with reconciling(owner, cluster, clock=VirtualClock()) as context:
        await subject(owner).reconcile(context)
        # As an operator does.
        context.arrange(["Migrated"])


async def world(*, upgraded: bool = False, end: str = "Complete") -> World:
    """Return a world in which the run is still to come: the first one, or that of another key."""
    made = World(end=end)
    await made.create(SHOP, field_manager="user")
    if upgraded:
        for _ in range(4):
            await reconcile(made)
        assert made.runs == ["1"]
        patch = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        await made.patch(OWNER, {"spec": {"schema": "2"}}, patch)
    return made


@pytest.mark.promise("crash", runs="each write of a Job that runs once, and of its next run, in 6 ways")
@pytest.mark.promise("run-once", runs="each write of 3 runs, in 6 ways, beside controllers that act after each write")
@pytest.mark.parametrize(
    ("upgraded", "end", "runs"),
    [
        pytest.param(False, "Complete", ["1"], id="a first run"),
        pytest.param(False, "Failed", ["1"], id="a run that fails"),
        pytest.param(True, "Complete", ["1", "2"], id="another key"),
    ],
)
async def test_a_job_runs_once_whatever_happens_to_each_write(upgraded: bool, end: str, runs: list[str]) -> None:
    worlds: list[World] = []

    async def make() -> Cluster:
        worlds.append(await world(upgraded=upgraded, end=end))
        return worlds[-1]

    report = await crash_at_each_write(make, reconcile, disturbances=list(Disturbance))
    report.assert_same()
    writes = [f"{write.verb} {write.kind}" for write in report.writes]
    assert writes == ["apply Job", "update Shop", "update Shop", "patch Job"]
    assert len(report.rows) == len(writes) * len(Disturbance)
    assert [each.runs for each in worlds] == [runs] * len(worlds)
    for each in worlds:
        await assert_quiet(each, reconcile)
        assert each.runs == runs


@pytest.mark.promise("run-once")
async def test_a_new_process_with_an_old_cache_does_not_run_it_again() -> None:
    """The cache of the owners is filled before the run ends, and that of the Jobs after the Job is gone."""
    made = await world()
    async with CachedCluster(made) as old:
        await old.get(OWNER)
        frozen = await old.get(OWNER)
        for _ in range(4):
            await reconcile(made)
        async with reconciling(frozen, made, clock=VirtualClock()) as context:
            result = await subject(frozen).reconcile(context)
    assert (made.runs, result.condition.reason, result.outcomes[0].action) == (["1"], "Healthy", "Absent")


@pytest.mark.promise("run-once")
async def test_two_leaders_at_once_run_it_once() -> None:
    made = await world()
    first, second = (InterceptingCluster(made, apply_cache=ApplyCache()) for _ in range(2))
    for _ in range(6):
        for process in (first, second):
            try:
                await reconcile(process)
            except OcfError:
                continue
    assert made.runs == ["1"]
