"""The manifest of the winner: comments, order and other documents are kept."""

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling import default
from ocf.objects.documents import load_documents
from ocf.objects.yaml_places import split_path
from ocf.simulation.tuning.manifests import tuned_manifest, tuned_text
from ocf.simulation.tuning.problem import with_value
from tests.simulation.tuning.cases import UTILIZATION, WINDOW

TEXT: Final = """\
# the shop
kind: Deployment
metadata: {name: web}  # first
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  # two at night
  minReplicas: 2   # for updates
  maxReplicas: 9
  metrics:
  - type: Resource
    resource:
      name: cpu
      target: {type: Utilization, averageUtilization: 60}  # measured
---
kind: Service
"""
FLOW: Final = """\
{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
 "spec": {"maxReplicas": 9, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}}
"""
ALIASES: Final = """\
kind: HorizontalPodAutoscaler
metadata: {labels: {a: &two 2}}
spec: {minReplicas: *two, maxReplicas: 9}
"""


def hpa_of(text: str) -> Any:
    [found] = [each for each in load_documents(text) if each.get("kind") == "HorizontalPodAutoscaler"]
    return found


def edited(text: str, values: dict[str, Any]) -> str:
    tuned = default({**hpa_of(text), "spec": {"behavior": {"scaleUp": {}, "scaleDown": {}}, **hpa_of(text)["spec"]}})
    for path, value in values.items():
        if path.startswith("spec"):
            tuned = with_value(tuned, split_path(path), value)
    return tuned_text(text, tuned, values)


def test_values_are_replaced_where_they_are_written() -> None:
    found = edited(TEXT, {"spec.minReplicas": 4, UTILIZATION: 75})
    assert found == TEXT.replace("minReplicas: 2", "minReplicas: 4").replace(": 60}", ": 75}")


def test_a_new_field_is_written_into_its_map() -> None:
    found = edited(TEXT, {WINDOW: 60})
    assert found == TEXT.replace(
        "spec:\n",
        "spec:\n  behavior:\n    scaleDown:\n      stabilizationWindowSeconds: 60\n",
    )
    assert edited(found, {"spec.behavior.scaleDown.selectPolicy": "Min"}) == found.replace(
        "      stabilization", "      selectPolicy: Min\n      stabilization"
    )


def test_a_policy_of_the_defaults_is_written_with_its_list() -> None:
    found = edited(TEXT, {"spec.behavior.scaleUp.policies[1].value": 50})
    assert hpa_of(found)["spec"]["behavior"] == {
        "scaleUp": {
            "policies": [
                {"type": "Pods", "value": 4, "periodSeconds": 15},
                {"type": "Percent", "value": 50, "periodSeconds": 15},
            ]
        }
    }
    assert "# two at night" in found


@pytest.mark.parametrize(
    "text", [TEXT, FLOW, ALIASES, TEXT.replace("\n", "\r\n")], ids=["block", "flow", "alias", "crlf"]
)
@given(
    least=st.none() | st.integers(1, 9),
    window=st.none() | st.integers(0, 600),
    policy=st.none() | st.sampled_from(["Max"]),
)
def test_every_text_has_the_tuned_fields_and_nothing_else_changes(
    text: str, least: int | None, window: int | None, policy: str | None
) -> None:
    given = {"spec.minReplicas": least, WINDOW: window, "spec.behavior.scaleUp.selectPolicy": policy}
    values = {path: value for path, value in given.items() if value is not None}
    found = edited(text, values)
    before = hpa_of(text)
    for path, value in values.items():
        before = with_value(before, split_path(path), value)
    assert hpa_of(found) == before
    others = [
        [each for each in load_documents(one) if each["kind"] != "HorizontalPodAutoscaler"] for one in (text, found)
    ]
    assert others[0] == others[1]


def test_without_a_change_the_text_stays_as_it_is() -> None:
    assert edited(TEXT, {}) == TEXT


def test_a_field_that_is_removed_is_not_written() -> None:
    assert "minReplicas" not in hpa_of(edited(TEXT, {"spec.minReplicas": None}))["spec"]


def test_fields_of_the_scenario_are_not_in_the_manifest() -> None:
    assert edited(TEXT, {"controller.tolerance": 0.2}) == TEXT


def test_an_older_version_is_written_as_the_version_of_the_fields() -> None:
    old = {"apiVersion": "autoscaling/v1", "spec": {"targetCPUUtilizationPercentage": 60}}
    tuned = {"apiVersion": "autoscaling/v2", "spec": {"metrics": []}}
    assert tuned_manifest(old, tuned, {UTILIZATION: 70}) == tuned
