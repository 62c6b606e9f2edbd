"""Defaults are those of the API server; every row was stored by one of version 1.36."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V2CrossVersionObjectReference, V2HorizontalPodAutoscaler, V2HorizontalPodAutoscalerSpec

from ocf.autoscaling import default, metrics
from ocf.errors import ManifestError

CPU_80 = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
CPU_50 = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
PODS_4 = {"type": "Pods", "value": 4, "periodSeconds": 15}
PERCENT_100 = {"type": "Percent", "value": 100, "periodSeconds": 15}
PODS_1 = {"type": "Pods", "value": 1, "periodSeconds": 10}
UP = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [PODS_4, PERCENT_100]}
DOWN = {"selectPolicy": "Max", "policies": [PERCENT_100]}


def hpa(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 5, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"minReplicas": 1, "metrics": [CPU_80]}, id="nothing given"),
        pytest.param({"minReplicas": None}, {"minReplicas": 1, "metrics": [CPU_80]}, id="minimum null"),
        pytest.param({"minReplicas": 3}, {"minReplicas": 3, "metrics": [CPU_80]}, id="minimum"),
        pytest.param({"metrics": []}, {"minReplicas": 1, "metrics": [CPU_80]}, id="no metric"),
        pytest.param({"metrics": None}, {"minReplicas": 1, "metrics": [CPU_80]}, id="metrics null"),
        pytest.param({"metrics": [CPU_50]}, {"minReplicas": 1, "metrics": [CPU_50]}, id="metric"),
        pytest.param({"behavior": None}, {"minReplicas": 1, "metrics": [CPU_80]}, id="behavior null"),
    ],
)
def test_spec(spec: dict[str, Any], expected: dict[str, Any]) -> None:
    assert default(hpa(**spec)) == hpa(**expected)


@pytest.mark.parametrize(
    ("behavior", "up", "down"),
    [
        pytest.param({}, {}, {}, id="empty"),
        pytest.param({"scaleUp": {}}, {}, {}, id="up empty"),
        pytest.param({"scaleDown": {}}, {}, {}, id="down empty"),
        pytest.param({"scaleUp": None, "scaleDown": None}, {}, {}, id="directions null"),
        pytest.param(
            {"scaleUp": {"stabilizationWindowSeconds": 60}}, {"stabilizationWindowSeconds": 60}, {}, id="window up"
        ),
        pytest.param(
            {"scaleDown": {"stabilizationWindowSeconds": 60}}, {}, {"stabilizationWindowSeconds": 60}, id="window down"
        ),
        pytest.param(
            {"scaleDown": {"stabilizationWindowSeconds": 0}}, {}, {"stabilizationWindowSeconds": 0}, id="no window down"
        ),
        pytest.param(
            {"scaleUp": {"stabilizationWindowSeconds": None}, "scaleDown": {"stabilizationWindowSeconds": None}},
            {},
            {},
            id="windows null",
        ),
        pytest.param({"scaleUp": {"policies": None}, "scaleDown": {"policies": None}}, {}, {}, id="policies null"),
        pytest.param({"scaleUp": {"policies": [PODS_1]}}, {"policies": [PODS_1]}, {}, id="policies up"),
        pytest.param({"scaleDown": {"policies": [PODS_1]}}, {}, {"policies": [PODS_1]}, id="policies down"),
        pytest.param(
            {"scaleUp": {"selectPolicy": "Min"}, "scaleDown": {"selectPolicy": "Disabled"}},
            {"selectPolicy": "Min"},
            {"selectPolicy": "Disabled"},
            id="selections",
        ),
        pytest.param({"scaleDown": {"selectPolicy": None}}, {}, {}, id="selection null"),
        pytest.param({"scaleUp": {"tolerance": "50m"}}, {"tolerance": "50m"}, {}, id="tolerance up"),
        pytest.param({"scaleDown": {"tolerance": "0"}}, {}, {"tolerance": "0"}, id="tolerance down"),
        pytest.param({"scaleUp": {"tolerance": None}}, {}, {}, id="tolerance null"),
    ],
)
def test_behavior(behavior: dict[str, Any], up: dict[str, Any], down: dict[str, Any]) -> None:
    """Each direction gets defaults field by field; `up` and `down` are the differences from the defaults."""
    expected = {"scaleUp": {**UP, **up}, "scaleDown": {**DOWN, **down}}

    assert default(hpa(behavior=behavior))["spec"]["behavior"] == expected


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        pytest.param({"minReplicas": 0}, ("minReplicas",), id="minimum zero"),
        pytest.param({"behavior": {"scaleUp": {"policies": []}}}, ("behavior", "scaleUp", "policies"), id="up"),
        pytest.param({"behavior": {"scaleDown": {"policies": []}}}, ("behavior", "scaleDown", "policies"), id="down"),
        pytest.param(
            {"behavior": {"scaleUp": {"selectPolicy": ""}}}, ("behavior", "scaleUp", "selectPolicy"), id="selection"
        ),
        pytest.param(
            {"behavior": {"scaleDown": {"policies": [{"type": "Pods"}]}}},
            ("behavior", "scaleDown", "policies", 0),
            id="policy",
        ),
    ],
)
def test_invalid_values_are_kept(spec: dict[str, Any], path: tuple[str | int, ...]) -> None:
    """The errors of the API server show these fields with the given values, so no defaults were set."""
    kept: Any = default(hpa(**spec))["spec"]
    given: Any = spec
    for part in path:
        kept, given = kept[part], given[part]

    assert kept == given


@pytest.mark.parametrize("spec", [{}, {"spec": None}, {"spec": {}}], ids=["absent", "null", "empty"])
def test_without_a_spec(spec: dict[str, Any]) -> None:
    """The API server sets defaults in an empty spec as well, before it rejects it."""
    assert default({"kind": "HorizontalPodAutoscaler", **spec})["spec"] == {"minReplicas": 1, "metrics": [CPU_80]}


def test_metadata_and_status_are_kept() -> None:
    manifest = {**hpa(), "status": {"desiredReplicas": 2, "currentMetrics": None}}

    assert default(manifest)["metadata"] == manifest["metadata"]
    assert default(manifest)["status"] == manifest["status"]


def test_a_model_gets_the_same_defaults_as_its_manifest() -> None:
    model = V2HorizontalPodAutoscaler(
        spec=V2HorizontalPodAutoscalerSpec(
            scale_target_ref=V2CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="web"),
            max_replicas=5,
            metrics=[metrics.cpu(average_utilization=50)],
        )
    )

    assert default(model) == {"spec": {**hpa()["spec"], "minReplicas": 1, "metrics": [CPU_50]}}
    assert model.spec.min_replicas is None


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        pytest.param({"spec": []}, r"^HorizontalPodAutoscaler: spec: must be a map, not \[\]$", id="spec"),
        pytest.param(hpa(behavior="x"), r"spec\.behavior: must be a map, not 'x'$", id="behavior"),
        pytest.param(hpa(behavior={"scaleUp": 5}), r"spec\.behavior\.scaleUp: must be a map, not 5$", id="up"),
        pytest.param(hpa(behavior={"scaleDown": []}), r"spec\.behavior\.scaleDown: must be a map", id="down"),
    ],
)
def test_a_value_that_is_not_a_map_is_rejected(manifest: dict[str, Any], problem: str) -> None:
    with pytest.raises(ManifestError, match=problem):
        default(manifest)


rules = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.none() | st.integers(0, 3600),
        "selectPolicy": st.sampled_from([None, "Max", "Min", "Disabled"]),
        "policies": st.none() | st.lists(st.sampled_from([PODS_1, PERCENT_100]), max_size=2),
        "tolerance": st.sampled_from([None, "0", "100m"]),
    },
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "minReplicas": st.none() | st.integers(0, 5),
        "metrics": st.none() | st.lists(st.just(CPU_50), max_size=2),
        "behavior": st.none() | st.fixed_dictionaries({}, optional={"scaleUp": st.none() | rules, "scaleDown": rules}),
    },
)


class TestLaws:
    @given(specs)
    def test_setting_defaults_twice_changes_nothing(self, spec: dict[str, Any]) -> None:
        once = default(hpa(**spec))

        assert default(once) == once

    @given(specs)
    def test_the_input_is_not_changed(self, spec: dict[str, Any]) -> None:
        """The result shares nothing with it."""
        manifest = hpa(**copy.deepcopy(spec))
        before = copy.deepcopy(manifest)
        result = default(manifest)
        for metric in result["spec"]["metrics"]:
            metric["type"] = "changed"
        for direction in result["spec"].get("behavior", {}).values():
            direction["policies"].append("changed")
        result["metadata"]["name"] = "changed"

        assert manifest == before

    @given(specs)
    def test_results_share_nothing(self, spec: dict[str, Any]) -> None:
        default(hpa(**spec))["spec"]["metrics"][0]["type"] = "changed"

        assert default(hpa())["spec"]["metrics"] == [CPU_80]

    @given(specs)
    def test_given_values_are_kept(self, spec: dict[str, Any]) -> None:
        result = default(hpa(**spec))["spec"]

        assert result["minReplicas"] == (1 if spec.get("minReplicas") is None else spec["minReplicas"])
        assert result["metrics"] == (spec.get("metrics") or [CPU_80])
        assert ("behavior" in result) == (spec.get("behavior") is not None)
