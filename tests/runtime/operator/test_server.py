"""On a real API server, with the privileges that the declaration asks for and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import PatchOptions, PatchType, ServiceAccount, Subresource
from ocf.component import Component, ReconcileContext, Writes
from ocf.component.owner_deletion import cleanup_finalizer
from ocf.errors import ConfigError, ForbiddenError, InvalidError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment, unstructured
from ocf.runtime.admission import FieldError, Operation, Url, Webhook, invalid
from ocf.runtime.crds import CRDVersion, crd
from ocf.runtime.operator import Lease, ManagerOptions, Operator, OwnerType, Watch, WebhookOptions, running
from ocf.runtime.rbac import PolicyRule, roles
from ocf.runtime.rbac.rules import declared_rules
from tests.support import eventually, until_granted

from .conftest import Env, RunTest, Shop, key_of, shop

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest


def manifest(api_version: str, kind: str, name: str, namespace: str = "", **content: Any) -> Manifest:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def web(owner: Shop) -> Component:
    """Return a component with a Deployment, a ConfigMap, and a PriorityClass, which the shop cannot own."""
    namespace = owner.metadata.namespace
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    workload = manifest(
        "apps/v1", "Deployment", "web", namespace, spec={"selector": {"matchLabels": labels}, "template": template}
    )
    settings = manifest("v1", "ConfigMap", "settings", namespace, data={"motto": owner.spec.motto})
    priority = manifest("scheduling.k8s.io/v1", "PriorityClass", f"{namespace}-web", value=1000)
    return (
        component.Builder("web", condition_type="WebReady")
        .with_resource(configmap.Builder(settings).build())
        .with_resource(unstructured.StaticBuilder(priority, cluster_scoped=True).build())
        .with_resource(deployment.Builder(workload).build())
        .build()
    )


async def components(owner: Shop, context: ReconcileContext) -> Component:
    if owner.spec.guide:
        await context.cluster.get(ObjectKey("v1", "Secret", owner.spec.guide, owner.metadata.namespace))
    return web(owner)


# Tests share the server, and only these tests use this kind.
DEFINITION = crd("privileges.example.com", CRDVersion("v1", Shop))


def judge(new: Shop, _old: Shop | None, _operation: Operation) -> Iterator[FieldError]:
    if new.spec.motto == "loud":
        yield invalid("spec.motto", new.spec.motto, "is no motto")


OPERATOR = Operator(
    name="shops",
    owner=OwnerType.of(Shop, DEFINITION),
    components=components,
    reads=[("v1", "Secret")],
    webhooks=[Webhook.of(Shop, DEFINITION, validators=[judge])],
)
EVERY_STATE = [web(Shop.model_validate({"metadata": {"name": "any", "namespace": "any"}}))]


async def is_gone(cluster: Cluster, key: ObjectKey) -> bool:
    try:
        await cluster.get(key)
    except NotFoundError:
        return True
    return False


@pytest.mark.promise("rights", runs="an operator at work on a real API server")
async def test_its_privileges_are_enough(
    envtest: Envtest,
    envtest_plane: ControlPlane,
    envtest_cluster: ApiServerCluster,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """To make, to repair, to follow a Secret, to lead, to post events, to admit, and to clean up."""
    namespace, admin = envtest.namespace, envtest_cluster
    await admin.apply(DEFINITION, field_manager="admin")
    local = Url("https://127.0.0.1")
    admission = WebhookOptions(
        address=local, namespace=namespace, name=namespace, host="127.0.0.1", port=0, register=True
    )
    options = ManagerOptions(listen=None, lease=Lease("shops", namespace), admission=admission)
    granted = OPERATOR.policy_rules(EVERY_STATE) | options.policy_rules(OPERATOR)
    for one in roles(granted, name=f"shops-{namespace}", account=ServiceAccount("shops", namespace)):
        await admin.create(one, field_manager="admin")
    user = f"system:serviceaccount:{namespace}:shops"
    await until_granted(admin, user, granted, namespace=namespace)
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, user)
    corner = shop(guide="guide")
    corner["apiVersion"], corner["metadata"]["namespace"] = "privileges.example.com/v1", namespace
    owner = ObjectKey.of(corner)
    settings, workload = ObjectKey("v1", "ConfigMap", "settings", namespace), ObjectKey.of(corner)
    workload = ObjectKey("apps/v1", "Deployment", "web", namespace)
    priority = ObjectKey("scheduling.k8s.io/v1", "PriorityClass", f"{namespace}-web")

    async def shows(motto: str) -> bool:
        return not await is_gone(admin, settings) and (await admin.get(settings))["data"] == {"motto": motto}

    async def is_there() -> bool:
        return not await is_gone(admin, workload)

    async def refuses() -> bool:
        try:
            await admin.patch(
                owner,
                {"spec": {"motto": "loud"}},
                PatchOptions(patch_type=PatchType.MERGE, field_manager="admin", dry_run=True),
            )
        except InvalidError as error:
            return "is no motto" in str(error)
        return False

    async with (
        await envtest_plane.cluster(kubeconfig) as cluster,
        running(cluster, OPERATOR, options=options) as process,
    ):
        await eventually(lambda: _defined(admin, corner))
        await asyncio.sleep(0)
        assert await is_gone(admin, settings)  # its Secret is missing
        guide = manifest("v1", "Secret", "guide", namespace, stringData={"text": "1"})
        await admin.create(guide, field_manager="admin")
        await eventually(is_there)
        assert (await admin.get(owner))["metadata"]["finalizers"] == [cleanup_finalizer("shops")]
        await admin.patch(
            settings, {"data": {"motto": "no"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="admin")
        )
        await eventually(lambda: shows("open"))
        await admin.patch(
            owner, {"spec": {"motto": "closed"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="admin")
        )
        await eventually(lambda: shows("closed"))
        await admin.delete(priority)

        async def is_back() -> bool:
            return not await is_gone(admin, priority)

        await eventually(is_back)
        live = (await admin.get(owner))["status"]["conditions"][0]
        assert (live["type"], live["reason"]) == ("WebReady", "Creating")
        assert process.health.watches() == process.health.owners() == ""
        await eventually(refuses)
        assert process.health.ready["webhooks"]() == ""
        await admin.delete(owner)

        async def cleaned() -> bool:
            return await is_gone(admin, owner) and await is_gone(admin, priority)

        await eventually(cleaned)
    left = await admin.list("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    assert namespace not in {one["metadata"]["name"] for one in left.items}
    assert "forbidden" not in caplog.text.lower()


def far(owner: Shop) -> Component:
    """Return a component with a label on the namespace of the shop, and a copy in another namespace."""
    namespace = owner.metadata.namespace
    space = {**manifest("v1", "Namespace", namespace), "metadata": {"name": namespace, "labels": {"shops": "open"}}}
    copy = manifest("v1", "ConfigMap", f"copy-of-{namespace}", "default", data={"motto": owner.spec.motto})
    builder = component.Builder("far", condition_type="FarReady").with_prune(kinds=[("v1", "ConfigMap")])
    builder.with_resource(unstructured.StaticBuilder(space, cluster_scoped=True).build(), writes=Writes.UPDATE_ONLY)
    if owner.spec.motto != "none":
        builder.with_resource(configmap.Builder(copy).build(), unowned=True, delete_with_owner=True)
    return builder.build()


@pytest.mark.promise("rights", runs="selected owners, fields of other writers and copies on a real API server")
@pytest.mark.parametrize("limited", [False, True], ids=["all", "two"])
async def test_rights_for_far_objects(
    envtest: Envtest,
    envtest_plane: ControlPlane,
    envtest_cluster: ApiServerCluster,
    caplog: pytest.LogCaptureFixture,
    *,
    limited: bool,
) -> None:
    namespace, admin, cleaned = envtest.namespace, envtest_cluster, list[str]()
    await admin.apply(DEFINITION, field_manager="admin")

    async def on_delete(owner: Shop, *_: object) -> None:
        cleaned.append(owner.metadata.name)

    operator = Operator(
        name="far-shops",
        owner=OwnerType.of(Shop, DEFINITION),
        components=far,
        on_delete=on_delete,
        select=f"in={namespace}",
        finalizer="finalizer.privileges.example.com",
        former_finalizers=["old.example.com/*"],
    )
    options = ManagerOptions(listen=None, namespaces=[namespace, "default"] if limited else ())
    granted = operator.policy_rules([far(Shop.model_validate({"metadata": {"name": "any", "namespace": "any"}}))])
    for one in roles(granted, name=f"far-{namespace}", account=ServiceAccount("far", namespace)):
        await admin.create(one, field_manager="admin")
    user = f"system:serviceaccount:{namespace}:far"
    await until_granted(admin, user, granted, namespace=namespace)
    kubeconfig = await asyncio.to_thread(envtest_plane.kubeconfig_for, user)
    corner = shop(motto="open")
    corner["apiVersion"] = "privileges.example.com/v1"
    corner["metadata"] |= {
        "namespace": namespace, "labels": {"in": namespace}, "finalizers": ["old.example.com/hold"]
    }  # fmt: skip
    owner, copy = ObjectKey.of(corner), ObjectKey("v1", "ConfigMap", f"copy-of-{namespace}", "default")
    space = ObjectKey("v1", "Namespace", namespace)

    async def labelled() -> bool:
        return bool((await admin.get(space))["metadata"]["labels"].get("shops") == "open")

    async def gone(key: ObjectKey) -> bool:
        return await is_gone(admin, key)

    async def edit(motto: str) -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="admin")
        await admin.patch(owner, {"spec": {"motto": motto}}, options)

    async with (
        await envtest_plane.cluster(kubeconfig) as cluster,
        running(cluster, operator, options=options),
    ):
        await eventually(lambda: _defined(admin, corner))
        await eventually(labelled)
        await eventually(lambda: gone(copy), lambda absent: not absent)
        held = (await admin.get(owner))["metadata"]["finalizers"]
        assert sorted(held) == ["far-shops.ocf.dev/cleanup", "finalizer.privileges.example.com"]
        await edit("none")
        await eventually(lambda: gone(copy))
        await edit("open")
        await eventually(lambda: gone(copy), lambda absent: not absent)
        await admin.delete(owner)
        await eventually(lambda: gone(owner))
        assert [await gone(copy), await labelled(), cleaned] == [True, False, ["corner"]]
        assert set((await admin.get(space))["metadata"]["labels"]) == {"kubernetes.io/metadata.name"}
    assert "forbidden" not in caplog.text.lower()


@pytest.mark.promise("old-state", runs="an owner reference taken off and a label moved on a real API server")
async def test_the_old_state_of_an_object_counts(envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    admin, namespace = envtest_cluster, envtest.namespace
    definition = crd("states.example.com", CRDVersion("v1", Shop))  # the other test sees all objects of its kind
    await admin.apply(definition, field_manager="admin")
    woken: list[str] = []

    def noting(owner: Shop) -> Component:
        woken.append(owner.metadata.name)
        settings = manifest("v1", "ConfigMap", f"{owner.metadata.name}-settings", namespace, data={"a": "b"})
        return (
            component.Builder("web", condition_type="WebReady")
            .with_resource(configmap.Builder(settings).build())
            .build()
        )

    def shops_of(secret: Manifest) -> list[tuple[str, str]]:
        return [(namespace, secret["metadata"].get("labels", {}).get("shop", ""))]

    async def edit(key: ObjectKey, metadata: Manifest) -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="admin")
        await admin.patch(key, {"metadata": metadata}, options)

    async def is_owned() -> bool:
        return not await is_gone(admin, settings) and bool(
            (await admin.get(settings))["metadata"].get("ownerReferences")
        )

    settings, label = (
        ObjectKey("v1", kind, name, namespace) for kind, name in (("ConfigMap", "corner-settings"), ("Secret", "guide"))
    )
    owners = OwnerType.of(Shop, definition)
    watches = [Watch("v1", "Secret", shops_of)]
    operator = Operator(name="shops", owner=owners, components=noting, resync=None, watches=watches)
    options = ManagerOptions(listen=None, namespaces=[namespace], events=False)
    async with running(admin, operator, options=options):
        for name in ("corner", "other"):
            owner = shop(name)
            owner["apiVersion"], owner["metadata"]["namespace"] = "states.example.com/v1", namespace
            await eventually(partial(_defined, admin, owner))
        await eventually(is_owned)
        await edit(settings, {"ownerReferences": None})
        await eventually(is_owned)
        guide = manifest("v1", "Secret", "guide", namespace)
        guide["metadata"]["labels"] = {"shop": "corner"}
        woken.clear()
        await admin.create(guide, field_manager="admin")

        async def sees(*names: str) -> bool:
            return set(names) <= set(woken)

        await eventually(lambda: sees("corner"))
        woken.clear()
        await edit(label, {"labels": {"shop": "other"}})
        await eventually(lambda: sees("corner", "other"))


async def _defined(admin: Cluster, corner: Manifest) -> bool:
    """Create the shop once the server serves its kind."""
    try:
        await admin.create(corner, field_manager="admin")
    except NotFoundError:
        return False
    return True


def test_what_the_owner_cannot_own_is_cleaned_up_and_repaired(run_test: RunTest) -> None:
    """By a finalizer that only such an owner has; the object wakes the owner although it does not refer to it."""

    async def test(env: Env) -> None:
        priority = ObjectKey("scheduling.k8s.io/v1", "PriorityClass", "town-web")
        async with env.operating(components=web):
            await env.create(shop())
            await asyncio.sleep(1)
            assert (await env.cluster.get(key_of()))["metadata"]["finalizers"] == [cleanup_finalizer("shops")]
            await env.cluster.delete(priority)
            await asyncio.sleep(1)
            assert (await env.cluster.get(priority))["value"] == 1000
            await env.cluster.delete(key_of())
            await asyncio.sleep(1)
            assert await is_gone(env.cluster, priority)
            assert await is_gone(env.cluster, key_of())

    run_test(test)


def test_privileges_are_those_of_the_declaration() -> None:
    """Watches of what it reads, no list of what it does not cache, and the events it posts."""
    cached = OPERATOR.policy_rules(EVERY_STATE)
    direct = replace(OPERATOR, uncached=[("v1", "Secret")]).policy_rules(EVERY_STATE)
    secrets = {PolicyRule("", "secrets", verb) for verb in ("get", "list", "watch")}
    assert secrets <= cached
    assert cached - direct == {PolicyRule("", "secrets", verb) for verb in ("list", "watch")}
    assert PolicyRule("privileges.example.com", "shops", "watch") in cached
    assert PolicyRule("privileges.example.com", "shops", "update") not in cached
    assert PolicyRule("events.k8s.io", "events", "create") in cached
    patch = PolicyRule("privileges.example.com", "shops", "patch")
    assert replace(OPERATOR, patches_owner=True).policy_rules([]) - OPERATOR.policy_rules([]) == {patch}
    added = replace(OPERATOR, deletes=[("batch/v1", "Job")]).policy_rules([]) - OPERATOR.policy_rules([])
    assert added == {PolicyRule("batch", "jobs", verb) for verb in ("get", "list", "watch", "delete")}


async def test_own_writes(envtest: Envtest, envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster) -> None:
    """Creates, changes, the count of a workload, and an eviction; no delete, which `deletes=` would add."""
    namespace, admin = envtest.namespace, envtest_cluster
    writes = [("v1", "ConfigMap"), ("apps/v1", "Deployment/scale"), ("v1", "Pod/eviction")]
    granted = declared_rules(writes=writes)
    name = f"writer-{namespace}"
    for one in roles(granted, name=name, account=ServiceAccount("writer", namespace)):
        await admin.create(one, field_manager="admin")
    user = f"system:serviceaccount:{namespace}:writer"
    await until_granted(admin, user, granted, namespace=namespace)
    pod = {"spec": {"containers": [{"name": "web", "image": "web:1"}]}, "metadata": {"labels": {"app": "web"}}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": pod}
    deployed = manifest("apps/v1", "Deployment", "web", namespace, spec=spec)
    await admin.create(deployed, field_manager="admin")
    await admin.create(manifest("v1", "Pod", "web", namespace, spec=pod["spec"]), field_manager="admin")
    settings = manifest("v1", "ConfigMap", "own", namespace, data={"a": "1"})
    async with await envtest_plane.cluster(await asyncio.to_thread(envtest_plane.kubeconfig_for, user)) as cluster:
        made = await cluster.create(settings, field_manager="own")
        await cluster.update({**made, "data": {"a": "2"}}, field_manager="own")
        await cluster.apply({**settings, "data": {"b": "3"}}, field_manager="other")
        await cluster.get(ObjectKey.of(deployed), subresource=Subresource.SCALE)
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="own", subresource=Subresource.SCALE)
        await cluster.patch(ObjectKey.of(deployed), {"spec": {"replicas": 3}}, options)
        await cluster.create(
            manifest("v1", "Pod", "web", namespace), field_manager="own", subresource=Subresource.EVICTION
        )
        for forbidden in (
            cluster.delete(ObjectKey.of(settings)),
            cluster.get(ObjectKey.of(deployed)),
            cluster.delete(ObjectKey("v1", "Pod", "web", namespace)),
        ):
            with pytest.raises(ForbiddenError):
                await forbidden
    assert (await admin.get(ObjectKey.of(deployed)))["spec"]["replicas"] == 3


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        pytest.param(
            {"writes": [("batch/v1", "Job")]},
            {("batch", "jobs", verb) for verb in ("get", "list", "watch", "create", "update", "patch")},
            id="written objects are read, too",
        ),
        pytest.param(
            {"writes": [("apps/v1", "Deployment/status")]},
            {("apps", "deployments/status", verb) for verb in ("get", "update", "patch")},
            id="a subresource",
        ),
        pytest.param({"writes": [("v1", "Pod/eviction")]}, {("", "pods/eviction", "create")}, id="created only"),
        pytest.param(
            {"reads": [("apps/v1", "Deployment/scale")]},
            {("apps", "deployments/scale", "get")},
            id="its read",
        ),
        pytest.param(
            {"owns": [("malls.example.com/v1", "Policy")]},
            {("malls.example.com", "policies", verb) for verb in ("list", "watch")},
            id="a watched kind without a definition",
        ),
        pytest.param(
            {"writes": [("batch/v1", "Job")], "uncached": [("batch/v1", "Job")]},
            {("batch", "jobs", verb) for verb in ("get", "create", "update", "patch")},
            id="without a cache",
        ),
        pytest.param(
            {"reads": [("malls.example.com/*", "*")]},
            {("malls.example.com", "*", verb) for verb in ("get", "list", "watch")},
            id="all kinds of a group",
        ),
        pytest.param(
            {"reads": [("malls.example.com/*", "*")], "uncached": [("malls.example.com/*", "*")]},
            {("malls.example.com", "*", "get")},
            id="those without a cache",
        ),
        pytest.param({"reads": [("*", "*")], "uncached": [("*", "*")]}, {("*", "*", "get")}, id="all without a cache"),
        pytest.param(
            {"reads": [("*", "*")], "uncached": [("malls.example.com/*", "*")]},
            {("*", "*", verb) for verb in ("get", "list", "watch")},
            id="all, of which some are cached",
        ),
        pytest.param(
            {"writes": [("*", "*/scale")]},
            {("*", "*/scale", verb) for verb in ("get", "update", "patch")},
            id="a subresource of all kinds",
        ),
        pytest.param(
            {"owns": [("batch/v1", "Job")], "uncached": [("*", "*")]},
            {("batch", "jobs", verb) for verb in ("list", "watch")},
            id="declared kinds are cached in any case",
        ),
    ],
)
def test_privileges_of_own_requests(kinds: dict[str, Any], expected: set[tuple[str, str, str]]) -> None:
    added = replace(OPERATOR, reads=[]).policy_rules([])
    found = replace(OPERATOR, **{"reads": [], **kinds}).policy_rules([]) - added
    assert {(one.group, one.resource, one.verb) for one in found} == expected


@pytest.mark.parametrize("uncached", [("v1", "ConfigMap"), ("v1", "*"), ("*", "*")])
def test_what_is_not_cached_is_listed_where_it_is_pruned(uncached: tuple[str, str]) -> None:
    owner = ObjectKey("privileges.example.com/v1", "Shop", "any", "any")
    web = component.Builder("web", owner=owner).with_resource(configmap.Builder({"metadata": {"name": "settings"}}))
    operator = replace(OPERATOR, reads=[], owns=[], watches=[], uncached=[uncached])
    for built, verbs in ((web.build(), set()), (web.with_prune().build(), {"list"})):
        found = {one.verb for one in operator.policy_rules([built]) if one.resource == "configmaps"}
        assert found & {"list", "watch"} == verbs


def test_a_wildcard_is_no_kind_of_which_the_plural_is_guessed() -> None:
    wildcards = [("malls.example.com/*", "*")]
    operator = replace(OPERATOR, reads=wildcards, writes=[("*", "*/scale")], uncached=wildcards)
    assert operator.undefined_kinds() == OPERATOR.undefined_kinds()


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (("batch/v1", "Jobb"), "batch/v1 Jobb is not built in"),
        (("v1", "Pod/evict"), 'v1 Pod has no subresource "evict"; it has: '),
    ],
)
def test_a_misspelt_kind_is_not_guessed(kind: tuple[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        replace(OPERATOR, writes=[kind]).policy_rules([])


def test_a_kind_of_another_operator_of_the_process_needs_no_definition_of_its_own() -> None:
    definition = crd("malls.example.com", CRDVersion("v1", Shop), kind="Policy", plural="policys")
    watching = replace(OPERATOR, owns=[("malls.example.com/v1", "Policy")])
    assert watching.undefined_kinds() == (("malls.example.com/v1", "Policy"),)
    assert watching.undefined_kinds([definition]) == ()
    rules = watching.policy_rules([], definitions=[definition])
    assert {one.resource for one in rules if one.group == "malls.example.com"} == {"policys"}
