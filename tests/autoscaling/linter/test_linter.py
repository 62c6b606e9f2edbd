"""The linter finds settings that cause problems in production, and nothing in a good HPA."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V2HorizontalPodAutoscaler

from ocf.autoscaling import FeatureGates, Finding, Severity, autoscale, lint, metrics, validate
from ocf.autoscaling.linter.findings import Code
from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.objects.paths import with_field
from tests.autoscaling.linter.objects import FULL, TARGET, found, hpa, kinded, policy, queue, resource, workload

GOOD = workload(FULL)


def test_a_good_hpa_has_no_findings() -> None:
    assert lint(hpa(), GOOD) == ()
    assert lint(hpa(behavior={}), GOOD) == ()
    assert lint(hpa(metrics=[queue()])) == ()


TARGETS = [
    pytest.param(hpa(), workload({}), ("error", "missing-request", "spec.metrics[0].resource"), id="no request"),
    pytest.param(
        hpa(),
        workload({"requests": {"cpu": "0"}}, {"requests": {"cpu": 0}}),
        ("error", "missing-request", "spec.metrics[0].resource"),
        id="requests of 0",
    ),
    pytest.param(hpa(), workload(FULL, {}), ("error", "missing-request", "spec.metrics[0].resource"), id="in any"),
    pytest.param(
        hpa(metrics=[{"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "x", "target": {
            "type": "AverageValue", "averageValue": "1"}}}]),
        GOOD,
        ("error", "unknown-container", "spec.metrics[0].containerResource.container"),
        id="a container that is not there",
    ),
    pytest.param(hpa(), None, ("info", "unknown-requests", "spec.metrics[0]"), id="requests not known"),
    *(
        pytest.param(
            hpa(),
            workload(FULL, replicas=count),
            ("warning", "fixed-replicas", "spec.scaleTargetRef"),
            id=f"{count} replicas",
        )
        for count in (3, 0)
    ),
    pytest.param(
        hpa(target={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"}, metrics=[queue()]),
        None,
        ("error", "cannot-scale", "spec.scaleTargetRef.kind"),
        id="no scale",
    ),
    pytest.param(
        hpa(),
        workload({"requests": {"cpu": "1x"}, "limits": {"cpu": 2}}),
        ("error", "invalid-resources", "spec.scaleTargetRef"),
        id="a request that is not a quantity",
    ),
]  # fmt: skip
METRICS = [
    pytest.param(hpa(metrics=[]), GOOD, ("info", "default-metric", "spec.metrics"), id="filled in"),
    pytest.param(
        hpa(metrics=[resource(), queue(), resource(averageValue="500m")]),
        GOOD,
        ("warning", "duplicate-metric", "spec.metrics[2]"),
        id="the same resource",
    ),
    pytest.param(
        hpa(metrics=[queue(selector={"matchLabels": {"a": "b"}}), queue(selector={"matchLabels": {"a": "b"}})]),
        None,
        ("warning", "duplicate-metric", "spec.metrics[1]"),
        id="the same selector",
    ),
    pytest.param(
        hpa(metrics=[queue(selector={"matchLabels": {"-": "b"}})]),
        None,
        ("error", "invalid-selector", "spec.metrics[0].external.metric.selector"),
        id="selector",
    ),
    pytest.param(
        hpa(metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {
            "type": "Value", "averageUtilization": 50}}}]),
        GOOD,
        ("warning", "mismatched-target", "spec.metrics[0].resource.target.type"),
        id="type and value disagree",
    ),
    pytest.param(
        hpa(metrics=[resource("nvidia.com/gpu", averageValue="1")]),
        GOOD,
        ("error", "unknown-resource", "spec.metrics[0].resource.name"),
        id="a resource that is not measured",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=3)]),
        GOOD,
        ("info", "coarse-utilization", "spec.metrics[0].resource.target.averageUtilization"),
        id="few percent",
    ),
    pytest.param(
        hpa(metrics=[resource("memory", averageUtilization=60)]),
        GOOD,
        ("info", "flat-memory", "spec.metrics[0].resource"),
        id="memory",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=120)]),
        workload({"requests": {"cpu": "1"}}),
        ("warning", "unbounded-utilization", "spec.metrics[0].resource.target.averageUtilization"),
        id="above 100 without limits",
    ),
    pytest.param(
        hpa(metrics=[resource(averageValue="80")]),
        workload({"requests": {"cpu": "250m"}}),
        ("warning", "never-up", "spec.metrics[0].resource.target.averageValue"),
        id="many times the request, without a limit",
    ),
    pytest.param(
        hpa(metrics=[resource(averageValue="80")]),
        workload({}),
        ("warning", "never-up", "spec.metrics[0].resource.target.averageValue"),
        id="many cores, without a limit or a request",
    ),
    # https://github.com/pegasystems/pega-helm-charts/issues/179: the request grew tenfold, the target stayed.
    pytest.param(
        hpa(metrics=[resource(averageUtilization=700)]),
        workload({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}),
        ("error", "never-up", "spec.metrics[0].resource.target.averageUtilization"),
        id="a target of seven times the request, with limits of two times the request",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=95)]),
        workload({"limits": {"cpu": "1"}}),
        ("error", "never-up", "spec.metrics[0].resource.target.averageUtilization"),
        id="limits end within the tolerance",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=190)]),
        GOOD,
        ("error", "never-up", "spec.metrics[0].resource.target.averageUtilization"),
        id="limits of twice the requests end within the tolerance",
    ),
    pytest.param(
        hpa(metrics=[resource(averageValue="1900m")]),
        workload(FULL, FULL),
        ("error", "never-up", "spec.metrics[0].resource.target.averageValue"),
        id="limits of all containers end within the tolerance of an amount",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=95)]),
        workload({}, pod={"resources": {"limits": {"cpu": "1"}}}),
        ("error", "never-up", "spec.metrics[0].resource.target.averageUtilization"),
        id="limits of the pod end within the tolerance",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=80)], behavior={"scaleUp": {"tolerance": "0.3"}}),
        workload({"limits": {"cpu": "1"}}),
        ("error", "never-up", "spec.metrics[0].resource.target.averageUtilization"),
        id="limits end within a tolerance of its own",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=95), queue()]),
        workload({"limits": {"cpu": "1"}}),
        ("warning", "never-up", "spec.metrics[0].resource.target.averageUtilization"),
        id="limits end within the tolerance, but another metric scales up",
    ),
    pytest.param(
        hpa(metrics=[resource(averageUtilization=100)]),
        workload({"requests": {"cpu": "1"}, "limits": {"cpu": "1109m"}}),
        ("error", "never-up", "spec.metrics[0].resource.target.averageUtilization"),
        id="limits end above the tolerance, but not by a whole percent",
    ),
]  # fmt: skip
DOWN = "spec.behavior.scaleDown"
BEHAVIOR = [
    pytest.param(
        hpa(behavior={"scaleUp": {"stabilizationWindowSeconds": 3600}}),
        GOOD,
        ("warning", "late-scale-up", "spec.behavior.scaleUp.stabilizationWindowSeconds"),
        id="a scale-up that waits for an hour",
    ),
    # https://github.com/GoogleCloudPlatform/bank-of-anthos has periods of 5 s.
    pytest.param(
        hpa(behavior={"scaleDown": {"policies": [policy("Pods", 1, 5)]}}),
        GOOD,
        ("info", "short-period", f"{DOWN}.policies[0].periodSeconds"),
        id="a period below that of the controller",
    ),
    pytest.param(hpa(minReplicas=5, maxReplicas=5), GOOD, ("warning", "constant-size", "spec.maxReplicas"), id="size"),
    pytest.param(
        hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
        GOOD,
        ("warning", "never-up", "spec.behavior.scaleUp.selectPolicy"),
        id="up disabled",
    ),
    pytest.param(
        hpa(behavior={"scaleDown": {"selectPolicy": "Disabled"}}),
        GOOD,
        ("info", "never-down", f"{DOWN}.selectPolicy"),
        id="down disabled",
    ),
    pytest.param(
        hpa(behavior={"scaleDown": {"tolerance": "10"}}),
        GOOD,
        ("error", "never-down", f"{DOWN}.tolerance"),
        id="a tolerance in percent",
    ),
    *(
        pytest.param(
            hpa(behavior={"scaleUp": {"stabilizationWindowSeconds": window}}),
            GOOD,
            ("info", "idle-window", "spec.behavior.scaleUp.stabilizationWindowSeconds"),
            id=f"a window of {window} s: what is as old as the window does not count",
        )
        for window in (1, 15)
    ),
    pytest.param(
        hpa(behavior={"scaleDown": {"policies": [policy("Percent", 100), policy("Pods", 1)]}}),
        GOOD,
        ("info", "idle-policy", f"{DOWN}.policies[1]"),
        id="with an unlimited one",
    ),
    pytest.param(
        hpa(behavior={"scaleUp": {"policies": [policy("Pods", 1), policy("Pods", 2)]}}),
        GOOD,
        ("info", "idle-policy", "spec.behavior.scaleUp.policies[0]"),
        id="with a larger one",
    ),
    pytest.param(
        hpa(behavior={"scaleUp": {"selectPolicy": "Min", "policies": [policy("Pods", 1), policy("Pods", 2)]}}),
        GOOD,
        ("info", "idle-policy", "spec.behavior.scaleUp.policies[1]"),
        id="with a smaller one that counts",
    ),
    pytest.param(
        hpa(behavior={"scaleUp": {"policies": [policy("Pods", 1), policy("Pods", 1)]}}),
        GOOD,
        ("info", "idle-policy", "spec.behavior.scaleUp.policies[1]"),
        id="the same twice",
    ),
    pytest.param(
        hpa(maxReplicas=50, behavior={"scaleDown": {"policies": [policy("Pods", 1, 300)]}}),
        GOOD,
        ("warning", "slow-drain", f"{DOWN}.policies"),
        id="hours",
    ),
]


@pytest.mark.parametrize(("manifest", "target", "expected"), [*TARGETS, *METRICS, *BEHAVIOR])
def test_each_problem_has_exactly_one_finding(manifest: Manifest, target: Any, expected: tuple[str, str, str]) -> None:
    """The API server accepts each of them."""
    assert validate(manifest) == ()
    assert found(manifest, target) == [expected]


@pytest.mark.parametrize(
    ("manifest", "target"),
    [
        pytest.param(hpa(metrics=[resource(averageUtilization=90)]), workload({"limits": {"cpu": "1"}}), id="90"),
        pytest.param(hpa(), workload(FULL, {"requests": {"cpu": 0}}), id="a request of 0 beside another"),
        pytest.param(
            hpa(metrics=[resource(averageValue="4900m")]),
            workload({"requests": {"cpu": "250m"}}),
            id="below 20 requests",
        ),
        pytest.param(hpa(metrics=[resource(averageValue="31")]), workload({}), id="below 32 cores"),
        pytest.param(
            hpa(behavior={"scaleUp": {"stabilizationWindowSeconds": 599}}), GOOD, id="a wait below 10 minutes"
        ),
        pytest.param(
            hpa(behavior={"scaleDown": {"stabilizationWindowSeconds": 3600}}), GOOD, id="a long window downwards"
        ),
        pytest.param(hpa(behavior={"scaleDown": {"policies": [policy("Pods", 1, 15)]}}), GOOD, id="a period of a sync"),
        pytest.param(hpa(metrics=[resource(averageUtilization=120)]), GOOD, id="above 100 with limits"),
        pytest.param(
            hpa(
                metrics=[
                    {
                        "type": "Pods",
                        "pods": {
                            "metric": {"name": "cpu"},
                            "target": {"type": "AverageValue", "averageValue": "1", "averageUtilization": 5},
                        },
                    }
                ]
            ),
            workload({}),
            id="a percentage that does not count, of another metric type",
        ),
        pytest.param(hpa(metrics=[resource(averageUtilization=100)]), workload({"requests": {"cpu": "1"}}), id="100"),
        pytest.param(
            hpa(metrics=[resource(averageUtilization=100)]),
            workload({"requests": {"cpu": "1"}, "limits": {"cpu": "1110m"}}),
            id="a whole percent above the tolerance",
        ),
        pytest.param(hpa(metrics=[resource(averageUtilization=10)]), GOOD, id="10 percent"),
        pytest.param(hpa(metrics=[resource(averageValue="1800m")]), workload(FULL, FULL), id="an amount below limits"),
        pytest.param(
            hpa(metrics=[resource(averageValue="9")]), workload(FULL, {}), id="an amount, one without a limit"
        ),
        pytest.param(hpa(behavior={"scaleUp": {"stabilizationWindowSeconds": 16}}), GOOD, id="a window of two syncs"),
        pytest.param(
            hpa(maxReplicas=14, behavior={"scaleDown": {"policies": [policy("Pods", 1, 300)]}}), GOOD, id="an hour"
        ),
        pytest.param(
            hpa(behavior={"scaleDown": {"policies": [policy("Pods", 1), policy("Percent", 10)]}}), GOOD, id="two kinds"
        ),
        pytest.param(
            hpa(behavior={"scaleUp": {"policies": [policy("Pods", 1), policy("Pods", 2, 120)]}}), GOOD, id="two periods"
        ),
        pytest.param(hpa(maxReplicas=3, behavior={"scaleUp": {}}), GOOD, id="the server's default policies"),
        pytest.param(hpa(behavior={"scaleDown": {"tolerance": "0.9"}}), GOOD, id="a wide tolerance"),
        pytest.param(hpa(metrics=[queue(), queue(selector={})]), None, id="with and without a selector"),
    ],
)
def test_a_value_next_to_a_problem_has_no_finding(manifest: Manifest, target: Any) -> None:
    assert found(manifest, target) == []


@pytest.mark.parametrize(
    ("target", "requests", "shown"),
    [
        pytest.param({"averageValue": "500m"}, {}, "0.5 bytes", id="thousandths of bytes"),
        pytest.param({"averageValue": "512"}, {}, "512 bytes", id="no unit"),
        pytest.param({"averageUtilization": 80}, {"memory": "128m"}, "0.102 bytes", id="a request in thousandths"),
        pytest.param({"averageUtilization": 80}, {"memory": "256"}, "204.8 bytes", id="a request without a unit"),
    ],
)
def test_a_memory_target_that_every_process_exceeds(target: Manifest, requests: Manifest, shown: str) -> None:
    manifest = hpa(metrics=[resource("memory", **target)])
    (finding,) = (each for each in lint(manifest, workload({"requests": requests})) if each.code is Code.ALWAYS_UP)

    assert (finding.severity, finding.path) == (
        Severity.ERROR,
        f"spec.metrics[0].resource.target.{next(iter(target))}",
    )
    assert finding.explanation.startswith(f"The target is {shown} of memory per pod")


@pytest.mark.parametrize("amount", ["128Ki", "1Mi"])
def test_a_memory_target_that_a_process_may_keep(amount: str) -> None:
    assert [each[1] for each in found(hpa(metrics=[resource("memory", averageValue=amount)]), GOOD)] == ["flat-memory"]


def test_rules_of_a_disabled_direction_are_idle() -> None:
    up = {"selectPolicy": "Disabled", "policies": [policy("Pods", 1)]}

    assert found(hpa(behavior={"scaleUp": up}), GOOD) == [
        ("info", "idle-rules", "spec.behavior.scaleUp"),
        ("warning", "never-up", "spec.behavior.scaleUp.selectPolicy"),
    ]


@pytest.mark.parametrize("release", ["1.33", "1.34"])
def test_a_tolerance_that_the_release_drops_has_no_other_findings(release: str) -> None:
    manifest = hpa(behavior={"scaleDown": {"tolerance": "10"}, "scaleUp": {"tolerance": "9"}})
    findings = lint(manifest, workload({"limits": {"cpu": "1"}}), gates=FeatureGates.for_release(release))

    assert [(each.code, each.path) for each in findings] == [
        (Code.DROPPED_TOLERANCE, "spec.behavior.scaleUp.tolerance"),
        (Code.DROPPED_TOLERANCE, "spec.behavior.scaleDown.tolerance"),
    ]


def test_a_tolerance_that_the_release_does_not_know_is_refused() -> None:
    with pytest.raises(ManifestError, match="tolerance: unknown field"):
        lint(hpa(behavior={"scaleDown": {"tolerance": "0.2"}}), gates=FeatureGates.for_release("1.32"))


def test_models_are_accepted_everywhere() -> None:
    made = autoscale(GOOD, max_replicas=5, metrics=[metrics.cpu(average_utilization=60)]).hpa
    other = V2HorizontalPodAutoscaler.model_validate(hpa("other"))

    assert [finding.code for finding in lint(made, GOOD, [other])] == [Code.SHARED_TARGET]


def test_an_invalid_hpa_has_the_findings_about_other_objects_alone() -> None:
    broken = hpa(maxReplicas=1, minReplicas=9, metrics=[resource(averageUtilization=1)])

    assert found(broken, workload(FULL, replicas=3), [kinded(hpa("other"))]) == [
        ("warning", "fixed-replicas", "spec.scaleTargetRef"),
        ("error", "shared-target", "spec.scaleTargetRef"),
    ]
    assert lint(hpa(maxReplicas=0)) == ()
    assert lint(hpa(minReplicas=0, metrics=[queue()])) == ()
    assert lint(hpa(minReplicas=0, metrics=[]), gates=FeatureGates.for_release("1.37")) == ()


def test_an_hpa_without_a_name_is_linted() -> None:
    """A template of an HPA gets its name later."""
    assert [each[1] for each in found({"spec": hpa()["spec"]})] == ["unknown-requests"]


def test_what_cannot_be_decoded_is_refused() -> None:
    with pytest.raises(ManifestError, match="unknown field"):
        lint(hpa(maxReplica=3))


def test_the_input_is_not_changed() -> None:
    manifest, target = hpa(behavior={}), workload({}, replicas=3)
    before = copy.deepcopy((manifest, target))
    lint(manifest, target, [manifest, target])

    assert (manifest, target) == before


def test_every_code_is_tested() -> None:
    """Every code can be found, and every finding has a documented code."""
    rows: list[Any] = [*TARGETS, *METRICS, *BEHAVIOR]
    shown = {row.values[2][1] for row in rows} | {"shared-target", "overlapping-selectors"}
    shown |= {"idle-rules", "dropped-tolerance", "always-up", "missing-target", "vertical-autoscaler"}
    shown |= {"blocked-evictions", "rejected-hpa"}

    assert shown == {code.value for code in Code}


def test_the_json_form_is_stable() -> None:
    finding = Finding(Code.NEVER_UP, Severity.ERROR, "spec.x", "Because.", "Do.")

    assert finding.to_json() == {
        "code": "never-up",
        "severity": "error",
        "path": "spec.x",
        "explanation": "Because.",
        "fix": "Do.",
    }
    assert str(finding) == "spec.x: error never-up: Because. Do."


rules = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.integers(0, 3600),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "tolerance": st.sampled_from(["0", "0.1", "1", "5", "m"]),
        "policies": st.lists(
            st.builds(policy, st.sampled_from(["Pods", "Percent"]), st.integers(1, 200), st.integers(1, 1800)),
            min_size=1,
            max_size=3,
        ),
    },
)


@given(st.integers(1, 5), st.integers(5, 40), rules, rules)
def test_every_finding_points_into_the_spec_and_says_something(
    low: int, high: int, up: Manifest, down: Manifest
) -> None:
    manifest = hpa(minReplicas=low, maxReplicas=high, behavior={"scaleUp": up, "scaleDown": down})
    for finding in lint(manifest, GOOD):
        assert finding.path.startswith("spec.")
        assert finding.explanation.endswith(".")
        assert finding.fix.endswith(".")


anything: st.SearchStrategy[Any] = (
    st.none() | st.text(max_size=3) | st.integers(0, 3) | st.just([]) | st.just({}) | st.just([None, "x", {}])
)
paths = st.sampled_from(
    [
        ("spec",),
        ("spec", "template"),
        ("spec", "template", "spec"),
        ("spec", "template", "spec", "containers"),
        ("spec", "template", "spec", "initContainers"),
        ("spec", "template", "spec", "resources"),
        ("spec", "template", "metadata"),
        ("spec", "template", "metadata", "labels"),
        ("spec", "selector"),
        ("spec", "replicas"),
        ("metadata", "namespace"),
        ("spec", "scaleTargetRef"),
    ]
)


@given(paths, anything)
def test_malformed_other_objects_are_ignored(path: tuple[str, ...], value: Any) -> None:
    """Each object has its own validation."""
    broken = with_field(workload(FULL, name="other"), path, value)
    others = [
        broken,
        kinded(hpa("second", {**TARGET, "name": "other"})),
        with_field(kinded(hpa("third")), path, value),
    ]
    lint(hpa(), with_field(GOOD, path, value), others)
