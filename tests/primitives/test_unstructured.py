"""Objects of any kind: four categories, one mutator, and the user's own handlers."""

from typing import Any

import pytest
from pydantic import BaseModel, Field

from ocf.concepts import (
    Alive,
    AliveStatus,
    ApplyOperation,
    Completable,
    CompletionStatus,
    Data,
    Graceful,
    GraceStatus,
    Operational,
    OperationalStatus,
    StatusReport,
    Suspendable,
    SuspensionStatus,
)
from ocf.errors import BuildError, MutationError
from ocf.objects import Manifest, copy_json
from ocf.primitives import unstructured
from ocf.primitives.unstructured import Unstructured

BASE: Manifest = {
    "apiVersion": "monitoring.coreos.com/v1",
    "kind": "ServiceMonitor",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "finalizers": ["example.com/x"]},
    "spec": {"endpoints": [{"port": "metrics", "interval": None}], "selector": {}},
}


def built(mutate: Any = None, base: Any = BASE, **settings: Any) -> unstructured.StaticResource:
    mutations = [unstructured.Mutation("m", mutate)] if mutate else []
    return unstructured.StaticBuilder(base, **settings).with_mutation(*mutations).build()


class TestBase:
    @pytest.mark.parametrize(
        "base",
        [
            pytest.param(BASE, id="manifest"),
            pytest.param(Unstructured(BASE), id="our model"),
            pytest.param(
                "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: web, namespace: shop, "
                "labels: {app: web}, finalizers: [example.com/x]}, "
                "spec: {endpoints: [{port: metrics, interval: null}], selector: {}}}",
                id="text",
            ),
        ],
    )
    def test_is_sent_as_written(self, base: Any) -> None:
        """This includes empty maps and nulls: their meaning in that kind is unknown."""
        resource = built(base=base)
        assert resource.render() == BASE
        assert resource.identity == "monitoring.coreos.com/v1/ServiceMonitor/shop/web"

    def test_a_model_of_the_users_own_is_written_by_its_aliases(self) -> None:
        class Shop(BaseModel):
            api_version: str = Field(default="example.com/v1", serialization_alias="apiVersion")
            kind: str = "Shop"
            metadata: dict[str, str]
            note: str | None = None

        assert built(base=Shop(metadata={"name": "a", "namespace": "b"})).render() == {
            "apiVersion": "example.com/v1",
            "kind": "Shop",
            "metadata": {"name": "a", "namespace": "b"},
        }

    def test_a_cluster_scoped_kind_has_no_namespace(self) -> None:
        base = {"apiVersion": "example.com/v1", "kind": "Region", "metadata": {"name": "north"}}
        assert built(base=base, cluster_scoped=True).identity == "example.com/v1/Region/north"
        with pytest.raises(BuildError, match="object namespace cannot be empty"):
            built(base=base)
        with pytest.raises(BuildError, match="cluster-scoped object must not have a namespace"):
            built(base=BASE, cluster_scoped=True)

    @pytest.mark.parametrize(
        ("base", "problems"),
        [
            pytest.param(None, ("object cannot be None",), id="none"),
            pytest.param(
                {},
                (
                    "object apiVersion cannot be empty",
                    "object kind cannot be empty",
                    "object name cannot be empty",
                    "object namespace cannot be empty",
                ),
                id="empty",
            ),
            pytest.param({**BASE, "kind": ""}, ("object kind cannot be empty",), id="no kind"),
            pytest.param({**BASE, "metadata": {"namespace": "a"}}, ("object name cannot be empty",), id="no name"),
        ],
    )
    def test_all_missing_fields_are_reported_together(self, base: Any, problems: tuple[str, ...]) -> None:
        with pytest.raises(BuildError) as refused:
            built(base=base)
        assert refused.value.problems == problems

    @pytest.mark.parametrize(
        ("base", "message"),
        [
            pytest.param("a: [", "line", id="no YAML"),
            pytest.param(42, "must be a Unstructured, a manifest or a YAML text", id="a number"),
            pytest.param(
                {**BASE, "spec": {1: "a"}},
                "ServiceMonitor: key in spec: must be a text, not 1",
                id="a key that is no text",
            ),
            pytest.param(
                {**BASE, "spec": {"a": object()}},
                r"ServiceMonitor: spec\.a: must be a JSON value, not of type object",
                id="no JSON",
            ),
            pytest.param(
                {**BASE, "metadata": "web"}, "metadata: must be a map, not of type str", id="metadata that is no map"
            ),
        ],
    )
    def test_what_cannot_be_read_is_an_error_of_the_build(self, base: Any, message: str) -> None:
        builder = unstructured.StaticBuilder(base)
        with pytest.raises(BuildError, match=message):
            builder.build()


class TestMutations:
    def test_metadata_is_edited_before_the_content_and_all_of_it_survives(self) -> None:
        def mutate(m: unstructured.Mutator) -> None:
            m.edit_content(lambda c: c.set_field(c.raw["metadata"]["labels"]["tier"], "spec", "tier"))
            m.edit_object_metadata(lambda meta: meta.ensure_label("tier", "web"))
            m.edit_object_metadata(lambda meta: meta.ensure_annotation("a", "b"))

        rendered = built(mutate).render()
        assert rendered["spec"] == {**BASE["spec"], "tier": "web"}
        labels = {"app": "web", "tier": "web"}
        assert rendered["metadata"] == {**BASE["metadata"], "labels": labels, "annotations": {"a": "b"}}

    def test_the_baseline_is_never_changed(self) -> None:
        """Nested lists and maps neither: a model of unknown content would share them."""
        given = copy_json(BASE)

        def mutate(m: unstructured.Mutator) -> None:
            m.edit_content(lambda c: c.raw["spec"]["endpoints"][0].update(port="other"))
            m.edit_content(lambda c: c.set_field("b", "metadata", "labels", "app"))

        resource = built(mutate, base=given)
        first = resource.render()
        resource.preview().root["spec"]["endpoints"].clear()
        resource.baseline().root["spec"]["endpoints"].clear()
        given["spec"]["endpoints"].clear()
        assert resource.render() == first
        assert first["spec"]["endpoints"] == [{"port": "other", "interval": None}]
        assert resource.baseline().root == BASE

    def test_an_error_names_mutation_and_category(self) -> None:
        with pytest.raises(MutationError, match=r'mutation "m", edit_content: spec\.endpoints: must be a map'):
            built(lambda m: m.edit_content(lambda c: c.set_field(1, "spec", "endpoints", "x"))).render()
        with pytest.raises(MutationError, match=r'mutation "m", edit_object_metadata: labels\[a\]: must be a text'):
            built(lambda m: m.edit_object_metadata(lambda meta: meta.ensure_label("a", 1))).render()

    def test_a_field_is_explained(self) -> None:
        field = built(lambda m: m.edit_content(lambda c: c.set_field(5, "spec", "size"))).explain().field("spec.size")
        assert (field.value, str(field.source)) == (5, "mutation m, edit_content")


def phase(live: Unstructured) -> str:
    found: str = (live.root.get("status") or {}).get("phase", "")
    return found


class TestCategories:
    def test_static_has_no_status(self) -> None:
        for concept in (Alive, Completable, Operational, Graceful, Suspendable):
            assert not isinstance(built(), concept)

    def test_integration(self) -> None:
        def judged(operation: ApplyOperation, live: Unstructured) -> StatusReport[OperationalStatus]:
            ready = phase(live) == "Ready"
            return StatusReport(OperationalStatus.OPERATIONAL if ready else OperationalStatus.PENDING, str(operation))

        builder = unstructured.IntegrationBuilder(BASE)
        with pytest.raises(BuildError, match="operational status handler is required"):
            builder.build()
        resource = builder.with_custom_operational_status(judged).build()
        live = {**BASE, "status": {"phase": "Ready"}}
        assert resource.operational_status(ApplyOperation.NONE, live).status is OperationalStatus.OPERATIONAL
        assert resource.operational_status(ApplyOperation.CREATED, BASE).status is OperationalStatus.PENDING
        assert resource.grace_status(live) == StatusReport(GraceStatus.HEALTHY, "default grace status")
        assert resource.suspension_status(live) == StatusReport(SuspensionStatus.SUSPENDED, "default suspension status")
        assert resource.delete_on_suspend() is False
        assert resource.render(suspended=True) == BASE

    def test_workload(self) -> None:
        builder = unstructured.WorkloadBuilder(BASE)
        with pytest.raises(BuildError, match="converging status handler is required"):
            builder.build()
        builder.with_custom_converge_status(lambda _, live: StatusReport(AliveStatus.HEALTHY, phase(live)))
        builder.with_custom_suspend_mutation(lambda m: m.edit_content(lambda c: c.set_field(0, "spec", "replicas")))
        resource = builder.build()
        live = {**BASE, "status": {"phase": "Up"}}
        assert resource.alive_status(ApplyOperation.NONE, live) == StatusReport(AliveStatus.HEALTHY, "Up")
        assert resource.render(suspended=True)["spec"] == {**BASE["spec"], "replicas": 0}

    def test_task(self) -> None:
        builder = unstructured.TaskBuilder(BASE)
        with pytest.raises(BuildError, match="converging status handler is required"):
            builder.build()
        builder.with_custom_converge_status(lambda _, live: StatusReport(CompletionStatus.RUNNING, phase(live)))
        live = {**BASE, "status": {"phase": "Half"}}
        found = builder.build().completion_status(ApplyOperation.NONE, live)
        assert found == StatusReport(CompletionStatus.RUNNING, "Half")

    def test_data_is_extracted_from_what_no_model_knows(self) -> None:
        cell = Data[str]("phase")
        resource = unstructured.StaticBuilder(BASE).extract_into(cell, phase).build()
        with cell.seeded("before"):
            resource.extract_data({**BASE, "status": {"phase": "Up"}})
            assert cell.require() == "Up"
