"""APIServices of the groups that the server itself serves."""

import pytest

from ocf.objects import Manifest, ObjectKey
from ocf_server import CustomKind, EmbeddedCluster
from ocf_server.apiextensions.served_kinds import definition_of
from ocf_server.http.resource_catalog import builtin_kinds
from tests.ocf_server.http.conftest import Client

PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
LABEL = "kube-aggregator.kubernetes.io/automanaged"
AVAILABLE = {
    "type": "Available",
    "status": "True",
    "reason": "Local",
    "message": "Local APIServices are always available",
}


async def names(ask: Client) -> list[str]:
    return [item["metadata"]["name"] for item in (await ask("GET", PATH)).json["items"]]


async def test_every_builtin_version_but_that_of_api_services_has_one(ask: Client) -> None:
    versions = {f"{kind.version}.{kind.group}" for kind in builtin_kinds()}
    found = [item for item in (await ask("GET", PATH)).json["items"] if item["metadata"]["labels"][LABEL] == "onstart"]
    assert {item["metadata"]["name"] for item in found} == versions - {"v1.apiregistration.k8s.io"}


async def test_it_is_the_one_of_a_real_api_server(ask: Client) -> None:
    apps = (await ask("GET", f"{PATH}/v1.apps")).json
    assert apps["spec"] == {"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15}
    (condition,) = apps["status"]["conditions"]
    assert {**AVAILABLE, "lastTransitionTime": condition["lastTransitionTime"]} == condition
    core = (await ask("GET", f"{PATH}/v1.")).json
    assert core["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert core["metadata"]["managedFields"][0]["manager"] == "kube-apiserver"


async def test_those_of_custom_versions_follow_the_definitions(ask: Client, cluster: EmbeddedCluster) -> None:
    definition: Manifest = definition_of(CustomKind("tea.example.com", "v1", "Cup"))
    assert "v1.tea.example.com" not in await names(ask)
    await cluster.create(definition, field_manager="test")
    cup = (await ask("GET", f"{PATH}/v1.tea.example.com")).json
    assert (cup["metadata"]["labels"], cup["spec"]["versionPriority"]) == ({LABEL: "true"}, 100)
    await ask("DELETE", f"{PATH}/v1.tea.example.com")
    assert "v1.tea.example.com" in await names(ask)
    await cluster.delete(ObjectKey.of(definition))
    assert "v1.tea.example.com" not in await names(ask)


async def test_a_builtin_one_that_is_deleted_is_not_created_again(ask: Client) -> None:
    assert (await ask("DELETE", f"{PATH}/v1.apps")).status == 200
    assert "v1.apps" not in await names(ask)
    assert (await ask("GET", "/apis/apps/v1/deployments")).status == 200


async def test_one_of_a_client_is_left_alone(ask: Client) -> None:
    spec = {"group": "batch", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 5}
    head = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.batch"}}
    assert (await ask("POST", PATH, {**head, "spec": spec})).status == 409
    assert (await ask("PUT", f"{PATH}/v1.batch", {**head, "spec": spec})).status == 200
    assert (await ask("GET", f"{PATH}/v1.batch")).json["spec"] == spec


@pytest.mark.parametrize("path", ["/api/v1/pods", "/apis/apps/v1/deployments", "/apis"])
async def test_other_requests_create_none(ask: Client, cluster: EmbeddedCluster, path: str) -> None:
    before = cluster.resource_version
    await ask("GET", path)
    assert cluster.resource_version == before
