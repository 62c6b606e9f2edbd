"""All verbs on all sorts of kinds: with and without namespace, status and scale, built-in and custom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import ListOptions, PatchType, Subresource
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from tests.cluster.conformance.conftest import API_VERSIONS, CLUSTER_SCOPED

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from tests.cluster.conformance.conftest import Env

    Owned = Callable[[Manifest], dict[str, set[str]]]

KINDS: Final = [
    "ClusterRole",
    "ConfigMap",
    "Deployment",
    "Gadget",
    "HorizontalPodAutoscaler",
    "Lease",
    "Secret",
    "Service",
    "Widget",
]
PATCHES: Final = [
    pytest.param(PatchType.MERGE, {"metadata": {"labels": {"tier": "one"}}}, id="merge patch"),
    pytest.param(
        PatchType.JSON, [{"op": "add", "path": "/metadata/labels", "value": {"tier": "one"}}], id="JSON patch"
    ),
]


@pytest.mark.parametrize("kind", KINDS)
class TestLife:
    """From creation to deletion."""

    async def test_a_created_object_can_be_read(self, env: Env, kind: str) -> None:
        made = await env.create(kind)

        assert (made["apiVersion"], made["kind"]) == (env.key(kind).api_version, kind)
        assert {"name", "uid", "resourceVersion", "creationTimestamp"} <= made["metadata"].keys()
        assert await env.get(kind) == made

    async def test_a_created_object_is_listed(self, env: Env, kind: str) -> None:
        made = await env.create(kind)
        key = env.key(kind)
        selector = f"metadata.name={key.name}"
        page = await env.cluster.list(
            key.api_version, kind, ListOptions(namespace=key.namespace, field_selector=selector)
        )

        assert page.items == (made,)

    async def test_a_second_create_is_an_error(self, env: Env, kind: str) -> None:
        await env.create(kind)

        with env.error(409, "AlreadyExists"):
            await env.create(kind)

    async def test_update(self, env: Env, kind: str) -> None:
        made = await env.create(kind)
        made["metadata"]["labels"] = {"tier": "one"}
        changed = await env.update(made, by="editor")

        assert changed["metadata"]["labels"] == {"tier": "one"}
        assert await env.get(kind) == changed

    @pytest.mark.parametrize(("patch_type", "patch"), PATCHES)
    async def test_patch(self, env: Env, kind: str, patch_type: PatchType, patch: Any) -> None:
        await env.create(kind)
        changed = await env.patch(kind, patch, patch_type=patch_type)

        assert changed["metadata"]["labels"] == {"tier": "one"}
        assert await env.get(kind) == changed

    async def test_apply_creates_and_changes(self, env: Env, kind: str) -> None:
        made = await env.apply("us", kind)
        changed = await env.apply("them", kind, "metadata: {labels: {tier: one}}")

        assert changed["metadata"]["uid"] == made["metadata"]["uid"]
        assert changed["metadata"]["labels"] == {"tier": "one"}
        assert await env.get(kind) == changed

    async def test_delete(self, env: Env, kind: str) -> None:
        await env.create(kind)
        await env.delete(kind)

        assert not await env.exists(kind)

    async def test_a_missing_object_is_not_found(self, env: Env, kind: str) -> None:
        for asked in (env.get(kind), env.merge(kind, "{}"), env.delete(kind)):
            with pytest.raises(NotFoundError, match=r'"[a-z0-9-]+" not found$'):
                await asked


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        pytest.param("Deployment", {"replicas": 2, "readyReplicas": 1}, id="Deployment"),
        pytest.param("StatefulSet", {"replicas": 2}, id="StatefulSet"),
        pytest.param("HorizontalPodAutoscaler", {"currentReplicas": 2, "desiredReplicas": 3}, id="autoscaler"),
        pytest.param("Widget", {"replicas": 2, "phase": "New"}, id="custom resource"),
    ],
)
class TestStatus:
    """The status has a separate endpoint."""

    async def test_it_is_read_with_its_object(self, env: Env, kind: str, status: Manifest) -> None:
        made = await env.create(kind)
        await env.update({**made, "status": status}, part=Subresource.STATUS)

        assert await env.get(kind, part=Subresource.STATUS) == await env.get(kind)

    async def test_a_status_write_does_not_change_the_spec(self, env: Env, kind: str, status: Manifest) -> None:
        made = await env.create(kind)
        sent = {**made, "spec": {**made["spec"], "replicas": 9}, "status": status}
        changed = await env.update(sent, part=Subresource.STATUS)

        assert changed["spec"] == made["spec"]
        assert status.items() <= changed["status"].items()

    @pytest.mark.parametrize("sent", [None, [], [{}], [{"manager": "other", "operation": "Update"}]])
    async def test_a_status_write_does_not_change_who_owns_the_rest(
        self, env: Env, owned: Owned, kind: str, status: Manifest, sent: list[Manifest] | None
    ) -> None:
        """Whatever a client sends as `managedFields`, with a status it is taken from the live object."""
        made = await env.create(kind)
        metadata = {key: value for key, value in made["metadata"].items() if key != "managedFields"}
        metadata |= {"managedFields": sent} if sent is not None else {}
        changed = await env.update(
            {**made, "metadata": metadata, "status": status}, by="reporter", part=Subresource.STATUS
        )
        before, after = owned(made), owned(changed)

        assert {name: after[name] for name in before} == before
        assert after.keys() - before.keys() == {"reporter Update status"}

    async def test_a_patch_of_the_status_does_not_change_the_spec(self, env: Env, kind: str, status: Manifest) -> None:
        made = await env.create(kind)
        patch = {"spec": {"replicas": 9}, "status": status}
        changed = await env.patch(kind, patch, part=Subresource.STATUS)

        assert changed["spec"] == made["spec"]
        assert status.items() <= changed["status"].items()

    async def test_a_write_of_the_object_does_not_change_the_status(
        self, env: Env, kind: str, status: Manifest
    ) -> None:
        made = await env.create(kind)
        held = await env.update({**made, "status": status}, part=Subresource.STATUS)

        assert await env.update({**held, "status": {}}) == held

    async def test_a_create_drops_the_status(self, env: Env, kind: str, status: Manifest) -> None:
        made = await env.cluster.create({**env.manifest(kind, None), "status": status}, field_manager="author")

        assert not status.items() <= made.get("status", {}).items()

    async def test_it_is_applied(self, env: Env, kind: str, status: Manifest) -> None:
        made = await env.create(kind)
        sent = {**env.manifest(kind), "status": status}
        changed = await env.cluster.apply(sent, field_manager="reporter", subresource=Subresource.STATUS)

        assert changed["spec"] == made["spec"]
        assert status.items() <= changed["status"].items()


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret", "Role", "Gadget"])
async def test_a_kind_may_have_no_status_subresource(env: Env, kind: str) -> None:
    await env.create(kind)

    with pytest.raises(NotFoundError):
        await env.merge(kind, "{status: {a: b}}", part=Subresource.STATUS)


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        pytest.param("Deployment", "replicas", id="Deployment"),
        pytest.param("ReplicaSet", "replicas", id="ReplicaSet"),
        pytest.param("StatefulSet", "replicas", id="StatefulSet"),
        pytest.param("Widget", "size", id="custom resource"),
    ],
)
class TestScale:
    """The Scale is a view of the count."""

    async def test_it_is_read(self, env: Env, kind: str, count: str) -> None:
        await env.create(kind)
        live = await env.merge(kind, "status: {replicas: 2, selector: app=demo}", part=Subresource.STATUS)
        scale = await env.get(kind, part=Subresource.SCALE)
        shared = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")

        assert (scale["apiVersion"], scale["kind"]) == ("autoscaling/v1", "Scale")
        assert scale["metadata"] == {name: live["metadata"][name] for name in shared}
        assert scale["spec"] == {"replicas": live["spec"][count]}
        assert scale["status"] == {"replicas": 2, "selector": "app=demo"}

    async def test_update(self, env: Env, kind: str, count: str) -> None:
        await env.create(kind)
        scale = env.manifest(kind, "spec: {replicas: 6}")
        answer = await env.update(scale, by="scaler", part=Subresource.SCALE)

        assert (answer["kind"], answer["spec"]) == ("Scale", {"replicas": 6})
        assert (await env.get(kind))["spec"][count] == 6

    @pytest.mark.parametrize(
        ("patch_type", "patch"),
        [
            pytest.param(PatchType.MERGE, {"spec": {"replicas": 6}}, id="merge patch"),
            pytest.param(PatchType.JSON, [{"op": "replace", "path": "/spec/replicas", "value": 6}], id="JSON patch"),
        ],
    )
    async def test_patch(self, env: Env, kind: str, count: str, *, patch_type: PatchType, patch: Any) -> None:
        await env.create(kind)
        answer = await env.patch(kind, patch, patch_type=patch_type, part=Subresource.SCALE)

        assert (answer["kind"], answer["spec"]) == ("Scale", {"replicas": 6})
        assert (await env.get(kind))["spec"][count] == 6


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
@pytest.mark.promise("conformance")
async def test_a_scale_is_applied(env: Env, kind: str) -> None:
    await env.create(kind)
    await env.apply("scaler", kind, "spec: {replicas: 6}", part=Subresource.SCALE, force=True)

    assert (await env.get(kind))["spec"]["replicas"] == 6


@pytest.mark.parametrize("kind", ["ConfigMap", "Service", "HorizontalPodAutoscaler", "CronJob", "Gadget"])
async def test_a_kind_may_have_no_scale_subresource(env: Env, kind: str) -> None:
    await env.create(kind)

    with pytest.raises(NotFoundError):
        await env.get(kind, part=Subresource.SCALE)


@pytest.mark.parametrize("kind", ["Role", "Service", "Lease"])
async def test_some_kinds_are_created_by_an_update(env: Env, kind: str) -> None:
    await env.update(env.manifest(kind, None))

    assert await env.exists(kind)


@pytest.mark.parametrize("kind", ["ConfigMap", "Deployment", "Widget"])
async def test_an_update_of_a_missing_object_is_not_found(env: Env, kind: str) -> None:
    with pytest.raises(NotFoundError, match=r'"demo" not found$'):
        await env.update(env.manifest(kind, None))


async def test_a_name_is_generated(env: Env) -> None:
    manifest = env.manifest("ConfigMap", "metadata: {generateName: demo-}")
    del manifest["metadata"]["name"]
    first = await env.cluster.create(manifest, field_manager="author")
    second = await env.cluster.create(manifest, field_manager="author")
    names = [each["metadata"]["name"] for each in (first, second)]

    assert len(set(names)) == 2
    assert all(name.startswith("demo-") and len(name) == len("demo-") + 5 for name in names)


async def test_an_object_is_shown_in_each_version_of_its_kind(env: Env) -> None:
    made = await env.create("Widget", "spec: {size: 2}")
    shown = await env.cluster.get(env.key("Widget", api_version="conformance.example.com/v2"))

    assert shown["apiVersion"] == "conformance.example.com/v2"
    assert {**shown, "apiVersion": made["apiVersion"]} == made


async def test_an_autoscaler_is_shown_in_its_old_version(env: Env) -> None:
    body = (
        "spec: {maxReplicas: 4, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: demo}, metrics: "
        "[{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]}"
    )
    await env.create("HorizontalPodAutoscaler", body)
    old = await env.cluster.get(env.key("HorizontalPodAutoscaler", api_version="autoscaling/v1"))

    assert old["apiVersion"] == "autoscaling/v1"
    assert old["spec"]["targetCPUUtilizationPercentage"] == 70


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("v1", "Gizmo", id="kind"),
        pytest.param("apps/v7", "Deployment", id="version"),
        pytest.param("nowhere.example.com/v1", "Deployment", id="group"),
    ],
)
async def test_a_kind_that_is_not_served_is_not_found(env: Env, api_version: str, kind: str) -> None:
    key = ObjectKey(api_version, kind, "demo", env.namespace)
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "demo", "namespace": env.namespace}}

    for asked in (
        env.cluster.get(key),
        env.cluster.list(api_version, kind, ListOptions(namespace=env.namespace)),
        env.cluster.apply(manifest, field_manager="us"),
        env.cluster.create(manifest, field_manager="us"),
        env.cluster.delete(key),
    ):
        with pytest.raises(NotFoundError):
            await asked


@pytest.mark.parametrize("kind", KINDS)
async def test_the_scope_of_a_kind_is_known_without_an_object(env: Env, kind: str) -> None:
    assert await env.cluster.is_namespaced(API_VERSIONS[kind], kind) is (kind not in CLUSTER_SCOPED)


async def test_a_kind_that_is_not_served_has_no_scope(env: Env) -> None:
    with pytest.raises(NotFoundError):
        await env.cluster.is_namespaced("v1", "Unicorn")
