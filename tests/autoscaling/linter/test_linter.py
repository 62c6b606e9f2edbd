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

FULL = {"requests": {"cpu": "500m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


def workload(
    *resources: Manifest, name: str = "web", labels: Manifest | None = None, pod: Manifest | None = None, **spec: Any
) -> Manifest:
    labels = {"app": name} if labels is None else labels
    containers = [{"name": f"c{number}", "resources": each} for number, each in enumerate(resources)]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers, **(pod or {})}}
    spec = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def resource(name: str = "cpu", **target: Any) -> Manifest:
    target = target or {"averageUtilization": 60}
    kind = "Utilization" if "averageUtilization" in target else "AverageValue"
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind, **target}}}


def queue(**more: Any) -> Manifest:
    target = {"type": "Value", "value": "5"}
    return {"type": "External", "external": {"metric": {"name": "q", **more}, "target": target}}


def hpa(name: str = "web", target: Manifest | None = None, **spec: Any) -> Manifest:
    spec = {"scaleTargetRef": target or TARGET, "minReplicas": 2, "maxReplicas": 10, "metrics": [resource()], **spec}
    return {"metadata": {"name": name}, "spec": spec}


def policy(kind: str, value: int, period: int = 60) -> Manifest:
    return {"type": kind, "value": value, "periodSeconds": period}


def found(manifest: Manifest, target: Any = None, others: Any = ()) -> list[tuple[str, str, str]]:
    return [(each.severity.value, each.code.value, each.path) for each in lint(manifest, target, others)]


GOOD = workload(FULL)


def test_a_good_hpa_has_no_findings() -> None:
    assert lint(hpa(), GOOD) == ()
    assert lint(hpa(behavior={}), GOOD) == ()
    assert lint(hpa(metrics=[queue()])) == ()


TARGETS = [
    pytest.param(hpa(), workload({}), ("error", "missing-request", "spec.metrics[0].resource"), id="no request"),
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


class TestExplanations:
    def text(self, manifest: Manifest, target: Any = GOOD) -> str:
        (finding,) = lint(manifest, target)
        return finding.explanation

    def test_a_slow_scale_down_has_its_duration(self) -> None:
        manifest = hpa(minReplicas=1, maxReplicas=50, behavior={"scaleDown": {"policies": [policy("Pods", 1, 300)]}})

        assert self.text(manifest) == "From 50 pods to 1 it takes 4 h 5 min after the load has ended."

    def test_an_endless_scale_down_is_more_than_three_days(self) -> None:
        slow = {"scaleDown": {"policies": [policy("Pods", 1, 1800)]}}

        assert "more than three days" in self.text(hpa(maxReplicas=1000, behavior=slow))

    @pytest.mark.parametrize(
        ("target", "namespace", "named"),
        [
            pytest.param(workload(FULL, replicas=3), "", "deployment/web`", id="no namespace"),
            pytest.param(workload(FULL, replicas=3), "shop", "deployment/web --namespace=shop`", id="a namespace"),
            pytest.param(
                {**workload(FULL, replicas=3), "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"},
                "shop",
                "rollout.argoproj.io/web --namespace=shop`",
                id="a custom resource",
            ),
        ],
    )
    def test_the_fix_of_fixed_replicas_has_the_commands_for_the_target(
        self, target: Manifest, namespace: str, named: str
    ) -> None:
        """`tests/clients/test_replicas_of_a_live_target.py` tries each of them."""
        target = with_field(target, ("metadata", "namespace"), namespace)
        reference = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": "web"}
        (found,) = lint(hpa(target=reference), target)

        assert found.fix.startswith("Remove replicas before the first apply. Of a live target do not just remove it")
        assert f"kubectl apply edit-last-applied {named}" in found.fix
        assert ('"namespace": "shop"' in found.fix) is bool(namespace)
        assert f'(lookup "{target["apiVersion"]}" "{target["kind"]}" .Release.Namespace "web")' in found.fix
        assert ("set the count to 1" in found.fix) is (target["kind"] == "Deployment")

    @pytest.mark.parametrize("name", ["web; reboot", "$(id)", "{{ x }}", "a'b", 'a"b'])
    def test_a_name_that_a_shell_would_interpret_is_in_no_command(self, name: str) -> None:
        (found,) = lint(hpa(target={**TARGET, "name": name}), workload(FULL, name=name, labels={"a": "b"}, replicas=3))

        assert "`" not in found.fix

    def test_a_missing_request_names_the_containers(self) -> None:
        assert "c1, c2 requests no cpu" in self.text(hpa(), workload(FULL, {}, {}))

    @pytest.mark.parametrize(
        ("target", "enough"),
        [
            ({"averageUtilization": 60}, "from 3 pods to 2 the average has to fall to 40 percent, because"),
            ({"averageUtilization": 61}, "to 40 percent, because the controller rounds up"),
            ({"averageValue": "96Mi"}, "to 64Mi, because"),
        ],
    )
    def test_flat_memory_has_the_average_to_fall_to(self, target: Manifest, enough: str) -> None:
        assert enough in self.text(hpa(metrics=[resource("memory", **target)]))

    @pytest.mark.parametrize(
        ("behavior", "enough"),
        [
            pytest.param({}, "to 44 percent, because the controller ignores a difference of 10 percent", id="default"),
            pytest.param({"scaleDown": {"tolerance": "0.5"}}, "to 24 percent, because the controller ig", id="own"),
            pytest.param({"scaleDown": {"tolerance": "0"}}, "to 47 percent, because the controller rounds", id="none"),
        ],
    )
    def test_flat_memory_counts_the_tolerance(self, behavior: Manifest, enough: str) -> None:
        manifest = hpa(
            minReplicas=20, maxReplicas=40, behavior=behavior, metrics=[resource("memory", averageUtilization=50)]
        )
        assert enough in self.text(manifest)

    def test_invalid_resources_are_all_named(self) -> None:
        pod = {"resources": {"limits": {"memory": "lots"}}}
        text = self.text(hpa(), workload({"requests": {"cpu": "1x"}}, {"limits": {"cpu": []}}, pod=pod))

        assert text == (
            "The API server rejects Deployment web, because resources of it are not quantities: "
            "limits.memory of the pod is 'lots', requests.cpu of c0 is '1x', limits.cpu of c1 is []."
        )

    def test_an_unreachable_target_has_the_numbers(self) -> None:
        text = self.text(hpa(metrics=[resource(averageUtilization=95)]), workload({"limits": {"cpu": "1"}}))

        assert "The limits allow 100 percent of the requests, which never exceeds the target of 95 percent" in text
        assert "the tolerance of 10 percent" in text

    def test_an_unreachable_amount_has_the_numbers(self) -> None:
        text = self.text(hpa(metrics=[resource(averageValue="1")]), workload(FULL))

        assert "The limits allow 1 per pod, which never exceeds the target of 1 by more than" in text

    @pytest.mark.parametrize(("selection", "word"), [("Max", "less"), ("Min", "more")])
    def test_an_idle_policy_names_the_deciding_one(self, selection: str, word: str) -> None:
        twice = {"selectPolicy": selection, "policies": [policy("Pods", 1), policy("Pods", 1)]}

        assert self.text(hpa(behavior={"scaleUp": twice})) == (
            f"It has no effect: policies[0] never allows {word}, and selectPolicy is {selection}."
        )


class TestConflicts:
    def test_two_autoscalers_of_one_target(self) -> None:
        (finding,) = lint(hpa(), GOOD, [kinded(hpa()), kinded(hpa("other", {**TARGET, "apiVersion": "apps/v1beta1"}))])

        assert (finding.code, finding.severity) == (Code.SHARED_TARGET, Severity.ERROR)
        assert finding.explanation == (
            "HorizontalPodAutoscaler other scales the same target, so both select the same pods, and the controller "
            "scales neither by its metrics (AmbiguousSelector)."
        )

    @pytest.mark.parametrize(
        ("bounds", "apart"),
        [((1, 1), True), ((1, 2), False), ((10, 20), False), ((11, None), True), ((None, 1), True), ((None, 9), False)],
    )
    def test_bounds_that_do_not_meet_are_named(self, bounds: tuple[int | None, int | None], apart: bool) -> None:
        names = ("minReplicas", "maxReplicas")
        other = kinded(hpa("other"))
        for name, bound in zip(names, bounds, strict=True):
            other["spec"].pop(name)
            other["spec"] |= {} if bound is None else {name: bound}
        (finding,) = lint(hpa(), GOOD, [other])

        assert (" by turns, for ever." in finding.explanation) is apart

    def test_autoscaling_v1_is_seen_beside_v2(self) -> None:
        old = {**kinded(hpa("old")), "apiVersion": "autoscaling/v1"}
        old["spec"] = {"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}

        assert [each[1] for each in found(hpa(), GOOD, [old])] == ["shared-target"]

    @pytest.mark.parametrize(
        "target",
        [{**TARGET, "name": "x"}, {**TARGET, "kind": "StatefulSet"}, {**TARGET, "apiVersion": "example.com/v1"}],
        ids=["name", "kind", "group"],
    )
    def test_another_target_is_no_conflict(self, target: Manifest) -> None:
        assert found(hpa(), GOOD, [kinded(hpa("other", target))]) == []

    def test_another_namespace_is_no_conflict(self) -> None:
        other = kinded(hpa("other"))
        other["metadata"]["namespace"] = "elsewhere"

        assert found(hpa(), GOOD, [other]) == []

    @pytest.mark.parametrize(
        ("ours", "theirs"),
        [
            pytest.param({"app": "a"}, {"app": "a"}, id="the same"),
            pytest.param({"app": "a"}, {"app": "a", "tier": "b"}, id="ours matches theirs"),
            pytest.param({"app": "a", "tier": "b"}, {"app": "a"}, id="theirs matches ours"),
        ],
    )
    def test_selectors_that_match_the_pods_of_the_other(self, ours: Manifest, theirs: Manifest) -> None:
        other_target = workload(FULL, name="other", labels=theirs)
        others = [kinded(hpa("second", {**TARGET, "name": "other"})), other_target]

        assert found(hpa(), workload(FULL, labels=ours), others) == [
            ("error", "overlapping-selectors", "spec.scaleTargetRef")
        ]

    def test_distinct_selectors_are_no_conflict(self) -> None:
        other_target = workload(FULL, name="other")

        assert (
            found(hpa(), GOOD, [kinded(hpa("second", {**TARGET, "name": "other"})), other_target, {"kind": "Service"}])
            == []
        )


def kinded(manifest: Manifest) -> Manifest:
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", **manifest}


def test_models_are_accepted_everywhere() -> None:
    made = autoscale(GOOD, max_replicas=5, metrics=[metrics.cpu(average_utilization=60)]).hpa
    other = V2HorizontalPodAutoscaler.model_validate(hpa("other"))

    assert [finding.code for finding in lint(made, GOOD, [other])] == [Code.SHARED_TARGET]


def test_an_invalid_hpa_has_no_findings() -> None:
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
    shown |= {"idle-rules", "dropped-tolerance"}

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
