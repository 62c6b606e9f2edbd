"""The metric factories return what the API server accepts, and reject anything else at the call."""

from collections.abc import Callable
from typing import Any

import pytest
from kubernetes.client import (
    V1Ingress,
    V1LabelSelector,
    V1ObjectMeta,
    V1PersistentVolume,
    V2CrossVersionObjectReference,
    V2MetricSpec,
)

from ocf.autoscaling import metrics, validate
from ocf.errors import ConfigError
from ocf.objects import ObjectKey

FACTORIES = [pytest.param(metrics.cpu, "cpu", id="cpu"), pytest.param(metrics.memory, "memory", id="memory")]
Factory = Callable[..., V2MetricSpec]


def written(metric: V2MetricSpec) -> dict[str, Any]:
    return metric.model_dump(mode="json", by_alias=True, exclude_none=True)


@pytest.mark.parametrize(("factory", "name"), FACTORIES)
class TestResourceMetrics:
    @pytest.mark.parametrize("percent", [1, 70, 250, 2**31 - 1])
    def test_utilization_is_a_percentage_of_the_request(self, factory: Factory, name: str, percent: int) -> None:
        assert written(factory(average_utilization=percent)) == {
            "type": "Resource",
            "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": percent}},
        }

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            pytest.param("512Mi", "512Mi", id="text"),
            pytest.param("1000m", "1000m", id="as it was written, not canonical"),
            pytest.param(2, "2", id="integer"),
            pytest.param("1n", "1n", id="smallest"),
        ],
    )
    def test_a_value_is_a_quantity_per_pod(self, factory: Factory, name: str, value: str | int, expected: str) -> None:
        assert written(factory(average_value=value)) == {
            "type": "Resource",
            "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": expected}},
        }

    @pytest.mark.parametrize(
        ("targets", "problem"),
        [
            pytest.param({}, "give exactly one of average_utilization and average_value, not none", id="none"),
            pytest.param(
                {"average_utilization": 70, "average_value": "1"},
                "exactly one of average_utilization and average_value, not average_utilization=70, average_value='1'",
                id="both",
            ),
            pytest.param({"average_utilization": 0}, "average_utilization must be an integer from 1", id="zero"),
            pytest.param({"average_utilization": -5}, "percent, not -5", id="negative"),
            pytest.param({"average_utilization": 2**31}, "to 2147483647, percent, not 2147483648", id="beyond 32 bits"),
            pytest.param({"average_utilization": True}, "percent, not True", id="boolean"),
            pytest.param({"average_utilization": 50.5}, "percent, not 50.5", id="fraction"),
            pytest.param({"average_utilization": "70"}, "percent, not '70'", id="text"),
            pytest.param({"average_value": 0}, "average_value must be positive, not 0", id="value zero"),
            pytest.param({"average_value": "-1m"}, "average_value must be positive, not '-1m'", id="value negative"),
            pytest.param({"average_value": "1K"}, "average_value: '1K' is not a quantity: write", id="invalid value"),
            pytest.param({"average_value": True}, "average_value must be a text or an integer", id="value boolean"),
            pytest.param({"average_value": 0.5}, "average_value must be a text or an integer", id="value fraction"),
        ],
    )
    def test_an_invalid_argument_is_rejected_at_the_call(
        self, factory: Factory, name: str, targets: dict[str, Any], problem: str
    ) -> None:
        with pytest.raises(ConfigError) as caught:
            factory(**targets)

        assert str(caught.value).startswith(f"metrics.{name}: ")
        assert problem in str(caught.value)


INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}


class TestOtherMetrics:
    @pytest.mark.parametrize(
        ("metric", "field", "source"),
        [
            pytest.param(
                metrics.container_resource("cpu", "app", average_utilization=70),
                "containerResource",
                {"name": "cpu", "container": "app", "target": {"type": "Utilization", "averageUtilization": 70}},
                id="utilization of a container",
            ),
            pytest.param(
                metrics.container_resource("memory", "app", average_value="1Gi"),
                "containerResource",
                {"name": "memory", "container": "app", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
                id="amount per container",
            ),
            pytest.param(
                metrics.pods("rps", average_value=100, selector={"verb": "GET"}),
                "pods",
                {
                    "metric": {"name": "rps", "selector": {"matchLabels": {"verb": "GET"}}},
                    "target": {"type": "AverageValue", "averageValue": "100"},
                },
                id="pods",
            ),
            pytest.param(
                metrics.object(INGRESS, "hits", value="10k"),
                "object",
                {"describedObject": INGRESS, "metric": {"name": "hits"}, "target": {"type": "Value", "value": "10k"}},
                id="amount of an object",
            ),
            pytest.param(
                metrics.object(INGRESS, "hits", average_value=5),
                "object",
                {
                    "describedObject": INGRESS,
                    "metric": {"name": "hits"},
                    "target": {"type": "AverageValue", "averageValue": "5"},
                },
                id="amount of an object per pod",
            ),
            pytest.param(
                metrics.external("queue", value=30),
                "external",
                {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}},
                id="external amount",
            ),
            pytest.param(
                metrics.external("queue", average_value="30", selector=V1LabelSelector(match_labels={})),
                "external",
                {
                    "metric": {"name": "queue", "selector": {"matchLabels": {}}},
                    "target": {"type": "AverageValue", "averageValue": "30"},
                },
                id="external amount per pod, with the selector of the client",
            ),
        ],
    )
    def test_type_and_target_agree_and_the_metric_is_valid(
        self, metric: V2MetricSpec, field: str, source: dict[str, Any]
    ) -> None:
        found = written(metric)

        assert found == {"type": field[0].upper() + field[1:], field: source}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "maxReplicas": 5, "metrics": [found]}
        assert validate({"metadata": {"name": "web"}, "spec": spec}) == ()

    @pytest.mark.parametrize(
        "described",
        [
            pytest.param(INGRESS, id="reference"),
            pytest.param({**INGRESS, "name": None, "metadata": {"name": "main"}}, id="manifest"),
            pytest.param(V1Ingress(metadata=V1ObjectMeta(name="main")), id="model without kind"),
            pytest.param(
                V1Ingress(api_version="networking.k8s.io/v1", kind="Ingress", metadata=V1ObjectMeta(name="main")),
                id="model with kind",
            ),
            pytest.param(
                V2CrossVersionObjectReference(api_version="networking.k8s.io/v1", kind="Ingress", name="main"),
                id="model of a reference",
            ),
            pytest.param(ObjectKey("networking.k8s.io/v1", "Ingress", "main", "shop"), id="key"),
        ],
    )
    def test_a_described_object_is_accepted_in_any_form(self, described: Any) -> None:
        assert written(metrics.object(described, "hits", value=1))["object"]["describedObject"] == INGRESS

    @pytest.mark.parametrize(
        ("call", "problem"),
        [
            pytest.param(
                lambda: metrics.object(INGRESS, "hits"),  # type: ignore[call-overload]  # rejected
                "metrics.object: give exactly one of value and average_value, not none",
                id="object without a target",
            ),
            pytest.param(
                lambda: metrics.object(INGRESS, "hits", value=1, average_value=1),  # type: ignore[call-overload]  # rejected
                "metrics.object: give exactly one of value and average_value, not value=1, average_value=1",
                id="object with two targets",
            ),
            pytest.param(
                lambda: metrics.external("queue", value=1, average_value=1),  # type: ignore[call-overload]  # rejected
                "metrics.external: give exactly one of",
                id="external with two targets",
            ),
            pytest.param(
                lambda: metrics.container_resource("cpu", "app"),  # type: ignore[call-overload]  # rejected
                "metrics.container_resource: give exactly one of average_utilization and average_value",
                id="container without a target",
            ),
            pytest.param(lambda: metrics.external("queue", value=0), "value must be positive, not 0", id="zero"),
            pytest.param(
                lambda: metrics.pods("", average_value=1), "name must be a text that is not empty", id="no name"
            ),
            pytest.param(lambda: metrics.pods("a/b", average_value=1), "name 'a/b': may not contain '/'", id="slash"),
            pytest.param(
                lambda: metrics.container_resource("cpu", "App", average_value=1),
                "metrics.container_resource: container 'App': a lowercase RFC 1123 label",
                id="container",
            ),
            pytest.param(
                lambda: metrics.pods("rps", average_value=1, selector={"-": "a"}),
                "metrics.pods: label selector: matchLabels.key: '-' is not a label",
                id="selector",
            ),
            pytest.param(
                lambda: metrics.pods("rps", average_value=1, selector="a=b"),  # type: ignore[arg-type]  # rejected
                "selector must be labels or a V1LabelSelector, not 'a=b'",
                id="selector as text",
            ),
            pytest.param(
                lambda: metrics.object(V1PersistentVolume(metadata=V1ObjectMeta(name="x")), "hits", value=1),
                "V1PersistentVolume: a target needs a kind and a name",
                id="a model without kind",
            ),
        ],
    )
    def test_an_invalid_argument_is_rejected(self, call: Callable[[], object], problem: str) -> None:
        with pytest.raises(ConfigError) as caught:
            call()

        assert problem in str(caught.value)
