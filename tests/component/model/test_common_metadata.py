"""Labels, annotations and the namespace that a component puts on its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf import component
from ocf.component import diff, reconciling
from ocf.component.model.common_metadata import CommonMetadata, MetadataPart
from ocf.errors import BuildError, ConfigError
from ocf.objects import ObjectKey
from ocf.objects.paths import get_field
from ocf.primitives import configmap, cronjob, deployment, job, service, unstructured
from ocf.testing import RecordingCluster, assert_quiet
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.component import Result
    from ocf.objects import Manifest

COMMON = {"app.kubernetes.io/part-of": "shop", "tier": "common"}
POD: Manifest = {"containers": [{"name": "web", "image": "web:1"}]}
TEMPLATE: Manifest = {"metadata": {"labels": {"app": "web"}}, "spec": POD}
SELECTOR: Manifest = {"matchLabels": {"app": "web"}}
SHOP = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "shop"}, "spec": {}}


def base(api_version: str, kind: str, spec: Any, **metadata: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", **metadata}, "spec": spec}


DEPLOYMENT = base("apps/v1", "Deployment", {"selector": SELECTOR, "template": TEMPLATE}, labels={"tier": "web"})
SERVICE = base("v1", "Service", {"selector": {"app": "web"}, "ports": [{"port": 80}]})


def web() -> component.Builder:
    return component.Builder("web", condition_type="WebReady").with_namespace("shop").with_labels(COMMON)


def rendered(builder: component.Builder) -> Manifest:
    (manifest,) = builder.build().render()
    return manifest


class TestLabels:
    def test_are_added_where_the_resource_has_none_and_its_own_are_kept(self) -> None:
        manifest = rendered(web().with_resource(deployment.Builder(DEPLOYMENT)))
        assert manifest["metadata"]["labels"] == {"tier": "web", "app.kubernetes.io/part-of": "shop"}

    def test_of_a_mutation_are_kept(self) -> None:
        own = service.Mutation("own", lambda m: m.edit_object_metadata(lambda meta: meta.ensure_label("tier", "own")))
        manifest = rendered(web().with_resource(service.Builder(SERVICE).with_mutation(own)))
        assert manifest["metadata"]["labels"] == {"tier": "own", "app.kubernetes.io/part-of": "shop"}

    def test_never_change_selectors_or_pod_templates(self) -> None:
        builder = web().with_resource(deployment.Builder(DEPLOYMENT)).with_resource(service.Builder(SERVICE))
        specs = [manifest["spec"] for manifest in builder.build().render()]
        assert specs == [DEPLOYMENT["spec"], SERVICE["spec"]]

    def test_are_added_to_a_suspended_object(self) -> None:
        (entry,) = web().with_resource(deployment.Builder(DEPLOYMENT)).build().entries
        suspended = entry.render(suspended=True)
        assert suspended["metadata"]["labels"]["app.kubernetes.io/part-of"] == "shop"
        assert suspended["spec"]["replicas"] == 0

    def test_the_last_value_of_a_key_wins(self) -> None:
        builder = web().with_labels({"tier": "last"}).with_resource(service.Builder(SERVICE))
        assert rendered(builder)["metadata"]["labels"] == {"app.kubernetes.io/part-of": "shop", "tier": "last"}

    def test_an_ignored_one_is_not_added(self) -> None:
        builder = web().with_resource(service.Builder(SERVICE), ignore_fields=["metadata.labels.tier"])
        assert rendered(builder)["metadata"]["labels"] == {"app.kubernetes.io/part-of": "shop"}

    def test_are_added_to_resources_of_the_users_own(self) -> None:
        class Plain:
            key = ObjectKey("v1", "ConfigMap", "plain", "shop")
            identity = str(key)

            def render(self, **_: Any) -> Manifest:
                return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": "shop"}}

        assert rendered(web().with_resource(Plain()))["metadata"]["labels"] == COMMON

    def test_do_not_hide_that_a_resource_renders_nothing(self) -> None:
        class Broken:
            key = ObjectKey("v1", "ConfigMap", "broken", "shop")
            identity = str(key)

            def render(self, **_: Any) -> Any:
                return None

        with pytest.raises(ConfigError, match="returned None"):
            web().with_resource(Broken()).build().render()

    def test_are_in_the_model_of_the_preview(self) -> None:
        (model,) = web().with_resource(service.Builder(SERVICE)).build().preview()
        assert type(model).__name__ == "V1Service"
        assert model.metadata.labels == COMMON


class TestAnnotations:
    def test_are_added_like_labels(self) -> None:
        annotations = {"example.com/runbook": "https://example.com"}
        manifest = rendered(web().with_annotations(annotations).with_resource(service.Builder(SERVICE)))
        assert manifest["metadata"]["annotations"] == annotations
        assert manifest["metadata"]["labels"] == COMMON


CRON: Manifest = {"schedule": "@daily", "jobTemplate": {"spec": {"template": TEMPLATE}}}
REPLICAS: Manifest = {"selector": SELECTOR, "template": TEMPLATE}


class TestPodTemplates:
    @pytest.mark.parametrize(
        ("resource", "path", "own"),
        [
            pytest.param(deployment.Builder(DEPLOYMENT), "spec.template", {"app": "web"}, id="deployment"),
            pytest.param(
                job.Builder(base("batch/v1", "Job", {"template": {"spec": POD}})), "spec.template", {}, id="job"
            ),
            pytest.param(
                cronjob.Builder(base("batch/v1", "CronJob", CRON)),
                "spec.jobTemplate.spec.template",
                {"app": "web"},
                id="cronjob",
            ),
            pytest.param(
                unstructured.StaticBuilder(base("apps/v1", "ReplicaSet", REPLICAS)),
                "spec.template",
                {"app": "web"},
                id="unstructured",
            ),
        ],
    )
    def test_get_labels_that_are_meant_for_them(self, resource: Any, path: str, own: dict[str, str]) -> None:
        builder = web().with_labels({"app": "other", "team": "a"}, pod_templates=True).with_resource(resource)
        manifest = rendered(builder)
        labels = get_field(manifest, (*path.split("."), "metadata", "labels"))
        assert labels == {"app": "other", "team": "a", **own}
        assert manifest["spec"].get("selector") in ({}, None, SELECTOR)

    def test_of_other_kinds_are_not_known(self) -> None:
        manifest = base("example.com/v1", "Rollout", {"template": TEMPLATE})
        found = rendered(
            web().with_labels({"team": "web"}, pod_templates=True).with_resource(unstructured.StaticBuilder(manifest))
        )
        assert found["spec"]["template"] == TEMPLATE


class TestNamespace:
    def test_of_the_base_is_kept(self) -> None:
        manifest = rendered(
            web().with_resource(service.Builder({**SERVICE, "metadata": {"name": "a", "namespace": "b"}}))
        )
        assert manifest["metadata"]["namespace"] == "b"

    def test_of_a_yaml_base_is_completed(self) -> None:
        (entry,) = (
            web()
            .with_resource(configmap.Builder("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"))
            .build()
            .entries
        )
        assert entry.identity == "v1/ConfigMap/shop/a"

    def test_is_not_given_to_a_cluster_scoped_object(self) -> None:
        role = base("rbac.authorization.k8s.io/v1", "ClusterRole", {})
        manifest = rendered(web().with_resource(unstructured.StaticBuilder(role, cluster_scoped=True)))
        assert "namespace" not in manifest["metadata"]

    def test_does_not_change_the_builder(self) -> None:
        builder = service.Builder(SERVICE)
        web().with_resource(builder).build()
        with pytest.raises(BuildError, match="object namespace cannot be empty"):
            builder.build()

    def test_is_still_required_without_one(self) -> None:
        builder = component.Builder("web", condition_type="WebReady").with_resource(service.Builder(SERVICE))
        with pytest.raises(BuildError, match="object namespace cannot be empty"):
            builder.build()

    def test_of_another_type_is_a_problem(self) -> None:
        wrong: Any = 3
        with pytest.raises(BuildError, match="default namespace must be a text, not of type int"):
            web().with_namespace(wrong).with_resource(service.Builder(SERVICE)).build()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"-": "a"}, 'common labels: Invalid value: "-"', id="key"),
        pytest.param({"a": "a b"}, 'common labels: Invalid value: "a b"', id="value"),
        pytest.param({"a": 1}, "common labels must be texts, got 'a': 1", id="number"),
        pytest.param("a=b", "common labels must be a mapping of texts, got 'a=b'", id="text"),
    ],
)
def test_labels_that_the_api_server_rejects_are_problems_of_the_declaration(given: Any, problem: str) -> None:
    with pytest.raises(BuildError) as caught:
        component.Builder("web", condition_type="WebReady").with_labels(given, pod_templates=True).build()
    (found,) = caught.value.problems
    assert found.startswith(problem)


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))


@given(own=LABELS, common=LABELS)
def test_adding_twice_is_adding_once_and_loses_nothing(own: dict[str, str], common: dict[str, str]) -> None:
    added = CommonMetadata(MetadataPart(labels=common))
    before = {"metadata": {"name": "a", "labels": own}}
    once = added.added_to(before)
    assert added.added_to(once) == once
    assert once["metadata"]["labels"] == {**common, **own}
    assert before == {"metadata": {"name": "a", "labels": own}}


class TestExplanation:
    def fields(self, builder: component.Builder) -> dict[str, list[tuple[Any, str]]]:
        (explanation,) = builder.build().explain()
        return {
            origin.path: [(setting.value, str(setting.source)) for setting in origin.settings]
            for origin in explanation.fields
            if origin.path.startswith("metadata.labels")
        }

    def test_names_the_component_as_the_source_of_what_it_adds(self) -> None:
        fields = self.fields(web().with_resource(deployment.Builder(DEPLOYMENT)))
        assert fields == {
            "metadata.labels.tier": [("web", "base")],
            "metadata.labels.app.kubernetes.io/part-of": [("shop", "component")],
        }

    def test_shows_the_history_of_what_a_mutation_removed(self) -> None:
        remove = deployment.Mutation("drop", lambda m: m.edit_object_metadata(lambda meta: meta.remove_label("tier")))
        fields = self.fields(web().with_resource(deployment.Builder(DEPLOYMENT).with_mutation(remove)))
        history = [("web", "base"), (None, "mutation drop, edit_object_metadata"), ("common", "component")]
        assert fields["metadata.labels.tier"] == history


async def opened() -> tuple[RecordingCluster, Manifest]:
    embedded = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=["shop"])
    cluster = RecordingCluster(embedded)
    await cluster.create(SHOP, field_manager="user")
    return cluster, await cluster.get(ObjectKey.of(SHOP))


def reconcile_with(labels: dict[str, str]) -> Callable[[Any], Any]:
    async def reconcile(cluster: Any) -> Result:
        built = web().with_labels(labels).with_resource(deployment.Builder(DEPLOYMENT)).build()
        async with reconciling(await cluster.get(ObjectKey.of(SHOP)), cluster) as context:
            return await built.reconcile(context)

    return reconcile


async def test_they_are_applied_once_and_a_change_is_one_write() -> None:
    cluster, _ = await opened()
    assert (await reconcile_with({})(cluster)).writes == 1
    await assert_quiet(cluster, reconcile_with({}), resyncs=3)

    assert (await reconcile_with({"team": "a"})(cluster)).writes == 1
    live = await cluster.get(ObjectKey("apps/v1", "Deployment", "web", "shop"))
    assert live["metadata"]["labels"] == {"tier": "web", "app.kubernetes.io/part-of": "shop", "team": "a"}

    assert (await reconcile_with({})(cluster)).writes == 1
    live = await cluster.get(ObjectKey("apps/v1", "Deployment", "web", "shop"))
    assert "team" not in live["metadata"]["labels"]


async def test_they_are_in_the_diff_with_their_source() -> None:
    cluster, owner = await opened()
    await reconcile_with({})(cluster)
    built = web().with_labels({"team": "a"}).with_resource(deployment.Builder(DEPLOYMENT)).build()
    (found,) = await diff([built], owner, cluster)
    (changed,) = found.objects
    assert [(field.path, field.after, field.source) for field in changed.fields] == [
        ("metadata.labels.team", "a", "component")
    ]
