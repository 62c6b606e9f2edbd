"""An operator inside kopf, against a served cluster: kopf runs the process, and leaves nothing on any object."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import ClientError, ClientSession

import ocf
from ocf import component
from ocf.cluster import ListOptions, PatchOptions, PatchType
from ocf.component import Component
from ocf.component.owner_deletion import external_finalizer
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.admission import Url, Webhook
from ocf.runtime.crds import CamelModel, CRDVersion, CustomResource, Scope, crd
from ocf.runtime.kopf import attach
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, WebhookOptions
from ocf.runtime.operator.health import Health
from ocf.runtime.rbac import kopf_rules
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.support import eventually
from tests.traces import attributes, recording, trace_id

kopf: Any = pytest.importorskip("kopf")

pytestmark = pytest.mark.filterwarnings("default")

SHOP = ObjectKey("example.com/v1", "Shop", "corner", "town")
SETTINGS = ObjectKey("v1", "ConfigMap", "corner-settings", "town")


class ShopSpec(CamelModel):
    motto: str = "open"


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


def components_of(owner: Shop, *, namespace: str = "town") -> Component:
    settings = {"metadata": {"name": f"{owner.metadata.name}-settings"}, "data": {"motto": owner.spec.motto}}
    builder = component.Builder("web", owner=owner.key, condition_type="WebReady").with_namespace(namespace)
    return builder.with_resource(configmap.Builder(settings)).build()


def shops(**more: Any) -> Operator[Shop]:
    return Operator(name="shops", owner=OwnerType.of(Shop), components=components_of, **more)


@pytest_asyncio.fixture
async def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddedCluster]:
    """Serve a cluster, and have it found as the current one of the kubeconfig.

    kopf ends every task of the loop that began after it did, those of the server's connections among them. So tests
    ask the cluster itself.
    """
    cluster = EmbeddedCluster(namespaces=["town"])
    await cluster.create(Shop.definition(), field_manager="test")
    async with serving(cluster) as running:
        kubeconfig = tmp_path / "kubeconfig"
        write_kubeconfig(running.kubeconfig(), kubeconfig)
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
        yield cluster


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@asynccontextmanager
async def kopf_running(
    operator: Operator[Any],
    *,
    options: ManagerOptions | None = None,
    others: Callable[[Any], object] = lambda _: None,
    namespace: str = "town",
    **more: Any,
) -> AsyncIterator[asyncio.Future[None]]:
    """Run kopf with an operator, and with other handlers that are registered before."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    others(registry)
    attach(operator, options=options or ManagerOptions(listen=None), registry=registry)
    ready, stop = asyncio.Event(), asyncio.Event()
    running = kopf.operator(registry=registry, namespaces=[namespace], ready_flag=ready, stop_flag=stop, **more)
    task = asyncio.ensure_future(running)
    try:
        await asyncio.wait_for(ready.wait(), 600)
        yield task
    finally:
        stop.set()
        await asyncio.wait([task], timeout=600)


async def motto(cluster: EmbeddedCluster) -> str | None:
    found = await cluster.list(
        "v1", "ConfigMap", ListOptions(namespace="town", field_selector="metadata.name=corner-settings")
    )
    return found.items[0]["data"]["motto"] if found.items else None


async def until_it_shows(cluster: EmbeddedCluster, text: str) -> None:
    async def shows() -> bool:
        return await motto(cluster) == text

    await eventually(shows)


def shop(**spec: Any) -> Manifest:
    metadata = {"name": "corner", "namespace": "town"}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


@pytest.mark.promise("no-kopf")
async def test_owners_and_their_objects_are_looked_after_and_nothing_of_kopf_is_on_them(
    cluster: EmbeddedCluster,
) -> None:
    async with kopf_running(shops()):
        await cluster.create(shop(), field_manager="test")
        await until_it_shows(cluster, "open")
        for object_key, patch, text in [
            (SHOP, {"spec": {"motto": "closed"}}, "closed"),
            (SETTINGS, {"data": {"motto": "changed by hand"}}, "closed"),
            (SHOP, {"spec": {"motto": "open"}}, "open"),
        ]:
            await cluster.patch(object_key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))
            await until_it_shows(cluster, text)
    for key in (SHOP, SETTINGS):
        metadata = (await cluster.get(key))["metadata"]
        assert not {"annotations", "finalizers"} & metadata.keys()
        assert not [entry for entry in metadata["managedFields"] if "kopf" in entry["manager"].lower()]
    assert list((await cluster.get(SHOP))["status"]) == ["conditions"]
    events = await cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace="town"))
    assert {event["reportingController"] for event in events.items} == {"example.com/shops"}
    # No process holds it.
    await cluster.delete(SHOP)
    assert not (await cluster.list("example.com/v1", "Shop", ListOptions(namespace="town"))).items


@pytest.mark.promise("owner-identity", runs="a cluster-scoped owner inside kopf, beside one of another group")
async def test_cluster_scoped_owners_are_looked_after(cluster: EmbeddedCluster) -> None:
    """Of this group only, though kopf is limited to a namespace; an owner that is created again is another one."""
    deleted: list[ObjectKey] = []
    groups = ("realms.example.com", "other.example.com")
    definitions = [crd(group, CRDVersion("v1", Shop), scope=Scope.CLUSTER) for group in groups]
    for definition in definitions:
        await cluster.create(definition, field_manager="test")
    mine, other = (ObjectKey(f"{group}/v1", "Shop", "corner") for group in groups)

    async def create(key: ObjectKey, text: str) -> str:
        manifest = {"apiVersion": key.api_version, "kind": key.kind, "metadata": {"name": key.name}}
        created = await cluster.create({**manifest, "spec": {"motto": text}}, field_manager="test")
        return str(created["metadata"]["uid"])

    operator = Operator(
        name="realms",
        owner=OwnerType.of(Shop, definitions[0]),
        components=components_of,
        resync=None,
        on_deleted=deleted.append,
    )
    async with kopf_running(operator, options=ManagerOptions(listen=None, namespaces=["town"])):
        await create(other, "of another group")
        former = await create(mine, "open")
        await until_it_shows(cluster, "open")
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="test")
        await cluster.patch(SETTINGS, {"data": {"motto": "changed by hand"}}, options)
        await until_it_shows(cluster, "open")
        await cluster.delete(mine)
        uid = await create(mine, "anew")
        await until_it_shows(cluster, "anew")
        await eventually(lambda: _value(deleted))
        references = (await cluster.get(SETTINGS))["metadata"]["ownerReferences"]
        assert [(one["apiVersion"], one["uid"]) for one in references] == [(mine.api_version, uid)]
    assert deleted == [mine]
    assert "status" not in await cluster.get(other)
    events = (await cluster.list("events.k8s.io/v1", "Event")).items
    about = {(event["metadata"]["namespace"], event["regarding"]["uid"]) for event in events}
    assert about == {("default", former), ("default", uid)}


async def _value(found: list[ObjectKey]) -> list[ObjectKey]:
    return found


def settings_of_kopf(settings: Any) -> dict[str, Any]:
    return {
        part: {name: value for name, value in vars(getattr(settings, part)).items() if not name.startswith("_")}
        for part in ("peering", "posting", "scanning", "watching", "execution", "networking", "admission")
    }


@dataclass
class Others:
    """Another handler of the same process, of ConfigMaps, which posts an event for each that is created."""

    handled: list[str] = field(default_factory=list)
    settings: list[dict[str, Any]] = field(default_factory=list)
    kopf: Any = None

    def register(self, registry: Any) -> None:
        def begin(settings: Any, **_: Any) -> None:
            settings.peering.priority = 7
            self.kopf = settings
            self.settings.append(settings_of_kopf(settings))

        def handle(body: Any, name: str, **_: Any) -> None:
            self.handled.append(name)
            self.settings.append(settings_of_kopf(self.kopf))
            kopf.info(body, reason="Handled", message="by another handler")

        kopf.on.startup(registry=registry)(begin)
        kopf.on.event("v1", "configmaps", registry=registry)(handle)


async def test_other_handlers_of_the_process_work_as_without_the_operator(cluster: EmbeddedCluster) -> None:
    """They post events, and find all settings as they were before the operator began."""
    others = Others()

    async def posted() -> bool:
        events = await cluster.list("v1", "Event", ListOptions(namespace="town"))
        return any(event["reason"] == "Handled" for event in events.items)

    async with kopf_running(shops(), others=others.register):
        await cluster.create(shop(), field_manager="test")
        await until_it_shows(cluster, "open")
        await eventually(posted)

    assert "corner-settings" in others.handled
    assert others.settings[1:] == [others.settings[0]] * (len(others.settings) - 1)
    events = await cluster.list("v1", "Event", ListOptions(namespace="town"))
    kinds = {event["involvedObject"]["kind"] for event in events.items if event["source"].get("component") == "kopf"}
    assert kinds == {"ConfigMap"}, "kopf posts nothing about our handlers"


async def test_kopf_asks_for_the_rights_that_are_named_and_no_others(cluster: EmbeddedCluster) -> None:
    """Peering is on, because the definition and the object are there."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kopfpeerings.kopf.dev"},
        "spec": {
            "group": "kopf.dev",
            "scope": "Namespaced",
            "names": {"plural": "kopfpeerings", "kind": "KopfPeering"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    await cluster.create(definition, field_manager="test")
    peering = {"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": "peers", "namespace": "town"}}
    await cluster.create(peering, field_manager="test")
    kinds = {
        "CustomResourceDefinition": ("apiextensions.k8s.io", "customresourcedefinitions"),
        "Namespace": ("", "namespaces"),
        "Event": ("", "events"),
        "KopfPeering": ("kopf.dev", "kopfpeerings"),
    }

    def requested() -> set[tuple[str, str, str]]:
        return {
            (*kinds[request.kind], request.verb.value)
            for request in cluster.requests
            if request.kind in kinds and request.api_version != "events.k8s.io/v1"
        }

    granted = kopf_rules(clusterwide=False, peering="peers")
    needed = {(rule.group, rule.resource, rule.verb) for rule in granted}
    cluster.requests.clear()
    async with kopf_running(shops(), others=Others().register, peering_name="peers"):
        await cluster.create(shop(), field_manager="test")

        async def all_requested() -> bool:
            # kopf's documentation names the right to get its peering object; present versions list it.
            return needed - {("kopf.dev", "kopfpeerings", "get")} <= requested()

        await eventually(all_requested)
    assert requested() <= needed


@pytest.mark.promise("on-delete", runs="inside kopf")
async def test_owners_are_cleaned_up_inside_kopf(cluster: EmbeddedCluster) -> None:
    """With the finalizer of `ocf`, not with one of kopf."""
    databases: set[str] = set()

    async def make(owner: Shop) -> Component:
        databases.add(owner.metadata.name)
        return components_of(owner)

    async def drop(owner: Shop, *_: object) -> None:
        databases.remove(owner.metadata.name)

    async def is_gone() -> bool:
        return not (await cluster.list("example.com/v1", "Shop", ListOptions(namespace="town"))).items

    operator = Operator(name="shops", owner=OwnerType.of(Shop), components=make, on_delete=drop)
    async with kopf_running(operator):
        await cluster.create(shop(), field_manager="test")
        await until_it_shows(cluster, "open")
        assert (await cluster.get(SHOP))["metadata"]["finalizers"] == [external_finalizer("shops")]
        await cluster.delete(SHOP)
        await eventually(is_gone)
    assert databases == set()


async def test_what_is_under_way_is_finished_when_kopf_is_stopped(cluster: EmbeddedCluster) -> None:
    begun, going_on = asyncio.Event(), asyncio.Event()

    async def slowly(owner: Shop) -> Component:
        begun.set()
        await going_on.wait()
        return components_of(owner)

    operator = Operator(name="shops", owner=OwnerType.of(Shop), components=slowly)
    async with kopf_running(operator):
        await cluster.create(shop(), field_manager="test")
        await begun.wait()
        asyncio.get_running_loop().call_later(0.2, going_on.set)
    assert await motto(cluster) == "open"


@pytest.mark.parametrize(("problem", "status"), [("", 200), ("the reconcile of a shop does not end", 500)])
@pytest.mark.usefixtures("cluster")
async def test_the_probe_of_kopf_is_red_when_ours_is(
    problem: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Health, "reconciles", lambda _: problem)
    port = free_port()
    async with kopf_running(shops(), liveness_endpoint=f"http://127.0.0.1:{port}/healthz"), ClientSession() as session:

        async def answers() -> bool:
            try:
                async with session.get(f"http://127.0.0.1:{port}/healthz") as answer:
                    return answer.status == status
            except ClientError:
                return False

        await eventually(answers)


async def test_webhooks_are_served_while_kopf_runs(cluster: EmbeddedCluster) -> None:
    def default(owner: Shop) -> Shop:
        motto = "defaulted" if owner.spec.motto == "open" else owner.spec.motto
        return owner.model_copy(update={"spec": ShopSpec(motto=motto)})

    host = "127.0.0.1"
    admission = WebhookOptions(address=Url(f"https://{host}"), namespace="default", host=host, port=0, register=True)
    operator = shops(webhooks=[Webhook.of(Shop, defaulters=[default])])

    async def configured() -> bool:
        return bool((await cluster.list("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")).items)

    async with kopf_running(operator, options=ManagerOptions(listen=None, admission=admission)):
        await eventually(configured)
        created = await cluster.create(shop(), field_manager="test")
        assert created["spec"]["motto"] == "defaulted"
    assert not await configured()


async def test_spans_are_recorded_inside_kopf(cluster: EmbeddedCluster) -> None:
    host = "127.0.0.1"
    admission = WebhookOptions(address=Url(f"https://{host}"), namespace="default", host=host, port=0, register=True)
    operator = shops(webhooks=[Webhook.of(Shop, validators=[lambda _new, _old, _operation: ()])])

    async def configured() -> bool:
        return bool((await cluster.list("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")).items)

    with recording() as traces:
        options = ManagerOptions(listen=None, admission=admission, tracer=traces.tracer)
        async with kopf_running(operator, options=options):
            await eventually(configured)
            await cluster.create(shop(), field_manager="test")
            await until_it_shows(cluster, "open")
        assert traces.named("POST /validate/example.com/shops")
        reconcile = traces.named("reconcile Shop")[0]
        assert reconcile.parent is None
        assert attributes(reconcile)["ocf.controller"] == "shops"
        applied = traces.named("PATCH /api/v1/namespaces/{namespace}/configmaps/{name}")[0]
        assert trace_id(applied) in {*map(trace_id, traces.named("reconcile Shop"))}


MODULE = """
import asyncio

from ocf.runtime.kopf import attach
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType


def components(shop):
    (worker,) = [task for task in asyncio.all_tasks() if task.get_name() == "worker 3 of shops"]
    worker.cancel()
    return ()


attach(
    Operator(name="shops", owner=OwnerType("example.com/v1", "Shop"), components=components),
    options=ManagerOptions(listen=None),
)
"""


async def test_kopf_ends_when_the_operators_do(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """With an error, so that the process is started anew; here as a program, `kopf run`."""
    (tmp_path / "shops.py").write_text(MODULE)
    await cluster.create(shop(), field_manager="test")
    arguments = [sys.executable, "-m", "kopf", "run", "--namespace", "town", str(tmp_path / "shops.py")]
    process = await asyncio.create_subprocess_exec(*arguments, stdout=PIPE, stderr=STDOUT)
    output, _ = await asyncio.wait_for(process.communicate(), 600)
    assert b"a worker of shops ended unexpectedly" in output
    assert process.returncode


def test_nothing_but_the_adapter_imports_kopf() -> None:
    """No other module imports the adapter: kopf is needed only where the adapter is used."""
    root = Path(ocf.__file__).parent
    naming = re.compile(r"^\s*(import|from) (ocf\.runtime\.)?kopf\b", re.MULTILINE)
    importers = {str(path.relative_to(root)) for path in root.rglob("*.py") if naming.search(path.read_text())}
    assert importers == {"runtime/kopf/__init__.py", "runtime/kopf/adapter.py"}
