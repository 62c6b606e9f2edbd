"""`ocf validate` in ordinary repositories: only autoscalers fail, and the summary says what was passed over.

Each layout is read twice: as a folder, as the GitHub action does, and file by file, as pre-commit does.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
from click.testing import CliRunner

from ocf.cli.app import app

if TYPE_CHECKING:
    from click.testing import Result

HPA: Final = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
"""
BAD: Final = HPA.replace("minReplicas: 2", "minReplicas: 20")
HELM: Final = """{{- if .Values.autoscaling.enabled }}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ include "web.fullname" . }}
  labels:
    {{- include "web.labels" . | nindent 4 }}
spec:
  maxReplicas: {{ .Values.autoscaling.maxReplicas }}
{{- end }}
"""
QUOTED: Final = HPA.replace("name: web}", 'name: "{{ .Release.Name }}"}').replace("2", '"{{ .Values.min }}"')
WORKFLOW: Final = """name: ci
on:
  push: {branches: [main]}
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
    - uses: actions/checkout@v4
    - run: |
        kubectl apply -f - <<EOF
        kind: HorizontalPodAutoscaler
        EOF
      env: {SHA: "${{ github.sha }}"}
"""
MKDOCS: Final = """site_name: HorizontalPodAutoscaler
markdown_extensions:
- pymdownx.emoji:
    emoji_index: !!python/name:material.extensions.emoji.twemoji
- toc: {permalink: !ENV [LINKS, true]}
"""
CLOUDFORMATION: Final = """AWSTemplateFormatVersion: 2010-09-09
Resources:
  Group:
    Type: AWS::AutoScaling::AutoScalingGroup
    Properties:
      VPCZoneIdentifier: !Split [",", !Ref Subnets]
      Tags: [{Key: kind, Value: !Sub "${AWS::StackName}"}]
"""
OPENAPI: Final = """openapi: 3.1.0
paths:
  /autoscalers:
    get:
      responses:
        200: {description: OK, x-kind: {kind: HorizontalPodAutoscaler}}
        404: {description: Not found}
"""
PLAYBOOK: Final = f"""- hosts: all
  tasks:
  - name: "autoscaler of {{{{ app }}}}"
    kubernetes.core.k8s:
      definition:
        {HPA.replace(chr(10), chr(10) + "        ").rstrip()}
"""
DEPLOYMENT: Final = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {}}\n"
SERVICE: Final = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
PATCH: Final = (
    "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec: {maxReplicas: 30}\n"
)
KUSTOMIZE: Final = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
CRD: Final = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: autoscalers.example.com}
spec: {names: {kind: HorizontalPodAutoscaler}}
"""
OPENSHIFT: Final = """apiVersion: template.openshift.io/v1
kind: Template
objects:
- {apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: "${MAX}"}}
"""
FLUX: Final = HPA.replace("maxReplicas: 10", "maxReplicas: ${MAX_REPLICAS:=10}")
V1: Final = """apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  maxReplicas: 3
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
"""
LIST: Final = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "List",
        "items": [{"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "v1", "kind": "Secret"}],
    }
)
SWAGGER: Final = json.dumps({"paths": {}, "x": [{"kind": "HorizontalPodAutoscaler", "version": "v2"}] * 2})


class Layout(NamedTuple):
    """A repository, and what is expected of it."""

    files: dict[str, str | bytes]
    valid: int = 0
    invalid: int = 0
    passed_over: str = ""
    note: str = ""


LAYOUTS: Final = {
    "plain manifests": Layout({"deploy/web.yaml": f"{DEPLOYMENT}---\n{SERVICE}---\n{HPA}"}, 1, passed_over="2 of"),
    "one file for each object": Layout({"k8s/hpa.yml": HPA, "k8s/web.yml": DEPLOYMENT}, 1, passed_over="1 of"),
    "an invalid autoscaler": Layout({"k8s/hpa.yaml": BAD, "k8s/web.yaml": DEPLOYMENT}, 0, 1, "1 of other kinds"),
    "a GitHub workflow": Layout({"ci/ci.yml": WORKFLOW, "hpa.yaml": HPA}, 1, passed_over="1 of"),
    "an mkdocs page with tags": Layout({"mkdocs.yml": MKDOCS, "docs/hpa.yaml": HPA}, 1, note="mkdocs.yml: passed over"),
    "CloudFormation": Layout({"infra/asg.yaml": CLOUDFORMATION, "hpa.yaml": HPA}, 1, passed_over="1 of"),
    "AWS SAM in JSON": Layout({"template.json": '{"Resources": {"A": {"Ref": "B"}}}', "hpa.yaml": HPA}, 1),
    "JSON arrays": Layout({"data/regions.json": '["eu", {"us": 1}]', "hpa.yaml": HPA}, 1, note="not a list"),
    "JSON with comments": Layout({"tsconfig.json": '{\n  // strict\n  "strict": true,\n}', "hpa.yaml": HPA}, 1),
    "other JSON": Layout({"package.json": '{"name": "web"}', "n.json": "3", "t.json": '"a"', "hpa.yaml": HPA}, 1),
    "OpenAPI with numeric keys": Layout({"api/openapi.yaml": OPENAPI, "hpa.yaml": HPA}, 1, passed_over="1 of"),
    "the API of Kubernetes": Layout({"swagger.json": SWAGGER}, passed_over="1 of other kinds (1 none)"),
    "a Helm chart": Layout(
        {
            "charts/web/Chart.yaml": "apiVersion: v2\nname: web\n",
            "charts/web/values.yaml": "autoscaling: {enabled: true, maxReplicas: 10}\n",
            "charts/web/templates/hpa.yaml": HELM,
            "charts/web/templates/tests/t.yaml": "{{ if .x }}\na: 1\n{{ end }}",
        },
        passed_over="2 Helm templates",
        note="charts/web/templates/hpa.yaml: passed over: a Helm template; validate what `helm template` renders",
    ),
    "a Helm chart with quoted values": Layout(
        {"Chart.yaml": "name: web\n", "templates/hpa.yaml": QUOTED}, passed_over="1 Helm templates"
    ),
    "a Helm chart with a constant autoscaler": Layout(
        {"Chart.yaml": "name: web\n", "templates/hpa.yaml": BAD}, 0, 1, passed_over="1 of other kinds"
    ),
    "templates of another tool": Layout({"deploy/hpa.yaml": HELM}, passed_over="1 templates", note="a template;"),
    "Kustomize with a base": Layout(
        {"base/hpa.yaml": HPA, "base/kustomization.yaml": f"{KUSTOMIZE}resources: [hpa.yaml]\n"}, 1
    ),
    "a Kustomize patch": Layout(
        {
            "base/hpa.yaml": HPA,
            "overlays/prod/hpa.yaml": PATCH,
            "overlays/prod/kustomization.yaml": f"{KUSTOMIZE}resources: [../../base]\npatches:\n- path: hpa.yaml\n",
        },
        1,
        passed_over="1 of other kinds (1 Kustomization), 1 Kustomize patches",
        note="a Kustomize patch; validate what `kubectl kustomize` builds",
    ),
    "a Kustomize patch in a folder of patches": Layout(
        {
            "prod/patches/hpa.yaml": PATCH,
            "prod/kustomization.yml": f"{KUSTOMIZE}patchesStrategicMerge: [patches/hpa.yaml]\n",
        },
        passed_over="1 Kustomize patches",
    ),
    "a Kustomize patch that two overlays share": Layout(
        {
            "patches/hpa.yaml": PATCH,
            "dev/kustomization.yaml": f"{KUSTOMIZE}patches: [{{path: ../patches/hpa.yaml}}]\n",
            "prod/kustomization.yaml": f"{KUSTOMIZE}patches: [{{path: ../patches/hpa.yaml}}]\n",
        },
        passed_over="1 Kustomize patches",
    ),
    "a part of an autoscaler that no kustomization uses": Layout(
        {"overlays/prod/hpa.yaml": PATCH, "overlays/prod/kustomization.yaml": KUSTOMIZE}, 0, 1
    ),
    "a JSON patch": Layout({"patch.yaml": "- op: replace\n  path: /spec/maxReplicas\n  value: 3\n", "h.yaml": HPA}, 1),
    "Flux with substitutions": Layout({"apps/hpa.yaml": FLUX, "apps/x.yaml": HPA}, 1, passed_over="1 templates"),
    "an OpenShift template": Layout({"template.yaml": OPENSHIFT}, passed_over="1 of other kinds (1 Template)"),
    "Ansible": Layout({"site.yml": PLAYBOOK, "hpa.yaml": HPA}, 1, passed_over="1 that Kubernetes cannot read"),
    "docker compose": Layout(
        {"compose.yaml": "services: {web: {ports: [80:80], image: !reset null}}", "h.yaml": HPA}, 1
    ),
    "GitLab CI": Layout({".gitlab-ci.yml": "test: {script: [!reference [.a, script]]}\n", "h.yaml": HPA}, 1),
    "Home Assistant": Layout({"configuration.yaml": "http: !secret key\nscene: !include s.yaml\n", "h.yaml": HPA}, 1),
    "custom resource definitions": Layout({"crds/hpa.yaml": CRD}, passed_over="1 CustomResourceDefinition"),
    "a list of objects": Layout({"all.json": LIST, "hpa.yaml": V1}, 1, passed_over="1 Secret"),
    "autoscaling/v1": Layout({"hpa.yaml": V1}, 1),
    "document ends": Layout({"hpa.yaml": f"{HPA}...\n---\n# nothing\n"}, 1),
    "a directive": Layout({"hpa.yaml": f"%YAML 1.1\n---\n{HPA}"}, 1, 1),
    "a directive without an autoscaler": Layout(
        {"a.yaml": f"%YAML 1.2\n---\n{SERVICE}"}, note="cannot read a directive"
    ),
    "Windows line ends": Layout({"hpa.yaml": f"{DEPLOYMENT}---\n{HPA}".replace("\n", "\r\n")}, 1, passed_over="1 of"),
    "a file in Latin-1": Layout({"names.yaml": b"city: K\xf6ln\n", "hpa.yaml": HPA}, 1, passed_over="1 of"),
    "broken YAML": Layout({"broken.yaml": "a: [1\nb: }\n", "hpa.yaml": HPA}, 1, passed_over="1 that Kubernetes cannot"),
    "a large file": Layout({"data.json": json.dumps(["x" * 4_000_000]), "hpa.yaml": HPA}, 1, note="longer than"),
    "hidden folders": Layout({".cache/x.yaml": SERVICE, ".venv/lib/bad.yaml": "a: [", "hpa.yaml": HPA}, 1),
    "empty files": Layout({"empty.yaml": "", "comment.yaml": "# nothing\n", "hpa.yaml": HPA}, 1),
    "a broken autoscaler": Layout({"hpa.yaml": f"{HPA}  metrics: [\n", "web.yaml": DEPLOYMENT}, 0, 1),
    "no autoscaler at all": Layout({"web.yaml": DEPLOYMENT}, passed_over="1 of other kinds (1 Deployment)"),
}


@pytest.fixture(params=[pytest.param(layout, id=name) for name, layout in LAYOUTS.items()])
def layout(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.chdir(tmp_path)
    found: Layout = request.param
    for name, content in found.files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return found


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["validate", *arguments], catch_exceptions=False)


def summary(layout: Layout) -> str:
    total = layout.valid + layout.invalid
    noun = "HorizontalPodAutoscaler" if total == 1 else "HorizontalPodAutoscalers"
    return f"validated {total} {noun}" + (f": {layout.valid} valid, {layout.invalid} invalid" if total else "")


def check(result: Result, layout: Layout) -> None:
    assert (result.exit_code, summary(layout)) == (min(layout.invalid, 1), validated(result)), result.output
    assert layout.passed_over in result.stderr
    assert layout.note in result.stderr
    assert (result.stdout == "") == (layout.invalid == 0)


def validated(result: Result) -> str:
    (line,) = re.findall("^validated .*$", result.stderr, re.MULTILINE)
    return str(line)


def test_as_a_folder(layout: Layout) -> None:
    check(run("--output", "github", "."), layout)


def test_file_by_file(layout: Layout) -> None:
    check(run(*layout.files), layout)
