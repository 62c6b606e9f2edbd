"""On a real API server a kubeconfig that impersonates acts as the other user, with that user's privileges only."""

from __future__ import annotations

import json
import shutil
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.cluster import ListOptions, PatchOptions, PatchType, WatchOptions
from ocf.cluster.client import ApiServerCluster
from ocf.cluster.client.connection import Connection
from ocf.cluster.client.kubeconfig import load_config
from ocf.cluster.client.requests import HttpRequest
from ocf.errors import ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.rbac import PolicyRule
from tests.support import until_granted

if TYPE_CHECKING:
    from ocf.testing.envtest import ControlPlane
    from ocf.testing.envtest.fixtures import Envtest

RBAC: Final = "rbac.authorization.k8s.io"
REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}


def impersonating(kubeconfig: Path, folder: Path, **fields: Any) -> Path:
    """Write a kubeconfig like another one, whose user impersonates."""
    config = json.loads(kubeconfig.read_text())
    config["users"][0]["user"] |= {name.replace("_", "-"): value for name, value in fields.items()}
    path = folder / "impersonating"
    path.write_text(json.dumps(config))
    return path


async def whoami(cluster: ApiServerCluster) -> dict[str, Any]:
    """Ask the server who the user is."""
    answer = await cluster.create(REVIEW, field_manager="us")
    info: dict[str, Any] = answer["status"]["userInfo"]
    return info


def config_map(namespace: str, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


@pytest.fixture
async def allowed(envtest: Envtest, envtest_cluster: ApiServerCluster) -> str:
    """Let jane list ConfigMaps in the namespace of the test, and nothing else."""
    metadata = {"name": "jane", "namespace": envtest.namespace}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"]}]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "jane"},
    }
    for manifest in (role, binding):
        await envtest_cluster.create(manifest, field_manager="us")
    rule = PolicyRule("", "configmaps", "list", namespace=envtest.namespace)
    await until_granted(envtest_cluster, "jane", [rule])
    return envtest.namespace


async def test_an_impersonated_user_has_only_its_own_privileges(
    envtest: Envtest, envtest_cluster: ApiServerCluster, allowed: str, tmp_path: Path
) -> None:
    """The administrator, who authenticates, has all."""
    await envtest_cluster.create(config_map(allowed, "seen"), field_manager="us")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": allowed}}
    key = ObjectKey("v1", "ConfigMap", "seen", allowed)
    async with await ApiServerCluster.connect(impersonating(envtest.kubeconfig, tmp_path, **{"as": "jane"})) as jane:
        assert (await whoami(jane))["username"] == "jane"
        page = await jane.list("v1", "ConfigMap", ListOptions(namespace=allowed))
        assert "seen" in [item["metadata"]["name"] for item in page.items]
        options = WatchOptions(resource_version=page.resource_version, namespace=allowed)
        async with aclosing(jane.watch("v1", "ConfigMap", options)) as events:
            await envtest_cluster.create(config_map(allowed, "later"), field_manager="us")
            assert (await anext(events)).object["metadata"]["name"] == "later"
        patch = PatchOptions(patch_type=PatchType.MERGE, field_manager="us")
        for refused in (
            jane.get(key),
            jane.list("v1", "ConfigMap", ListOptions(namespace="default")),
            jane.list("v1", "Secret", ListOptions(namespace=allowed)),
            anext(jane.watch("v1", "Secret", WatchOptions(resource_version="1", namespace=allowed))),
            jane.create(secret, field_manager="us"),
            jane.apply(config_map(allowed, "seen"), field_manager="us"),
            jane.patch(key, {"data": {"a": "b"}}, patch),
            jane.delete(key),
        ):
            with pytest.raises(ForbiddenError, match='User "jane" cannot'):
                await refused


async def test_all_attributes_of_the_user_arrive(envtest: Envtest, tmp_path: Path) -> None:
    kubeconfig = impersonating(
        envtest.kubeconfig,
        tmp_path,
        **{"as": "jürgen", "as-uid": "u-7"},
        as_groups=["dev", "ops, and more"],
        as_user_extra={"Example.com/Team": ["web", "%41"], "50%": ["x"]},
    )
    async with await ApiServerCluster.connect(kubeconfig) as cluster:
        info = await whoami(cluster)

    assert (info["username"], info["uid"]) == ("jürgen", "u-7")
    assert info["groups"] == ["dev", "ops, and more", "system:authenticated"]
    assert info["extra"] == {"example.com/team": ["web", "%41"], "50%": ["x"]}


def test_a_command_impersonates(envtest: Envtest, allowed: str, tmp_path: Path) -> None:
    kubeconfig = impersonating(envtest.kubeconfig, tmp_path, **{"as": "jane"})
    answer = CliRunner().invoke(app, ["explain", "web", "-n", allowed, "--kubeconfig", str(kubeconfig)])

    assert (answer.exit_code, 'User "jane" cannot' in answer.stderr) == (2, True), answer.stderr


async def test_a_rotated_client_certificate_is_used_without_a_restart(
    envtest_plane: ControlPlane, tmp_path: Path
) -> None:
    def rotate(user: str) -> str:
        source = envtest_plane.kubeconfig_for(user)
        config = json.loads(source.read_text())
        files = config["users"][0]["user"]
        for field, name in (("client-certificate", "cert"), ("client-key", "key")):
            shutil.copy(files[field], tmp_path / name)
            files[field] = name
        (tmp_path / "config").write_text(json.dumps(config))
        return user

    now = 0.0
    rotate("old")
    connection = Connection(load_config(tmp_path / "config"), timeout=600, idle_timeout=600, now=lambda: now)
    request = HttpRequest("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=REVIEW)
    names = []
    for now in (0.0, 59.0, 60.0):  # noqa: B007 (the clock reads it)
        names.append((await connection.send(request))["status"]["userInfo"]["username"])
        rotate("new")
    await connection.close()

    assert names == ["old", "old", "new"]
