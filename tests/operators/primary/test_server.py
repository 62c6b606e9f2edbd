"""The operator of databases as a process, on the embedded server and on a real one, with no rights but its own there.

The tests play the StatefulSet controller, the kubelet and the garbage collector.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import pytest

from ocf.cluster import Cluster, DeleteOptions, ListOptions, PatchOptions, PatchType, ServiceAccount, Subresource
from ocf.concepts import SystemClock
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import ManagerOptions, running
from ocf.runtime.rbac import roles
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster
from tests.examples.memcached.env import served
from tests.operators.primary.model import Database
from tests.operators.primary.objects import component_of
from tests.operators.primary.operator import databases
from tests.operators.primary.roles import Roles
from tests.operators.primary.world import MERGE, World
from tests.support import eventually, until_granted

ALL: Final = ["main-0", "main-1", "main-2"]
STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="controllers", subresource=Subresource.STATUS)


@dataclass
class Played(World[Cluster]):
    """A cluster whose controllers are played, between two looks at it.

    Args:
        lost: Members whose pods are not ready.
        mine: The cluster as the operator uses it.
    """

    lost: set[str] = field(default_factory=set)
    mine: Cluster | None = None

    async def until(self, holds: Callable[[], Any]) -> None:
        """Let the controllers work until a condition holds."""

        async def look() -> bool:
            await self.work()
            with suppress(AssertionError, NotFoundError, ValueError):
                await holds()
                return True
            return False

        await eventually(look)

    async def work(self) -> None:
        for live in (await self.cluster.list("apps/v1", "StatefulSet", ListOptions(namespace=self.namespace))).items:
            with suppress(NotFoundError):
                await (self._stop(live) if "deletionTimestamp" in live["metadata"] else self._start(live))
        for live in (await self.cluster.list("v1", "ConfigMap", ListOptions(namespace=self.namespace))).items:
            if "deletionTimestamp" in live["metadata"]:
                with suppress(NotFoundError):
                    await self.cluster.patch(ObjectKey.of(live), {"metadata": {"finalizers": None}}, MERGE)

    async def _start(self, live: Manifest) -> None:
        name, template = live["metadata"]["name"], live["spec"]["template"]
        pod = self.key("Pod", f"{name}-0")
        if pod.name not in await self.names("v1", "Pod"):
            reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name, "uid": live["metadata"]["uid"]}
            metadata = {
                "name": pod.name,
                "namespace": self.namespace,
                "labels": template["metadata"]["labels"],
                "ownerReferences": [{**reference, "controller": True, "blockOwnerDeletion": True}],
            }
            spec = {**template["spec"], "volumes": [{"name": "data", "emptyDir": {}}, *template["spec"]["volumes"]]}
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            await self.cluster.create(body, field_manager="controllers")
        ready = int(name not in self.lost)
        status = {"observedGeneration": live["metadata"]["generation"], "replicas": 1, "readyReplicas": ready}
        status |= {"updatedReplicas": 1, "availableReplicas": ready, "currentRevision": "a", "updateRevision": "a"}
        if status.items() - (live.get("status") or {}).items():
            await self.cluster.patch(ObjectKey.of(live), {"status": status}, STATUS)

    async def _stop(self, live: Manifest) -> None:
        pod = self.key("Pod", f"{live['metadata']['name']}-0")
        with suppress(NotFoundError):
            await self.cluster.delete(pod, DeleteOptions(grace_period_seconds=0))
        if pod.name not in await self.names("v1", "Pod"):
            await self.cluster.patch(ObjectKey.of(live), {"metadata": {"finalizers": None}}, MERGE)

    @asynccontextmanager
    async def process(self) -> AsyncIterator[None]:
        options = ManagerOptions(listen=None, clock=SystemClock(), namespaces=[self.namespace])
        async with running(self.mine or self.cluster, databases(self.servers), options=options):
            yield


@asynccontextmanager
async def on_real(plane: ControlPlane) -> AsyncIterator[Played]:
    """Run the operator as a service account with the rights that it declares."""
    plane.install_crds(Database.definition())
    with plane.namespace("primary-") as namespace:
        async with await plane.cluster() as cluster:
            await served(cluster, (Database.api_version, Database.kind))
            world = Played(cluster, namespace)
            operator = databases(world.servers)
            example = Database.model_validate(
                {"metadata": {"name": "main", "namespace": namespace}, "spec": {"image": "db:1"}}
            )

            async def never(_live: Manifest, _context: object) -> str | None:
                return None

            made = component_of(example, example.spec.volume, Roles("main-0", ("main-1",)), {}, never)
            granted = operator.policy_rules([made]) | ManagerOptions(listen=None).policy_rules(operator)
            account = ServiceAccount("databases", namespace)
            for one in roles(granted, name=namespace, account=account, namespaces=[namespace]):
                await cluster.create(one, field_manager="admin")
            user = f"system:serviceaccount:{namespace}:databases"
            await until_granted(cluster, user, granted, namespace=namespace)
            async with await plane.cluster(await asyncio.to_thread(plane.kubeconfig_for, user)) as world.mine:
                yield world


@asynccontextmanager
async def on_embedded() -> AsyncIterator[Played]:
    cluster = EmbeddedCluster(namespaces=["town"])
    await cluster.apply(Database.definition(), field_manager="user")
    yield Played(cluster)


@pytest.fixture(params=["embedded", "envtest"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[Played]:
    place = on_embedded() if request.param == "embedded" else on_real(request.getfixturevalue("envtest_plane"))
    async with place as found:
        yield found


async def test_the_life_of_a_database(world: Played, caplog: pytest.LogCaptureFixture) -> None:
    async def members(*names: str, primary: str, image: str = "db:1") -> None:
        await world.check([*names])
        assert await world.endpoints("main-rw") == [primary]
        assert (await world.conditions())["Ready"]["reason"] == "Healthy"
        database = await world.database()
        assert database["spec"]["volume"] == {"size": "1Gi"}
        assert {one["observedGeneration"] for one in database["status"]["conditions"]} == {
            database["metadata"]["generation"]
        }
        for name in names:
            assert (await world.get("StatefulSet", name))["spec"]["template"]["spec"]["containers"][0]["image"] == image

    async def failing_over() -> None:
        assert (await world.status())["failed"] == ["main-1"]

    async def gone() -> None:
        assert main not in {ObjectKey.of(one) for one in (await world.cluster.list(*main[:2])).items}

    main = world.main
    async with world.process():
        await world.create(failoverSeconds=1)
        await world.until(lambda: members(*ALL, primary="main-0"))
        await world.change(promote="main-1", volume={"size": "2Gi"})
        await world.until(lambda: members(*ALL, primary="main-1"))
        assert (world.servers.promoted, world.servers.demoted) == (["main-1"], ["main-0"])
        world.lost.add("main-1")
        await world.hold("main-1")
        await world.until(failing_over)
    async with world.process():  # another process goes on with what is stored
        assert world.servers.promoted == ["main-1"]
        await world.release("main-1")
        await world.until(lambda: members("main-0", "main-2", "main-3", primary="main-0"))
        assert world.servers.promoted == ["main-1", "main-0"]
        await world.change(replicas=1, image="db:2")
        await world.until(lambda: members("main-0", "main-3", primary="main-0", image="db:2"))
        assert world.servers.left == ["main-2"]
        assert [name for name, _ in groupby(world.servers.restarts)][-2:] == ["main-3", "main-0"]
        await world.cluster.delete(main)
        await world.until(gone)
    assert [member for member, _ in world.servers.backups] == ["main-0"]
    assert world.servers.most_primaries == 1
    assert "forbidden" not in caplog.text.lower()
