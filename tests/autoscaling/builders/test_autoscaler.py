"""`autoscale` returns the HPA of a target, and rejects at the call what the API server would reject or never scale.

The rows named after cdk8s-plus are inputs that its autoscaler accepts silently, or rejects one at a time.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any

import pytest
from kubernetes.client import (
    V1Container,
    V1Deployment,
    V1DeploymentSpec,
    V1LabelSelector,
    V1ObjectMeta,
    V1PodSpec,
    V1PodTemplateSpec,
    V1ResourceRequirements,
    V2CrossVersionObjectReference,
    V2MetricIdentifier,
    V2MetricSpec,
    V2MetricTarget,
    V2PodsMetricSource,
)
from pydantic import BaseModel

from ocf.autoscaling import FeatureGates, Scalable, autoscale, default, lint, metrics, scaling, validate
from ocf.autoscaling.targets.targets import Renderable
from ocf.errors import ConfigError, ManifestError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment as deployment_kind
from ocf.primitives import hpa as hpa_kind

CPU = {"requests": {"cpu": "250m", "memory": "64Mi"}}


def deployment(*resources: Manifest, replicas: int | None = None, **pod: Any) -> Manifest:
    """Return a Deployment with one container per argument: `app`, `c1`, `c2` …."""
    containers = [
        {"name": f"c{number}" if number else "app", "image": "shop", "resources": each}
        for number, each in enumerate(resources)
    ]
    spec: Manifest = {
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {"metadata": {"labels": {"app": "shop"}}, "spec": {"containers": containers, **pod}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop", "namespace": "prod"},
        "spec": spec if replicas is None else {"replicas": replicas, **spec},
    }


def model(replicas: int | None = None) -> V1Deployment:
    container = V1Container(name="app", resources=V1ResourceRequirements(requests={"cpu": "1"}))
    return V1Deployment(
        metadata=V1ObjectMeta(name="shop", namespace="prod"),
        spec=V1DeploymentSpec(
            replicas=replicas,
            selector=V1LabelSelector(match_labels={"app": "shop"}),
            template=V1PodTemplateSpec(spec=V1PodSpec(containers=[container])),
        ),
    )


@dataclass(frozen=True)
class Rollout:
    """A class of the user."""

    name: str
    replicas: int | None = None
    containers: tuple[Manifest | BaseModel, ...] | None = None
    api_version: str = "argoproj.io/v1alpha1"
    kind: str = "Rollout"

    def without_replicas(self) -> "Rollout":
        return replace(self, replicas=None)


@dataclass(frozen=True)
class Primitive:
    """A stand-in for the primitives."""

    manifest: Manifest

    @property
    def key(self) -> ObjectKey:
        return ObjectKey.of(self.manifest)

    def render(self) -> Manifest:
        return self.manifest


def written(value: BaseModel) -> Manifest:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def spec_of(target: Any, **arguments: Any) -> Manifest:
    arguments.setdefault("max_replicas", 10)
    found: Manifest = written(autoscale(target, **arguments).hpa)["spec"]
    return found


REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}


class TestTargets:
    @pytest.mark.parametrize(
        "target",
        [
            pytest.param(deployment(CPU), id="manifest"),
            pytest.param(model(), id="model"),
            pytest.param(Primitive(deployment(CPU)), id="primitive"),
            pytest.param(ObjectKey("apps/v1", "Deployment", "shop", "prod"), id="key"),
            pytest.param(REFERENCE, id="reference"),
            pytest.param(
                V2CrossVersionObjectReference(api_version="apps/v1", kind="Deployment", name="shop"),
                id="model of a reference",
            ),
        ],
    )
    def test_a_target_is_accepted_in_any_form(self, target: Any) -> None:
        made = autoscale(target, max_replicas=10, metrics=[metrics.cpu(average_utilization=70)])

        assert written(made.hpa)["spec"]["scaleTargetRef"] == REFERENCE
        assert written(made.hpa)["metadata"]["name"] == "shop"
        assert validate(made.hpa) == ()

    def test_a_class_of_the_user_is_accepted(self) -> None:
        target = Rollout("shop", replicas=4, containers=(V1Container(name="app"),))
        made = autoscale(target, max_replicas=3, metrics=[metrics.cpu(average_value="1")])

        assert written(made.hpa)["spec"]["scaleTargetRef"] == {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Rollout",
            "name": "shop",
        }
        assert made.target == Rollout("shop", containers=(V1Container(name="app"),))

    def test_primitives_are_accepted(self) -> None:
        """The returned target builds the same primitive again, and the HPA builds one, too."""
        primitive = deployment_kind.Builder(deployment(CPU, replicas=3)).build()
        made = autoscale(primitive, max_replicas=5, metrics=[metrics.object(primitive, "depth", value=1)])

        assert "replicas" not in deployment_kind.Builder(made.target).build().render()["spec"]
        assert hpa_kind.Builder(made.hpa).build().render()["spec"]["scaleTargetRef"] == REFERENCE

    def test_the_protocols_can_be_checked_at_run_time(self) -> None:
        assert isinstance(Rollout("shop"), Scalable)
        assert isinstance(Primitive(deployment(CPU)), Renderable)

    def test_the_target_is_returned_without_replicas_and_the_input_is_not_changed(self) -> None:
        manifest, its_model = deployment(CPU, replicas=3), model(replicas=3)
        before = copy.deepcopy(manifest)
        made = autoscale(manifest, max_replicas=5)
        of_model = autoscale(its_model, max_replicas=5)
        of_primitive = autoscale(Primitive(manifest), max_replicas=5)

        assert made.target == of_primitive.target == deployment(CPU)
        assert manifest == before
        assert of_model.target == model()
        assert its_model == model(replicas=3)

    def test_name_and_namespace_are_the_targets_unless_given(self) -> None:
        own = autoscale(deployment(CPU), max_replicas=5).hpa
        given = autoscale(REFERENCE, max_replicas=5, name="web", namespace="dev").hpa

        assert written(own)["metadata"] == {"name": "shop", "namespace": "prod"}
        assert written(given)["metadata"] == {"name": "web", "namespace": "dev"}

    def test_an_hpa_cannot_be_in_another_namespace(self) -> None:
        with pytest.raises(ConfigError, match="Deployment prod/shop is not in dev: an autoscaler scales only"):
            autoscale(deployment(CPU), max_replicas=5, namespace="dev")

    def test_arguments_are_not_shared_with_the_result(self) -> None:
        metric = metrics.cpu(average_utilization=70)
        made = autoscale(deployment(CPU), max_replicas=5, metrics=[metric])
        metric.type = "changed"

        assert made.hpa.spec.metrics
        assert made.hpa.spec.metrics[0].type == "Resource"

    @pytest.mark.parametrize(
        ("target", "problem"),
        [
            pytest.param(5, "int cannot be a target: pass a manifest", id="number"),
            pytest.param({"kind": "Deployment"}, "a target needs a kind and a name", id="no name"),
            pytest.param({"metadata": {"name": "x"}}, "a target needs a kind and a name", id="no kind"),
            pytest.param(V1ObjectMeta(name="x"), "a target needs a kind and a name", id="a model of something else"),
        ],
    )
    def test_an_invalid_target_is_rejected(self, target: Any, problem: str) -> None:
        with pytest.raises(ConfigError, match=problem):
            autoscale(target, max_replicas=5)


class TestOnlyGivenFieldsAreSet:
    def test_only_given_fields_are_set(self) -> None:
        """cdk8s-plus sets its own defaults, which differ from those of the API server."""
        assert spec_of(deployment(CPU)) == {"scaleTargetRef": REFERENCE, "maxReplicas": 10}

    def test_no_resources_are_added_to_containers(self) -> None:
        """cdk8s-plus sets a request of one core for every container."""
        assert autoscale(deployment(CPU), max_replicas=5).target == deployment(CPU)

    def test_all_given_fields_are_set(self) -> None:
        spec = spec_of(
            deployment(CPU),
            min_replicas=2,
            metrics=[metrics.pods("rps", average_value="500m")],
            behavior=scaling.behavior(up=scaling.rules(tolerance="0.05")),
        )

        assert spec == {
            "scaleTargetRef": REFERENCE,
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [written(metrics.pods("rps", average_value="500m"))],
            "behavior": {"scaleUp": {"tolerance": "0.05"}},
        }


CPU_70 = metrics.cpu(average_utilization=70)
LIMITED = {"limits": {"cpu": "1"}}
MEMORY = {"requests": {"memory": "64Mi"}}


class TestRequests:
    @pytest.mark.parametrize(
        ("target", "given"),
        [
            pytest.param(deployment(CPU), [CPU_70], id="requested"),
            pytest.param(deployment(LIMITED), [CPU_70], id="a limit becomes the request"),
            pytest.param(deployment({}, resources={"requests": {"cpu": "1"}}), [CPU_70], id="requested by the pod"),
            pytest.param(deployment({}, resources=LIMITED), [CPU_70], id="limit of the pod"),
            pytest.param(deployment({}), [metrics.cpu(average_value="1")], id="no share of a request"),
            pytest.param(deployment({}), [metrics.pods("rps", average_value=1)], id="no resource"),
            pytest.param(deployment(CPU, initContainers=[{"name": "once"}]), [CPU_70], id="a container that ends"),
            pytest.param(
                deployment(CPU, {}),
                [metrics.container_resource("cpu", "app", average_utilization=50)],
                id="one container",
            ),
            pytest.param(REFERENCE, [CPU_70], id="nothing is known"),
            pytest.param(Rollout("shop"), [CPU_70], id="nothing is known of a class"),
        ],
    )
    def test_a_utilization_of_existing_requests_is_accepted(self, target: Any, given: list[V2MetricSpec]) -> None:
        assert len(spec_of(target, metrics=given)["metrics"]) == 1

    @pytest.mark.parametrize(
        ("target", "given", "problem"),
        [
            pytest.param(deployment({}), [CPU_70], "app requests no cpu", id="nothing requested"),
            pytest.param(deployment(MEMORY), [CPU_70], "app requests no cpu", id="something else requested"),
            pytest.param(deployment(CPU, {}), [CPU_70], "c1 requests no cpu", id="one of two"),
            pytest.param(
                deployment({"requests": {"cpu": 0}}),
                [CPU_70],
                "the cpu requests of the pod add up to 0",
                id="0 requested",
            ),
            pytest.param(
                deployment(CPU, initContainers=[{"name": "mesh", "restartPolicy": "Always"}]),
                [CPU_70],
                "mesh requests no cpu",
                id="a sidecar",
            ),
            pytest.param(
                deployment({}), [], "scales on 80 percent of the cpu requests; a utilization", id="no metrics"
            ),
            pytest.param(
                deployment({}, resources=LIMITED),
                [metrics.container_resource("cpu", "app", average_utilization=5)],
                "app requests no cpu",
                id="a container, and the pod requests",
            ),
            pytest.param(
                deployment(CPU),
                [metrics.container_resource("cpu", "proxy", average_value=1)],
                r"spec\.metrics\[0\]\.containerResource\.container: there is no container 'proxy', the target has app",
                id="a container of another workload",
            ),
            pytest.param(Rollout("shop", containers=({"name": "app"},)), [CPU_70], "app requests", id="a class"),
        ],
    )
    def test_utilization_without_a_request_is_rejected(
        self, target: Any, given: list[V2MetricSpec], problem: str
    ) -> None:
        """The controller could not compute it, and would not scale because of one container."""
        with pytest.raises(ConfigError, match=problem):
            autoscale(target, max_replicas=5, metrics=given)

    def test_the_check_of_requests_can_be_disabled(self) -> None:
        assert autoscale(deployment({}), max_replicas=5, requests_added=True).hpa.spec.max_replicas == 5

    def test_for_a_reference_lint_reports_unknown_requests(self) -> None:
        made = autoscale(REFERENCE, max_replicas=5, metrics=[CPU_70])

        assert [finding.code for finding in lint(made.hpa)] == ["unknown-requests"]


QUEUE = metrics.external("queue", value=5)


class TestComparedWithCdk8s:
    """Each row is an input of the comparison; the errors of the API server are raised at the call."""

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            pytest.param({"min_replicas": 5, "max_replicas": 3}, "or equal to `minReplicas`", id="min above max"),
            pytest.param({"min_replicas": 0}, "minReplicas: Invalid value: 0", id="min 0 with a resource metric"),
            pytest.param({"min_replicas": -1}, "minReplicas: Invalid value: -1", id="min negative"),
            pytest.param({"max_replicas": 0}, "must be set and greater than 0", id="max 0"),
            pytest.param({"max_replicas": -5}, "maxReplicas: Invalid value: -5", id="max negative"),
            pytest.param({"name": "Shop"}, "metadata.name: Invalid value", id="a name that is none"),
        ],
    )
    def test_an_invalid_hpa_is_rejected_at_the_call(self, arguments: dict[str, Any], problem: str) -> None:
        with pytest.raises(ManifestError) as caught:
            spec_of(deployment(CPU), **arguments)

        assert problem in str(caught.value)

    def test_all_errors_are_reported_at_once(self) -> None:
        with pytest.raises(ManifestError) as caught:
            spec_of(deployment(CPU), min_replicas=-1, max_replicas=-5, name="-")

        assert {problem.path for problem in caught.value.problems} == {
            "metadata.name",
            "spec.minReplicas",
            "spec.maxReplicas",
        }

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            pytest.param({"max_replicas": 2.5}, "max_replicas must be an integer", id="max fraction"),
            pytest.param({"max_replicas": "10"}, "max_replicas must be an integer", id="max as text"),
            pytest.param({"min_replicas": True}, "min_replicas must be an integer", id="min boolean"),
            pytest.param({"metrics": [{"type": "Pods"}]}, "must be made of V2MetricSpec", id="metric as a dict"),
            pytest.param(
                {"behavior": {}}, "must be made of V2HorizontalPodAutoscalerBehavior", id="behavior as a dict"
            ),
        ],
    )
    def test_a_wrong_type_is_rejected(self, arguments: dict[str, Any], problem: str) -> None:
        with pytest.raises(ConfigError, match=problem):
            spec_of(deployment(CPU), **arguments)

    def test_max_replicas_alone_is_enough(self) -> None:
        assert default(autoscale(deployment(CPU), max_replicas=10).hpa)["spec"]["minReplicas"] == 1

    def test_no_metrics_and_one_of_two_containers_without_a_request(self) -> None:
        """cdk8s-plus checks that some container has resources; the controller needs requests in all of them."""
        with pytest.raises(ConfigError, match="c1 requests no cpu"):
            spec_of(deployment(CPU, {}))

    def test_an_empty_list_of_metrics_counts_as_none(self) -> None:
        with pytest.raises(ConfigError, match="app requests no cpu"):
            spec_of(deployment({}), metrics=[])

    @pytest.mark.parametrize("replicas", [3, 0])
    def test_fixed_replicas_are_removed_from_the_target(self, replicas: int) -> None:
        """cdk8s-plus rejects 3, and accepts 0."""
        made = autoscale(deployment(CPU, replicas=replicas), max_replicas=5)

        assert made.target == deployment(CPU)
        codes = [finding.code for finding in lint(made.hpa, deployment(CPU, replicas=replicas))]
        assert "fixed-replicas" in codes

    @pytest.mark.parametrize("window", [0, 3600])
    def test_the_bounds_of_a_window_are_accepted(self, window: int) -> None:
        rules = scaling.rules(stabilization_window_seconds=window)
        spec = spec_of(deployment(CPU), behavior=scaling.behavior(up=rules, down=rules))

        assert spec["behavior"]["scaleUp"] == {"stabilizationWindowSeconds": window}

    @pytest.mark.parametrize("window", [3601, 61 * 60, 1.5, -1])
    def test_a_window_out_of_bounds_is_rejected(self, window: Any) -> None:
        with pytest.raises(ConfigError, match="from 0 to 3600"):
            scaling.rules(stabilization_window_seconds=window)

    @pytest.mark.parametrize("seconds", [31 * 60, 0])
    def test_a_period_out_of_bounds_is_rejected(self, seconds: int) -> None:
        with pytest.raises(ConfigError, match="from 1 to 1800"):
            scaling.pods(1, period_seconds=seconds)

    def test_a_period_of_half_an_hour_is_accepted(self) -> None:
        assert scaling.pods(1, period_seconds=1800).period_seconds == 1800

    def test_without_policies_the_field_is_not_set(self) -> None:
        """The API server rejects an empty list, so it cannot be built."""
        spec = spec_of(deployment(CPU), behavior=scaling.behavior(up=scaling.rules()))

        assert spec["behavior"] == {"scaleUp": {}}

    @pytest.mark.parametrize("value", [0, -3])
    def test_a_policy_of_zero_is_rejected(self, value: int) -> None:
        with pytest.raises(ConfigError, match="must be an integer from 1"):
            scaling.percent(value)

    def test_a_resource_metric_has_no_value_target(self) -> None:
        """cdk8s-plus accepts one, and the API server rejects it."""
        with pytest.raises(TypeError, match="value"):
            metrics.cpu(value=29.5)  # type: ignore[call-overload]  # rejected

    @pytest.mark.parametrize("utilization", [0, -5, 50.5])
    def test_an_invalid_utilization_is_rejected(self, utilization: Any) -> None:
        with pytest.raises(ConfigError, match="average_utilization must be an integer from 1"):
            metrics.cpu(average_utilization=utilization)

    def test_pods_external_and_object_have_no_utilization(self) -> None:
        """The documentation of cdk8s-plus shows all three, and the API server rejects each."""
        wrong: Any = {"average_utilization": 50}
        with pytest.raises(TypeError):
            metrics.pods("rps", **wrong)
        with pytest.raises(TypeError):
            metrics.external("queue", **wrong)
        with pytest.raises(TypeError):
            metrics.object(REFERENCE, "hits", **wrong)

    def test_a_duplicate_metric_is_reported(self) -> None:
        made = autoscale(deployment(CPU), max_replicas=5, metrics=[CPU_70, metrics.cpu(average_value="1")])

        assert "duplicate-metric" in [finding.code for finding in lint(made.hpa, deployment(CPU))]

    def test_a_container_of_another_workload_is_rejected(self) -> None:
        with pytest.raises(ConfigError, match="there is no container 'other'"):
            spec_of(deployment(CPU), metrics=[metrics.container_resource("memory", "other", average_value="1Gi")])

    def test_a_container_metric_reads_as_it_is_documented(self) -> None:
        assert metrics.container_resource("memory", "app", average_utilization=80).type == "ContainerResource"

    @pytest.mark.parametrize(("api_version", "kind"), [("apps/v1", "DaemonSet"), ("batch/v1", "Job"), ("v1", "Pod")])
    def test_a_kind_without_a_scale_subresource_is_rejected(self, api_version: str, kind: str) -> None:
        target = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "shop"}}
        with pytest.raises(ConfigError, match=f"{kind} shop cannot be scaled: a {kind} has no scale subresource"):
            autoscale(target, max_replicas=5)

    def test_two_hpas_of_one_target_are_reported(self) -> None:
        first = autoscale(deployment(CPU), max_replicas=5).hpa
        second = autoscale(deployment(CPU), max_replicas=5, name="second").hpa

        assert "shared-target" in [finding.code for finding in lint(first, others=[second])]

    def test_quantities_and_tolerance_are_reachable(self) -> None:
        """cdk8s-plus drops them."""
        spec = spec_of(
            deployment(CPU),
            metrics=[metrics.memory(average_value="500m")],
            behavior=scaling.behavior(up=scaling.rules(tolerance="0.05")),
        )

        assert spec["metrics"][0]["resource"]["target"]["averageValue"] == "500m"
        assert spec["behavior"]["scaleUp"]["tolerance"] == "0.05"

    def test_the_result_is_open_to_everything_the_api_has(self) -> None:
        hpa = autoscale(deployment(CPU), max_replicas=5, behavior=scaling.behavior(up=scaling.rules())).hpa
        assert hpa.spec.behavior
        assert hpa.spec.behavior.scale_up
        hpa.spec.behavior.scale_up.tolerance = "100m"

        assert written(hpa)["spec"]["behavior"] == {"scaleUp": {"tolerance": "100m"}}

    @pytest.mark.parametrize("arguments", [{}, {"target": REFERENCE}, {"max_replicas": 5}])
    def test_a_missing_argument_is_rejected(self, arguments: dict[str, Any]) -> None:
        call: Any = autoscale
        with pytest.raises(TypeError):
            call(**arguments)

    def test_a_minimum_of_zero_needs_a_metric_that_is_measured_without_pods(self) -> None:
        spec = spec_of(deployment({}), min_replicas=0, metrics=[QUEUE], gates=FeatureGates.for_release("1.37"))

        assert spec["minReplicas"] == 0

    def test_a_handwritten_metric_is_validated_as_well(self) -> None:
        metric = V2MetricSpec(
            type="Pods",
            pods=V2PodsMetricSource(metric=V2MetricIdentifier(name="rps"), target=V2MetricTarget(type="Utilization")),
        )
        with pytest.raises(ManifestError, match="must specify a positive target averageValue"):
            spec_of(deployment(CPU), metrics=[metric])


class TestMetadata:
    def test_labels_and_annotations_are_those_of_the_autoscaler(self) -> None:
        labels, annotations = {"team": "shop"}, {"example.com/reason": "sales"}
        made = autoscale(deployment(CPU), max_replicas=3, labels=labels, annotations=annotations).hpa

        assert made.metadata
        assert (made.metadata.labels, made.metadata.annotations) == (labels, annotations)
        labels["team"] = "other"
        assert made.metadata.labels == {"team": "shop"}

    @pytest.mark.parametrize("empty", [None, {}])
    def test_without_any_none_are_written(self, empty: dict[str, str] | None) -> None:
        target = deployment(CPU)
        target["metadata"]["labels"] = {"app": "shop"}
        made = autoscale(target, max_replicas=3, labels=empty, annotations=empty).hpa

        assert made.metadata
        assert (made.metadata.labels, made.metadata.annotations) == (None, None)

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ({"labels": {"-": "a"}}, r"metadata\.labels: Invalid value: \"-\""),
            ({"labels": {"a": "b c"}}, r"metadata\.labels: Invalid value: \"b c\""),
            ({"labels": {"a": 5}}, r"metadata\.labels\.a: must be a text, not 5"),
            ({"annotations": {"a/b/c": "d"}}, r"metadata\.annotations: Invalid value: \"a/b/c\""),
            ({"annotations": ["a"]}, r"metadata\.annotations: must be a map, not a list"),
        ],
    )
    def test_an_invalid_label_or_annotation_is_rejected(self, arguments: dict[str, Any], problem: str) -> None:
        with pytest.raises(ManifestError, match=problem):
            autoscale(deployment(CPU), max_replicas=3, **arguments)
