"""The operators of workers as a process, on the embedded server and on a real one, with no rights but their own there.

The test plays the Deployment controller, the kubelet and the garbage collector.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.rbac import PolicyRule
from ocf.testing import serving_http_stub
from ocf.testing.fake_controllers import rolled_out
from ocf_server import EmbeddedCluster
from tests.examples.memcached.env import served
from tests.operators.workers import clusters, groups, runs, scalers
from tests.operators.workers.model import ComputeCluster, ComputeRun, GroupScaler, WorkerGroup
from tests.operators.workers.world import KINDS, World, operators, unconnected
from tests.operators.world import with_rights
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="controllers", subresource=Subresource.STATUS)
OWNED: Final = ("ComputeCluster", "WorkerGroup", "Deployment", "Service", "Pod")
CLUSTER: Final = {"image": "compute:1"}


def rights() -> frozenset[PolicyRule]:
    """Return the generated rights of the operators, from their components in every state."""
    name = {"metadata": {"name": "any", "namespace": "any"}}
    group = WorkerGroup.model_validate({**name, "spec": {"cluster": "any", "image": "w:1"}})
    cluster = ComputeCluster.model_validate({**name, "spec": CLUSTER})
    run = ComputeRun.model_validate({**name, "spec": {"cluster": CLUSTER, "image": "job:1"}})
    scaler = GroupScaler.model_validate({**name, "spec": {"group": "any", "maximum": 3}})
    states = {
        "compute-clusters": [clusters.component_of(cluster, scaled) for scaled in (set(), {"any-default"})],
        "worker-groups": [groups.component_of(group, ["any-0"], suspended=suspended) for suspended in (False, True)],
        "compute-runs": [runs.component_of(run, phase) for phase in runs.Phase],
        "group-scalers": [scalers.component_of(scaler, 3)],
    }
    every = operators(unconnected)
    definitions = [definition for one in every for definition in one.all_definitions]
    return frozenset().union(*(one.policy_rules(states[one.name], definitions=definitions) for one in every))


class Played(World):
    """A cluster whose controllers are played, between two looks at it."""

    async def reaches(self, holds: Callable[[], Awaitable[object]]) -> None:
        """Let the controllers work until a condition holds."""

        async def look() -> object:
            for live in [one for kind in OWNED for one in await self._found(kind)]:
                with suppress(NotFoundError, ConflictError):
                    await self._collect(live)
            with suppress(NotFoundError, KeyError):
                return await holds()
            return False

        await eventually(look)

    async def _found(self, kind: str) -> tuple[Manifest, ...]:
        api_version = self.key(kind, "any").api_version
        return tuple((await self.cluster.list(api_version, kind, ListOptions(namespace=self.home))).items)

    async def _collect(self, live: Manifest) -> None:
        """Delete an object whose owner is gone, and report one that stays as rolled out."""
        for owner in live["metadata"].get("ownerReferences") or ():
            found = await self.found(ObjectKey(owner["apiVersion"], owner["kind"], owner["name"], self.home))
            if found.get("metadata", {}).get("uid") != owner["uid"]:
                await self.cluster.delete(ObjectKey.of(live))
                return
        if live["kind"] == "Deployment":
            status = rolled_out(live)
            if status.items() - (live.get("status") or {}).items():
                await self.cluster.patch(ObjectKey.of(live), {"status": status}, STATUS)


async def live(world: Played) -> None:
    """A cluster that is scaled, and a run that ends while no process runs."""

    async def workers(*names: str) -> bool:
        status = await world.status("WorkerGroup", "main-a")
        reasons = await world.reasons("WorkerGroup", "main-a") | await world.reasons("ComputeCluster", "main")
        return (await world.names(), status["workers"], reasons) == ([*names], [*names], {"Ready": "Healthy"})

    async def runs_now() -> bool:
        return "night-runner" in await world.names("Pod")

    async def has_ended() -> bool:
        status = await world.status("ComputeRun", "night")
        return status.get("result") == "Succeeded" and await world.names("ComputeCluster") == ["main"]

    async def is_free() -> bool:
        return not await world.found(world.key("GroupScaler", "main-a"))

    async with serving_http_stub(world.schedulers.app()) as world.stub:
        world.schedulers.wanted["main"] = 4
        async with world.process():
            await world.cluster_of(a=3)
            await world.reaches(lambda: workers("main-a-0", "main-a-1", "main-a-2"))
            await world.scaler_of("main-a", minimum=1, periodSeconds=1, downAfterSeconds=1)
            await world.reaches(lambda: workers("main-a-0", "main-a-1", "main-a-2", "main-a-3"))
            world.schedulers.wanted["main"] = 2
            await world.reaches(lambda: workers("main-a-1", "main-a-3"))
            assert world.schedulers.chosen == ["main-a-0", "main-a-2"]
            assert world.schedulers.retired == {"main-a-0": 1, "main-a-2": 1}
            await world.run()
            await world.reaches(runs_now)
        await world.cluster.patch(world.key("Pod", "night-runner"), {"status": {"phase": "Succeeded"}}, STATUS)
        async with world.process():  # another process goes on with what is stored
            await world.reaches(has_ended)
            await world.cluster.delete(world.key("GroupScaler", "main-a"))
            await world.reaches(is_free)
            await world.reaches(lambda: workers("main-a-1", "main-a-3", "main-a-4"))
            assert len(world.schedulers.questions) == 2


async def test_on_the_embedded_server() -> None:
    cluster = EmbeddedCluster(namespaces=["town"])
    for kind in KINDS:
        await cluster.apply(kind.definition(), field_manager="user")
    await live(Played(cluster))


async def test_the_rights(
    envtest: Envtest, envtest_cluster: ApiServerCluster, caplog: pytest.LogCaptureFixture
) -> None:
    envtest.plane.install_crds(*(kind.definition() for kind in KINDS))
    await served(envtest_cluster, *((kind.api_version, kind.kind) for kind in KINDS))
    async with with_rights(envtest, envtest_cluster, rights()) as world:
        await live(Played(envtest_cluster, account=world.account, home=envtest.namespace))
    assert "forbidden" not in caplog.text.lower()
