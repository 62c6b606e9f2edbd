"""What the objects of a component take from its owner: name, namespace, recommended labels and selectors."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V1Service, V1ServicePort, V1ServiceSpec

from ocf.cluster import Cluster
from ocf.component import Builder, reconciling
from ocf.component.model.owner_labels import recommended_labels, selector_labels
from ocf.concepts.resource import ObjectDefaults
from ocf.errors import BuildError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.metadata_validation import label_errors
from ocf.primitives import (
    clusterrole,
    configmap,
    daemonset,
    deployment,
    job,
    networkpolicy,
    pdb,
    replicaset,
    service,
    servicemonitor,
    statefulset,
)
from ocf.primitives.defaults import completed
from ocf.testing import assert_quiet
from tests.component.conftest import Env

OWNER: Final = ObjectKey("example.com/v1", "Shop", "corner", "town")
REALM: Final = ObjectKey("example.com/v1", "Realm", "north")
NAME, INSTANCE, COMPONENT, MANAGED_BY = (
    f"app.kubernetes.io/{part}" for part in ("name", "instance", "component", "managed-by")
)
SELECTOR: Final = {NAME: "shop", INSTANCE: "corner", COMPONENT: "web"}
LABELS: Final = {**SELECTOR, MANAGED_BY: "example.com"}
POD: Final[Manifest] = {"containers": [{"name": "web", "image": "web:1"}]}
WORKLOAD: Final[Manifest] = {"spec": {"template": {"spec": POD}}}


def web(owner: ObjectKey = OWNER) -> Builder:
    return Builder("web", owner=owner)


def rendered(builder: Builder) -> Manifest:
    (manifest,) = builder.build().render()
    return manifest


class TestNames:
    def test_kind_name_and_namespace_are_those_of_builder_and_owner(self) -> None:
        manifest = rendered(web().with_resource(configmap.Builder({"data": {"a": "b"}})))

        metadata = {"name": "corner", "namespace": "town", "labels": LABELS}
        assert manifest == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}

    @pytest.mark.parametrize(
        "base",
        [
            pytest.param("data: {a: b}", id="YAML"),
            pytest.param({"data": {"a": "b"}, "metadata": None}, id="null as metadata"),
            pytest.param({"kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"name": ""}}, id="an empty name"),
        ],
    )
    def test_whatever_the_form_of_the_baseline(self, base: Any) -> None:
        assert ObjectKey.of(rendered(web().with_resource(configmap.Builder(base)))) == (
            "v1",
            "ConfigMap",
            "corner",
            "town",
        )

    def test_of_a_model_of_the_client_are_completed_too(self) -> None:
        base = V1Service(spec=V1ServiceSpec(ports=[V1ServicePort(port=80)]))
        manifest = rendered(web().with_resource(service.Builder(base)))

        assert (manifest["metadata"]["name"], manifest["spec"]["selector"]) == ("corner", SELECTOR)

    def test_of_the_baseline_win(self) -> None:
        base = {"metadata": {"name": "page", "namespace": "elsewhere", "labels": {NAME: "page"}}}
        metadata = rendered(web().with_resource(configmap.Builder(base)))["metadata"]

        assert metadata == {"name": "page", "namespace": "elsewhere", "labels": {**LABELS, NAME: "page"}}

    def test_the_namespace_of_the_component_wins_over_that_of_the_owner(self) -> None:
        assert rendered(web().with_namespace("other").with_resource(configmap.Builder({})))["metadata"][
            "namespace"
        ] == ("other")

    def test_of_another_kind_are_an_error(self) -> None:
        with pytest.raises(BuildError, match=r"kind: must be \"ConfigMap\", got 'Secret'"):
            web().with_resource(configmap.Builder({"kind": "Secret"})).build()

    def test_a_cluster_scoped_object_does_not_take_the_name_of_an_owner_in_a_namespace(self) -> None:
        """Owners `a/corner` and `b/corner` would share it: https://github.com/Kuadrant/authorino-operator/issues/348."""
        with pytest.raises(BuildError, match=r"the name of a cluster-scoped object cannot be empty: it does not take"):
            web().with_resource(clusterrole.Builder({"rules": []})).build()

        own = web().with_resource(clusterrole.Builder({"metadata": {"name": "town-corner"}, "rules": []}))
        assert "namespace" not in rendered(own)["metadata"]

    def test_a_cluster_scoped_object_takes_the_name_of_a_cluster_scoped_owner(self) -> None:
        assert rendered(web(REALM).with_resource(clusterrole.Builder({"rules": []})))["metadata"]["name"] == "north"

    def test_a_cluster_scoped_owner_gives_no_namespace(self) -> None:
        with pytest.raises(BuildError) as raised:
            web(REALM).with_resource(configmap.Builder({})).build()
        assert raised.value.problems == (
            f"object namespace cannot be empty: the owner {REALM.kind} north has none, so set it, or with_namespace",
        )

        manifest = rendered(web(REALM).with_namespace("town").with_resource(configmap.Builder({})))
        assert ObjectKey.of(manifest) == ("v1", "ConfigMap", "north", "town")

    def test_without_an_owner_nothing_but_the_kind_is_added(self) -> None:
        with pytest.raises(BuildError) as raised:
            Builder("web").with_resource(deployment.Builder(WORKLOAD)).build()

        assert [problem.removeprefix("Deployment: ") for problem in raised.value.problems] == [
            "spec.selector: required value",
            "object name cannot be empty",
            "object namespace cannot be empty",
        ]

    def test_a_builder_can_be_used_for_several_owners(self) -> None:
        shared = deployment.Builder(WORKLOAD)
        first, second = (rendered(web(owner).with_resource(shared)) for owner in (OWNER, OWNER._replace(name="market")))

        assert first["spec"]["selector"]["matchLabels"] == SELECTOR
        assert second["spec"]["selector"]["matchLabels"] == {**SELECTOR, INSTANCE: "market"}


class TestLabels:
    @pytest.mark.parametrize(
        ("owner", "instance"),
        [
            pytest.param("a" * 63, "a" * 63, id="the longest value"),
            pytest.param("a" * 64, f"{'a' * 54}-ffe054fe", id="one character more"),
        ],
    )
    def test_a_long_name_is_shortened_to_a_valid_value(self, owner: str, instance: str) -> None:
        """Names have up to 253 characters, and labels 63.

        Rebuilds https://github.com/open-telemetry/opentelemetry-operator/issues/596 and
        https://github.com/jaegertracing/jaeger-operator/issues/487.
        """
        assert recommended_labels(OWNER._replace(name=owner), "web")[INSTANCE] == instance

    @given(
        st.from_regex(r"[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,80}[a-z0-9])?){0,2}", fullmatch=True)
    )
    def test_labels_of_any_owner_are_valid(self, name: str) -> None:
        labels = recommended_labels(ObjectKey(f"{name}/v1", "Shop", name, "town"), "web")

        assert not list(label_errors(labels, "labels"))

    @given(st.lists(st.text("ab-", min_size=1, max_size=3), min_size=2, max_size=2, unique=True))
    def test_two_owners_never_share_a_selector(self, ends: list[str]) -> None:
        """Cut names would collide: https://github.com/GalleyBytes/terraform-operator/issues/169."""
        first, second = (recommended_labels(OWNER._replace(name="a" * 70 + end), "web") for end in ends)

        assert selector_labels(first) != selector_labels(second)

    def test_an_owner_of_the_core_group_has_no_manager(self) -> None:
        assert MANAGED_BY not in recommended_labels(ObjectKey("v1", "ConfigMap", "corner", "town"), "web")

    def test_a_component_name_that_is_no_value_of_a_label_is_an_error(self) -> None:
        with pytest.raises(BuildError, match=r"common labels: Invalid value: \"web interface\""):
            Builder("web interface", owner=OWNER).build()

    def test_labels_of_the_component_win_in_labels_and_selectors_alike(self) -> None:
        builder = web().with_labels({NAME: "store", "tier": "web"}).with_resource(deployment.Builder(WORKLOAD))
        manifest = rendered(builder)

        assert manifest["metadata"]["labels"] == {**LABELS, NAME: "store", "tier": "web"}
        assert manifest["spec"]["selector"]["matchLabels"] == {**SELECTOR, NAME: "store"}
        assert manifest["spec"]["template"]["metadata"]["labels"] == {**SELECTOR, NAME: "store"}

    @pytest.mark.parametrize("owner", [{"metadata": {"name": "corner"}}, "corner"])
    def test_an_owner_that_is_no_key_is_an_error(self, owner: Any) -> None:
        with pytest.raises(BuildError, match=r"the owner must be an ObjectKey, such as shop\.key, got (dict|str)"):
            Builder("web", owner=owner).build()


MONITOR: Final[Manifest] = {"spec": {"endpoints": [{"port": "http"}]}}


class TestSelectors:
    @pytest.mark.parametrize(
        ("builder", "path"),
        [
            pytest.param(deployment.Builder(WORKLOAD), ("selector", "matchLabels"), id="Deployment"),
            pytest.param(replicaset.Builder(WORKLOAD), ("selector", "matchLabels"), id="ReplicaSet"),
            pytest.param(daemonset.Builder(WORKLOAD), ("selector", "matchLabels"), id="DaemonSet"),
            pytest.param(
                statefulset.Builder({"spec": {**WORKLOAD["spec"], "serviceName": "web"}}),
                ("selector", "matchLabels"),
                id="StatefulSet",
            ),
            pytest.param(service.Builder({"spec": {"ports": [{"port": 80}]}}), ("selector",), id="Service"),
            pytest.param(pdb.Builder({"spec": {"minAvailable": 1}}), ("selector", "matchLabels"), id="budget"),
            pytest.param(networkpolicy.Builder({"spec": {"ingress": []}}), ("podSelector", "matchLabels"), id="policy"),
            pytest.param(servicemonitor.Builder(MONITOR), ("selector", "matchLabels"), id="ServiceMonitor"),
        ],
    )
    def test_an_object_without_a_selector_selects_the_pods_of_the_component(
        self, builder: Any, path: tuple[str, ...]
    ) -> None:
        found = rendered(web().with_resource(builder))["spec"]
        if "template" in found:
            assert found["template"]["metadata"]["labels"] == SELECTOR
        for part in path:
            found = found[part]

        assert found == SELECTOR

    @pytest.mark.parametrize(
        "selector",
        [
            pytest.param({"matchLabels": {"app": "web"}}, id="labels"),
            pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, id="expressions"),
            pytest.param({"matchLabels": {}}, id="no labels"),
        ],
    )
    def test_a_selector_of_the_baseline_is_kept_and_its_pods_get_no_labels(self, selector: Manifest) -> None:
        """That of a workload is immutable: https://github.com/cryostatio/cryostat-operator/issues/1301."""
        template = {"metadata": {"labels": {"app": "web"}}, "spec": POD}
        spec = {"selector": selector, "template": template}

        assert rendered(web().with_resource(deployment.Builder({"spec": spec})))["spec"] == spec

    def test_labels_of_the_pods_win_in_the_selector(self) -> None:
        template = {"metadata": {"labels": {COMPONENT: "server", "app": "web"}}, "spec": POD}
        spec = rendered(web().with_resource(deployment.Builder({"spec": {"template": template}})))["spec"]

        assert spec["selector"]["matchLabels"] == {**SELECTOR, COMPONENT: "server"}
        assert spec["template"]["metadata"]["labels"] == {**SELECTOR, COMPONENT: "server", "app": "web"}

    @pytest.mark.parametrize(
        "spec",
        [
            pytest.param({"type": "ExternalName", "externalName": "db.example.com"}, id="a name outside"),
            pytest.param({"selector": {}, "ports": [{"port": 80}]}, id="an empty selector"),
            pytest.param({"selector": {"app": "db"}, "ports": [{"port": 80}]}, id="another selector"),
        ],
    )
    def test_a_service_that_selects_otherwise_is_unchanged(self, spec: Manifest) -> None:
        assert rendered(web().with_resource(service.Builder({"spec": spec})))["spec"] == spec

    def test_a_policy_for_all_pods_of_the_namespace_is_unchanged(self) -> None:
        spec = {"podSelector": {}, "policyTypes": ["Ingress"]}

        assert rendered(web().with_resource(networkpolicy.Builder({"spec": spec})))["spec"] == spec

    def test_a_job_gets_no_selector(self) -> None:
        """The API server generates it."""
        base = {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}

        assert "selector" not in rendered(web().with_resource(job.Builder(base)))["spec"]

    def test_two_components_of_an_owner_select_different_pods(self) -> None:
        """A Service that reaches the other's: https://github.com/open-metadata/openmetadata-helm-charts/issues/482."""
        first, second = (
            rendered(Builder(name, owner=OWNER).with_resource(service.Builder({"spec": {"ports": [{"port": 80}]}})))
            for name in ("web", "database")
        )

        assert first["spec"]["selector"] != second["spec"]["selector"]

    def test_two_workloads_with_the_selector_of_the_component_are_an_error(self) -> None:
        second = {"metadata": {"name": "worker"}, **WORKLOAD}
        builder = web().with_resource(deployment.Builder(WORKLOAD)).with_resource(deployment.Builder(second))
        with pytest.raises(BuildError, match=r"town/corner and apps/v1/Deployment/town/worker would select the same"):
            builder.build()

    def test_a_second_workload_with_a_selector_of_its_own_is_accepted(self) -> None:
        own = {
            "metadata": {"name": "worker"},
            "spec": {
                "selector": {"matchLabels": {"app": "worker"}},
                "template": {"metadata": {"labels": {"app": "worker"}}, "spec": POD},
            },
        }
        builder = web().with_resource(deployment.Builder(WORKLOAD)).with_resource(deployment.Builder(own))

        assert [one["metadata"]["name"] for one in builder.build().render()] == ["corner", "worker"]


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["metadata", "spec", "selector", "template", "labels", "name", "type", INSTANCE]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "kind"]), JSON))
def test_completing_never_fails_keeps_what_is_there_and_is_done_once(base: Manifest) -> None:
    defaults = ObjectDefaults("town", OWNER, SELECTOR)
    kind = deployment.Builder.kind
    found = completed(base, kind, defaults)

    assert completed(found, kind, defaults) == found
    assert _keeps(base, found)


def _keeps(before: Any, after: Any) -> bool:
    """Return whether values are kept: all but null, an empty name, and what is beside a map."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(_keeps(value, after.get(key)) for key, value in before.items())
    return not before or before == after


async def test_the_api_server_accepts_them_and_nothing_is_written_twice(env: Env) -> None:
    ports = [{"port": 80}]
    component = (
        Builder("web", owner=env.owner)
        .with_resource(configmap.Builder({"data": {"a": "b"}}))
        .with_resource(deployment.Builder(WORKLOAD))
        .with_resource(service.Builder({"spec": {"ports": ports}}))
        .with_resource(service.Builder({"metadata": {"name": "bare"}, "spec": {"selector": {}, "ports": ports}}))
        .with_resource(pdb.Builder({"spec": {"minAvailable": 1}}))
        .with_resource(networkpolicy.Builder({"spec": {"ingress": []}}))
        .build()
    )

    async def reconcile(cluster: Cluster) -> None:
        async with reconciling(await cluster.get(env.owner), cluster, clock=env.clock) as context:
            await component.reconcile(context)

    await reconcile(env.cluster)
    await assert_quiet(env.cluster, reconcile)
    live = await env.cluster.get(ObjectKey("apps/v1", "Deployment", "demo", "shop"))
    labels = {NAME: "shop", INSTANCE: "demo", COMPONENT: "web"}
    assert live["spec"]["selector"]["matchLabels"] == labels
    assert live["spec"]["template"]["metadata"]["labels"] == labels
    assert live["metadata"]["labels"] == {**labels, MANAGED_BY: "example.com"}
    for entry in component.entries:
        await env.cluster.delete(entry.key)


class TestExplanation:
    """What a baseline has is its own in the explanation; what follows from the owner comes from the component."""

    @pytest.mark.parametrize(
        ("base", "own"),
        [
            pytest.param({"spec": {"ports": []}}, {"spec.ports"}, id="map"),
            pytest.param("spec: {ports: []}", {"spec.ports"}, id="YAML"),
            pytest.param(V1Service(spec=V1ServiceSpec(ports=[])), {"spec.ports"}, id="model"),
            pytest.param({"metadata": {"name": ""}, "spec": {"ports": []}}, {"spec.ports"}, id="empty name"),
            pytest.param({"metadata": None, "spec": {"ports": []}}, {"spec.ports"}, id="null as metadata"),
            pytest.param(
                {"metadata": {"name": "shop", "namespace": "town"}, "spec": {"ports": []}},
                {"metadata.name", "metadata.namespace", "spec.ports"},
                id="name and namespace, also those that the owner would give",
            ),
            pytest.param(
                {"spec": {"ports": [], "selector": {"app": "web"}}},
                {"spec.ports", "spec.selector.app"},
                id="selector",
            ),
        ],
    )
    def test_of_any_form_of_baseline(self, base: Any, own: set[str]) -> None:
        (explanation,) = web().with_resource(service.Builder(base)).build().explain()

        sources = {field.path: str(field.source) for field in explanation.fields}
        assert {path for path, source in sources.items() if source == "base"} == {"apiVersion", "kind", *own}
        assert {source for path, source in sources.items() if path not in own} == {"base", "component"}
        assert all(len(field.settings) == 1 for field in explanation.fields), "no field is set twice"

    def test_labels_of_a_pod_template_are_told_apart(self) -> None:
        base = {"spec": {"template": {"metadata": {"labels": {"app": "web", NAME: "page"}}, "spec": POD}}}
        (explanation,) = web().with_resource(deployment.Builder(base)).build().explain()

        prefix = "spec.template.metadata.labels"
        sources = {field.path: str(field.source) for field in explanation.fields if field.path.startswith(prefix)}
        assert sources == {
            f"{prefix}.app": "base",
            f"{prefix}.{NAME}": "base",
            f"{prefix}.{INSTANCE}": "component",
            f"{prefix}.{COMPONENT}": "component",
        }

    def test_a_mutation_shows_what_the_component_had_given(self) -> None:
        def mutate(m: deployment.Mutator) -> None:
            m.edit_pod_template_metadata(lambda meta: meta.ensure_label(INSTANCE, "other"))

        renamed = deployment.Mutation("label", mutate)
        (explanation,) = web().with_resource(deployment.Builder(WORKLOAD).with_mutation(renamed)).build().explain()

        field = explanation.field(f"spec.template.metadata.labels.{INSTANCE}")
        history = [(setting.value, str(setting.source)) for setting in field.settings]
        assert history == [("corner", "component"), ("other", "mutation label, edit_pod_template_metadata")]
