"""Objects that govern the pods of the target: vertical autoscalers, disruption budgets, and LimitRanges."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.autoscaling import FeatureGates, Severity, lint
from ocf.autoscaling.linter.findings import Code
from ocf.objects import Manifest
from ocf.objects.paths import with_field
from tests.autoscaling.linter.objects import FULL, TARGET, found, hpa, queue, resource, workload

GOOD: Final = workload(FULL)
LABELS: Final = {"app": "web"}


def vpa(update: str | None = None, **policy: Any) -> Manifest:
    spec: Manifest = {"targetRef": TARGET}
    spec |= {} if update is None else {"updatePolicy": {"updateMode": update}}
    spec |= {"resourcePolicy": {"containerPolicies": [{"containerName": "*", **policy}]}} if policy else {}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "v"},
        "spec": spec,
    }


VERTICAL: Final = ("warning", "vertical-autoscaler", "spec.metrics[0].resource")


class TestVerticalAutoscalers:
    """Both change with the load: the requests, and the count that depends on them.

    https://github.com/haproxy-ingress/charts/pull/107, https://github.com/attune-io/attune/pull/766,
    https://github.com/gardener/gardener/pull/10083.
    """

    @pytest.mark.parametrize("mode", [None, "Auto", "Recreate", "InPlaceOrRecreate", "Initial"])
    def test_requests_that_another_autoscaler_sets(self, mode: str | None) -> None:
        assert found(hpa(), GOOD, [vpa(mode)]) == [VERTICAL]

    def test_the_containers_need_not_be_known(self) -> None:
        assert VERTICAL in found(hpa(), None, [vpa()])

    @pytest.mark.parametrize("kinds", [("Deployment", "deployment"), ("deployment", "Deployment")])
    def test_the_kinds_may_be_in_lower_case(self, kinds: tuple[str, str]) -> None:
        scaled, resized = ({**TARGET, "kind": kind} for kind in kinds)

        assert found(hpa(target=scaled), GOOD, [with_field(vpa(), ("spec", "targetRef"), resized)]) == [VERTICAL]

    @pytest.mark.parametrize(
        ("manifest", "other"),
        [
            pytest.param(hpa(), vpa("Off"), id="recommendations only"),
            pytest.param(hpa(), vpa(controlledResources=["memory"]), id="another resource"),
            pytest.param(hpa(), vpa(mode="Off"), id="no container"),
            pytest.param(hpa(metrics=[resource(averageValue="500m")]), vpa(), id="an amount"),
            pytest.param(hpa(metrics=[queue()]), vpa(), id="another metric"),
            pytest.param(hpa(), with_field(vpa(), ("spec", "targetRef"), {**TARGET, "name": "x"}), id="another target"),
        ],
    )
    def test_no_common_resource(self, manifest: Manifest, other: Manifest) -> None:
        assert found(manifest, GOOD, [other]) == []


def budget(**spec: Any) -> Manifest:
    spec = {"selector": {"matchLabels": LABELS}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}


class TestBudgets:
    """A node with a pod that may not be evicted is not drained.

    https://github.com/open-policy-agent/gatekeeper-library/issues/202,
    https://github.com/kubernetes/ingress-nginx/issues/7034, https://github.com/kubernetes/kubernetes/issues/93476,
    https://github.com/kubernetes/website/issues/55178.
    """

    @pytest.mark.parametrize(
        ("least", "spec", "enough"),
        [
            pytest.param(2, {"minAvailable": 2}, 3, id="as many as minReplicas"),
            pytest.param(2, {"minAvailable": 5}, 6, id="more than minReplicas"),
            pytest.param(2, {"minAvailable": "51%"}, 3, id="a percentage, rounded up"),
            pytest.param(4, {"minAvailable": "80%"}, 5, id="a percentage that needs one more"),
            pytest.param(2, {"minAvailable": "100%"}, 0, id="all"),
            pytest.param(2, {"maxUnavailable": 0}, 0, id="none may be missing"),
            pytest.param(2, {"maxUnavailable": "0%"}, 0, id="0 percent may be missing"),
            pytest.param(2, {"minAvailable": 10}, 0, id="as many as maxReplicas"),
        ],
    )
    def test_no_pod_may_go_at_the_lower_bound(self, least: int, spec: Manifest, enough: int) -> None:
        (finding,) = lint(hpa(minReplicas=least), GOOD, [budget(**spec)])

        assert (finding.code, finding.severity, finding.path) == (
            Code.BLOCKED_EVICTIONS,
            Severity.WARNING,
            "spec.minReplicas",
        )
        raised = f", or raise minReplicas to {enough}" if enough else ""
        assert finding.fix == f"Use maxUnavailable 1 in the PodDisruptionBudget{raised}."
        if enough:
            assert found(hpa(minReplicas=enough), GOOD, [budget(**spec)]) == []
            assert found(hpa(minReplicas=enough - 1), GOOD, [budget(**spec)]) != []
        assert found(hpa(minReplicas=least), GOOD, [budget(maxUnavailable=1)]) == []

    @pytest.mark.parametrize(
        ("spec", "fix"),
        [
            pytest.param({"minAvailable": 1}, "Raise minReplicas to 2; with 1 replica, maxUnavailable 1", id="one"),
            pytest.param({"minAvailable": 4}, "Raise minReplicas to 5; with 1 replica, maxUnavailable 1", id="four"),
            pytest.param({"minAvailable": "50%"}, "Raise minReplicas to 2; with 1", id="a percentage, rounded up"),
            pytest.param({"minAvailable": "100%"}, "Use maxUnavailable 1", id="all of any size"),
            pytest.param({"maxUnavailable": 0}, "Use maxUnavailable 1", id="none may be missing"),
        ],
    )
    @pytest.mark.parametrize("least", [0, 1])
    def test_an_eviction_of_a_single_pod_leaves_none(self, least: int, spec: Manifest, fix: str) -> None:
        gates = FeatureGates(scale_to_zero=True)
        (finding,) = lint(hpa(minReplicas=least, metrics=[queue()]), GOOD, [budget(**spec)], gates=gates)

        assert finding.fix.startswith(fix)
        assert "no pod runs" in finding.fix
        owned = with_field(hpa(minReplicas=1), ("metadata", "name"), "keda-hpa-web")
        (advice,) = (each.fix for each in lint(owned, GOOD, [budget(**spec)]))
        assert ("maxUnavailable" in advice) is fix.startswith("Use")
        assert "spec.minReplicaCount" in advice

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(budget(minAvailable=1), id="below minReplicas"),
            pytest.param(budget(minAvailable="50%"), id="a percentage that leaves one"),
            pytest.param(budget(maxUnavailable="1%"), id="a percentage, rounded up to one"),
            pytest.param(budget(minAvailable=2, selector={"matchLabels": {"app": "other"}}), id="other pods"),
            pytest.param(budget(minAvailable="two"), id="no number"),
            pytest.param(budget(), id="no amount"),
        ],
    )
    def test_a_budget_that_lets_a_pod_go(self, other: Manifest) -> None:
        assert found(hpa(), GOOD, [other]) == []


def limit_range(**item: Any) -> Manifest:
    spec = {"limits": [{"type": "Container", **item}]}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults"}, "spec": spec}


class TestLimitRanges:
    @pytest.mark.parametrize(
        "item",
        [
            pytest.param({"defaultRequest": {"cpu": "100m"}}, id="the default request"),
            pytest.param({"default": {"cpu": "1"}}, id="the default limit, which is the default request"),
            pytest.param({"max": {"cpu": "1"}}, id="the maximum, which is the default limit"),
            pytest.param({"min": {"cpu": "50m"}}, id="the minimum, which is the last default"),
        ],
    )
    def test_defaults_count_as_requests(self, item: Manifest) -> None:
        assert found(hpa(), workload({}), [limit_range(**item)]) == []
        assert found(hpa(), workload({"limits": {"memory": "1Gi"}}), [limit_range(**item)]) == []

    @pytest.mark.parametrize(
        "other",
        [
            limit_range(default={"memory": "1Gi"}),
            limit_range(type="Pod", max={"cpu": "1"}),
            with_field(limit_range(default={"cpu": "1"}), ("metadata", "namespace"), "elsewhere"),
        ],
        ids=["another resource", "of pods", "another namespace"],
    )
    def test_other_limits_do_not(self, other: Manifest) -> None:
        assert [each[1] for each in found(hpa(), workload({}), [other])] == ["missing-request"]

    def test_a_container_keeps_what_it_sets(self) -> None:
        (finding,) = lint(
            hpa(metrics=[resource(averageUtilization=95)]),
            workload({"limits": {"cpu": "1"}}),
            [limit_range(default={"cpu": "8"}, defaultRequest={"cpu": "100m"})],
        )

        assert "The limits allow 100 percent of the requests" in finding.explanation

    @pytest.mark.parametrize(
        ("resources", "item", "shown"),
        [
            pytest.param({"requests": {"cpu": "2"}}, {"default": {"cpu": "1"}}, "2, and its limit 1", id="the default"),
            pytest.param({"requests": {"cpu": "2"}}, {"max": {"cpu": "1"}}, "2, and its limit 1", id="the maximum"),
            pytest.param(
                {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}, {}, "2, and its limit 1500m", id="its own limit"
            ),
        ],
    )
    def test_a_request_above_the_limit_is_rejected(self, resources: Manifest, item: Manifest, shown: str) -> None:
        """The API server: `must be less than or equal to cpu limit of 1`. So no target is beyond the limits."""
        (finding,) = lint(hpa(), workload(resources), [limit_range(**item)])

        assert (finding.code, finding.severity) == (Code.INVALID_RESOURCES, Severity.ERROR)
        assert f"requests.cpu of c0 is {shown}." in finding.explanation

    @pytest.mark.parametrize("limit", ["2", "2000m", "3"])
    def test_a_request_of_at_most_the_limit_is_accepted(self, limit: str) -> None:
        pods = workload({"requests": {"cpu": "2"}})

        assert found(hpa(metrics=[resource(averageUtilization=50)]), pods, [limit_range(default={"cpu": limit})]) == []
