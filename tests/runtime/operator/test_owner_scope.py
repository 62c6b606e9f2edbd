"""Owners and the objects that belong to them: by group, kind, namespace, name and uid, on both API servers.

Public reports of operators whose cluster-scoped owners never saw their namespaced objects:
https://github.com/operator-framework/java-operator-sdk/issues/2310, https://github.com/kube-rs/kube/issues/293,
https://github.com/kubernetes-sigs/controller-runtime/issues/228 and, with two keys for one owner,
https://github.com/kubermatic/kubermatic/pull/3467.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict

from ocf import component
from ocf.cluster import DeleteOptions, ListOptions, PatchOptions, PatchType, Propagation, ServiceAccount, Subresource
from ocf.component import Component, ReconcileContext
from ocf.errors import NotFoundError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment
from ocf.runtime.crds import CRDVersion, Scope, crd
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, Watch, running
from ocf.runtime.operator.manager import Manager
from ocf.runtime.rbac import PolicyRule, roles
from ocf_server import EmbeddedCluster
from tests.support import eventually, until_granted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

T = TypeVar("T")

_LABELS = {"app": "web"}


class RealmSpec(BaseModel):
    motto: str = "open"


class RealmStatus(BaseModel):
    model_config = ConfigDict(extra="allow")


class Realm(BaseModel):
    metadata: dict[str, Any] = {}
    spec: RealmSpec = RealmSpec()
    status: RealmStatus | None = None


class Deployment(Realm):
    """An owner whose kind and plural are those of its object, in another group."""


@dataclass
class World:
    """A cluster with a kind of owners that only this test uses, and an operator of them.

    Args:
        cluster: The cluster.
        namespace: The namespace of the children, and of namespaced owners.
        scope: The scope of the owners.
        model: Their model, named like their kind.
        name: The name of the owner.
    """

    cluster: Cluster
    namespace: str
    scope: Scope = Scope.CLUSTER
    model: type[Realm] = Realm
    name: str = "north"
    passes: list[str] = field(default_factory=list)
    deleted: list[ObjectKey] = field(default_factory=list)
    reads: ObjectKey | None = None
    empty: bool = False
    versions: list[str] = field(default_factory=list)

    @property
    def group(self) -> str:
        return f"{self.namespace}.example.com"

    def definition(self, group: str = "") -> Manifest:
        return crd(group or self.group, CRDVersion("v1", self.model), scope=self.scope)

    @property
    def owner(self) -> ObjectKey:
        home = "" if self.scope is Scope.CLUSTER else self.namespace
        return ObjectKey(f"{self.group}/v1", self.model.__name__, self.name, home)

    def child(self, kind: str) -> ObjectKey:
        return ObjectKey("apps/v1" if kind == "Deployment" else "v1", kind, "north-web", self.namespace)

    async def components(self, owner: Realm, context: ReconcileContext) -> Component:
        self.passes.append(owner.metadata["name"])
        if self.reads is not None:
            with suppress(NotFoundError):
                self.versions.append((await context.cluster.get(self.reads))["metadata"]["resourceVersion"])
        return self.component_of(owner)

    def component_of(self, owner: Realm) -> Component:
        if self.empty:
            return component.Builder("web", condition_type="WebReady").build()
        metadata = {"name": "north-web", "namespace": self.namespace}
        template = {"metadata": {"labels": _LABELS}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"motto": owner.spec.motto}}
        workload: Manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        workload["spec"] = {"selector": {"matchLabels": _LABELS}, "template": template}
        return (
            component.Builder("web", condition_type="WebReady")
            .with_resource(configmap.Builder(settings).build())
            .with_resource(deployment.Builder(workload).build())
            .with_prune()
            .build()
        )

    @asynccontextmanager
    async def operating(self, *, options: dict[str, Any] | None = None, **changed: Any) -> AsyncIterator[Manager]:
        given: dict[str, Any] = {
            "name": "realms",
            "owner": OwnerType.of(self.model, self.definition()),
            "components": self.components,
            "resync": None,
            "on_deleted": self.deleted.append,
        }
        async with running(
            self.cluster, Operator(**{**given, **changed}), options=ManagerOptions(listen=None, **(options or {}))
        ) as process:
            yield process

    async def define(self, group: str = "") -> None:
        definition = self.definition(group)
        await self.cluster.apply(definition, field_manager="admin")
        api_version = f"{group or self.group}/v1"
        await eventually(
            lambda: self.cluster.list(api_version, self.owner.kind),
            lambda _: True,
            ignore=(NotFoundError, TooManyRequestsError),
        )

    async def create(self, **metadata: Any) -> Manifest:
        """Create the owner."""
        home = {"namespace": self.owner.namespace} if self.owner.namespace else {}
        named = {"name": self.owner.name, **home, **metadata}
        manifest = {"apiVersion": self.owner.api_version, "kind": self.owner.kind, "metadata": named, "spec": {}}
        return await self.cluster.create(manifest, field_manager="user")

    async def edit(self, key: ObjectKey, patch: Manifest, *, part: Subresource | None = None) -> Manifest:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user", subresource=part)
        return await self.cluster.patch(key, patch, options)

    async def found(self, key: ObjectKey) -> Manifest:
        """Return an object, empty if it does not exist."""
        try:
            return await self.cluster.get(key)
        except NotFoundError:
            return {}

    async def until(self, key: ObjectKey, **fields: Any) -> Manifest:
        """Wait until an object has these values at the top, and return it."""
        return await eventually(
            lambda: self.found(key),
            lambda live: bool(live) and all(live.get(name) == at for name, at in fields.items()),
        )

    async def until_reason(self, reason: str) -> Manifest:
        def holds(live: Manifest) -> bool:
            return [one["reason"] for one in live.get("status", {}).get("conditions", [])] == [reason]

        return await eventually(lambda: self.found(self.owner), holds)

    async def until_read(self, live: Manifest) -> None:
        """Wait until a reconcile has read a version of the object that it reads."""
        await eventually(lambda: _value(live["metadata"]["resourceVersion"] in self.versions))

    async def report_ready(self) -> None:
        """Report the Deployment as rolled out, as its controller does."""
        live = await self.until(self.child("Deployment"))
        counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), 1)
        status = {**counts, "observedGeneration": live["metadata"]["generation"]}
        await self.edit(self.child("Deployment"), {"status": status}, part=Subresource.STATUS)


@pytest.fixture(params=["embedded", "envtest"])
def world(request: pytest.FixtureRequest) -> World:
    """Return the cluster of the test: the embedded one, or a real API server."""
    if request.param == "embedded":
        return World(EmbeddedCluster(namespaces=["town"]), "town")
    envtest: Envtest = request.getfixturevalue("envtest")
    return World(request.getfixturevalue("envtest_cluster"), envtest.namespace)


@pytest.mark.promise("owner-identity", runs="edits, deletions and readiness of children of owners of both scopes")
@pytest.mark.parametrize("limited", [False, True], ids=["all namespaces", "some namespaces"])
@pytest.mark.parametrize("scope", list(Scope))
async def test_children_reach_their_owner_whatever_its_scope(world: World, scope: Scope, *, limited: bool) -> None:
    world.scope = scope
    await world.define()
    settings, workload = world.child("ConfigMap"), world.child("Deployment")
    async with world.operating(options={"namespaces": [world.namespace]} if limited else None) as process:
        await world.create()
        await world.report_ready()
        await world.until_reason("Healthy")
        await world.edit(settings, {"data": {"motto": "by hand"}})
        await world.until(settings, data={"motto": "open"})
        before = (await world.found(workload))["metadata"]["uid"]
        await world.cluster.delete(workload, DeleteOptions(propagation=Propagation.BACKGROUND))
        await eventually(
            lambda: world.found(workload), lambda live: live.get("metadata", {}).get("uid") not in {None, before}
        )
        await world.until_reason("Creating")
        assert [process.health.owners(), process.health.watches()] == ["", ""]
        assert world.deleted == []
        await world.cluster.delete(world.owner)
        await eventually(lambda: _value(world.deleted))
        assert world.deleted == [world.owner]


@pytest.mark.promise("owner-identity", runs="an owner with the kind, plural and name of its object, in another group")
@pytest.mark.parametrize("scope", list(Scope))
async def test_an_owner_may_have_kind_and_name_of_its_object(world: World, scope: Scope) -> None:
    """As the Services, Deployments and NetworkPolicies that other projects define.

    https://github.com/kubernetes/website/issues/32588, https://github.com/spinnaker/clouddriver/pull/3003 and
    https://github.com/Shopify/krane/pull/879.
    """
    world.scope, world.model, world.name = scope, Deployment, "north-web"
    await world.define()
    workload = world.child("Deployment")
    async with world.operating(options={"namespaces": [world.namespace]}) as process:
        uid = (await world.create())["metadata"]["uid"]
        await world.report_ready()
        await world.until_reason("Healthy")
        made = await world.found(workload)
        (reference,) = made["metadata"]["ownerReferences"]
        assert (reference["apiVersion"], reference["kind"], reference["uid"]) == (
            world.owner.api_version,
            "Deployment",
            uid,
        )
        await world.edit(workload, {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "b:1"}]}}}})
        await eventually(
            lambda: world.found(workload),
            lambda live: live["spec"]["template"]["spec"]["containers"][0]["image"] == "a:1",
        )
        assert [process.health.owners(), process.health.watches(), world.deleted] == ["", "", []]
        await world.cluster.delete(world.owner)
        await eventually(lambda: _value(world.deleted))
        assert world.deleted == [world.owner]


@pytest.mark.promise("owner-identity", runs="an object of a controller of another group with the same kind and name")
@pytest.mark.parametrize("scope", list(Scope))
async def test_a_controller_of_another_group_is_not_the_owner(world: World, scope: Scope) -> None:
    """The owner reads the object, so its changes count: https://github.com/operator-framework/java-operator-sdk/issues/2475."""
    world.scope = scope
    await world.define()
    world.reads = guide = ObjectKey("v1", "Secret", "guide", world.namespace)
    reference = {"apiVersion": "other.example.com/v1", "kind": "Realm", "name": "north", "uid": "1", "controller": True}
    metadata = {"name": "guide", "namespace": world.namespace, "ownerReferences": [reference]}
    await world.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, field_manager="user")
    async with world.operating():
        await world.create()
        await world.report_ready()
        await world.until_reason("Healthy")
        await world.until_read(await world.edit(guide, {"metadata": {"labels": {"a": "b"}}}))


@pytest.mark.promise("owner-identity", runs="an owner that is created again while a child of the former one is there")
@pytest.mark.parametrize("scope", list(Scope))
async def test_an_owner_that_is_created_again_is_another_owner(world: World, scope: Scope) -> None:
    """Without the garbage collector, which deletes the former children some time later.

    As in https://github.com/apecloud/kubeblocks/pull/10894, where a new owner took the children of the former one.
    """
    world.scope = scope
    await world.define()
    world.reads = guide = ObjectKey("v1", "Secret", "guide", world.namespace)
    await world.create()
    former = await world.found(world.owner)
    reference = {**dict(zip(("apiVersion", "kind", "name"), world.owner, strict=False)), "controller": True}
    reference["uid"] = former["metadata"]["uid"]
    world.empty = True
    async with world.operating():
        await world.until_reason("Healthy")
        assert world.deleted == []
        await world.cluster.delete(world.owner)
        await world.create()
        await eventually(lambda: _value(world.deleted))
        assert world.deleted == [world.owner]
        await world.until_reason("Healthy")
        metadata = {"name": "guide", "namespace": world.namespace, "ownerReferences": [reference]}
        # The finalizer keeps it from the garbage collector of the embedded cluster.
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {**metadata, "finalizers": ["example.com/hold"]}}
        await world.cluster.create(secret, field_manager="user")
        await eventually(lambda: _value(world.versions))
        # Read by the new owner, and controlled by the former one.
        await world.until_read(await world.edit(guide, {"metadata": {"labels": {"a": "b"}}}))
        assert world.deleted == [world.owner]


@pytest.mark.promise("owner-identity", runs="an owner that is created again during the clean-up of the former one")
@pytest.mark.parametrize("scope", list(Scope))
async def test_the_clean_up_of_an_owner_is_not_that_of_the_next_one(world: World, scope: Scope) -> None:
    """A user removes the finalizers: https://github.com/operator-framework/java-operator-sdk/issues/149."""
    world.scope = scope
    await world.define()
    began, go_on, cleaned = asyncio.Event(), asyncio.Event(), list[str]()

    async def on_delete(owner: Realm, *_: object) -> None:
        cleaned.append(owner.metadata["uid"])
        began.set()
        await go_on.wait()

    async def about(uid: str) -> set[str]:
        home = ListOptions(namespace=world.owner.namespace or "default")
        events = await world.cluster.list("events.k8s.io/v1", "Event", home)
        return {one["reason"] for one in events.items if one["regarding"].get("uid") == uid}

    async with world.operating(on_delete=on_delete):
        former = (await world.create())["metadata"]["uid"]
        await world.report_ready()
        await world.until_reason("Healthy")
        await world.cluster.delete(world.owner)
        await began.wait()
        await world.edit(world.owner, {"metadata": {"finalizers": None}})
        uid = (await world.create())["metadata"]["uid"]
        go_on.set()
        await world.report_ready()
        live = await world.until_reason("Healthy")
        assert (live["metadata"]["uid"], len(live["metadata"]["finalizers"])) == (uid, 1)
        for kind in ("ConfigMap", "Deployment"):
            made = await world.found(world.child(kind))
            assert [one["uid"] for one in made["metadata"]["ownerReferences"]] == [uid]
        assert cleaned == [former]
        assert world.deleted == [world.owner]
        await world.cluster.delete(world.owner)
        await eventually(lambda: about(uid), lambda reasons: "CleanedUp" in reasons)
        await eventually(lambda: _value(len(world.deleted) > 1))
        assert cleaned == [former, uid]
        assert "CleanedUp" not in await about(former)


@pytest.mark.parametrize("named", ["", "town"], ids=["without a namespace", "with the namespace of the object"])
async def test_a_watch_names_a_cluster_scoped_owner_with_and_without_a_namespace(world: World, named: str) -> None:
    """A name that is no owner's reconciles nothing, and is not reported as deleted."""
    await world.define()

    def owners(secret: Manifest) -> list[tuple[str, str]]:
        return [(named and world.namespace, secret["data"]["realm"]) for _ in secret.get("data", {})]

    watched = Watch("v1", "ConfigMap", owners)
    async with world.operating(watches=[watched], options={"namespaces": [world.namespace]}):
        await world.create()
        await world.report_ready()
        await world.until_reason("Healthy")
        world.passes.clear()
        for name in ("south", "north"):
            metadata = {"name": f"about-{name}", "namespace": world.namespace}
            about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"realm": name}}
            await world.cluster.create(about, field_manager="user")
        await eventually(lambda: _value(world.passes))
        assert set(world.passes) == {"north"}
        assert world.deleted == []


@pytest.mark.promise("rights", runs="cluster-scoped owners, in one watched namespace")
async def test_rights_in_one_namespace(
    envtest: Envtest, envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Owners are watched in all namespaces, children in one, with the lease; events are posted to `default`.

    Restricted caches that could not read cluster-scoped kinds: https://github.com/elastic/cloud-on-k8s/pull/3810.
    """
    world = World(envtest_cluster, envtest.namespace)
    await world.define()
    limited = ManagerOptions(
        listen=None, namespaces=[world.namespace], lease=Lease("realms", world.namespace, identity="one")
    )
    operator = Operator(
        name="realms",
        owner=OwnerType.of(Realm, world.definition()),
        components=world.components,
        owns=[("v1", "ConfigMap")],
    )
    every_state = [world.component_of(Realm())]
    granted = operator.policy_rules(every_state) | limited.policy_rules(operator)
    assert PolicyRule("events.k8s.io", "events", "create", namespace="default") in granted
    account = ServiceAccount("realms", world.namespace)
    for one in roles(granted, name=f"realms-{world.namespace}", account=account, namespaces=limited.namespaces):
        await world.cluster.create(one, field_manager="admin")
    user = f"system:serviceaccount:{world.namespace}:realms"
    await until_granted(world.cluster, user, granted, namespace=world.namespace)
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, user)
    async with (
        await envtest_plane.cluster(kubeconfig) as mine,
        running(mine, operator, options=limited) as process,
    ):
        uid = (await world.create())["metadata"]["uid"]
        await world.report_ready()
        await world.until_reason("Healthy")
        assert {check() for check in process.health.ready.values()} == {""}
        lease = await world.cluster.get(ObjectKey("coordination.k8s.io/v1", "Lease", "realms", world.namespace))
        assert lease["spec"]["holderIdentity"] == "one"

        async def about() -> set[str]:
            events = await world.cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace="default"))
            return {one["reason"] for one in events.items if one["regarding"]["uid"] == uid}

        await eventually(about, lambda reasons: reasons >= {"Created"})
    assert "forbidden" not in caplog.text.lower()


async def _value(value: T) -> T:
    return value
