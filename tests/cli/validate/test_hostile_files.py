"""`ocf validate --lint` reads any file that YAML allows: a value of any type in any field, and thousands of objects."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.objects import Manifest

SPEC: Final[Manifest] = {
    "selector": {"matchLabels": {"app": "web"}},
    "replicas": 3,
    "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}]},
    },
}
DEPLOYMENT: Final[Manifest] = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": SPEC}
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
HPA: Final[Manifest] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "ownerReferences": [{"kind": "Shop", "name": "main", "controller": True}]},
    "spec": {
        "scaleTargetRef": TARGET,
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "a",
                    "target": {"type": "Utilization", "averageUtilization": 50},
                },
            },
        ],
    },
}
TRIGGER: Final = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50", "containerName": "a"}}
# Objects of every kind that the linter reads.
OBJECTS: Final[tuple[Manifest, ...]] = (
    HPA,
    DEPLOYMENT,
    {**DEPLOYMENT, "metadata": {"name": "canary", "annotations": {"helm.sh/hook": "test"}}},
    {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "web"},
        "spec": {**SPEC, "workloadRef": {**TARGET, "scaleDown": "never"}},
    },
    {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "web", "annotations": {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}},
        "spec": {
            "scaleTargetRef": TARGET,
            "minReplicaCount": 1,
            "maxReplicaCount": 3,
            "triggers": [TRIGGER],
            "advanced": {"horizontalPodAutoscalerConfig": {"name": "own", "behavior": {"scaleUp": {"policies": []}}}},
        },
    },
    {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "targetRef": TARGET,
            "updatePolicy": {"updateMode": "Auto"},
            "resourcePolicy": {
                "containerPolicies": [{"containerName": "a", "mode": "Auto", "controlledResources": ["cpu"]}]
            },
        },
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    },
    {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "web"},
        "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}}]},
    },
    {
        **HPA,
        "metadata": {"name": "rollout"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"},
            "maxReplicas": 3,
        },
    },
)


def with_each(value: Any, changed_to: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield a value once for each field and item of it, which is changed."""
    yield changed_to(value)
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in pairs:
        for changed in with_each(child, changed_to):
            if isinstance(value, dict):
                yield {**value, key: changed}
            else:
                yield [*value[:key], changed, *value[key + 1 :]]


@pytest.mark.parametrize(
    "position", range(len(OBJECTS)), ids=[f"{each['kind']} {each['metadata']['name']}" for each in OBJECTS]
)
@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(lambda value: [value], id="in a list"),
        pytest.param(lambda value: {"a": [value]}, id="in a map"),
        pytest.param(lambda _: -1, id="a number"),
    ],
)
def test_a_value_of_any_type_in_any_field_ends_in_no_traceback(
    hostile: Callable[[Any], Any], position: int, tmp_path: Path
) -> None:
    file = tmp_path / "all.json"
    for changed in with_each(OBJECTS[position], hostile):
        objects = [*OBJECTS[:position], changed, *OBJECTS[position + 1 :]]
        # One document per object, as JSON is YAML.
        file.with_suffix(".yaml").write_text("\n---\n".join(map(json.dumps, objects)))
        answer = CliRunner().invoke(app, ["validate", "--lint", "--severity=info", f"{file.with_suffix('.yaml')}"])

        # An unexpected exception is an error, too, with the name of its class.
        assert not re.search("^error: [A-Za-z]+:", answer.stderr, re.MULTILINE), (changed, answer.stderr)


def calls(folder: Path, objects: list[Manifest]) -> int:
    """Return how many functions of the project the command calls for a file of these objects."""
    file = folder / f"{len(objects)}.yaml"
    file.write_text("\n---\n".join(map(json.dumps, objects)))
    counted = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal counted
        counted += event == "call" and "/ocf/" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        CliRunner().invoke(app, ["validate", "--lint", str(file)])
    finally:
        sys.setprofile(None)
    return counted


def numbered(manifest: Manifest, number: int) -> Manifest:
    """Return an object with a name, a target and labels of its own."""
    text = json.dumps(manifest).replace('"web"', f'"web{number}"').replace('"own"', f'"own{number}"')
    found: Manifest = json.loads(text)
    return found


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param((0,), id="HPAs alone"),
        pytest.param((0, 1), id="HPAs and targets"),
        pytest.param((0, 1, 3, 5, 6), id="with policies"),
        pytest.param((1, 4), id="ScaledObjects"),
    ],
)
def test_the_work_for_each_autoscaler_does_not_grow_with_their_number(kinds: tuple[int, ...], tmp_path: Path) -> None:
    """The objects of a namespace are read once, and not once for each pair."""

    def of(count: int) -> int:
        return calls(tmp_path, [numbered(OBJECTS[kind], number) for number in range(count) for kind in kinds])

    of(2)  # what is imported and cached
    few, many = of(20), of(80)

    assert many < 4.2 * few


@pytest.mark.parametrize("count", [1, 30])
def test_kustomizations_are_looked_for_once_in_each_folder(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many autoscalers are invalid: a folder above may have thousands of folders, and each of them is asked."""
    searched: list[Path] = []
    search = Path.glob

    def counting(folder: Path, pattern: str) -> Iterator[Path]:
        searched.append(folder)
        return search(folder, pattern)

    monkeypatch.setattr(Path, "glob", counting)
    invalid = {**HPA, "spec": {**HPA["spec"], "maxReplicas": 0}}
    file = tmp_path / "all.yaml"
    file.write_text("\n---\n".join(json.dumps(numbered(invalid, number)) for number in range(count)))
    answer = CliRunner().invoke(app, ["validate", str(file)])

    assert f"0 valid, {count} invalid" in answer.output
    assert searched.count(tmp_path) == 3, "once for each name of a kustomization"
