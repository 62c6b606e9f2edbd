"""The objects of an installation: they fit together, and to the options that the process reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ocf.cluster import ServiceAccount
from ocf.component import Builder, Component
from ocf.errors import ConfigError
from ocf.manifests import Format, InstallOptions, render
from ocf.manifests.install_options import Project
from ocf.objects import Manifest, ObjectKey
from ocf.objects.documents import load_documents
from ocf.primitives import configmap
from ocf.runtime.operator import environment_options
from tests.manifests.support import installation

COMBINATIONS = [
    pytest.param({}, id="webhooks and leader election"),
    pytest.param({"webhooks": False}, id="no webhooks"),
    pytest.param({"leader_election": False}, id="no leader election"),
    pytest.param({"webhooks": False, "leader_election": False}, id="neither"),
    pytest.param({"watch_namespaces": ["town", "city"]}, id="two namespaces"),
    pytest.param({"webhooks": False, "converting": True}, id="two versions"),
    pytest.param({"page": True, "watch_namespaces": ["town"]}, id="page"),
    pytest.param({"cluster_scoped": True, "replicas": 3, "kopf": True}, id="cluster-scoped in kopf"),
]


def objects(options: dict[str, Any]) -> dict[str, Manifest]:
    """Return the objects of the kustomization, by kind."""
    files = render(installation(**options), Format.KUSTOMIZE).generated
    return {one["kind"]: one for text in files.values() for one in load_documents(text)}


def container(found: dict[str, Manifest]) -> Manifest:
    (only,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(only)


@pytest.mark.parametrize("options", COMBINATIONS)
def test_the_process_reads_from_its_deployment_what_its_privileges_are_for(options: dict[str, Any]) -> None:
    given = installation(**options)
    env = {one["name"]: one.get("value", "shops") for one in container(objects(options))["env"]}
    process = environment_options("shops", env)

    assert process.policy_rules(given.operator) <= given.policy_rules()
    assert tuple(process.namespaces) == tuple(given.options.watch_namespaces)
    assert (process.lease is not None) is given.options.leader_election
    assert (process.admission is not None) is given.serves_webhooks
    assert (process.page is not None) is given.options.page


@pytest.mark.parametrize("options", COMBINATIONS)
def test_every_port_that_is_named_is_one_of_the_container(options: dict[str, Any]) -> None:
    found = objects(options)
    ports = {port["name"] for port in container(found)["ports"]}
    probes = {container(found)[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")}
    served = {port["targetPort"] for port in found["Service"]["spec"]["ports"]}
    allowed = {port["port"] for rule in found["NetworkPolicy"]["spec"]["ingress"] for port in rule["ports"]}
    scraped = {one["port"] for one in found["ServiceMonitor"]["spec"]["endpoints"]}

    assert probes <= ports
    assert served == ports == allowed
    assert scraped <= {port["name"] for port in found["Service"]["spec"]["ports"]}


@pytest.mark.parametrize("options", COMBINATIONS)
def test_every_selector_selects_the_pods(options: dict[str, Any]) -> None:
    found = objects(options)
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ]

    assert all(selector and selector.items() <= labels.items() for selector in selectors)
    monitored = found["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert monitored.items() <= found["Service"]["metadata"]["labels"].items()


def test_the_conversion_webhook_of_the_definition_is_the_service_of_the_operator() -> None:
    found = objects({"converting": True})
    service = found["Service"]
    definition = found["CustomResourceDefinition"]["spec"]
    assert definition["conversion"]["webhook"]["clientConfig"]["service"] == {
        "name": service["metadata"]["name"],
        "namespace": service["metadata"]["namespace"],
        "port": service["spec"]["ports"][0]["port"],
        "path": "/convert/example.com/shops",
    }
    assert [(one["name"], one["storage"]) for one in definition["versions"]] == [("v1alpha1", False), ("v1", True)]
    assert "conversion" not in objects({})["CustomResourceDefinition"]["spec"]


def test_namespaces_to_watch_have_a_role_each_and_the_cluster_none() -> None:
    files = render(installation(watch_namespaces=["town"], webhooks=False), Format.KUSTOMIZE).generated
    written = [one for one in load_documents(files["base/roles.yaml"]) if one["kind"].endswith("Role")]

    assert [(one["kind"], one["metadata"]["namespace"]) for one in written] == [("Role", "shops"), ("Role", "town")]


def test_one_process_has_no_disruption_budget() -> None:
    """An eviction of the only process would be blocked for ever."""
    assert "PodDisruptionBudget" not in objects({"replicas": 1})
    assert objects({"replicas": 2})["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1


def test_replicas_that_divide_the_owners_are_evicted_one_at_a_time() -> None:
    found = objects({"replicas": 3, "sharding": "uid"})
    assert found["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    (container,) = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert {"name": "SHARDING", "value": "uid"} in container["env"]


def test_alerts_are_about_conditions_that_are_good_when_true() -> None:
    text = render(installation(), Format.KUSTOMIZE).generated["components/monitoring/alerts.yaml"]

    assert 'shops_controller_condition{condition=~"WebReady|Ready|shops/Reconciled", status="False"}' in text


def test_kopf_is_granted_what_it_lists() -> None:
    def resources(options: dict[str, Any]) -> set[str]:
        return {rule.resource for rule in installation(**options).policy_rules()}

    assert resources({"kopf": True}) - resources({}) == {"customresourcedefinitions", "namespaces"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"replicas": 0}, "must be at least 1, got 0", id="no process"),
        pytest.param({"replicas": 2, "leader_election": False}, "2 replicas need leader election", id="two leaders"),
        pytest.param({"namespace": "Shops"}, 'invalid namespace "Shops"', id="namespace"),
        pytest.param({"watch_namespaces": ["a_b"]}, 'invalid namespace "a_b"', id="namespace to watch"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        InstallOptions(**options)


@pytest.mark.parametrize(
    ("python", "semantic"),
    [
        pytest.param("1.2.3", "1.2.3", id="release"),
        pytest.param("1.2", "1.2.0", id="two numbers"),
        pytest.param("1.2.0rc1", "1.2.0-rc.1", id="candidate"),
        pytest.param("0.1.0.dev0", "0.1.0-dev.0", id="development"),
        pytest.param("1.0a1.dev2", "1.0.0-a.1.dev.2", id="development of a prerelease"),
    ],
)
def test_a_version_of_python_becomes_a_semantic_one(python: str, semantic: str) -> None:
    assert Project.of_pyproject({"version": python}).version == semantic


def test_another_version_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"must be a semantic version such as 1\.2\.0"):
        Project.of_pyproject({"version": "1!2.0"})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"watch_namespaces": ["town"]}, "OLM selects the namespaces to watch", id="namespaces"),
    ],
)
def test_what_a_bundle_cannot_express_is_rejected(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        render(installation(**options), Format.OLM)


@pytest.mark.parametrize("options", COMBINATIONS)
@pytest.mark.parametrize("release", ["default", "town", "elsewhere"])
def test_no_two_objects_of_a_chart_are_the_same_in_any_namespace(options: dict[str, Any], release: str) -> None:
    """The release may go where the watched objects are, or events about owners without a namespace."""
    text = render(installation(**options), Format.HELM).generated["templates/roles.yaml"]
    found = load_documents(text.replace("{{ .Release.Namespace }}", release))
    names = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in found]
    assert len(names) == len(set(names))
    roles = {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in found}
    bound = {
        (one["roleRef"]["kind"], one["metadata"].get("namespace"), one["roleRef"]["name"])
        for one in found
        if "roleRef" in one
    }
    assert bound <= roles


def acting(user: str | ServiceAccount, **options: Any) -> Component:
    """Return a component with an object in the namespace town."""
    settings = configmap.Builder({"metadata": {"name": "settings", "namespace": "town"}})
    owner = ObjectKey("example.com/v1", "Shop", "corner", "town")
    return Builder("web", owner=owner).acting_as(user, **options).with_resource(settings).build()


@pytest.mark.parametrize(
    ("components", "options", "findings"),
    [
        pytest.param(
            [acting(ServiceAccount("deployer", "town"))],
            {},
            ["ClusterRole shops may impersonate every service account, also of kube-system, and so has the rights of"],
            id="an account beside the objects",
        ),
        pytest.param(
            [acting(ServiceAccount("deployer", "town"))],
            {"watch_namespaces": ["town", "city"]},
            [
                "Role shops of the namespace city may impersonate every service account there: keep none in city with",
                "Role shops of the namespace town may impersonate every service account there: keep none in town with",
            ],
            id="an account beside the objects, in watched namespaces",
        ),
        pytest.param(
            [acting(ServiceAccount("red", "tenancy")), acting(ServiceAccount("blue", "tenancy"))],
            {},
            ["Role shops of the namespace tenancy may impersonate only: service accounts blue, red, from the"],
            id="accounts of one namespace",
        ),
        pytest.param(
            [acting("jane", groups=["dev"], extra={"Scopes": ["view"]})],
            {},
            [
                "ClusterRole shops may impersonate only: group dev, from",
                "ClusterRole shops may impersonate only: user jane, from",
                "ClusterRole shops may impersonate only: userextras/scopes view, from",
            ],
            id="a user with a group and an attribute",
        ),
        pytest.param([], {}, [], id="none"),
    ],
)
def test_as_whom_an_operator_may_act_is_said(
    components: list[Component], options: dict[str, Any], findings: list[str]
) -> None:
    """Within a namespace it also gives the rights of every account: https://github.com/kubernetes/kubernetes/issues/138315."""
    found = sorted(replace(installation(**options), components=components).impersonation_findings())
    assert len(found) == len(findings)
    assert [text for text, start in zip(found, findings, strict=True) if not text.startswith(start)] == []
