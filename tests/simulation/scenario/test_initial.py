"""Scenarios to begin with."""

from typing import Any

import pytest

from ocf.errors import ManifestError
from ocf.simulation import initial_scenario, load_series, parse_scenario, simulate

CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
MEMORY = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "memory",
        "container": "app",
        "target": {"type": "AverageValue", "averageValue": "1Gi"},
    },
}
RPS = {"type": "Pods", "pods": {"metric": {"name": "on"}, "target": {"type": "AverageValue", "averageValue": "5"}}}
QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "5"}},
}
DEPLOYMENT: dict[str, Any] = {
    "spec": {
        "replicas": 4,
        "template": {
            "spec": {
                "containers": [
                    {"name": "app", "resources": {"requests": {"cpu": "250m"}, "limits": {"memory": "512Mi"}}},
                    {"name": "proxy", "resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}}},
                ]
            }
        },
    }
}


def hpa(*metrics: Any, **spec: Any) -> dict[str, Any]:
    """Return an HPA as the API server has it."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1", "managedFields": [{"manager": "kubectl"}]},
        "spec": {"maxReplicas": 9, "scaleTargetRef": target, **({"metrics": list(metrics)} if metrics else {}), **spec},
        "status": {"currentReplicas": 4, "desiredReplicas": 4},
    }


@pytest.mark.parametrize("target", [pytest.param(None, id="no target"), pytest.param(DEPLOYMENT, id="target")])
@pytest.mark.parametrize(
    "metrics",
    [
        pytest.param((), id="default metrics"),
        pytest.param((CPU,), id="cpu"),
        pytest.param((MEMORY,), id="memory"),
        pytest.param((RPS, QUEUE), id="no resource"),
        pytest.param((CPU, MEMORY, RPS, QUEUE), id="all"),
    ],
)
def test_it_can_be_read_and_has_a_load(metrics: tuple[Any, ...], target: dict[str, Any] | None) -> None:
    scenario = parse_scenario(initial_scenario(hpa(*metrics, minReplicas=3), target))
    load = load_series(scenario)

    assert scenario.name == "web"
    assert load.end == 3600
    # Half of what the fewest pods serve, and a spike that half of the most can take.
    assert 0.9 * 150 <= load.at(0) <= 1.1 * 150
    assert 0.9 * 600 <= load.at(900) <= 1.1 * 600


@pytest.mark.parametrize("metrics", [pytest.param((MEMORY,), id="memory"), pytest.param((CPU, MEMORY), id="and cpu")])
def test_memory_does_not_fall_with_the_load(metrics: tuple[Any, ...]) -> None:
    scenario = parse_scenario(initial_scenario(hpa(*metrics, minReplicas=2), DEPLOYMENT))
    usage = scenario.workload.usage

    assert {name: (each.idle, each.busy) for name, each in usage.items()} == {
        "memory": (768 * 2**20 * 1000, 1536 * 2**20 * 1000)
    }
    assert scenario.duration is not None
    assert usage["memory"].release_after > scenario.duration


def test_it_takes_replicas_and_requests_from_the_target() -> None:
    text = initial_scenario(hpa(CPU, MEMORY), DEPLOYMENT)
    workload = parse_scenario(text).workload

    assert workload.replicas == 4
    # The pod of a simulation has the one container that the metric is about.
    assert workload.requests == {"cpu": 750, "memory": 512 * 2**20 * 1000}
    assert "# Requests of one pod, from Deployment web." in text


def test_requests_that_the_target_does_not_have_are_named() -> None:
    target = {
        "spec": {"template": {"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}}}
    }

    text = initial_scenario(hpa(CPU, MEMORY), target)

    assert "    cpu: 1\n    memory: 1536Mi  # an assumption: the target has none" in text


def test_it_leaves_out_what_the_api_server_adds() -> None:
    text = initial_scenario(hpa())

    assert "managedFields" not in text
    assert "currentReplicas" not in text
    assert "metrics:\n    - " not in text  # defaults are not written down either


def test_an_hpa_that_cannot_be_decoded_is_an_error() -> None:
    with pytest.raises(ManifestError, match=r"spec\.maxReplica: unknown field"):
        initial_scenario(hpa(maxReplica=3))


@pytest.mark.parametrize("requests", [None, "10m", "5"])
@pytest.mark.parametrize(
    ("name", "target"), [("cpu", "800m"), ("cpu", "20m"), ("memory", "400Mi"), ("memory", "3Gi"), ("nvidia.com/x", "2")]
)
def test_full_load_exceeds_a_target_that_is_an_amount(name: str, target: str, requests: str | None) -> None:
    metric = {
        "type": "Resource",
        "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": target}},
    }
    container = {"name": "app", "resources": {"requests": {name: requests}}}
    workload = None if requests is None else {"spec": {"template": {"spec": {"containers": [container]}}}}
    scenario = parse_scenario(initial_scenario(hpa(metric, minReplicas=2), workload))
    result = simulate(scenario, load_series(scenario))
    assert result.warnings == ()
    assert max(result.columns.replicas) > 2
