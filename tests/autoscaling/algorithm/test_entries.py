"""Null entries in lists of the API are reported with their path."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from ocf.autoscaling.algorithm import Pod, Snapshot, Status, read_external, read_object, read_pods, read_resource
from ocf.errors import ManifestError

HPA: Final[dict[str, Any]] = {"metadata": {"name": "web"}, "spec": {"maxReplicas": 3}}
NOTHING: Final[Any] = None


@pytest.mark.parametrize(
    ("read", "message"),
    [
        pytest.param(
            lambda: Status.of({"conditions": [{"type": "AbleToScale"}, None]}),
            "HorizontalPodAutoscaler: status.conditions[1]: must be a map, not null",
            id="condition of an HPA",
        ),
        pytest.param(
            lambda: Status.of({"currentMetrics": [None]}),
            "HorizontalPodAutoscaler: status.currentMetrics[0]: must be a map, not null",
            id="metric of a status",
        ),
        pytest.param(
            lambda: Pod.of({"metadata": {"name": "web-0"}, "spec": {"containers": [None]}}),
            "Pod web-0: spec.containers[0]: must be a map, not null",
            id="container",
        ),
        pytest.param(
            lambda: Pod.of({"spec": {"initContainers": [None, 5]}}),
            "Pod: spec.initContainers[0]: must be a map, not null; "
            "spec.initContainers[1]: must be a map, not a value of type int",
            id="init containers",
        ),
        pytest.param(
            lambda: Pod.of({"status": {"conditions": [None]}}),
            "Pod: status.conditions[0]: must be a map, not null",
            id="condition of a pod",
        ),
        pytest.param(
            lambda: Pod.of({"status": {"conditions": {}}}),
            "Pod: status.conditions: must be a list, not a map",
            id="map",
        ),
        pytest.param(
            lambda: Snapshot.of(HPA, scale={"status": {"selector": "app=web"}}, pods=[NOTHING]),
            "Snapshot: pods[0]: must be a map, not null",
            id="pod",
        ),
        pytest.param(
            lambda: read_resource([{"metadata": {"name": "web-0"}, "containers": [None]}], "cpu"),
            "PodMetrics web-0: containers[0]: must be a map, not null",
            id="container of a measurement",
        ),
        pytest.param(
            lambda: read_resource([NOTHING], "cpu"), "PodMetricsList: items[0]: must be a map, not null", id="usage"
        ),
        pytest.param(
            lambda: read_pods([NOTHING]), "MetricValueList: items[0]: must be a map, not null", id="value of a pod"
        ),
        pytest.param(
            lambda: read_object([NOTHING]),
            "MetricValueList: items[0]: must be a map, not null",
            id="value of an object",
        ),
        pytest.param(
            lambda: read_external([NOTHING]), "ExternalMetricValueList: items[0]: must be a map, not null", id="series"
        ),
    ],
)
def test_null_entries_are_reported(read: Callable[[], object], message: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read()

    assert str(caught.value) == message
