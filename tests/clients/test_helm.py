"""helm takes the same steps on the embedded API server, with and without TLS, and on a real one."""

from pathlib import Path
from typing import Final

from tests.clients.helm import Helm
from tests.clients.support import Server

CHART: Final = {
    "Chart.yaml": "{apiVersion: v2, name: shop, version: 0.1.0, appVersion: '1'}",
    "values.yaml": "{colour: red, replicas: 2}",
    "crds/corners.yaml": """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: corners.helm.example.com}
spec:
  group: helm.example.com
  scope: Namespaced
  names: {plural: corners, singular: corner, kind: Corner, listKind: CornerList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}
""",
    "templates/settings.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  colour: {{ .Values.colour }}
  found: {{ (lookup "v1" "ConfigMap" .Release.Namespace "elsewhere").data | toJson | quote }}
  hpa: {{ .Capabilities.APIVersions.Has "autoscaling/v2/HorizontalPodAutoscaler" | quote }}
""",
    "templates/web.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
""",
    "templates/corner.yaml": """
apiVersion: helm.example.com/v1
kind: Corner
metadata: {name: corner}
spec: {size: 3}
""",
    "templates/hook.yaml": """
apiVersion: v1
kind: ConfigMap
metadata:
  name: before
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}
data: {revision: "{{ .Release.Revision }}"}
""",
    "templates/test.yaml": """
apiVersion: v1
kind: ConfigMap
metadata: {name: checked, annotations: {helm.sh/hook: test}}
""",
    "templates/NOTES.txt": "The colour is {{ .Values.colour }}.",
}


async def tour(server: Server, folder: Path) -> None:
    for name, text in CHART.items():
        path = folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.strip() + "\n")
    helm = Helm(server, folder)
    release = "corner-shop"
    assert "0 chart(s) failed" in await helm.succeeds("lint", "shop")
    assert "colour: red" in await helm.succeeds("template", release, "shop")
    assert await helm.json("list") == []
    assert (await helm("status", release))[0] == 1
    assert "The colour is red." in await helm.succeeds("install", release, "shop", "--dry-run=client")
    assert await helm.json("list") == []

    installed = await helm.json("install", release, "shop")
    assert (installed["info"]["status"], installed["version"]) == ("deployed", 1)
    assert (await helm("install", release, "shop"))[0] == 1
    assert 'hpa: "true"' in await helm.manifest(release)
    code, output = await helm("template", "other", "shop", "--dry-run=server")
    assert code == 1
    assert 'ConfigMap "settings" in namespace' in output
    assert "exists and cannot be imported into the current release" in output
    listed = await helm.json("list", "--all-namespaces", "--filter", release)
    mine = [item for item in listed if item["namespace"] == server.namespace]
    assert [(item["name"], item["revision"], item["status"]) for item in mine] == [(release, "1", "deployed")]
    assert (await helm.json("get", "values", release, "--all"))["colour"] == "red"
    assert "name: before" in await helm.succeeds("get", "hooks", release)

    upgraded = await helm.json("upgrade", release, "shop", "--set=colour=blue", "--wait=hookOnly")
    assert upgraded["version"] == 2
    assert "colour: blue" in await helm.manifest(release)
    assert (await helm.json("get", "values", release)) == {"colour": "blue"}
    again = await helm.json("upgrade", release, "shop", "--reuse-values", "--set=replicas=3")
    assert again["version"] == 3
    code, output = await helm("upgrade", release, "shop", "--set=replicas=many")
    assert code == 1
    assert "replicas" in output
    assert (await helm.json("status", release))["info"]["status"] == "failed"

    await helm.succeeds("rollback", release, "1")
    assert "colour: red" in await helm.manifest(release)
    history = await helm.json("history", release)
    assert [item["status"] for item in history] == ["superseded", "superseded", "superseded", "failed", "deployed"]
    assert "checked" in await helm.succeeds("test", release)
    assert (await helm.json("get", "metadata", release))["revision"] == 5
    assert "colour: red" in await helm.succeeds("get", "all", release)

    assert "uninstalled" in await helm.succeeds("uninstall", release, "--keep-history")
    assert [item["status"] for item in await helm.json("list", "--uninstalled")] == ["uninstalled"]
    assert "uninstalled" in await helm.succeeds("uninstall", release)
    assert (await helm.json("upgrade", release, "shop", "--install"))["version"] == 1
    assert "uninstalled" in await helm.succeeds("uninstall", release, "--wait", "--cascade=background")
    assert await helm.json("list") == []


async def test_on_the_embedded_server(embedded: Server, tmp_path: Path) -> None:
    await tour(embedded, tmp_path)


async def test_on_a_real_server(real: Server, tmp_path: Path) -> None:
    await tour(real, tmp_path)
