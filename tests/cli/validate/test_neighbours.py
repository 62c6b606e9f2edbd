"""`ocf validate --lint` compares an autoscaler with the objects that belong to it, wherever they are."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app

HPA: Final = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 70}}}]
"""
V1: Final = """apiVersion: autoscaling/v1
kind: HorizontalPodAutoscaler
metadata: {name: NAME}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  maxReplicas: 3
  targetCPUUtilizationPercentage: 70
"""
DEPLOYMENT: Final = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [CONTAINER]}}}
"""
GOOD: Final = DEPLOYMENT.replace("CONTAINER", "{name: app, resources: {requests: {cpu: 1}}}")
BAD: Final = DEPLOYMENT.replace("CONTAINER", "{name: app}")


def named(name: str, text: str = HPA, namespace: str = "") -> str:
    return text.replace("NAME", f"{name}, namespace: {namespace}" if namespace else name)


SHARED: Final = "shared-target"
MISSING: Final = "missing-request"
REPOSITORIES: Final = [
    pytest.param({"a/hpa.yaml": named("one"), "a/two.yaml": named("two")}, {"one": SHARED, "two": SHARED}, id="folder"),
    pytest.param({"a/hpa.yaml": named("one"), "b/hpa.yaml": named("two")}, {}, id="environments"),
    pytest.param(
        {"a/hpa.yaml": named("one", namespace="shop"), "b/hpa.yaml": named("two", namespace="shop")},
        {"shop/one": SHARED, "shop/two": SHARED},
        id="a namespace in two folders",
    ),
    pytest.param(
        {"a/hpa.yaml": named("one", namespace="shop"), "a/two.yaml": named("two", namespace="mail")},
        {},
        id="two namespaces",
    ),
    pytest.param({"a/hpa.yaml": named("one"), "a/v1.yaml": named("old", V1)}, {"one": SHARED, "old": SHARED}, id="v1"),
    pytest.param({"hpa.yaml": named("one"), "v1.yaml": named("one", V1)}, {}, id="the same in two versions"),
    pytest.param(
        {"dev/hpa.yaml": named("d"), "dev/web.yaml": BAD, "prod/hpa.yaml": named("p"), "prod/web.yaml": GOOD},
        {"d": MISSING},
        id="each environment has its target",
    ),
    pytest.param(
        {"dev/hpa.yaml": named("d"), "base/web.yaml": BAD, "dev/app/web.yaml": GOOD}, {}, id="the nearest target"
    ),
    pytest.param({"a.yaml": BAD, "dev/hpa.yaml": f"{GOOD}---\n{named('d')}"}, {}, id="the target of the same file"),
    pytest.param(
        {
            "web.yaml": GOOD.replace("cpu: 1", "cpu: 1x, memory: 1"),
            "hpa.yaml": f"{named('one')}---\n{named('two').replace('minReplicas: 2', 'minReplicas: 10')}",
        },
        {"one": "shared-target invalid-resources", "two": "shared-target invalid-resources constant-size"},
        id="a bad quantity does not hide other findings",
    ),
]


@pytest.mark.parametrize(("files", "expected"), REPOSITORIES)
def test_an_autoscaler_is_compared_with_its_neighbours(
    files: dict[str, str], expected: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    answer = CliRunner().invoke(app, ["validate", "--lint", "."], catch_exceptions=False)
    found: dict[str, set[str]] = {}
    for line in answer.stdout.splitlines():
        found.setdefault(line.split(": ")[1], set()).add(line.rpartition("[")[2].rstrip("]"))
    assert found == {name: set(codes.split()) for name, codes in expected.items()}
