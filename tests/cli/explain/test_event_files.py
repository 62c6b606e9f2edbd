"""`ocf explain` with Event objects from files: what they say about the last rescale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app

SCALED: Final = "2026-01-31T11:59:05Z"
UP: Final = "New size: 5; reason: cpu resource utilization (percentage of request) above target"
DOWN: Final = "New size: 5; reason: All metrics below target"
ABOUT: Final = {"kind": "HorizontalPodAutoscaler", "name": "web", "namespace": "shop"}
POLICY: Final = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}], "stabilizationWindowSeconds": 0}
HALF: Final = {"type": "Utilization", "averageUtilization": 50}
HPA: Final[dict[str, Any]] = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "shop", "uid": "1"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "maxReplicas": 20,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
            }
        ],
        "behavior": {"scaleUp": POLICY, "scaleDown": POLICY},
    },
    "status": {
        "currentReplicas": 5,
        "desiredReplicas": 5,
        "lastScaleTime": SCALED,
        "conditions": [
            {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": ""},
            {"type": "ScalingActive", "status": "True", "reason": "ValidMetricFound", "message": ""},
            {"type": "ScalingLimited", "status": "False", "reason": "DesiredWithinRange", "message": ""},
        ],
    },
}
SNAPSHOT: Final = {
    "apiVersion": "ocf.dev/v1",
    "kind": "Snapshot",
    "now": "2026-01-31T12:00:00Z",
    "pods": [{"count": 5, "requests": {"cpu": "500m"}}],
    "metrics": [{"name": "cpu", "perPod": "450m"}],
}


def core(message: str, **changes: Any) -> dict[str, Any]:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": "shop"}}
    return event | {"involvedObject": ABOUT, "reason": "SuccessfulRescale", "message": message} | changes


def modern(message: str, **changes: Any) -> dict[str, Any]:
    event = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": "shop"}}
    return event | {"regarding": ABOUT, "reason": "SuccessfulRescale", "note": message} | changes


def bounds(folder: Path, *events: dict[str, Any]) -> tuple[int, int]:
    """Return the fewest and the most replicas that are possible."""
    file = folder / "all.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [HPA, SNAPSHOT, *events]}))
    result = CliRunner().invoke(app, ["explain", "-f", str(file), "--output", "json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["replicas"]
    return found["least"], found["most"]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([], (5, 9), id="none"),
        pytest.param([core(UP, lastTimestamp=SCALED)], (5, 7), id="added"),
        pytest.param([core(DOWN, lastTimestamp=SCALED)], (7, 9), id="removed"),
        pytest.param([modern(UP, eventTime="2026-01-31T11:59:05.123456Z")], (5, 7), id="of events.k8s.io"),
        pytest.param([modern(UP, deprecatedLastTimestamp=SCALED)], (5, 7), id="of events.k8s.io with the old time"),
        pytest.param([core(UP, eventTime=None, series={"lastObservedTime": SCALED})], (5, 7), id="a series"),
        pytest.param([core(UP, lastTimestamp=SCALED, involvedObject={**ABOUT, "name": "b"})], (5, 9), id="another HPA"),
        pytest.param(
            [core(UP, lastTimestamp=SCALED, involvedObject={**ABOUT, "kind": "Deployment"})], (5, 9), id="another kind"
        ),
        pytest.param(
            [core(UP, lastTimestamp=SCALED, involvedObject={**ABOUT, "namespace": "b"})], (5, 9), id="another namespace"
        ),
        pytest.param([core(UP, lastTimestamp=SCALED, involvedObject={**ABOUT, "uid": "1"})], (5, 7), id="with the uid"),
        pytest.param(
            [core(UP, lastTimestamp=SCALED, involvedObject={**ABOUT, "uid": "2"})],
            (5, 9),
            id="a former HPA of the name",
        ),
        pytest.param(
            [modern(UP, deprecatedLastTimestamp=SCALED, regarding={**ABOUT, "apiVersion": "autoscaling/v1"})],
            (5, 7),
            id="in another version",
        ),
        pytest.param(
            [modern(UP, deprecatedLastTimestamp=SCALED, regarding={**ABOUT, "apiVersion": "example.com/v2"})],
            (5, 9),
            id="an HPA of another group",
        ),
        pytest.param([core(UP, lastTimestamp="2026-01-31T11:00:00Z")], (5, 9), id="an earlier one"),
        pytest.param([core(UP)], (5, 9), id="without a time"),
        pytest.param([core(UP, lastTimestamp=None, metadata=None)], (5, 9), id="without metadata"),
        pytest.param(
            [core(UP, lastTimestamp=SCALED), core(DOWN, lastTimestamp=SCALED)], (5, 9), id="of both directions"
        ),
    ],
)
def test_they_limit_what_the_last_rescale_may_have_been(
    tmp_path: Path, events: list[dict[str, Any]], expected: tuple[int, int]
) -> None:
    """Two pods a minute may be added to 5; the last change was 55 seconds ago."""
    assert bounds(tmp_path, *events) == expected


def test_a_malformed_one_is_an_error_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    items = [HPA, SNAPSHOT, core(UP, lastTimestamp="noon")]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = CliRunner().invoke(app, ["explain", "-f", str(file)])
    assert result.exit_code == 2
    assert f"{file}: document 1" in result.output
    assert "lastTimestamp" in result.output
