"""ScaledObjects of KEDA are linted as the HPAs that KEDA makes of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from ocf.autoscaling import lint, validate
from ocf.autoscaling.targets.scaled_objects import hpa_of
from ocf.cli.app import app
from ocf.objects import Manifest
from ocf.objects.paths import with_field
from tests.autoscaling.linter.objects import FULL, found, hpa, kinded, policy, workload

GOOD: Final = workload(FULL)
QUEUE: Final = {"type": "kafka", "metadata": {"lagThreshold": "10"}}


def cpu(value: str = "60", **more: Any) -> Manifest:
    return {"type": "cpu", "metricType": "Utilization", "metadata": {"value": value, **more}}


def scaled_object(*triggers: Manifest, name: str = "web", target: str = "web", **spec: Any) -> Manifest:
    spec = {"scaleTargetRef": {"name": target}, "maxReplicaCount": 10, "triggers": list(triggers), **spec}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": spec}


def behavior(**rules: Any) -> Manifest:
    return {"advanced": {"horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": rules}}}}


@pytest.mark.parametrize(
    ("manifest", "target", "expected"),
    [
        pytest.param(scaled_object(cpu()), GOOD, [], id="a good one"),
        pytest.param(scaled_object(QUEUE, QUEUE), GOOD, [], id="two triggers of a kind"),
        pytest.param(scaled_object(QUEUE, minReplicaCount=0), GOOD, [], id="scaled to zero by KEDA"),
        pytest.param(
            scaled_object(QUEUE, minReplicaCount=10),
            GOOD,
            [("warning", "constant-size", "spec.maxReplicaCount")],
            id="a constant size",
        ),
        pytest.param(
            scaled_object(QUEUE, cpu()),
            workload({}),
            [("error", "missing-request", "spec.triggers[1]")],
            id="no request",
        ),
        pytest.param(
            scaled_object(cpu(containerName="x")),
            GOOD,
            [("error", "unknown-container", "spec.triggers[0]")],
            id="container",
        ),
        pytest.param(
            scaled_object({"type": "memory", "metadata": {"type": "AverageValue", "value": "500m"}}),
            GOOD,
            [("error", "always-up", "spec.triggers[0]"), ("info", "flat-memory", "spec.triggers[0]")],
            id="an amount, in the form of older releases",
        ),
        pytest.param(
            scaled_object(QUEUE, maxReplicaCount=50, **behavior(policies=[policy("Pods", 1, 300)])),
            GOOD,
            [
                (
                    "warning",
                    "slow-drain",
                    "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.policies",
                )
            ],
            id="behavior",
        ),
        pytest.param(
            scaled_object(QUEUE),
            workload(FULL, replicas=3),
            [("warning", "fixed-replicas", "spec.scaleTargetRef")],
            id="replicas of the target",
        ),
    ],
)
def test_findings_have_the_fields_of_the_scaled_object(
    manifest: Manifest, target: Manifest, expected: list[tuple[str, str, str]]
) -> None:
    """Replicas beside a ScaledObject: https://github.com/kedacore/keda/issues/4578."""
    assert found(manifest, target) == expected


def test_the_texts_are_about_the_scaled_object() -> None:
    (finding,) = lint(scaled_object(QUEUE, minReplicaCount=10), GOOD)

    assert finding.explanation == (
        "In the HPA that KEDA makes of it: minReplicas and maxReplicas are both 10, so it never scales."
    )
    assert finding.fix == "Change spec.maxReplicaCount in ScaledObject web."


@pytest.mark.parametrize(
    ("manifest", "path", "message"),
    [
        pytest.param(
            scaled_object(QUEUE, **behavior(stabilizationWindowSeconds=7200)),
            "spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.stabilizationWindowSeconds",
            "Invalid value: 7200: must be less than or equal to 3600",
            id="window",
        ),
        pytest.param(
            scaled_object(QUEUE, minReplicaCount=9, maxReplicaCount=5),
            "spec.maxReplicaCount",
            "Invalid value: 5: must be greater than or equal to `minReplicas`",
            id="bounds",
        ),
        pytest.param(
            scaled_object({"type": "cpu", "metricType": "Utilization", "metadata": {"value": "0"}}),
            "spec.triggers[0]",
            "Invalid value: 0: must be greater than 0",
            id="zero",
        ),
        *(
            pytest.param(
                scaled_object({"type": "memory", "metadata": {"value": value}}),
                "spec.triggers[0]",
                f"must be an integer from -2147483648 to 2147483647, not '{value}'",
                id=value,
            )
            for value in ("abc", "500m")
        ),
    ],
)
def test_an_hpa_that_the_api_server_rejects(manifest: Manifest, path: str, message: str) -> None:
    """What does not depend on the errors is found as well."""
    rejected, fixed = lint(manifest, workload(FULL, replicas=3))

    assert (rejected.code.value, rejected.severity.value, rejected.path) == ("rejected-hpa", "error", path)
    assert rejected.explanation == f"In the HPA that KEDA makes of it: The API server rejects it: {message}."
    assert fixed.code.value == "fixed-replicas"


def test_a_finding_about_the_target_is_that_of_any_autoscaler() -> None:
    target = workload(FULL, replicas=3)

    (ours,), (theirs,) = lint(scaled_object(QUEUE), target), lint(hpa(), target)
    assert (ours.explanation, ours.fix) == (theirs.explanation, theirs.fix)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(scaled_object(QUEUE, name="second"), id="a second ScaledObject"),
        pytest.param(kinded(hpa("second")), id="an HPA"),
    ],
)
def test_a_second_scaler_of_the_target(other: Manifest) -> None:
    """https://github.com/kedacore/keda/issues/3755, https://github.com/fluxcd/flagger/issues/1646."""
    (finding,) = lint(scaled_object(QUEUE), GOOD, [other])

    assert (finding.code.value, finding.fix) == ("shared-target", "Put the metrics of both into ScaledObject web.")


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(scaled_object(QUEUE), id="itself"),
        pytest.param(scaled_object(QUEUE, name="second", target="other"), id="another target"),
        pytest.param(kinded(hpa("keda-hpa-web")), id="the HPA that KEDA made"),
    ],
)
def test_no_second_scaler(other: Manifest) -> None:
    assert lint(scaled_object(QUEUE), GOOD, [other]) == ()


def test_the_hpa_is_one_that_the_api_server_accepts() -> None:
    triggers = [
        QUEUE,
        cpu(),
        cpu(containerName="c0"),
        {"type": "memory", "metricType": "AverageValue", "metadata": {"value": "1Gi"}},
    ]
    made = hpa_of(scaled_object(*triggers, minReplicaCount=0))

    assert [each for each in validate(made) if not each.path.startswith("metadata.ownerReferences")] == []
    assert [each["type"] for each in made["spec"]["metrics"]] == [
        "External",
        "Resource",
        "ContainerResource",
        "Resource",
    ]
    assert (made["spec"]["minReplicas"], made["metadata"]["name"]) == (1, "keda-hpa-web")


anything: st.SearchStrategy[Any] = st.none() | st.text(max_size=3) | st.integers(-1, 3) | st.just([None, "x", {}])
fields: st.SearchStrategy[tuple[str, ...]] = st.sampled_from(
    [
        ("spec",),
        ("spec", "triggers"),
        ("spec", "scaleTargetRef"),
        ("spec", "advanced"),
        ("spec", "minReplicaCount"),
        ("spec", "maxReplicaCount"),
    ]
)


@given(fields, anything)
def test_a_malformed_one_is_not_an_error_of_the_command(
    tmp_path_factory: pytest.TempPathFactory, path: tuple[str, ...], value: Any
) -> None:
    """The API server validates it by KEDA's definition."""
    file = tmp_path_factory.mktemp("keda") / "scaled.yaml"
    file.write_text(json.dumps(with_field(scaled_object(cpu()), path, value)))
    answer = CliRunner().invoke(app, ["validate", "--lint", str(file)], catch_exceptions=False)

    assert answer.exit_code in {0, 1}


@pytest.mark.parametrize(("value", "reported"), [("abc", True), ("{{ .Values.cpu }}", False)])
def test_the_errors_of_a_template_are_not_reported(value: str, tmp_path: Path, *, reported: bool) -> None:
    trigger = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": value}}
    file = tmp_path / "scaled.yaml"
    file.write_text(json.dumps(scaled_object(trigger)))
    answer = CliRunner().invoke(app, ["validate", "--lint", str(file)], catch_exceptions=False)

    assert ("rejected-hpa" in answer.stdout) is reported


def test_the_command_reports_them_with_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("all.yaml").write_text(
        """apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web}
spec:
  scaleTargetRef: {name: web}
  minReplicaCount: 5
  maxReplicaCount: 5
  triggers: []
---
# ocf: ignore constant-size
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: other}
spec: {scaleTargetRef: {name: other}, minReplicaCount: 5, maxReplicaCount: 5}
"""
    )
    answer = CliRunner().invoke(app, ["validate", "--lint", "all.yaml"], catch_exceptions=False)
    plain = CliRunner().invoke(app, ["validate", "all.yaml"], catch_exceptions=False)

    assert answer.stdout.startswith(
        "all.yaml:7:3: web: warning: spec.maxReplicaCount: In the HPA that KEDA makes of it:"
    )
    assert (len(answer.stdout.splitlines()), answer.exit_code) == (1, 0)
    assert "validated 0 HorizontalPodAutoscalers" in answer.stderr
    assert (plain.stdout, plain.exit_code) == ("", 0)

    annotated = CliRunner().invoke(
        app, ["validate", "--lint", "--output", "github", "all.yaml"], catch_exceptions=False
    )
    assert annotated.stdout.startswith(
        "::warning file=all.yaml,line=7,col=3,title=ScaledObject web::spec.maxReplicaCount"
    )
