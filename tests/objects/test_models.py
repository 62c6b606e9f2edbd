"""The border between manifests and the client's models."""

from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from kubernetes.aio.client import V2HorizontalPodAutoscaler as AioHPA
from kubernetes.client import (
    V1Condition,
    V1Deployment,
    V1ObjectMeta,
    V1ResourceRequirements,
    V2CrossVersionObjectReference,
    V2HorizontalPodAutoscaler,
    V2HorizontalPodAutoscalerSpec,
)
from pydantic import BaseModel

from ocf.errors import ManifestError
from ocf.objects import Manifest, copy_json, read_live, write_model
from ocf.objects.models import copy_model, read_base


def hpa(**spec: Any) -> Manifest:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "backend", "namespace": "shop"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "backend"}, **spec},
    }


def cpu(**target: Any) -> Manifest:
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue", **target}}}


def read(source: object) -> Manifest:
    return read_base(source, V2HorizontalPodAutoscaler, api_version="autoscaling/v2", kind="HorizontalPodAutoscaler")


def model() -> V2HorizontalPodAutoscaler:
    return V2HorizontalPodAutoscaler(
        metadata=V1ObjectMeta(name="backend", namespace="shop"),
        spec=V2HorizontalPodAutoscalerSpec(
            max_replicas=3, scale_target_ref=V2CrossVersionObjectReference(kind="Deployment", name="backend")
        ),
    )


class TestReadBase:
    @pytest.mark.parametrize(
        "source",
        [
            pytest.param(hpa(), id="manifest"),
            pytest.param(model(), id="model of the client"),
            pytest.param(AioHPA.model_validate(hpa()), id="model of the asyncio client"),
        ],
    )
    def test_every_form_gives_the_same_manifest(self, source: object) -> None:
        assert read(source) == hpa()

    def test_reads_yaml(self) -> None:
        text = """
            apiVersion: autoscaling/v2
            kind: HorizontalPodAutoscaler
            metadata: {name: backend, namespace: shop}
            spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: backend}}
        """
        assert read(text) == hpa()

    def test_the_result_shares_nothing_with_the_source(self) -> None:
        source = hpa(metrics=[cpu(averageValue="1")])
        before = copy_json(source)
        result = read(source)
        result["spec"]["metrics"][0]["resource"]["target"]["averageValue"] = "2"
        result["metadata"]["labels"] = {"a": "b"}
        assert source == before

    @pytest.mark.parametrize(
        ("value", "text"),
        [pytest.param(1, "1", id="integer"), pytest.param(0.5, "0.5", id="float"), pytest.param("1m", "1m", id="text")],
    )
    def test_a_number_in_a_quantity_field_becomes_text(self, value: object, text: str) -> None:
        assert read(hpa(metrics=[cpu(averageValue=value)]))["spec"]["metrics"] == [cpu(averageValue=text)]

    def test_a_number_under_a_map_of_quantities_becomes_text(self) -> None:
        container = {"name": "app", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}
        source = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}},
        }
        read_back = read_base(source, V1Deployment, api_version="apps/v1", kind="Deployment")
        assert read_back["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] == "1"

    def test_empty_lists_and_maps_stay_as_written_and_null_is_absent(self) -> None:
        assert read(hpa(metrics=[], behavior={}, minReplicas=None))["spec"] == hpa(metrics=[], behavior={})["spec"]

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            pytest.param(hpa(bogus=1), "spec.bogus: unknown field", id="unknown field"),
            pytest.param(
                hpa(maxReplica=1), 'spec.maxReplica: unknown field, did you mean "maxReplicas"?', id="nearest"
            ),
            pytest.param(
                hpa(min_replicas=1), 'spec.min_replicas: unknown field, did you mean "minReplicas"?', id="snake case"
            ),
            pytest.param(
                hpa(
                    metrics=[
                        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "x", "average_value": "1"}}}
                    ]
                ),
                'spec.metrics[0].resource.target.average_value: unknown field, did you mean "averageValue"?',
                id="snake case inside a list",
            ),
            pytest.param(
                hpa(maxReplicas="3"), "spec.maxReplicas: must be a valid integer, got '3'", id="text for a number"
            ),
            pytest.param(hpa(maxReplicas=None), "spec.maxReplicas: must be a valid integer, got None", id="null"),
            pytest.param(hpa(metrics=42), "spec.metrics: must be a valid list, got 42", id="number for a list"),
            pytest.param(
                hpa() | {"metadata": {"name": "backend", "namespace": "shop", "labels": {"v": 1}}},
                "metadata.labels.v: must be a valid string, got 1",
                id="a number is text only in a quantity field",
            ),
            pytest.param(
                hpa(metrics=[cpu(averageValue=True)]),
                "spec.metrics[0].resource.target.averageValue: must be a valid string, got True",
                id="a truth value is not a quantity",
            ),
            pytest.param(
                hpa() | {"kind": "Deployment"}, "kind: must be \"HorizontalPodAutoscaler\", got 'Deployment'", id="kind"
            ),
            pytest.param(
                hpa() | {"apiVersion": "autoscaling/v1"},
                "apiVersion: must be \"autoscaling/v2\", got 'autoscaling/v1'",
                id="version",
            ),
            pytest.param(
                V1ObjectMeta(),
                "must be a V2HorizontalPodAutoscaler, a manifest or a YAML text, got an object of type V1ObjectMeta",
                id="another model",
            ),
        ],
    )
    def test_names_the_field_and_what_is_wrong(self, source: object, problem: str) -> None:
        with pytest.raises(ManifestError) as caught:
            read(source)
        assert problem in [str(found) for found in caught.value.problems]

    def test_a_required_field_that_is_missing_is_named(self) -> None:
        source = hpa()
        del source["spec"]["scaleTargetRef"]
        with pytest.raises(ManifestError, match=r"shop/backend: spec\.scaleTargetRef: required value"):
            read(source)

    def test_reports_all_problems_together(self) -> None:
        with pytest.raises(ManifestError) as caught:
            read(hpa(bogus=1, maxReplicas="many"))
        assert {problem.path for problem in caught.value.problems} == {"spec.bogus", "spec.maxReplicas"}

    def test_no_secret_gets_into_the_message(self) -> None:
        container = {"name": "app", "env": [{"name": "PASSWORD", "value": 12345}]}
        source = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"selector": {}, "template": {"spec": {"containers": [container]}}},
        }
        with pytest.raises(ManifestError, match="must be a valid string") as caught:
            read_base(source, V1Deployment, api_version="apps/v1", kind="Deployment")
        assert "12345" not in str(caught.value)


class TestReadLive:
    def test_passes_over_fields_of_a_newer_server(self) -> None:
        live = hpa(brandNew={"x": 1}) | {"status": {"desiredReplicas": 2, "alsoNew": True}}
        read_model = read_live(live, V2HorizontalPodAutoscaler)
        assert read_model.spec.max_replicas == 3
        assert read_model.status is not None
        assert read_model.status.desired_replicas == 2

    @pytest.mark.parametrize("conditions", [None, [{"type": "AbleToScale", "status": "True"}]])
    def test_reads_a_required_field_that_is_missing_or_null_as_zero(self, conditions: object) -> None:
        live = hpa(maxReplicas=None) | {"status": {"conditions": conditions}}
        read_model = read_live(live, V2HorizontalPodAutoscaler)
        assert read_model.spec.max_replicas == 0
        assert read_model.status is not None
        assert read_model.status.desired_replicas == 0

    def test_a_known_field_of_another_type_is_named(self) -> None:
        with pytest.raises(ManifestError, match=r"spec\.maxReplicas: must be a valid integer, got 'x'"):
            read_live(hpa(maxReplicas="x"), V2HorizontalPodAutoscaler)


class TestWriteModel:
    def test_garbage_put_into_a_list_is_found_and_named(self) -> None:
        written = model()
        written.spec.metrics = []
        assert written.spec.metrics is not None
        written.spec.metrics.append(42)  # type: ignore[arg-type]  # a type checker would report it
        with pytest.raises(ManifestError, match=r"spec\.metrics\[0\]: .*got 42"):
            write_model(written)

    def test_what_is_not_set_is_not_written(self) -> None:
        assert write_model(model()) == {key: hpa()[key] for key in ("metadata", "spec")}


def test_a_copied_model_is_equal_and_shares_nothing() -> None:
    original = model()
    copied = copy_model(original)
    copied.spec.max_replicas = 9
    copied.metadata.labels = {"a": "b"}  # type: ignore[union-attr]  # set above
    assert original == model()


class Part(BaseModel):
    name: str
    resources: V1ResourceRequirements | None = None


class Shop(BaseModel):
    parts: Annotated[list[Part], "by name"] | None = None
    conditions: Annotated[list[V1Condition] | None, "by type"] = None


class TestListsWithAnnotations:
    """What an annotation says about a list changes nothing in how its entries are read."""

    def test_a_missing_field_of_an_entry_is_zero(self) -> None:
        """Conditions of other operators may have neither reason nor time of their last transition.

        Reported as https://github.com/siderolabs/cluster-api-bootstrap-provider-talos/issues/243 and
        https://github.com/operator-framework/helm-operator-plugins/issues/449.
        """
        condition = {"type": "Ready", "status": "True", "message": "It runs"}
        (read_condition,) = read_live({"kind": "Shop", "conditions": [condition]}, Shop).conditions or []
        assert (read_condition.reason, read_condition.message) == ("", "It runs")
        assert read_condition.last_transition_time == datetime(1, 1, 1, tzinfo=UTC)

    def test_a_number_in_a_quantity_field_of_an_entry_reads_as_text(self) -> None:
        live = {"kind": "Shop", "parts": [{"name": "a"}, {"name": "b", "resources": {"limits": {"cpu": 1}}}]}
        parts = read_live(live, Shop).parts or []
        assert parts[1].resources is not None
        assert parts[1].resources.limits == {"cpu": "1"}

    def test_a_wrong_type_of_an_entry_is_named(self) -> None:
        with pytest.raises(ManifestError, match=r"parts\[1\]\.name: must be a valid string, got 5"):
            read_live({"kind": "Shop", "parts": [{"name": "a"}, {"name": 5}]}, Shop)


def test_a_number_in_a_quantity_field_of_a_live_custom_resource_reads_as_text() -> None:
    class Cache(BaseModel):
        resources: V1ResourceRequirements

    read = read_live({"kind": "Cache", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}, Cache)
    assert read.resources.limits == {"cpu": "1", "memory": "1Gi"}
