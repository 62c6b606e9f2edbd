"""The operator of scalers as a process, on the embedded server and on a real one, with no rights but its own there.

On the real server, its metrics API is registered with an APIService, and kube-controller-manager asks it.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest
from aiohttp import web

from ocf.autoscaling.algorithm import Settings
from ocf.cluster import ServiceAccount
from ocf.concepts import SystemClock
from ocf.errors import InvalidError
from ocf.http.limits import Limits
from ocf.http.server import serving_app
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Url
from ocf.runtime.operator import ManagerOptions, Operator, WebhookOptions, running
from ocf.runtime.rbac import roles
from ocf.testing import serving_http_stub
from ocf.testing.envtest import ControllerName, ControlPlane
from ocf.testing.metrics_stub.api_service import HOST, api_services, service
from ocf_server import EmbeddedCluster
from tests.examples.memcached.env import served
from tests.operators.scaler.model import Scaler
from tests.operators.scaler.operator import component_of
from tests.operators.scaler.world import MAIN, NAMESPACE, SETTINGS, WEB, World, deployment, queue, systems
from tests.support import eventually, until_granted

if TYPE_CHECKING:
    from ocf.testing.plugin import RunControllers

QUICK: Final = Settings(sync_period=timedelta(milliseconds=300), downscale_stabilization=timedelta(seconds=1))
FLAGS: Final = {"horizontal-pod-autoscaler-downscale-stabilization": "1s"}
CONTROLLERS: Final = (
    ControllerName.HORIZONTAL_POD_AUTOSCALER,
    ControllerName.DEPLOYMENT,
    ControllerName.REPLICA_SET,
    ControllerName.GARBAGE_COLLECTOR,  # of the foreground deletion of the HPA
)


@asynccontextmanager
async def on_embedded() -> AsyncIterator[tuple[World, Operator[Scaler]]]:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    await cluster.apply(Scaler.definition(), field_manager="admin")
    world = World(cluster)
    async with cluster.controllers(SETTINGS).running(), world.autoscaling(QUICK):
        yield world, world.operator()


@asynccontextmanager
async def on_real(plane: ControlPlane, controllers: RunControllers) -> AsyncIterator[tuple[World, Operator[Scaler]]]:
    """Run the operator as a service account with the rights that it declares."""
    await asyncio.to_thread(plane.install_crds, Scaler.definition())

    @asynccontextmanager
    async def serve(app: web.Application) -> AsyncIterator[None]:
        pair = plane.certificate_for("scalers", HOST)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(pair.certificate, pair.key)
        async with serving_app(app, Limits(connections=100), name="scalers", address=("127.0.0.1", 0), tls=tls) as one:
            authority = base64.b64encode(plane.authority.read_bytes()).decode()
            external = [each for each in api_services(one.port, authority) if "external" in each["metadata"]["name"]]
            try:
                for manifest in (service(), *external):
                    await world.cluster.apply(manifest, field_manager="admin", force=True)
                yield
            finally:  # the task that serves is cancelled; discovery by later tests would fail with the group
                for manifest in external:
                    await world.cluster.delete(ObjectKey.of(manifest))

    with plane.namespace("scaler-") as namespace:
        async with await plane.cluster() as cluster:
            await served(cluster, (Scaler.api_version, Scaler.kind))
            world = World(cluster, home=namespace)
            operator = world.operator(serve)
            triggers: list[Manifest] = [queue()]
            spec = {"target": {"name": "web"}, "triggers": triggers}
            example = Scaler.model_validate({"metadata": {"name": "main", "namespace": namespace}, "spec": spec})
            granted = operator.policy_rules([component_of(example)])
            granted |= ManagerOptions(listen=None).policy_rules(operator)
            account = ServiceAccount("scalers", namespace)
            for one in roles(granted, name=namespace, account=account, namespaces=[namespace]):
                await cluster.create(one, field_manager="admin")
            user = f"system:serviceaccount:{namespace}:scalers"
            await until_granted(cluster, user, granted, namespace=namespace)
            with controllers(*CONTROLLERS, arguments=FLAGS):
                async with await plane.cluster(await asyncio.to_thread(plane.kubeconfig_for, user)) as world.account:
                    yield world, operator


@pytest.mark.long
@pytest.mark.parametrize("where", ["embedded", "envtest"])
async def test_the_life_of_a_scaler(
    where: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        if where == "embedded":
            place = on_embedded()
        else:
            place = on_real(request.getfixturevalue("envtest_plane"), request.getfixturevalue("envtest_controllers"))
        world, operator = await stack.enter_async_context(place)
        world.stub = await stack.enter_async_context(serving_http_stub(systems(world.amounts)))
        main, web_key = (one._replace(namespace=world.home) for one in (MAIN, WEB))
        await world.cluster.create(deployment(web_key, replicas=0), field_manager="user")

        async def until(amount: float, replicas: int) -> None:
            world.amounts["mail"] = amount
            await eventually(lambda: world.replicas(web_key), lambda found: found == replicas)

        options = ManagerOptions(listen=None, clock=SystemClock(), namespaces=[world.home])
        async with running(world.account or world.cluster, operator, options=options):
            await world.scaler(pollSeconds=1, cooldownSeconds=2, onDeletion="Restore")
            await until(5, 1)
            await until(38, 4)
            await eventually(lambda: world.conditions(main), lambda found: found["Ready"] == ("True", "Healthy"))
            await until(2, 1)
            await until(0, 0)
            await world.change(main, autoscaler="renamed")
            await until(38, 4)
            await eventually(world.autoscalers, lambda found: found == ["renamed"])
        await world.cluster.delete(main)
        async with running(world.account or world.cluster, operator, options=options):  # another process
            await world.until_gone(main)
        assert await world.autoscalers() == []
        assert await world.replicas(web_key) == 0
    # Autoscalers of other tests on the same server ask this metrics API, too, for namespaces in which it has no rights.
    refused = [line for line in caplog.text.lower().splitlines() if "forbidden" in line]
    assert [line for line in refused if f'namespace "{world.home}"' in line or "namespace" not in line] == []


async def test_a_second_scaler_of_a_target_is_rejected_where_webhooks_are_served() -> None:
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    await cluster.apply(Scaler.definition(), field_manager="admin")
    world = World(cluster)
    async with serving_http_stub(systems(world.amounts)) as world.stub:
        address, host = Url("https://127.0.0.1"), "127.0.0.1"
        admission = WebhookOptions(address=address, namespace=NAMESPACE, host=host, port=0, register=True)
        options = ManagerOptions(listen=None, clock=SystemClock(), admission=admission)
        async with running(cluster, world.operator(), options=options) as process:
            await process.started()
            await world.scaler()

            async def rejected(**target: str) -> str:
                try:
                    await world.create(MAIN._replace(name="b"), spec={"target": target, "triggers": [queue()]})
                except InvalidError as error:
                    return error.message
                await cluster.delete(MAIN._replace(name="b"))
                return ""

            await eventually(lambda: rejected(name="web"), lambda found: "has the Scaler main" in found)
            assert await rejected(name="api") == ""
            assert await rejected(name="web", kind="StatefulSet") == ""
            await world.change(pollSeconds=20)
