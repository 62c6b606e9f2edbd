"""Diff of a component: it matches the next reconcile, and changes nothing."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, ListOptions, PatchOptions, PatchType, Subresource
from ocf.cluster.protocol import Preconditions
from ocf.component import Component, Conflicts, depends_on, reconcile_all, reconciling
from ocf.component.diff import ComponentDiff, DiffVerb, FieldDiff, ObjectDiff, TakenField, diff
from ocf.component.dry_run_cluster import DryRunCluster
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.errors import ConflictError, ManifestError, NotFoundError
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import BaseMutator, Handlers, Kind, StaticBuilder, configmap, deployment, hpa
from ocf.testing import RecordingCluster
from ocf_server import CustomKind, EmbeddedCluster

SETTINGS = ObjectKey("v1", "ConfigMap", "settings", "shop")


def builder(name: str = "web") -> component.Builder:
    return component.Builder(name, condition_type=f"{name.capitalize()}Ready")


@pytest.fixture
def dry_run(env: Any) -> Callable[..., Awaitable[ComponentDiff]]:
    """Compute a diff, and check that only dry runs were sent."""

    async def run(*components: Component) -> ComponentDiff:
        cluster = RecordingCluster(env.cluster)
        changes = env.cluster.requests.changes
        found = await diff(components, await env.owner_manifest(), cluster, clock=env.clock)
        assert cluster.writes == ()
        assert not any(request.subresource for request in cluster.requests)
        assert env.cluster.requests.changes == changes
        return found[-1]

    return run


@pytest.fixture
def web_image(web_base: Manifest) -> Callable[[str], deployment.Resource]:
    """Make the Deployment with an image that a mutation sets."""

    def build(image: str) -> deployment.Resource:
        def mutate(m: deployment.Mutator) -> None:
            m.edit_containers(lambda _, __: True)(lambda container: container.set_image(image))

        return deployment.Builder(web_base).with_mutation(deployment.Mutation("image", mutate)).build()

    return build


def verbs(found: ComponentDiff) -> dict[str, DiffVerb]:
    return {ObjectKey(*split(each)).kind: each.verb for each in found.objects}


def split(each: ObjectDiff) -> tuple[str, str, str, str]:
    *version, kind, namespace, name = each.resource.split("/")
    return "/".join(version), kind, name, namespace


async def test_a_missing_object_is_created_as_the_server_would_store_it(
    dry_run: Any, scaled: Callable[..., Component]
) -> None:
    found = await dry_run(scaled())
    assert verbs(found) == {"Deployment": DiffVerb.CREATE, "HorizontalPodAutoscaler": DiffVerb.CREATE}
    assert [each.before for each in found.objects] == [None, None]
    after = found.objects[0].after
    assert after["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert after["metadata"].keys().isdisjoint({"uid", "managedFields", "resourceVersion", "creationTimestamp"})
    assert found.objects[0].reasons == ("absent",)
    assert not found.is_empty


async def test_the_diff_is_empty_after_a_reconcile(env: Any, dry_run: Any, scaled: Callable[..., Component]) -> None:
    await env.reconcile(scaled())
    found = await dry_run(scaled())
    assert found.is_empty
    assert found.objects == ()
    assert [str(outcome.action) for outcome in found.result.outcomes] == ["Unchanged", "Unchanged"]


async def test_a_changed_field_has_its_old_value_and_its_source(
    env: Any, dry_run: Any, web_image: Callable[[str], deployment.Resource]
) -> None:
    await env.reconcile(builder().with_resource(web_image("web:1")).build())
    [changed] = (await dry_run(builder().with_resource(web_image("web:2")).build())).objects
    path = "spec.template.spec.containers[0].image"
    assert changed.fields == (FieldDiff(path, "web:1", "web:2", "mutation image, edit_containers"),)
    assert (changed.verb, changed.taken, changed.reasons) == (DiffVerb.UPDATE, (), (f"{path}: changed",))


async def test_a_value_that_the_server_spells_differently_has_no_known_source(
    env: Any, dry_run: Any, web_base: Manifest
) -> None:
    requests = web_base["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    requests["cpu"] = "500m"
    await env.reconcile(builder().with_resource(deployment.Builder(web_base).build()).build())
    requests["cpu"] = "2000m"
    [changed] = (await dry_run(builder().with_resource(deployment.Builder(web_base).build()).build())).objects
    assert [(each.after, each.source) for each in changed.fields] == [("2", "")]


async def test_a_taken_field_names_the_manager_that_loses_it(
    env: Any, dry_run: Any, web_image: Callable[[str], deployment.Resource]
) -> None:
    web = builder().with_resource(web_image("web:1")).build()
    await env.reconcile(web)
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil:1"}]
    await env.cluster.patch(env.web, patch, PatchOptions(patch_type=PatchType.JSON, field_manager="kubectl"))
    [changed] = (await dry_run(web)).objects
    assert changed.taken == (TakenField("spec.template.spec.containers[name=web].image", "kubectl"),)
    assert [(each.before, each.after) for each in changed.fields] == [("evil:1", "web:1")]


async def test_a_change_of_ownership_alone_is_a_difference(
    env: Any, dry_run: Any, fixed_web: deployment.Resource
) -> None:
    """A reconcile would send it, so the diff is not empty."""
    web = builder().with_resource(fixed_web).build()
    await env.reconcile(web)
    for replicas in (5, 4):
        await env.change(env.web, spec={"replicas": replicas})
    [changed] = (await dry_run(web)).objects
    assert changed.fields == ()
    assert changed.before == changed.after
    assert changed.reasons == ("spec.replicas: not owned",)
    assert changed.taken == ()


async def test_a_conflict_that_is_not_forced_names_manager_and_field(
    env: Any, dry_run: Any, fixed_web: deployment.Resource
) -> None:
    web = builder().with_resource(fixed_web, on_conflict=Conflicts.FAIL).build()
    await env.reconcile(web)
    await env.change(env.web, spec={"replicas": 9})
    found = await dry_run(web)
    assert [(each.path, each.manager) for each in found.conflicts] == [("spec.replicas", "kubectl-edit")]
    assert found.result is None
    assert found.problem.startswith("failed to apply resource apps/v1/Deployment/shop/web: ")
    assert not found.is_empty


async def test_an_ignored_field_names_its_managers(env: Any, dry_run: Any, scaled: Callable[..., Component]) -> None:
    await env.reconcile(scaled())
    await env.change(env.web, spec={"replicas": 7})
    found = await dry_run(scaled())
    assert found.is_empty
    [left] = found.ignored
    assert (left.resource, left.path, left.value) == ("apps/v1/Deployment/shop/web", "spec.replicas", 7)
    assert left.managers == ("kubectl-edit (Update)",)


async def test_replicas_that_are_handed_over_stay(
    env: Any, dry_run: Any, fixed_web: deployment.Resource, web_hpa: hpa.Resource
) -> None:
    """The server cannot know of the first of two dry runs, so its answer to the second says 1."""
    await env.reconcile(builder().with_resource(fixed_web).build())
    found = await dry_run(builder().with_resource(fixed_web).with_resource(web_hpa).build())
    changed = found.objects[0]
    assert changed.reasons == ("spec.replicas: handed over", "spec.replicas: no longer declared")
    assert changed.fields == ()
    assert changed.after["spec"]["replicas"] == 4


async def test_suspending_deletes_and_scales_down(env: Any, dry_run: Any, scaled: Callable[..., Component]) -> None:
    await env.reconcile(scaled())
    found = await dry_run(scaled(suspended=True))
    assert verbs(found) == {"HorizontalPodAutoscaler": DiffVerb.DELETE, "Deployment": DiffVerb.UPDATE}
    down = next(each for each in found.objects[1].fields if each.path == "spec.replicas")
    assert (down.before, down.after, down.source) == (1, 0, "suspension, edit_deployment_spec")
    assert found.objects[0].after is None


async def test_taking_the_replicas_back_takes_nothing_from_other_managers(
    env: Any, dry_run: Any, fixed_web: deployment.Resource, web_hpa: hpa.Resource
) -> None:
    """The second manager, which keeps the replicas after a handover, is ours too."""
    await env.reconcile(builder().with_resource(fixed_web).build())
    both = builder().with_resource(fixed_web).with_resource(web_hpa)
    await env.reconcile(both.build())
    found = await dry_run(both.suspend().build())
    down = found.objects[1]
    assert down.after["spec"]["replicas"] == 0
    assert down.taken == ()


async def test_deleted_and_orphaned_resources_are_shown(
    env: Any, dry_run: Any, web: deployment.Resource, web_hpa: hpa.Resource, scaled: Callable[..., Component]
) -> None:
    await env.reconcile(scaled())
    found = await dry_run(
        builder().with_resource(web, orphan_when=True).with_resource(web_hpa, gated_by=BooleanGate(False)).build()
    )
    assert verbs(found) == {"HorizontalPodAutoscaler": DiffVerb.DELETE, "Deployment": DiffVerb.RELEASE}
    assert "ownerReferences" not in found.objects[1].after["metadata"]
    assert "ownerReferences.uid" not in str(found.objects[1].fields)


async def test_unregistered_objects_are_pruned(env: Any, dry_run: Any, config_map: Callable[..., Any]) -> None:
    both = builder().with_resource(config_map("old").build()).with_resource(config_map("new").build())
    await env.reconcile(both.build())
    found = await dry_run(builder().with_resource(config_map("new").build()).with_prune().build())
    assert [(each.resource, each.verb) for each in found.objects] == [("v1/ConfigMap/shop/old", DiffVerb.DELETE)]


async def test_unregistered_objects_that_stay_are_named(env: Any, dry_run: Any, config_map: Callable[..., Any]) -> None:
    """An object of another name is another object: https://github.com/opendatahub-io/opendatahub-operator/issues/455."""
    await env.reconcile(builder().with_resource(config_map(a="1")).with_resource(config_map("old", a="1")).build())
    found = await dry_run(builder().with_resource(config_map(a="1")).build())

    assert found.is_empty
    assert found.unregistered == ("v1/ConfigMap/shop/old",)
    pruning = await dry_run(builder().with_resource(config_map(a="1")).with_prune().build())
    assert (verbs(pruning), pruning.unregistered) == ({"ConfigMap": DiffVerb.DELETE}, ())


async def test_another_namespace_leaves_the_objects_in_the_old_one() -> None:
    """The owner is cluster-scoped, and a field of its spec says where its objects are."""
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Realm", namespaced=False)], namespaces=["a", "b"])
    realm = {"apiVersion": "example.com/v1", "kind": "Realm", "metadata": {"name": "north"}}
    owner = await cluster.create(realm, field_manager="user")

    def settings(namespace: str) -> Component:
        return builder().with_namespace(namespace).with_resource(config_map_of("north")).build()

    async with reconciling(owner, cluster) as context:
        await settings("a").reconcile(context)
    [found] = await diff([settings("b")], await cluster.get(ObjectKey.of(realm)), cluster)

    assert [(each.resource, each.verb) for each in found.objects] == [("v1/ConfigMap/b/north", DiffVerb.CREATE)]
    assert found.unregistered == ("v1/ConfigMap/a/north",)


def config_map_of(name: str) -> configmap.Builder:
    return configmap.Builder({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})


async def test_objects_of_others_and_of_other_components_are_not_named(
    env: Any, dry_run: Any, config_map: Callable[..., Any]
) -> None:
    await env.reconcile(builder("front").with_resource(config_map("front", a="1")).build())
    await env.cluster.create(config_map("theirs", a="1").build().render(), field_manager="another-user")

    assert (await dry_run(builder().with_resource(config_map(a="1")).build())).unregistered == ()


async def test_a_guard_blocks_a_dry_run_too(dry_run: Any, web: deployment.Resource, hpa_base: Manifest) -> None:
    closed = StatusReport(GuardStatus.BLOCKED, "not today")
    blocked = hpa.Builder(hpa_base).with_guard(lambda _: closed).build()
    found = await dry_run(builder().with_resource(blocked).with_resource(web).build())
    assert found.is_empty
    assert found.result.condition.message == "HorizontalPodAutoscaler web: not today"


async def test_data_flows_in_a_dry_run(dry_run: Any, web_base: Manifest, config_map: Any) -> None:
    """Data is extracted from the response to the dry run, so the diff of a dependent resource is known too."""
    cell = Data[str]("policy")

    def policy(live: Any) -> str:
        found: str = live.spec.template.spec.restart_policy
        return found

    producer = deployment.Builder(web_base).extract_into(cell, policy).build()
    consumer = config_map("settings").with_data_guard(cell).build()
    found = await dry_run(builder().with_resource(producer).with_resource(consumer).build())
    assert verbs(found) == {"Deployment": DiffVerb.CREATE, "ConfigMap": DiffVerb.CREATE}


async def test_a_prerequisite_that_is_not_met_changes_nothing(dry_run: Any, web: deployment.Resource) -> None:
    found = await dry_run(builder().with_resource(web).with_prerequisite(depends_on("OtherReady")).build())
    assert found.is_empty
    assert found.result.condition.reason == "PrerequisiteNotMet"


async def test_a_component_sees_what_an_earlier_one_would_have_written(
    dry_run: Any, config_map: Callable[..., Any]
) -> None:
    first = builder("first").with_resource(config_map().build()).build()
    second = (
        builder("second")
        .with_resource(config_map().build(), read_only=True)
        .with_prerequisite(depends_on("FirstReady"))
    ).build()
    found = await dry_run(first, second)
    assert found.problem == ""
    assert found.objects == ()
    assert found.result.condition.reason == "Healthy"


async def test_a_component_that_fails_does_not_affect_the_next(dry_run: Any, config_map: Callable[..., Any]) -> None:
    missing = builder("first").with_resource(config_map("missing").build(), read_only=True).build()
    found = await dry_run(missing, builder("second").with_resource(config_map().build()).build())
    assert verbs(found) == {"ConfigMap": DiffVerb.CREATE}


@pytest.mark.promise("secrets")
async def test_values_of_secrets_are_digests(env: Any, web_base: Manifest, dry_run: Any) -> None:
    variables = web_base["spec"]["template"]["spec"]["containers"][0]["env"]
    variables.append({"name": "DB_PASSWORD", "value": "hunter2"})
    await env.reconcile(builder().with_resource(deployment.Builder(web_base).build()).build())
    variables[-1]["value"] = "hunter3"
    found = await dry_run(builder().with_resource(deployment.Builder(web_base).build()).build())
    assert "hunter" not in repr(found)
    assert len(found.objects[0].fields) == 1


async def test_an_ignored_field_of_a_secret_is_not_shown(env: Any, dry_run: Any) -> None:
    secret = ObjectKey("v1", "Secret", "db", "shop")
    await env.create(secret, stringData={"password": "hunter2"})
    base = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}}
    kind: Kind[Any, BaseMutator] = Kind("v1", "Secret", "V1Secret", BaseMutator)
    resource = StaticBuilder(base, kind, Handlers()).build()
    found = await dry_run(builder().with_resource(resource, ignore_fields=["data.password"]).build())
    [left] = found.ignored
    assert left.managers == ("kubectl-edit (Update)",)
    assert left.value.startswith("redacted")


async def test_an_owner_without_uid_is_refused(env: Any) -> None:
    with pytest.raises(ManifestError, match=r"metadata\.uid"):
        await diff([], {"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}}, env.cluster)


async def test_every_object_that_is_read_is_reported(env: Any, scaled: Callable[..., Component]) -> None:
    seen: list[ObjectKey] = []
    await diff([scaled()], await env.owner_manifest(), env.cluster, clock=env.clock, seen=seen.append)
    assert set(seen) == {env.web, env.hpa}


class Mirror(RecordingCluster):
    """A cluster with a webhook that rewrites images."""

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        sent: Manifest = copy_json(manifest)
        container = sent["spec"]["template"]["spec"]["containers"][0]
        container["image"] = f"mirror/{container['image']}"
        return await super().apply(sent, **options)


async def test_another_spelling_of_the_server_is_not_a_difference(env: Any, web: deployment.Resource) -> None:
    """A dry run has no apply cache, so it sends the apply; the response shows that nothing changes."""
    cluster, subject = Mirror(env.cluster), builder().with_resource(web).build()
    async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
        await subject.reconcile(context)
    (found,) = await diff([subject], await env.owner_manifest(), cluster, clock=env.clock)
    assert found.result is not None
    assert found.result.outcomes[0].reason_texts == ("spec.template.spec.containers[0].image: changed",)
    assert found.is_empty


async def test_defaults_of_the_server_are_not_even_asked_for(env: Any, dry_run: Any, web: deployment.Resource) -> None:
    await env.reconcile(builder().with_resource(web).build())
    found = await dry_run(builder().with_resource(web).build())
    assert (found.result.outcomes[0].reason_texts, found.is_empty) == ((), True)


class TestDryRunCluster:
    """The cluster of a dry run on its own."""

    @pytest.fixture
    def cluster(self) -> EmbeddedCluster:
        return EmbeddedCluster(namespaces=("shop",))

    @pytest.fixture
    def settings(self) -> Manifest:
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "shop"},
            "data": {"a": "1"},
        }

    async def test_a_written_object_is_read_back(self, cluster: EmbeddedCluster, settings: Manifest) -> None:
        dry_runs = DryRunCluster(cluster)
        await dry_runs.apply(settings, field_manager="us")
        assert (await dry_runs.get(SETTINGS))["data"] == {"a": "1"}
        with pytest.raises(NotFoundError):
            await cluster.get(SETTINGS)

    async def test_a_deleted_object_is_not_found(self, cluster: EmbeddedCluster, settings: Manifest) -> None:
        await cluster.create(settings, field_manager="us")
        dry_runs = DryRunCluster(cluster)
        await dry_runs.delete(SETTINGS)
        with pytest.raises(NotFoundError):
            await dry_runs.get(SETTINGS)
        assert (await cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_a_pod_is_evicted_as_a_dry_run(self, cluster: EmbeddedCluster) -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}
        await cluster.create({**pod, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}, field_manager="us")
        answer = await DryRunCluster(cluster).create(pod, field_manager="us", subresource=Subresource.EVICTION)
        assert answer["status"] == "Success"
        assert await cluster.get(ObjectKey.of(pod))

    async def test_a_delete_checks_the_uid_and_not_the_version_of_a_dry_run(
        self, cluster: EmbeddedCluster, settings: Manifest
    ) -> None:
        live = await cluster.create(settings, field_manager="us")
        as_rehearsed = Preconditions(uid=live["metadata"]["uid"], resource_version="never")
        await DryRunCluster(cluster).delete(SETTINGS, DeleteOptions(preconditions=as_rehearsed))
        with pytest.raises(ConflictError):
            await DryRunCluster(cluster).delete(SETTINGS, DeleteOptions(preconditions=Preconditions(uid="another")))

    async def test_every_write_is_a_dry_run(self, cluster: EmbeddedCluster, settings: Manifest) -> None:
        await cluster.create(settings, field_manager="us")
        changes = cluster.requests.changes
        dry_runs = DryRunCluster(cluster)
        live = await dry_runs.get(SETTINGS)
        await dry_runs.update({**live, "data": {"a": "2"}}, field_manager="us")
        await dry_runs.patch(
            SETTINGS, {"data": {"b": "3"}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="us")
        )
        new = {**settings, "metadata": {"name": "new", "namespace": "shop"}}
        await dry_runs.create(new, field_manager="us")
        await dry_runs.delete(SETTINGS)
        assert cluster.requests.changes == changes
        assert list(dry_runs.written) == [SETTINGS, ObjectKey("v1", "ConfigMap", "new", "shop")]

    async def test_lists_come_from_the_cluster(self, cluster: EmbeddedCluster) -> None:
        found = await DryRunCluster(cluster).list("v1", "Namespace", ListOptions(limit=1))
        assert len(found.items) == 1


class TestMoving:
    async def test_a_move_is_shown_as_the_reconcile_performs_it(self, env: Any, web_base: Manifest) -> None:
        """The field that only the old component declares is dropped, and nothing is deleted."""
        labelled = copy_json(web_base)
        labelled["metadata"]["labels"] = {"tier": "old"}
        old, new = (deployment.Builder(base).build() for base in (labelled, web_base))
        await env.reconcile(component.Builder("old", condition_type="OldReady").with_resource(old).build())
        components = [
            component.Builder("old", condition_type="OldReady").with_resource(old, delete_when=True).build(),
            component.Builder("new", condition_type="NewReady").with_resource(new).build(),
        ]
        kept, moved = await diff(components, await env.owner_manifest(), env.cluster, clock=env.clock)
        assert not kept.objects
        (shown,) = moved.objects
        assert (shown.verb, shown.taken) == (DiffVerb.UPDATE, ())
        assert [(field.path, field.before, field.after) for field in shown.fields] == [
            ("metadata.labels.tier", "old", None)
        ]
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            await reconcile_all(context, *components)
        assert "labels" not in (await env.cluster.get(env.web))["metadata"]
