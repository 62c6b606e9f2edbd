"""Conversion of HPAs between autoscaling/v1 and autoscaling/v2.

That the texts in the annotations are those of a real server is proven where the embedded cluster replays its answers.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling import default
from ocf.autoscaling.api.v1_conversion import to_v1, to_v2
from ocf.objects import Manifest, Quantity, copy_json

METRICS = "autoscaling.alpha.kubernetes.io/metrics"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"


def autoscaler(**spec: Any) -> Manifest:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "annotations": {"mine": "x"}},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec},
    }


def resource(name: str, **target: Any) -> Manifest:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


quantities = st.integers(1, 10_000).map(lambda number: str(Quantity.parse(number)))
selectors = st.none() | st.just({"matchLabels": {"a": "b"}})


@st.composite
def metric(draw: st.DrawFn) -> Manifest:
    """A metric with all required fields."""
    kind = draw(st.sampled_from(["Resource", "ContainerResource", "Pods", "Object", "External"]))
    by_percent: Manifest = {"type": "Utilization", "averageUtilization": draw(st.integers(1, 200))}
    average: Manifest = {"type": "AverageValue", "averageValue": draw(quantities)}
    value: Manifest = {"type": "Value", "value": draw(quantities)}
    selector = draw(selectors)
    identifier = {"name": "m", **({"selector": selector} if selector else {})}
    name = draw(st.sampled_from(["cpu", "memory"]))
    match kind:
        case "Resource":
            return resource(name, **draw(st.sampled_from([by_percent, average])))
        case "ContainerResource":
            source = {"name": name, "container": "web", "target": draw(st.sampled_from([by_percent, average]))}
            return {"type": kind, "containerResource": source}
        case "Pods":
            return {"type": kind, "pods": {"metric": identifier, "target": average}}
        case "Object":
            described = {"apiVersion": "v1", "kind": "Service", "name": "s"}
            target = draw(st.sampled_from([value, average]))
            return {"type": kind, "object": {"describedObject": described, "metric": identifier, "target": target}}
        case _:
            return {"type": kind, "external": {"metric": identifier, "target": draw(st.sampled_from([value, average]))}}


@given(st.lists(metric(), min_size=1, max_size=4), st.booleans())
def test_a_round_trip_loses_nothing(metrics: list[Manifest], behaves: bool) -> None:
    """Only the order changes: the cpu utilization, which has a field in v1, comes last."""
    cpu = [item for item in metrics if item.get("resource", {}).get("target", {}).get("averageUtilization")]
    cpu = [item for item in cpu if item["resource"]["name"] == "cpu"]
    others = [item for item in metrics if item not in cpu]
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}} if behaves else {}
    given_spec = {"metrics": [*others, *cpu[:1]], **({"behavior": behavior} if behaves else {})}
    hpa = default(autoscaler(**given_spec))

    assert to_v2(to_v1(hpa)) == hpa


def test_the_input_is_not_changed() -> None:
    first = default(autoscaler())
    second = to_v1(first)
    for convert, manifest in ((to_v1, first), (to_v2, second)):
        before = copy_json(manifest)
        convert(manifest)
        assert manifest == before


def test_the_first_cpu_utilization_becomes_the_target_and_the_others_are_lost() -> None:
    """A real API server does the same: only other metrics are kept in annotations."""
    cpu = [resource("cpu", type="Utilization", averageUtilization=percent) for percent in (60, 70)]
    first = to_v1(default(autoscaler(metrics=cpu)))

    assert first["spec"]["targetCPUUtilizationPercentage"] == 60
    assert METRICS not in first["metadata"]["annotations"]


def test_user_annotations_are_kept_and_field_annotations_are_removed() -> None:
    hpa = default(autoscaler(metrics=[resource("memory", type="AverageValue", averageValue="1Gi")]))
    first = to_v1(hpa)
    second = to_v2(first)

    assert json.loads(first["metadata"]["annotations"][METRICS]) == [
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}
    ]
    assert second["metadata"]["annotations"] == {"mine": "x"}


@pytest.mark.parametrize("text", ["{", "null", "3", '["x"]', "{}"])
def test_an_invalid_annotation_is_dropped(text: str) -> None:
    first = to_v1(default(autoscaler()))
    first["metadata"]["annotations"] = {METRICS: text, BEHAVIOR: text}
    second = to_v2(first)

    assert "annotations" not in second["metadata"]
    assert "behavior" not in second["spec"]
    assert second["spec"]["metrics"][0]["resource"]["name"] == "cpu"


@pytest.mark.parametrize(
    ("measured", "shown"),
    [
        pytest.param([42], {"currentCPUUtilizationPercentage": 42}, id="one"),
        pytest.param([0], {"currentCPUUtilizationPercentage": 0}, id="an idle workload is measured"),
        pytest.param([42, 7], {"currentCPUUtilizationPercentage": 7}, id="of several the last"),
        pytest.param([42, None], {"currentCPUUtilizationPercentage": 42}, id="one without a percentage does not count"),
        pytest.param([None], {}, id="none"),
    ],
)
def test_the_cpu_utilization_has_its_own_status_field(measured: list[int | None], shown: Manifest) -> None:
    """As `Convert_autoscaling_HorizontalPodAutoscalerStatus_To_v1_HorizontalPodAutoscalerStatus` of Kubernetes 1.36."""
    current = [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "current": {} if percent is None else {"averageUtilization": percent}},
        }
        for percent in measured
    ]
    hpa = {**default(autoscaler()), "status": {"currentReplicas": 2, "currentMetrics": current}}

    assert to_v1(hpa)["status"] == {"currentReplicas": 2, **shown}
