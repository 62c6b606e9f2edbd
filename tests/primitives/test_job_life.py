"""Jobs in a component, beside simulated controllers: run, suspended, resumed and deleted, with their pods."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import ListOptions
from ocf.component import reconciling
from ocf.objects import ObjectKey
from ocf.primitives import job
from ocf.testing import VirtualClock
from ocf_server import ControllerSettings, EmbeddedCluster

if TYPE_CHECKING:
    from ocf.component import Result

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "shop"}}
MIGRATION = """
apiVersion: batch/v1
kind: Job
metadata: {name: migration, namespace: shop}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migration, image: "migration:1"}]
"""


class Env:
    """A cluster with an owner and controllers, on a clock that the test advances."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.cluster = EmbeddedCluster(namespaces=["shop"], now=self.clock.now)
        self.controllers = self.cluster.controllers(ControllerSettings(finish_after=timedelta(minutes=1)))

    async def reconcile(self, *, suspended: bool = False, **options: Any) -> Result:
        owner = await self.cluster.get(ObjectKey.of(OWNER))
        builder = component.Builder("migration", condition_type="Migrated").unpublished().suspend(suspended)
        built = builder.with_resource(job.Builder(MIGRATION), **options).build()
        async with reconciling(owner, self.cluster, clock=self.clock) as context:
            return await built.reconcile(context)

    async def reason(self, **options: Any) -> str:
        """Reconcile after the controllers have done what is due now."""
        await self.controllers.settle()
        return str((await self.reconcile(**options)).condition.reason)

    async def pods(self) -> list[str]:
        await self.controllers.settle()
        found = await self.cluster.list("v1", "Pod", ListOptions(namespace="shop"))
        return [pod["status"]["phase"] for pod in found.items]


@pytest.fixture
async def env() -> Env:
    env = Env()
    await env.cluster.create(OWNER, field_manager="user")
    return env


async def test_a_component_is_ready_once_its_job_has_completed(env: Env) -> None:
    reasons = [await env.reason()]
    for _ in range(3):
        reasons.append(await env.reason())
        env.clock.advance(timedelta(seconds=40))
    assert reasons == ["TaskPending", "TaskRunning", "TaskRunning", "Healthy"]


async def test_suspending_stops_its_pods_before_the_job_is_deleted_and_resuming_runs_it_again(env: Env) -> None:
    await env.reason()
    assert await env.pods() == ["Pending"]
    assert [await env.reason(suspended=True) for _ in range(3)] == ["Suspending", "Suspended", "Suspended"]
    assert await env.pods() == []
    assert [await env.reason() for _ in range(2)] == ["TaskPending", "TaskRunning"]


async def test_deleting_a_job_deletes_its_pods(env: Env) -> None:
    """The API server leaves the pods of a deleted Job by default, for the sake of old clients."""
    await env.reason()
    assert await env.pods() == ["Pending"]
    await env.reconcile(delete_when=True)
    assert await env.pods() == []
