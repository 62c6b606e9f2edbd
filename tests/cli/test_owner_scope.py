"""Cluster-scoped owners in every command that takes owners: their key comes from the scope of their kind.

The API server drops the namespace of a cluster-scoped object, and so does kubectl. Commands that kept it took it for
another object: https://github.com/kubernetes-sigs/kubebuilder-declarative-pattern/pull/213,
https://github.com/argoproj/argo-cd/issues/784 and https://github.com/open-cluster-management-io/ocm/issues/323.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from ocf.cli import diff as command
from ocf.cli.app import app
from ocf.objects import Manifest, ObjectKey
from ocf.objects.documents import load_documents
from ocf_server import EmbeddedCluster
from tests.cli.test_dev import dev

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

MODULE = """
from ocf import component
from ocf.primitives import clusterrole, configmap
from ocf.runtime.crds import CamelModel, CustomResource, Scope
from ocf.runtime.operator import Operator, OwnerType


class RealmSpec(CamelModel):
    motto: str = "open"


class Realm(CustomResource[RealmSpec], group="example.com", version="v1", scope=Scope.CLUSTER):
    '''A realm.'''


def components(owner: Realm):
    settings = {"kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "town"}}
    settings |= {"apiVersion": "v1", "data": {"owner": f"{owner.metadata.namespace or 'none'}"}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "guide"}}
    return (
        component.Builder("web", owner=owner.key)
        .with_resource(configmap.Builder(settings).build())
        .with_resource(clusterrole.Builder(role).build())
        .with_prune()
        .build()
    )


realms = Operator(name="realms", owner=OwnerType.of(Realm), components=components)
"""
TARGET = "realm_operator:realms"
KEY = ObjectKey("example.com/v1", "Realm", "north")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "realm_operator.py").write_text(MODULE)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "realms"\nversion = "1.0"\ndescription = "Realms."\n')
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("realm_operator", None)


@pytest.fixture(params=["", "elsewhere"], ids=["without a namespace", "with a namespace"])
def owner(request: pytest.FixtureRequest, folder: Path) -> str:
    """Return the file of an owner."""
    home = f", namespace: {request.param}" if request.param else ""
    text = f"{{apiVersion: example.com/v1, kind: Realm, metadata: {{name: north{home}}}, spec: {{}}}}"
    (folder / "realm.yaml").write_text(text)
    return "realm.yaml"


def ocf(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_preview_shows_what_the_operator_makes(owner: str) -> None:
    result = ocf("preview", TARGET, "--owner", owner)
    assert result.exit_code == 0, result.output
    assert "# component web of Realm north\n" in result.output
    made = {each["kind"]: each for each in load_documents(result.output)}
    assert made["ConfigMap"]["data"] == {"owner": "none"}
    assert made["ClusterRole"]["metadata"]["labels"]["app.kubernetes.io/instance"] == "north"


@pytest.mark.parametrize("exists", [False, True], ids=["a new owner", "an existing owner"])
def test_diff_reads_the_owner_of_that_name(owner: str, monkeypatch: pytest.MonkeyPatch, *, exists: bool) -> None:
    cluster = EmbeddedCluster(namespaces=["town"])

    async def connect(*_: object) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncIterator[EmbeddedCluster]:
            yield cluster

        return opened()

    monkeypatch.setattr(command, "connect", connect)
    uid = asyncio.run(_created(cluster)) if exists else ""
    result = ocf("diff", TARGET, "--owner", owner, "--output", "json")
    assert result.exit_code == 1, result.output
    assert '"owner": "Realm north"' in result.output
    assert ("not in the cluster" in result.output) is not exists
    assert (f'"uid": "{uid}"' in result.output) is exists


async def _created(cluster: EmbeddedCluster) -> str:
    from ocf.cli.operator_loader import load_operators

    for definition in load_operators(TARGET)[0].all_definitions:
        await cluster.create(definition, field_manager="user")
    manifest = {"apiVersion": KEY.api_version, "kind": KEY.kind, "metadata": {"name": KEY.name}, "spec": {}}
    made = await cluster.create(manifest, field_manager="user")
    return str(made["metadata"]["uid"])


async def test_dev_makes_the_objects_of_the_owner(owner: str, folder: Path) -> None:
    (folder / "town.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: town}}")
    async with dev(TARGET, "--apply", "town.yaml", "--apply", owner) as running:
        made = await running.first("/api/v1/namespaces/town/configmaps")
        assert made["data"] == {"owner": "none"}
        _, live = await running.request("GET", "/apis/example.com/v1/realms/north")
        assert [one["uid"] for one in made["metadata"]["ownerReferences"]] == [live["metadata"]["uid"]]


def test_manifests_grant_what_the_scope_needs(owner: str, folder: Path) -> None:
    """Owners need a ClusterRole; the lease and the events a Role each, in the operator's namespace and in `default`."""
    result = ocf("manifests", TARGET, "--owner", owner, "--directory", "out", "--image", "realms:1")
    assert result.exit_code == 0, result.output
    roles = load_documents((folder / "out/base/roles.yaml").read_text())
    found = {
        (each["kind"], each["metadata"].get("namespace", ""), resource)
        for each in roles
        for rule in each.get("rules", ())
        for resource in rule["resources"]
    }
    assert {("ClusterRole", "", "realms"), ("ClusterRole", "", "realms/status")} <= found
    assert {("ClusterRole", "", "configmaps"), ("ClusterRole", "", "clusterroles")} <= found
    assert ("Role", "default", "events") in found
    assert ("Role", "realms", "leases") in found
    assert [each for each in found if each[0] == "Role" and each[2].startswith("realms")] == []
    definition = _definition(folder)
    assert definition["spec"]["scope"] == "Cluster"


def _definition(folder: Path) -> Manifest:
    documents = [each for file in sorted((folder / "out").rglob("*.yaml")) for each in load_documents(file.read_text())]
    return next(each for each in documents if each["kind"] == "CustomResourceDefinition")
