"""A process becomes ready although it cannot work before its own webhooks are called.

A Service has the pods that are ready as its endpoints. So what needs the webhooks must not keep the process from being
ready, or API servers never reach them. Public reports:
https://github.com/openshift/hypershift/pull/9387, https://github.com/knative/pkg/pull/1180,
https://github.com/knative/eventing/issues/4876, https://github.com/otterize/intents-operator/pull/567,
https://github.com/OT-CONTAINER-KIT/redis-operator/issues/784, https://github.com/longhorn/longhorn/issues/9402,
https://github.com/kubernetes-sigs/controller-runtime/issues/2322 (conversion),
https://github.com/open-policy-agent/gatekeeper/issues/3829, https://github.com/kubernetes/kubernetes/issues/107678
(webhooks for what is written at the start).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster.client import ApiServerCluster
from ocf.errors import InvalidError, NotFoundError, ServerError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.admission import Url, Webhook, invalid
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, WebhookOptions, running
from ocf.runtime.operator.manager import Manager
from ocf_server import EmbeddedCluster
from ocf_server.http import serving as serving_cluster
from ocf_server.http import write_kubeconfig
from tests.runtime.crds.shop_versions import SHOPS, ShopV1, ShopV3
from tests.support import eventually

if TYPE_CHECKING:
    from ocf.testing.envtest.fixtures import Envtest

HOST: Final = "127.0.0.1"
# Iterations of the event loop from a connection that asyncio has accepted to the call of its handler.
_UNTIL_BEGUN: Final = 3


@dataclass
class Service:
    """A Service: it passes connections on to one of the processes, if that is ready."""

    port: int = 0
    pods: tuple[Manager, ...] = ()
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def endpoints(self) -> list[int]:
        """The ports of the webhooks of the processes that are ready."""
        ready = (one for one in self.pods if not any(check() for check in one.health.ready.values()))
        return [int(one.webhooks.url.rpartition(":")[2]) for one in ready if one.webhooks is not None]

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task that is cancelled before it begins closes nothing, so its connection is remembered from here on.
        task = asyncio.get_running_loop().create_task(self._connect(reader, writer))
        self.connections[task] = writer
        task.add_done_callback(self.connections.pop)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            inner_reader, inner_writer = await asyncio.open_connection(HOST, self.endpoints[0])
            writers.append(inner_writer)
            await asyncio.gather(_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))
        except (OSError, IndexError):
            pass
        finally:
            for one in writers:
                one.transport.abort()
            await asyncio.gather(*(one.wait_closed() for one in writers), return_exceptions=True)

    async def close(self) -> None:
        open_ones = dict(self.connections)
        for task, writer in open_ones.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*open_ones, *(one.wait_closed() for one in open_ones.values()), return_exceptions=True)


async def _pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    target.close()


@asynccontextmanager
async def service() -> AsyncIterator[Service]:
    found = Service()
    listening = socket.create_server((HOST, 0))
    listening.setblocking(False)
    server = await asyncio.start_server(found.accept, sock=listening)
    found.port = listening.getsockname()[1]
    try:
        yield found
    finally:
        # An API server still calls. asyncio loses a connection that it has accepted, but not begun, when its server is
        # closed (https://github.com/python/cpython/issues/109564). So accepting ends first, and the last ones begin.
        asyncio.get_running_loop().remove_reader(listening)
        for _ in range(_UNTIL_BEGUN):
            await asyncio.sleep(0)
        server.close()
        await found.close()


@pytest.mark.parametrize("iterations", range(6))
async def test_a_service_that_ends_closes_a_connection_that_it_has_just_accepted(iterations: int) -> None:
    with socket.socket() as client:
        async with service() as at:
            client.connect((HOST, at.port))
            for _ in range(iterations):
                await asyncio.sleep(0)
        client.settimeout(0)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""


@dataclass(frozen=True)
class Place:
    """A cluster, and the namespace of a test in it."""

    cluster: ApiServerCluster
    namespace: str


@pytest.fixture(params=["embedded", "real"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "real":
        envtest: Envtest = request.getfixturevalue("envtest")
        async with await ApiServerCluster.connect(envtest.kubeconfig) as cluster:
            yield Place(cluster, envtest.namespace)
        return
    async with serving_cluster(EmbeddedCluster()) as served:
        write_kubeconfig(served.kubeconfig(), tmp_path / "kubeconfig")
        async with await ApiServerCluster.connect(tmp_path / "kubeconfig") as cluster:
            yield Place(cluster, "default")


def options(place: Place, at: Service, **changed: Any) -> ManagerOptions:
    address = Url(f"https://{HOST}:{at.port}")
    admission = WebhookOptions(address=address, namespace=place.namespace, name=place.namespace, host=HOST, port=0)
    return ManagerOptions(listen=None, events=False, admission=admission, **changed)


def operator_of(place: Place, model: type[Any], reconciled: list[str]) -> Operator[Any]:
    def components(_: Any) -> tuple[()]:
        reconciled.append(model.__name__)
        return ()

    resource = replace(SHOPS, group=f"{place.namespace}.example.com")
    return Operator(name="shops", owner=OwnerType.of(model, resource), components=components, resync=None)


@asynccontextmanager
async def stored_shop(place: Place, at: Service) -> AsyncIterator[None]:
    """A shop in the storage version, whose definition has the conversion webhook."""
    operator = operator_of(place, ShopV3, [])
    admission = options(place, at).admission
    assert admission is not None
    (definition,) = admission.definitions(operator)
    await place.cluster.apply(definition, field_manager="setup")
    api_version, kind = operator.owner_kind
    metadata = {"name": "corner", "namespace": place.namespace}
    corner = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    spec = {"place": {"street": "a", "city": "b"}}

    async def created() -> bool:
        await place.cluster.create({**corner, "spec": spec}, field_manager="user")
        return True

    try:
        await eventually(created, ignore=(NotFoundError, TooManyRequestsError, ServerError))
        yield
    finally:
        await place.cluster.delete(ObjectKey.of(definition))


@pytest.mark.promise("webhook-ready", runs="a restart of all processes with stored objects of another version")
@pytest.mark.parametrize("lease", [False, True], ids=["without a lease", "with a lease"])
async def test_a_conversion_webhook_is_ready_before_the_objects_that_it_converts_are_read(
    place: Place, lease: bool
) -> None:
    """All processes were restarted, and the operator reads another version than the stored one."""
    reconciled: list[str] = []
    async with service() as at, stored_shop(place, at):
        given = options(place, at, lease=Lease("shops", place.namespace) if lease else None)
        async with running(place.cluster, operator_of(place, ShopV1, reconciled), options=given) as process:
            at.pods = (process,)

            async def unread() -> bool:
                return "conversion webhook" in process.health.owners() or bool(reconciled)

            async def converted() -> bool:
                return bool(reconciled)

            await eventually(unread)
            await eventually(converted)
            assert process.health.owners() == process.health.watches() == ""


async def test_who_waits_for_the_lease_converts_for_who_leads(place: Place) -> None:
    reconciled: list[str] = []
    operator = operator_of(place, ShopV1, reconciled)
    async with service() as at, stored_shop(place, at):
        first, second = (options(place, at, lease=Lease("shops", place.namespace, name)) for name in ("one", "two"))
        async with running(place.cluster, operator, options=first) as leader:
            await leader.started()
            async with running(place.cluster, operator, options=second) as waiting:
                at.pods = (waiting,)

                async def converted() -> bool:
                    return bool(reconciled)

                await eventually(converted)
                assert waiting.controllers == ()


async def test_other_kinds_that_are_not_read_count(place: Place) -> None:
    """Only those that the process converts itself do not."""
    async with service() as at, stored_shop(place, at):
        missing = ("absent.example.com/v1", "Absent")
        given = options(place, at)
        operator = replace(operator_of(place, ShopV1, []), owns=[missing])
        async with running(place.cluster, operator, options=given) as process:
            await process.started()

            async def named() -> bool:
                return "Absent is not read yet: the API server" in process.health.ready["owners"]()

            await eventually(named)
            assert "Shop" not in process.health.ready["owners"]()
        without = replace(given, admission=None)
        async with running(place.cluster, operator_of(place, ShopV1, []), options=without) as process:
            await process.started()

            async def shown() -> bool:
                return "Shop is not read yet" in process.health.ready["owners"]()

            await eventually(shown)


def refuses_all(_new: Manifest, _old: Manifest | None, _operation: object) -> list[Any]:
    return [invalid("metadata", "", "is refused")]


@pytest.mark.promise("webhook-ready", runs="webhooks of Secrets and of definitions, called by nothing that serves them")
async def test_what_a_process_writes_before_it_serves_is_left_out_of_its_webhooks(place: Place) -> None:
    """The Secret with the certificate, and the CA in the definition; others of these kinds are validated."""
    secrets = Webhook("", "v1", "Secret", "secrets", validators=[refuses_all])
    definitions = Webhook(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", validators=[refuses_all]
    )
    async with service() as at, stored_shop(place, at):
        operator = replace(operator_of(place, ShopV1, []), webhooks=[secrets, definitions])
        given = options(place, at)
        assert given.admission is not None
        made: list[ObjectKey] = []
        try:
            for configuration in given.admission.configurations(operator):
                # Other tests share the server. Only objects in namespaces have one that could select them.
                for entry in configuration["webhooks"]:
                    label = {"kubernetes.io/metadata.name": place.namespace}
                    entry["namespaceSelector"] = {"matchLabels": label}
                await place.cluster.apply(configuration, field_manager="setup")
                made.append(ObjectKey.of(configuration))
            async with running(place.cluster, operator, options=given) as process:
                at.pods = (process,)
                await process.started()
                assert process.webhooks is not None
                await process.webhooks.refresh()
                assert process.webhooks.problem() == ""
                metadata = {"namespace": place.namespace}

                async def refused(named: Manifest) -> bool:
                    other = {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, **named}}
                    with pytest.raises(InvalidError, match="is refused"):
                        await place.cluster.create(other, field_manager="user")
                    return True

                for named in ({"name": "other"}, {"generateName": "other-"}):
                    await eventually(partial(refused, named), ignore=(ServerError,))
        finally:
            for key in made:
                await place.cluster.delete(key)
