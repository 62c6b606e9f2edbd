"""The findings are true: each rule is compared with what the algorithm decides for the HPA that has the finding.

`fixed-replicas`, `cannot-scale`, `unknown-requests` and `invalid-resources` are about what happens around a sync; their
tests show the sync that follows.
"""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ocf.autoscaling import FeatureGates, default, lint
from ocf.autoscaling.algorithm import (
    Autoscaler,
    Snapshot,
    Unavailable,
    decide,
    read_resource,
)
from ocf.autoscaling.linter.findings import Code
from ocf.autoscaling.linter.scale_down_time import scale_down_seconds
from ocf.objects import Manifest, Quantity
from ocf.objects.selectors import LabelSelector
from tests.autoscaling.linter.syncs import (
    FULL,
    MI,
    NOON,
    TARGET,
    condition,
    finding,
    hpa,
    queue,
    resource,
    run,
    sync,
    workload,
)


class TestTargets:
    def test_cannot_scale(self) -> None:
        manifest = hpa([queue()])
        manifest["spec"]["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "web"}
        finding(Code.CANNOT_SCALE, manifest)
        autoscaler = Autoscaler.of(manifest)
        decision = decide(Snapshot(autoscaler=autoscaler, scale=Unavailable("not found")), now=NOON)

        assert (decision.rescale, condition(decision, "AbleToScale")) == (False, ("False", "FailedGetScale"))

    def test_fixed_replicas(self) -> None:
        """Each apply of the target is followed by a rescale."""
        manifest, target = hpa([resource(averageUtilization=50)]), workload(replicas=3, requests={"cpu": "1"})
        finding(Code.FIXED_REPLICAS, manifest, target)
        size = sync(manifest, 3, 1000, target=target).desired

        assert size != 3
        assert sync(manifest, 3, 1000, target=target).rescale

    def test_a_target_at_zero_is_not_scaled(self) -> None:
        manifest, target = hpa([resource(averageUtilization=50)]), workload(replicas=0, requests={"cpu": "1"})
        found = finding(Code.FIXED_REPLICAS, manifest, target)

        assert condition(sync(manifest, 0, 1000, target=target)) == ("False", "ScalingDisabled")
        assert (
            "sets replicas to 0, at which the HPA controller does not scale it (ScalingDisabled)" in found.explanation
        )
        assert "starts the target at 1" in found.fix

    def test_a_target_at_zero_is_scaled_if_the_autoscaler_may_scale_to_zero(self) -> None:
        manifest, target = hpa([queue()], minReplicas=0), workload(replicas=0)
        gates = FeatureGates(scale_to_zero=True, remembered_zero=False)
        (found,) = lint(manifest, target, gates=gates)

        assert sync(manifest, 0, [9000], target=target, gates=gates).desired > 0
        assert "ScalingDisabled" not in found.explanation

    def test_missing_request(self) -> None:
        manifest, target = hpa([resource(averageUtilization=50)]), workload(limits={"memory": "1Gi"})
        finding(Code.MISSING_REQUEST, manifest, target)
        decision = sync(manifest, 3, 1000, target=target)

        assert (decision.desired, condition(decision)) == (3, ("False", "FailedGetResourceMetric"))
        assert "missing request for cpu" in decision.events[0].message

    def test_unknown_requests(self) -> None:
        """It depends on the requests whether anything is scaled."""
        manifest = hpa([resource(averageUtilization=50)])
        finding(Code.UNKNOWN_REQUESTS, manifest)

        assert sync(manifest, 3, 1000, target=workload()).desired == 3
        assert sync(manifest, 3, 1000, target=FULL).desired == 6

    def test_unknown_container(self) -> None:
        manifest = hpa([resource(container="sidecar", averageUtilization=50)])
        finding(Code.UNKNOWN_CONTAINER, manifest, FULL)
        decision = sync(manifest, 3, read_resource([usage_of("app")], "cpu", "sidecar"), target=FULL)

        assert (decision.rescale, condition(decision)) == (False, ("False", "FailedGetContainerResourceMetric"))

    def test_unknown_resource(self) -> None:
        manifest = hpa([resource("nvidia.com/gpu", averageValue="1")])
        finding(Code.UNKNOWN_RESOURCE, manifest, FULL)
        decision = sync(manifest, 3, read_resource([usage_of("app")], "nvidia.com/gpu"), target=FULL)

        assert (decision.rescale, condition(decision)) == (False, ("False", "FailedGetResourceMetric"))

    def test_invalid_resources(self) -> None:
        """The controller cannot even read the pods, if there were any."""
        target = workload(requests={"cpu": "1x"})
        finding(Code.INVALID_RESOURCES, hpa([queue()]), target)

        with pytest.raises(ValueError, match="1x"):
            sync(hpa([queue()]), 3, [9000], target=target)

    def test_shared_target(self) -> None:
        manifest, other = hpa([resource(averageUtilization=50)]), hpa([queue()], "other")
        finding(Code.SHARED_TARGET, manifest, FULL, other)
        decision = sync(manifest, 3, 1000, target=FULL, others={"other": LabelSelector.parse("app=web")})

        assert (decision.rescale, condition(decision)) == (False, ("False", "AmbiguousSelector"))

    def test_shared_target_with_bounds_apart(self) -> None:
        low, high = hpa([queue()], maxReplicas=4), hpa([queue()], "other", minReplicas=6)
        assert "by turns" in finding(Code.SHARED_TARGET, low, FULL, high).explanation
        both = {name: LabelSelector.parse("app=web") for name in ("web", "other")}

        assert sync(low, 6, [5000], target=FULL, others=both).desired == 4
        assert sync(high, 4, [5000], target=FULL, others=both).desired == 6

    def test_missing_target(self) -> None:
        manifest = hpa([queue()])
        manifest["spec"]["scaleTargetRef"] = {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "web"}
        finding(Code.MISSING_TARGET, manifest)
        missing = Unavailable('no matches for kind "Deployment" in group "extensions"')
        decision = decide(Snapshot(autoscaler=Autoscaler.of(manifest), scale=missing), now=NOON)

        assert (decision.rescale, condition(decision, "AbleToScale")) == (False, ("False", "FailedGetScale"))

    def test_missing_request_of_zero(self) -> None:
        manifest, target = hpa([resource(averageUtilization=50)]), workload(requests={"cpu": "0"})
        finding(Code.MISSING_REQUEST, manifest, target)
        decision = sync(manifest, 3, 1000, target=target)

        assert (decision.desired, condition(decision)) == (3, ("False", "FailedGetResourceMetric"))

    def test_vertical_autoscaler(self) -> None:
        """The same usage is another count with the requests that the vertical autoscaler sets."""
        spec = {"targetRef": TARGET}
        kind = {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"}
        vertical = {**kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
        manifest, before, after = hpa([resource(averageUtilization=50)]), FULL, workload(requests={"cpu": "2"})
        finding(Code.VERTICAL_AUTOSCALER, manifest, FULL, vertical)

        assert [sync(manifest, 3, 1000, target=each).desired for each in (before, after)] == [6, 3]

    @given(st.integers(1, 20), st.one_of(st.integers(0, 20), st.integers(0, 100).map("{}%".format)))
    def test_blocked_evictions(self, least: int, amount: int | str) -> None:
        """No pod may go when the healthy ones are not more than the budget desires."""
        spec = {"minAvailable": amount, "selector": {"matchLabels": {"app": "web"}}}
        kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        budget = {**kind, "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
        codes = {each.code for each in lint(hpa([queue()], minReplicas=least, maxReplicas=21), FULL, [budget])}
        desired = amount if isinstance(amount, int) else math.ceil(int(amount[:-1]) * least / 100)

        assert (Code.BLOCKED_EVICTIONS in codes) is (least - desired <= 0)

    def test_overlapping_selectors(self) -> None:
        manifest, other = hpa([resource(averageUtilization=50)]), hpa([queue()], "other")
        other["spec"]["scaleTargetRef"] = {**TARGET, "name": "other"}
        theirs = workload("other", labels={"app": "web", "tier": "b"})
        finding(Code.OVERLAPPING_SELECTORS, manifest, FULL, other, theirs)
        decision = sync(other, 3, [9000], target=theirs, others={"web": LabelSelector.parse("app=web")})

        assert (decision.rescale, condition(decision)) == (False, ("False", "AmbiguousSelector"))


def usage_of(container: str) -> Manifest:
    usage = {"cpu": "1", "memory": "1Gi"}
    metadata = {"metadata": {"name": "web-0"}, "timestamp": "2026-01-31T12:00:00Z", "window": "30s"}
    return {**metadata, "containers": [{"name": container, "usage": usage}]}


class TestMetrics:
    @given(st.integers(0, 3000))
    def test_default_metric(self, usage: int) -> None:
        """Without metrics it is an HPA with 80 percent of the cpu requests."""
        manifest = hpa()
        finding(Code.DEFAULT_METRIC, manifest)
        explicit = hpa([resource(averageUtilization=80)])

        assert default(manifest) == default(explicit)
        assert sync(manifest, 3, usage).desired == sync(explicit, 3, usage).desired

    @given(st.integers(1, 200), st.integers(1, 200), st.integers(0, 3000))
    def test_duplicate_metric(self, one: int, other: int, usage: int) -> None:
        """The target that wants more pods decides."""
        first, second = (resource(averageUtilization=each) for each in (one, other))
        finding(Code.DUPLICATE_METRIC, hpa([first, second]))
        alone = max(sync(hpa([each]), 5, usage).desired for each in (first, second))

        assert sync(hpa([first, second]), 5, usage, usage).desired == alone

    def test_invalid_selector(self) -> None:
        manifest = hpa([queue(selector={"matchLabels": {"-": "b"}})])
        finding(Code.INVALID_SELECTOR, manifest)

        assert Autoscaler.of(manifest).metrics[0].selector_error
        decision = sync(manifest, 3, Unavailable("invalid selector"))
        assert (decision.rescale, condition(decision)) == (False, ("False", "FailedGetExternalMetric"))

    @given(st.integers(0, 3000))
    def test_mismatched_target(self, usage: int) -> None:
        """For a resource the value counts, whatever the type is."""
        manifest = hpa([{"type": "Resource", "resource": {"name": "cpu", "target": {
            "type": "Value", "averageUtilization": 50}}}])  # fmt: skip
        finding(Code.MISMATCHED_TARGET, manifest)

        assert sync(manifest, 5, usage).desired == sync(hpa([resource(averageUtilization=50)]), 5, usage).desired

    @pytest.mark.parametrize("target", range(1, 10))
    def test_coarse_utilization(self, target: int) -> None:
        """The next whole percent is outside of the tolerance."""
        manifest = hpa([resource(averageUtilization=target)])
        finding(Code.COARSE_UTILIZATION, manifest)

        assert sync(manifest, 5, target * 10).desired == 5
        assert sync(manifest, 5, target * 10 + 9).desired == 5
        assert sync(manifest, 5, (target + 1) * 10).desired > 5

    @given(st.integers(1, 128 * 1024 * 1000 - 1), st.integers(2, 9))
    def test_always_up(self, target: int, size: int) -> None:
        """A process of 300Ki runs alone, and the count rises at each sync up to the maximum."""
        manifest = hpa([resource("memory", averageValue=f"{target}m")])
        finding(Code.ALWAYS_UP, manifest, FULL)
        sizes = run(manifest, size, [300 * 1024 * 1000] * 20)

        assert sizes[-1] == 10

    def test_a_utilization_of_ten_is_not_coarse(self) -> None:
        manifest = hpa([resource(averageUtilization=10)])

        assert Code.COARSE_UTILIZATION not in {each.code for each in lint(manifest)}
        assert sync(manifest, 5, 110).desired == 5

    @given(st.integers(1, 30), st.sampled_from([None, "0", "0.05", "0.3", "0.9"]), st.integers(1, 300))
    def test_flat_memory_as_a_utilization(self, least: int, tolerance: str | None, target: int) -> None:
        """At the named average a pod is removed, and one percent above it none is."""
        rules: Manifest = {"stabilizationWindowSeconds": 0}
        if tolerance is not None:
            rules["tolerance"] = tolerance
        metric, behavior = resource("memory", averageUtilization=target), {"scaleDown": rules}
        manifest = hpa([metric], minReplicas=least, maxReplicas=40, behavior=behavior)
        enough = int(re.findall(r"fall to (\d+) percent", finding(Code.FLAT_MEMORY, manifest).explanation)[0])
        usage = 100 * MI * 10  # thousandths of one percent of the requests

        assert sync(manifest, least + 1, enough * usage).desired == least or enough == 0
        assert sync(manifest, least + 1, (enough + 1) * usage).desired == least + 1

    @given(st.integers(1, 30), st.integers(1, 2**40))
    def test_flat_memory_as_an_average(self, least: int, target: int) -> None:
        """At the named average a pod is removed, and one byte above it none is."""
        behavior = {"scaleDown": {"stabilizationWindowSeconds": 0}}
        metric = resource("memory", averageValue=str(target))
        manifest = hpa([metric], minReplicas=least, maxReplicas=40, behavior=behavior)
        text = re.findall(r"fall to (\w+),", finding(Code.FLAT_MEMORY, manifest).explanation)[0]
        enough = Quantity.parse(text).milli

        assert sync(manifest, least + 1, enough).desired == least
        assert sync(manifest, least + 1, enough + 1000).desired == least + 1

    @given(st.integers(1, 300), st.integers(1, 3000), st.integers(1, 3000), st.sampled_from(["0", "0.05", "0.1", "1"]))
    def test_never_up(self, target: int, request: int, limit: int, tolerance: str) -> None:
        """The finding is there if and only if a usage at the limits adds no pod."""
        request, limit = sorted((request, limit))  # no pod requests more than its limit
        workload_ = workload(requests={"cpu": f"{request}m"}, limits={"cpu": f"{limit}m"})
        manifest = hpa([resource(averageUtilization=target)], behavior={"scaleUp": {"tolerance": tolerance}})
        codes = {each.code for each in lint(manifest, workload_)}

        assert (Code.NEVER_UP in codes) == (sync(manifest, 5, limit, target=workload_).desired <= 5)

    @given(st.integers(1, 5000), st.integers(1, 5000))
    def test_never_up_with_an_amount(self, target: int, limit: int) -> None:
        workload_, manifest = workload(limits={"cpu": f"{limit}m"}), hpa([resource(averageValue=f"{target}m")])
        codes = {each.code for each in lint(manifest, workload_)}

        assert (Code.NEVER_UP in codes) == (sync(manifest, 5, limit, target=workload_).desired <= 5)

    def test_never_up_beside_another_metric(self) -> None:
        manifest = hpa([resource(averageUtilization=95), queue()])
        found = finding(Code.NEVER_UP, manifest, FULL)

        assert found.severity.value == "warning"
        assert sync(manifest, 5, 1000, [5000], target=FULL).desired == 5
        assert sync(manifest, 5, 1000, [10_000], target=FULL).desired == 10

    def test_unbounded_utilization(self) -> None:
        manifest, target = hpa([resource(averageUtilization=120)]), workload(requests={"cpu": "1"})
        finding(Code.UNBOUNDED_UTILIZATION, manifest, target)

        assert sync(manifest, 5, 1000, target=target).desired == 5
        assert sync(manifest, 5, 1000, target=target).trace.desired == 5
        assert sync(manifest, 5, 2000, target=target).desired > 5


policies = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.sampled_from([1, 2, 3, 7, 50, 100, 200]),
            "periodSeconds": st.sampled_from([15, 30, 60]),
        }
    ),
    min_size=1,
    max_size=3,
)
loads = st.lists(st.integers(0, 2000), min_size=4, max_size=8)


class TestBehavior:
    @given(st.integers(600, 3600))
    def test_late_scale_up(self, window: int) -> None:
        manifest = hpa([resource(averageUtilization=50)], behavior={"scaleUp": {"stabilizationWindowSeconds": window}})
        finding(Code.LATE_SCALE_UP, manifest, FULL)
        sizes = run(manifest, 3, [500, *[1000] * (window // 15 + 2)])
        first = next(step for step, size in enumerate(sizes) if size > 3)

        assert first * 15 >= window

    @given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.integers(1, 14), st.integers(1, 4))
    def test_short_period(self, usages: list[int], period: int, value: int) -> None:
        """It decides as a period of one sync does."""

        def with_period(seconds: int) -> Manifest:
            policies = [{"type": "Pods", "value": value, "periodSeconds": seconds}]
            behavior = {"scaleUp": {"policies": policies}}
            return hpa([resource(averageUtilization=50)], maxReplicas=40, behavior=behavior)

        finding(Code.SHORT_PERIOD, with_period(period), FULL)
        assert run(with_period(period), 3, usages) == run(with_period(15), 3, usages)

    @given(loads, st.integers(2, 9))
    def test_constant_size(self, usages: list[int], size: int) -> None:
        manifest = hpa([resource(averageUtilization=50)], minReplicas=size, maxReplicas=size)
        finding(Code.CONSTANT_SIZE, manifest)

        assert set(run(manifest, size, usages)) == {size}

    @given(loads, policies)
    @settings(max_examples=30)
    def test_idle_rules(self, usages: list[int], idle: list[Manifest]) -> None:
        for direction in ("scaleUp", "scaleDown"):
            rules = {"selectPolicy": "Disabled", "policies": idle, "stabilizationWindowSeconds": 90, "tolerance": "0.5"}
            manifest = hpa([resource(averageUtilization=50)], behavior={direction: rules})
            finding(Code.IDLE_RULES, manifest)
            without = hpa([resource(averageUtilization=50)], behavior={direction: {"selectPolicy": "Disabled"}})

            assert run(manifest, 5, usages) == run(without, 5, usages)

    @given(loads, st.integers(1, 15), st.sampled_from(["scaleUp", "scaleDown"]))
    @settings(max_examples=30)
    def test_idle_window(self, usages: list[int], window: int, direction: str) -> None:
        def made(seconds: int) -> Manifest:
            rules = {direction: {"stabilizationWindowSeconds": seconds}}
            return hpa([resource(averageUtilization=50)], behavior=rules)

        finding(Code.IDLE_WINDOW, made(window))

        assert run(made(window), 5, usages) == run(made(0), 5, usages)

    @given(loads, policies, st.sampled_from(["Max", "Min"]), st.sampled_from(["scaleUp", "scaleDown"]))
    @settings(max_examples=30)
    def test_idle_policy(self, usages: list[int], written: list[Manifest], select: str, direction: str) -> None:
        """Without the policy every size is the same."""

        def made(kept: list[Manifest]) -> Manifest:
            rules = {direction: {"selectPolicy": select, "policies": kept, "stabilizationWindowSeconds": 0}}
            return hpa([resource(averageUtilization=50)], behavior=rules)

        found = [each for each in lint(made(written)) if each.code is Code.IDLE_POLICY]
        assume(found)
        for each in found:
            position = int(each.path.rpartition("[")[2].rstrip("]"))
            kept = [policy for number, policy in enumerate(written) if number != position]

            assert run(made(written), 5, usages) == run(made(kept), 5, usages)

    @given(st.integers(0, 3000))
    def test_never_down_with_a_tolerance(self, usage: int) -> None:
        manifest = hpa([resource(averageUtilization=50)], behavior={"scaleDown": {"tolerance": "1"}})
        finding(Code.NEVER_DOWN, manifest)

        assert sync(manifest, 5, usage).desired >= 5

    @given(st.integers(0, 3000))
    def test_a_tolerance_below_one_scales_down(self, usage: int) -> None:
        rules = {"tolerance": "0.999", "stabilizationWindowSeconds": 0}
        manifest = hpa([resource(averageUtilization=50)], behavior={"scaleDown": rules})

        assert Code.NEVER_DOWN not in {each.code for each in lint(manifest)}
        assert (sync(manifest, 5, usage).desired < 5) == (usage < 10)

    @given(st.integers(0, 3000))
    def test_disabled_directions(self, usage: int) -> None:
        for direction, code in (("scaleUp", Code.NEVER_UP), ("scaleDown", Code.NEVER_DOWN)):
            manifest = hpa([resource(averageUtilization=50)], behavior={direction: {"selectPolicy": "Disabled"}})
            finding(code, manifest)
            desired = sync(manifest, 5, usage).desired

            assert desired <= 5 if direction == "scaleUp" else desired >= 5
            assert sync(manifest, 1, usage).desired == 2  # minReplicas

    @given(st.integers(0, 3000))
    def test_dropped_tolerance(self, usage: int) -> None:
        """The release decides as if there were none."""
        gates = FeatureGates.for_release("1.34")
        manifest = hpa([resource(averageUtilization=50)], behavior={"scaleUp": {"tolerance": "0.9"}})
        without = hpa([resource(averageUtilization=50)], behavior={})
        assert Code.DROPPED_TOLERANCE in {each.code for each in lint(manifest, gates=gates)}

        assert sync(manifest, 5, usage, gates=gates).desired == sync(without, 5, usage, gates=gates).desired

    @given(policies, st.sampled_from(["Max", "Min"]), st.integers(1, 5), st.integers(6, 40))
    @settings(max_examples=30)
    def test_slow_drain(self, written: list[Manifest], select: str, least: int, most: int) -> None:
        """The time is that of syncs without load, from the first one."""
        rules = {"selectPolicy": select, "policies": written, "stabilizationWindowSeconds": 0}
        manifest = hpa(
            [resource(averageUtilization=50)], minReplicas=least, maxReplicas=most, behavior={"scaleDown": rules}
        )
        seconds = scale_down_seconds(rules, most, least)
        assert seconds is not None
        sizes = run(manifest, most, [0] * (seconds // 15 + 1))

        assert sizes[-1] == least
        assert seconds == 0 or sizes[-2] > least


def test_every_code_has_a_test() -> None:
    rules = [name for part in (TestTargets, TestMetrics, TestBehavior) for name in vars(part)]
    tested = {code for code in Code for name in rules if name.startswith(f"test_{code.value.replace('-', '_')}")}

    # What the API server rejects has tests of its own, and test_scaled_objects.py those for an HPA that KEDA makes.
    assert tested == set(Code) - {Code.REJECTED_HPA}
