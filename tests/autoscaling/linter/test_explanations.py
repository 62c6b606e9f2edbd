"""The texts of findings have the values of the HPA and of its target."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.autoscaling import lint
from ocf.objects import Manifest
from ocf.objects.paths import with_field
from tests.autoscaling.linter.objects import FULL, TARGET, hpa, policy, resource, workload

GOOD: Final = workload(FULL)


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
        place = f'"{namespace}"' if namespace else ".Release.Namespace"
        assert f'(lookup "{target["apiVersion"]}" "{target["kind"]}" {place} "web")' in found.fix
        assert ("set the count to 1" in found.fix) is (target["kind"] == "Deployment")

    def test_fixed_replicas_names_who_reverts_the_autoscaler(self) -> None:
        """Each of them did in a report.

        https://github.com/alphagov/govuk-helm-charts/pull/3258, https://github.com/helm/helm/issues/7090,
        https://github.com/GoogleCloudPlatform/otlp-k8s-ingest/pull/74, https://github.com/curityio/idsvr-helm/pull/69.
        """
        explanation = self.text(hpa(), workload(FULL, replicas=3))

        for tool in ("kubectl", "Argo CD", "Helm 3", "Flux"):
            assert tool in explanation

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
