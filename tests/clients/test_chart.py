"""helm accepts the charts that `ocf manifests` writes, and installs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ocf.manifests import Format, render
from ocf.objects import Manifest, dump_document
from ocf.objects.documents import load_documents
from ocf.runtime.admission import Webhook
from tests.clients.helm import Helm
from tests.clients.support import Server
from tests.manifests.support import installation

MONITORED = "serviceMonitor.enabled=true,alerts.enabled=true,dashboard.enabled=true"


@pytest.fixture
def helm(tmp_path: Path) -> Helm:
    """Return helm, in a folder with the charts; a server is needed by those of its commands that install."""
    kubeconfig = tmp_path / "kubeconfig"
    return Helm(Server(kubeconfig, "ops"), tmp_path)


def write_chart(folder: Path, **options: Any) -> None:
    for path, text in render(installation(**options), Format.HELM).generated.items():
        (folder / "shops" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "shops" / path).write_text(text, encoding="utf-8")


def by_key(manifests: tuple[Manifest, ...]) -> dict[str, Manifest]:
    """Return manifests without what only the chart sets."""
    found = {}
    for one in manifests:
        one["metadata"].get("annotations", {}).pop("helm.sh/resource-policy", None)
        found[f"{one['kind']} {one['metadata']['name']}"] = without_empty(one)
    return found


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_empty(each) for key, each in value.items() if each not in ({}, []) and key != "imagePullPolicy"
        }
    return [without_empty(each) for each in value] if isinstance(value, list) else value


def named_apart(manifest: Manifest, release: str) -> Manifest:
    """Return a role outside of the release under the name that it has in a chart, whose release may be anywhere."""
    home = manifest["metadata"].get("namespace")
    if manifest["kind"] not in {"Role", "RoleBinding"} or home == release:
        return manifest
    name = f"{manifest['metadata']['name']}-{home}"
    reference = {"roleRef": {**manifest["roleRef"], "name": name}} if "roleRef" in manifest else {}
    return {**manifest, "metadata": {**manifest["metadata"], "name": name}, **reference}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"replicas": 2}, id="webhooks"),
        pytest.param({"webhooks": False, "cluster_scoped": True}, id="cluster-scoped"),
        pytest.param({"guards": [Webhook("", "v1", "Pod", "pods")]}, id="pods"),
    ],
)
async def test_a_chart_renders_what_the_kustomization_has(helm: Helm, options: dict[str, Any]) -> None:
    """Braces in descriptions and in alerts, which are not expressions of the chart, are the same, too."""
    write_chart(helm.folder, **options)
    files = render(installation(**options, namespace="ops"), Format.KUSTOMIZE).generated
    objects = [one for text in files.values() for one in load_documents(text) if "metadata" in one]
    wanted = by_key(tuple(named_apart(one, "ops") for one in objects))
    del wanted["Namespace ops"]

    assert "0 chart(s) failed" in await helm.succeeds("lint", "--strict", "shops")
    rendered = by_key(load_documents(await helm.succeeds("template", "release", "shops", f"--set={MONITORED}")))

    assert rendered == wanted


async def test_values_are_validated(helm: Helm) -> None:
    write_chart(helm.folder)

    code, output = await helm("template", "release", "shops", "--set=replica=2")

    assert code == 1
    assert "additional properties 'replica' not allowed" in output


async def test_values_change_the_deployment(helm: Helm) -> None:
    write_chart(helm.folder)
    values = {
        "image": {"repository": "registry.example.com/shops", "tag": "2", "pullSecrets": [{"name": "pull"}]},
        "replicas": 3,
        "podAnnotations": {"team": "shops"},
        "tolerations": [{"key": "infra"}],
        "networkPolicy": {"enabled": False},
    }
    (helm.folder / "values.yaml").write_text(dump_document(values))

    rendered = load_documents(await helm.succeeds("template", "release", "shops", "--values=values.yaml"))

    found = {one["kind"]: one for one in rendered}
    pod = found["Deployment"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["image"] == "registry.example.com/shops:2"
    assert found["Deployment"]["spec"]["replicas"] == 3
    assert (pod["metadata"]["annotations"], pod["spec"]["imagePullSecrets"]) == ({"team": "shops"}, [{"name": "pull"}])
    assert pod["spec"]["tolerations"] == [{"key": "infra"}]
    assert "PodDisruptionBudget" in found
    assert "NetworkPolicy" not in found


@pytest.mark.parametrize("embedded", ["https"], indirect=True)
async def test_a_chart_is_installed_upgraded_and_uninstalled(embedded: Server, tmp_path: Path) -> None:
    write_chart(tmp_path)
    helm = Helm(embedded, tmp_path)

    installed = await helm.json("install", "shops", "shops")
    assert installed["info"]["status"] == "deployed"
    upgraded = await helm.json("upgrade", "shops", "shops", "--set=replicas=2")
    assert upgraded["version"] == 2
    assert "PodDisruptionBudget" in await helm.manifest("shops")
    assert "kept" in await helm.succeeds("uninstall", "shops")
    assert await helm.json("list") == []
