"""Targets that do not exist."""

from __future__ import annotations

from typing import Final

import pytest

from ocf.autoscaling import Finding, lint
from ocf.autoscaling.linter.findings import Code
from ocf.autoscaling.targets.targets import find_scale_target
from ocf.objects import Manifest
from ocf.objects.paths import with_field
from tests.autoscaling.linter.objects import FULL, TARGET, hpa, kinded, queue, workload

GOOD: Final = workload(FULL)
LABELS: Final = {"app": "web"}


JOB: Final = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"}, "spec": GOOD["spec"]}
POD: Final[Manifest] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "debug", "labels": LABELS}, "spec": {}}


def missing(reference: Manifest, *others: Manifest) -> list[Finding]:
    findings = lint(hpa(target=reference, metrics=[queue()]), None, others)
    return [each for each in findings if each.code is Code.MISSING_TARGET]


class TestMissingTargets:
    """The live controller answers each of the errors with FailedGetScale, and finds those that are accepted.

    https://github.com/kubernetes-sigs/metrics-server/issues/389, https://github.com/spinnaker/spinnaker/issues/5208,
    https://github.com/fiaas/fiaas-deploy-daemon/pull/110, https://github.com/bitnami/charts/issues/19761,
    https://github.com/zegl/kube-score/issues/332.
    """

    @pytest.mark.parametrize(
        ("reference", "severity", "fix"),
        [
            pytest.param(
                {**TARGET, "apiVersion": "extensions/v1beta1"},
                "error",
                "Did you mean apiVersion apps/v1, kind Deployment?",
                id="a removed group",
            ),
            pytest.param(
                {**TARGET, "kind": "Deployments"},
                "error",
                "Did you mean apiVersion apps/v1, kind Deployment?",
                id="plural",
            ),
            pytest.param(
                {**TARGET, "kind": "DEPLOYMENT"},
                "error",
                "Did you mean apiVersion apps/v1, kind Deployment?",
                id="capitals",
            ),
            pytest.param(
                {**TARGET, "kind": "Gateway"},
                "error",
                "Write the apiVersion and the kind of the workload.",
                id="nothing that is like it",
            ),
            pytest.param(
                {**TARGET, "kind": "StatefulSet"},
                "error",
                "Did you mean apiVersion apps/v1, kind Deployment?",
                id="kind",
            ),
            pytest.param({**TARGET, "name": "wbe"}, "warning", "Did you mean the name web?", id="a misspelt name"),
            pytest.param(
                {**TARGET, "name": "shop"},
                "warning",
                "Name a workload that exists, or pass its file, too.",
                id="a name",
            ),
        ],
    )
    def test_what_the_controller_does_not_find(self, reference: Manifest, severity: str, fix: str) -> None:
        (finding,) = missing(reference, GOOD)

        assert (finding.severity.value, finding.fix) == (severity, fix)
        assert "FailedGetScale" in finding.explanation

    @pytest.mark.parametrize(
        ("reference", "others"),
        [
            pytest.param({**TARGET, "name": "elsewhere"}, [], id="no workload is given"),
            pytest.param(
                {**TARGET, "name": "elsewhere"},
                [JOB, POD, kinded(hpa("other"))],
                id="none that an HPA can scale is given",
            ),
            pytest.param(
                {**TARGET, "name": "x"},
                [with_field(GOOD, ("metadata", "namespace"), "y")],
                id="another namespace has one",
            ),
            pytest.param(
                {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "x"},
                [GOOD],
                id="a custom kind that another tool may make",
            ),
        ],
    )
    def test_what_cannot_be_known(self, reference: Manifest, others: list[Manifest]) -> None:
        assert missing(reference, *others) == []

    @pytest.mark.parametrize(
        "reference",
        [{**TARGET, "kind": "deployment"}, {**TARGET, "apiVersion": "apps/v1beta1"}],
        ids=["lower case", "an old version"],
    )
    def test_what_the_controller_finds_all_the_same(self, reference: Manifest) -> None:
        manifest = hpa(target=reference, metrics=[queue()])

        assert find_scale_target(manifest, [GOOD]) == GOOD
        assert lint(manifest, None, []) == ()
