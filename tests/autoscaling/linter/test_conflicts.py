"""Other objects that act on the target of an autoscaler: autoscalers, workloads, budgets, and the owner of the HPA."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.autoscaling import Severity, lint
from ocf.autoscaling.linter.findings import Code
from ocf.objects import Manifest
from ocf.objects.paths import with_field
from tests.autoscaling.linter.objects import FULL, TARGET, found, hpa, kinded, resource, workload

GOOD: Final = workload(FULL)
OVERLAP: Final = ("warning", "overlapping-selectors", "spec.scaleTargetRef")
SHARED: Final = ("error", "shared-target", "spec.scaleTargetRef")


class TestConflicts:
    def test_two_autoscalers_of_one_target(self) -> None:
        (finding,) = lint(hpa(), GOOD, [kinded(hpa()), kinded(hpa("other", {**TARGET, "apiVersion": "apps/v1beta1"}))])

        assert (finding.code, finding.severity) == (Code.SHARED_TARGET, Severity.ERROR)
        assert finding.explanation == (
            "HorizontalPodAutoscaler other scales the same target, so both select the same pods, and the controller "
            "scales neither by its metrics (AmbiguousSelector)."
        )

    def test_an_autoscaler_that_another_object_controls_is_the_one_that_stays(self) -> None:
        """Its controller would make it again: https://github.com/kedacore/keda/issues/6844."""
        other = kinded(hpa("made"))
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "corner", "uid": "1", "controller": True}
        other["metadata"]["ownerReferences"] = [shop]
        (finding,) = lint(hpa(), GOOD, [other])

        assert finding.fix == (
            "Put the metrics of both into Shop corner, which controls HorizontalPodAutoscaler made, of which the one "
            "that wants the most replicas counts, and then delete this autoscaler."
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


LABELS: Final = {"app": "web"}
JOB: Final = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"}, "spec": GOOD["spec"]}
CRON: Final = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "report"},
    "spec": {"jobTemplate": {"spec": {"template": GOOD["spec"]["template"]}}},
}
POD: Final[Manifest] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "debug", "labels": LABELS}, "spec": {}}


def canary(**labels: str) -> Manifest:
    return workload({}, name="web-canary", labels={**LABELS, **labels})


def owned(manifest: Manifest) -> Manifest:
    """Return an object with a controller, as the ReplicaSets and pods of the target itself are."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
    return with_field(manifest, ("metadata", "ownerReferences"), [owner])


class TestForeignPods:
    """Pods of other workloads that the selector matches are counted and measured, no matter which workload runs them.

    https://github.com/kubernetes/kubernetes/issues/116898, https://github.com/kubernetes/kubernetes/issues/124307,
    https://github.com/kubernetes/kubernetes/issues/78761, https://github.com/kubernetes/kubernetes/issues/108920,
    https://github.com/helm/charts/issues/18757, https://github.com/kestra-io/kestra/issues/18100,
    https://github.com/kubernetes/kubernetes/issues/116339, https://github.com/nextcloud/helm/issues/22.
    """

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(canary(), id="a canary"),
            pytest.param(canary(track="canary"), id="a canary with one label more"),
            pytest.param({**canary(), "kind": "StatefulSet"}, id="a StatefulSet"),
            pytest.param({**canary(), "kind": "DaemonSet"}, id="a DaemonSet"),
            pytest.param(JOB, id="a Job"),
            pytest.param(CRON, id="a CronJob"),
            pytest.param(POD, id="a pod"),
        ],
    )
    def test_a_workload_whose_pods_the_selector_matches(self, other: Manifest) -> None:
        (finding,) = lint(hpa(), GOOD, [GOOD, other])

        assert (finding.severity.value, finding.code.value, finding.path) == OVERLAP
        assert f"also matches the pods of {other['kind']} {other['metadata']['name']}" in finding.explanation

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(GOOD, id="the target itself"),
            pytest.param({**GOOD, "apiVersion": "apps/v1beta1"}, id="the target in an old version"),
            pytest.param(workload({}, name="other"), id="other labels"),
            pytest.param(with_field(canary(), ("spec", "replicas"), 0), id="a canary at 0"),
            pytest.param(with_field(JOB, ("spec", "suspend"), True), id="a suspended Job"),
            pytest.param(with_field(CRON, ("spec", "suspend"), True), id="a suspended CronJob"),
            pytest.param(owned({**POD, "metadata": {**POD["metadata"], "name": "web-1"}}), id="a pod of the target"),
            pytest.param(owned({**canary(), "kind": "ReplicaSet"}), id="a ReplicaSet of the target"),
            *(
                pytest.param(with_field(POD, ("metadata", "annotations"), {"helm.sh/hook": hook}), id=f"a Helm {hook}")
                for hook in ("test", "test-success")
            ),
            pytest.param(with_field(canary(), ("metadata", "namespace"), "elsewhere"), id="another namespace"),
            pytest.param({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}, id="no pods"),
        ],
    )
    def test_no_foreign_pods(self, other: Manifest) -> None:
        assert found(hpa(), GOOD, [other]) == []

    def test_a_kind_in_lower_case_is_the_same_target(self) -> None:
        lower = hpa(target={**TARGET, "kind": "deployment"})

        assert found(lower, GOOD, [GOOD]) == []
        assert found(hpa(), GOOD, [kinded({**lower, "metadata": {"name": "other"}})]) == [SHARED]

    def test_a_canary_with_an_autoscaler_stops_both(self) -> None:
        others = [canary(), kinded(hpa("canary", {**TARGET, "name": "web-canary"}))]

        assert [each[:2] for each in found(hpa(), GOOD, others)] == [("error", "overlapping-selectors")]

    def test_a_canary_with_a_scaled_object_stops_both(self) -> None:
        (finding,) = lint(hpa(), GOOD, [canary(), scaled_object("web-canary")])

        assert (finding.severity.value, finding.code.value) == ("error", "overlapping-selectors")
        assert "which ScaledObject web scales" in finding.explanation


ROLLOUT: Final[Manifest] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    },
}
OF_ROLLOUT: Final = hpa(target={"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web"})


class TestRollouts:
    """A Rollout with `workloadRef` runs the pods of a Deployment: https://github.com/argoproj/argo-rollouts/issues/4288."""

    def test_an_autoscaler_of_the_deployment_that_a_rollout_runs(self) -> None:
        (finding,) = lint(hpa(), GOOD, [ROLLOUT])

        assert (finding.severity.value, finding.code.value, finding.path) == SHARED
        assert finding.fix == (
            "Scale the rollout to the size of this target, let the autoscaler scale it: apiVersion "
            "argoproj.io/v1alpha1, kind Rollout, name web, and once its pods are ready, scale this target to 0 and "
            "write that in its manifest."
        )

    @pytest.mark.parametrize("replicas", [0, 3])
    def test_the_replicas_of_a_deployment_that_a_rollout_runs_stay_in_its_manifest(self, replicas: int) -> None:
        """It is set to 0: https://argo-rollouts.readthedocs.io/en/stable/migrating/."""
        deployment = workload(FULL, replicas=replicas)

        assert found(hpa(), deployment, [deployment, ROLLOUT]) == [SHARED]
        assert [each[1] for each in found(hpa(), deployment, [deployment])] == ["fixed-replicas"]

    def test_an_owner_of_the_autoscaler_scales_the_rollout(self) -> None:
        made = hpa("keda-hpa-web")

        assert [each.fix for each in lint(made, GOOD, [GOOD, ROLLOUT])] == [
            "Change spec.scaleTargetRef in ScaledObject web, which controls this HPA and reverts changes of it."
        ]

    @pytest.mark.parametrize("scale_down", ["onsuccess", "progressively"])
    def test_a_rollout_that_scales_the_deployment_down(self, scale_down: str) -> None:
        (finding,) = lint(hpa(), GOOD, [with_field(ROLLOUT, ("spec", "workloadRef", "scaleDown"), scale_down)])

        assert finding.fix.endswith("name web, and leave it to the rollout to scale this target down.")

    @pytest.mark.parametrize("replicas", [None, 1])
    def test_the_deployment_runs_pods_beside_the_rollout(self, replicas: int | None) -> None:
        deployment = workload(FULL) if replicas is None else workload(FULL, replicas=replicas)

        assert found(OF_ROLLOUT, ROLLOUT, [deployment]) == [OVERLAP]

    @pytest.mark.parametrize("scale_down", ["onsuccess", "progressively"])
    def test_a_deployment_that_the_rollout_scales_down_runs_none(self, scale_down: str) -> None:
        rollout = with_field(ROLLOUT, ("spec", "workloadRef", "scaleDown"), scale_down)

        assert found(OF_ROLLOUT, rollout, [GOOD]) == []

    def test_the_pods_of_a_rollout_are_those_of_its_deployment(self) -> None:
        assert found(OF_ROLLOUT, ROLLOUT, [workload({}, replicas=0)]) == [
            ("error", "missing-request", "spec.metrics[0].resource")
        ]
        assert found(OF_ROLLOUT, ROLLOUT, [workload(FULL, replicas=0)]) == []


def scaled_object(target: str = "web", name: str = "web", **more: Any) -> Manifest:
    metadata = {"name": name, **more.pop("metadata", {})}
    spec = {"scaleTargetRef": {"name": target}, "triggers": [], **more}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec}


def hpa_config(name: str) -> Manifest:
    return {"advanced": {"horizontalPodAutoscalerConfig": {"name": name}}}


TRANSFER: Final = {"annotations": {"scaledobject.keda.sh/transfer-hpa-ownership": "true"}}


class TestScaledObjects:
    """KEDA makes an HPA for each ScaledObject.

    https://github.com/kedacore/keda/issues/3087, https://github.com/kedacore/keda/issues/3083, https://github.com/kedacore/http-add-on/issues/1273,
    https://github.com/KanishJebaMathewM/Truxify/issues/13959.
    """

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param(scaled_object(), id="the defaults of KEDA"),
            pytest.param(scaled_object(scaleTargetRef=TARGET), id="a whole reference"),
            pytest.param(scaled_object(**hpa_config("web")), id="the name of the HPA, without a transfer"),
        ],
    )
    def test_a_second_scaler_of_the_target(self, other: Manifest) -> None:
        assert found(hpa(), GOOD, [other]) == [SHARED]
        assert "remove it from the files" in lint(hpa(), GOOD, [other])[0].fix

    @pytest.mark.parametrize(
        ("manifest", "other"),
        [
            pytest.param(hpa(), scaled_object("other"), id="another target"),
            pytest.param(hpa(), scaled_object(scaleTargetRef={"kind": "StatefulSet", "name": "web"}), id="kind"),
            pytest.param(hpa("keda-hpa-web"), scaled_object(), id="the HPA that KEDA made"),
            # https://github.com/kedacore/keda/issues/6597
            pytest.param(
                hpa(), scaled_object(metadata=TRANSFER, **hpa_config("web")), id="an HPA that KEDA takes over"
            ),
        ],
    )
    def test_no_second_scaler(self, manifest: Manifest, other: Manifest) -> None:
        assert found(manifest, GOOD, [other]) == []

    def test_an_hpa_with_the_scaled_object_as_its_owner_is_its_own(self) -> None:
        manifest = with_field(hpa(), ("metadata", "ownerReferences"), [{"kind": "ScaledObject", "name": "web"}])

        assert found(manifest, GOOD, [scaled_object()]) == []


class TestOwners:
    """The owner of an HPA reverts what is changed in it.

    https://github.com/banzaicloud/hpa-operator/pull/13, https://github.com/kedacore/keda/issues/6061.
    """

    OWNER: Final = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "main", "uid": "1", "controller": True}

    def test_the_advice_is_about_the_owner(self) -> None:
        manifest = with_field(hpa(minReplicas=5, maxReplicas=5), ("metadata", "ownerReferences"), [self.OWNER])
        (finding,) = lint(manifest, GOOD)

        assert finding.fix == (
            "Change what sets maxReplicas in Shop main, which controls this HPA and reverts changes of it."
        )

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            ({"minReplicas": 5, "maxReplicas": 5}, "spec.maxReplicaCount"),
            (
                {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}},
                "spec.advanced.horizontalPodAutoscalerConfig.behavior",
            ),
            ({"metrics": [resource(averageUtilization=300)]}, "spec.triggers"),
        ],
    )
    def test_a_scaled_object_has_other_fields(self, spec: Manifest, field: str) -> None:
        (finding,) = lint(hpa("keda-hpa-orders", **spec), GOOD)

        assert finding.fix.startswith(f"Change {field} in ScaledObject orders, which controls this HPA")

    def test_advice_about_the_target_stays(self) -> None:
        manifest = with_field(hpa(), ("metadata", "ownerReferences"), [self.OWNER])

        assert lint(manifest, workload(FULL, replicas=3)) == lint(hpa(), workload(FULL, replicas=3))
        assert lint(manifest, workload({}))[0].fix == (
            "Give every container of the target a request, or change what sets metrics in Shop main, which controls "
            "this HPA and reverts changes of it."
        )

    def test_no_fix_for_a_controlled_hpa_deletes_it_or_sets_the_count(self) -> None:
        for manifest in (
            hpa(minReplicas=5, maxReplicas=5),
            hpa(behavior={"scaleUp": {"selectPolicy": "Disabled"}}),
        ):
            assert "delete the autoscaler" in lint(manifest, GOOD)[0].fix
            controlled = with_field(manifest, ("metadata", "ownerReferences"), [self.OWNER])
            assert "delete" not in lint(controlled, GOOD)[0].fix

    def test_an_owner_that_does_not_control_it_changes_nothing(self) -> None:
        owner = {key: value for key, value in self.OWNER.items() if key != "controller"}
        manifest = hpa(minReplicas=5, maxReplicas=5)

        assert lint(with_field(manifest, ("metadata", "ownerReferences"), [owner]), GOOD) == lint(manifest, GOOD)


def test_all_workloads_with_such_pods_are_one_finding() -> None:
    (finding,) = lint(hpa(), GOOD, [canary(), JOB, POD])

    assert "the pods of Deployment web-canary, Job migrate, Pod debug, so" in finding.explanation


def test_an_object_that_is_given_twice_has_its_findings_once() -> None:
    others = [kinded(hpa("other")), canary()]

    assert lint(hpa(), GOOD, others * 2) == lint(hpa(), GOOD, others)
    assert len(lint(hpa(), GOOD, others)) == 2
