"""Builder of an HPA: accepted bases, rejected settings, and the resource."""

from typing import Any

import pytest
from kubernetes.client import (
    V1ObjectMeta,
    V2CrossVersionObjectReference,
    V2HorizontalPodAutoscaler,
    V2HorizontalPodAutoscalerSpec,
)

from ocf.concepts import Data, Operational, ScaleTarget
from ocf.errors import BuildError, FeatureGateError
from ocf.feature import BooleanGate, VersionGate
from ocf.objects import Manifest, ObjectKey, dump_document
from ocf.primitives import hpa


def nothing(_mutator: hpa.Mutator) -> None:
    """A mutation that changes nothing."""


async def grow_later(m: hpa.Mutator) -> None:
    m.edit_hpa_spec(lambda spec: spec.set_max_replicas(20))


def mistaken(name: Any, mutate: Any = nothing, feature: Any = None) -> Any:
    """Return a mutation whose arguments a type checker would reject."""
    return hpa.Mutation(name, mutate, feature=feature)


def refused(builder: hpa.Builder) -> tuple[str, ...]:
    with pytest.raises(BuildError) as caught:
        builder.build()
    return caught.value.problems


def named(base: Manifest, **metadata: Any) -> Manifest:
    return {**base, "metadata": metadata}


class TestBase:
    def test_none_is_rejected(self) -> None:
        assert refused(hpa.Builder(None)) == ("object cannot be None",)  # type: ignore[arg-type]  # the mistake under test

    def test_a_missing_name_and_a_missing_namespace_are_reported_together(self, hpa_base: Manifest) -> None:
        assert refused(hpa.Builder(named(hpa_base))) == (
            "object name cannot be empty",
            "object namespace cannot be empty",
        )

    def test_a_missing_namespace_is_rejected(self, hpa_base: Manifest) -> None:
        assert refused(hpa.Builder(named(hpa_base, name="b"))) == ("object namespace cannot be empty",)

    def test_an_unknown_field_is_named_with_the_nearest_known_one(self, hpa_base: Manifest) -> None:
        hpa_base["spec"]["maxReplica"] = 3
        assert refused(hpa.Builder(hpa_base)) == (
            'HorizontalPodAutoscaler shop/backend-hpa: spec.maxReplica: unknown field, did you mean "maxReplicas"?',
        )

    def test_a_wrong_field_and_a_missing_namespace_are_reported_together(self, hpa_base: Manifest) -> None:
        hpa_base["spec"]["maxReplica"] = 3
        base = named(hpa_base, name="b")
        for source in (base, dump_document(base)):
            field, place = refused(hpa.Builder(source))
            assert "spec.maxReplica: unknown field" in field
            assert place == "object namespace cannot be empty"

    def test_text_that_is_not_a_manifest_is_rejected(self) -> None:
        (problem,) = refused(hpa.Builder("kind: [unclosed"))
        assert problem.startswith("document: ")

    def test_another_kind_is_rejected(self, deployment_base: Manifest) -> None:
        problems = refused(hpa.Builder(deployment_base))
        assert any('kind: must be "HorizontalPodAutoscaler"' in problem for problem in problems)

    def test_a_model_is_taken(self) -> None:
        base = V2HorizontalPodAutoscaler(
            metadata=V1ObjectMeta(name="b", namespace="a"),
            spec=V2HorizontalPodAutoscalerSpec(
                max_replicas=1, scale_target_ref=V2CrossVersionObjectReference(kind="Deployment", name="x")
            ),
        )
        assert hpa.Builder(base).build().identity == "autoscaling/v2/HorizontalPodAutoscaler/a/b"

    def test_a_target_that_no_model_can_leave_out_is_named(self, hpa_base: Manifest) -> None:
        del hpa_base["spec"]["scaleTargetRef"]
        (problem,) = refused(hpa.Builder(hpa_base))
        assert problem == "HorizontalPodAutoscaler shop/backend-hpa: spec.scaleTargetRef: required value"

    def test_the_spec_is_not_validated(self, hpa_base: Manifest) -> None:
        """Bounds are the API server's business: no metrics, and a minimum above the maximum, build."""
        hpa_base["spec"].update(minReplicas=20, maxReplicas=0)
        assert hpa.Builder(hpa_base).build().baseline().spec.max_replicas == 0

    def test_changing_the_base_after_building_changes_nothing(self, hpa_base: Manifest) -> None:
        resource = hpa.Builder(hpa_base).build()
        hpa_base["spec"]["maxReplicas"] = 99
        assert resource.render()["spec"]["maxReplicas"] == 10


class TestMutations:
    def test_none_registered_changes_nothing(self, hpa_base: Manifest) -> None:
        assert hpa.Builder(hpa_base).with_mutation().build().render() == hpa_base

    def test_keep_their_order_over_several_calls(self, hpa_base: Manifest) -> None:
        builder = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("a", nothing))
        builder.with_mutation(hpa.Mutation("c", nothing), hpa.Mutation("b", nothing))
        assert builder.build().registered_mutations == ("a", "c", "b")

    def test_a_duplicate_name_is_rejected_even_behind_closed_gates(self, hpa_base: Manifest) -> None:
        closed = BooleanGate(value=False)
        builder = hpa.Builder(hpa_base).with_mutation(
            hpa.Mutation("scale", nothing, feature=closed), hpa.Mutation("scale", nothing, feature=closed)
        )
        assert refused(builder) == ('duplicate mutation name "scale": mutation names must be unique within a resource',)

    def test_building_asks_no_gate(self, hpa_base: Manifest) -> None:
        broken = VersionGate("no version at all", ">= 1")
        resource = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("x", nothing, feature=broken)).build()
        with pytest.raises(FeatureGateError):
            broken.enabled()
        assert resource.registered_mutations == ("x",)

    def test_one_unnamed_is_fine_and_two_collide(self, hpa_base: Manifest) -> None:
        unnamed = hpa.Mutation("", nothing)
        assert hpa.Builder(hpa_base).with_mutation(unnamed).build().registered_mutations == ("",)
        assert refused(hpa.Builder(hpa_base).with_mutation(unnamed, unnamed)) == (
            'duplicate mutation name "": mutation names must be unique within a resource',
        )

    def test_the_firing_set_lists_ungated_and_enabled_ones_in_order(self, hpa_base: Manifest) -> None:
        resource = (
            hpa.Builder(hpa_base)
            .with_mutation(
                hpa.Mutation("always", nothing),
                hpa.Mutation("old", nothing, feature=VersionGate("2.0.0", "< 2")),
                hpa.Mutation("new", nothing, feature=VersionGate("2.0.0", ">= 2")),
            )
            .build()
        )
        assert resource.registered_mutations == ("always", "old", "new")
        assert resource.firing_set() == ("always", "new")

    def test_a_gate_that_cannot_answer_is_named_with_its_mutation(self, hpa_base: Manifest) -> None:
        mutation = hpa.Mutation("x", nothing, feature=VersionGate("nonsense", ">= 2"))
        with pytest.raises(FeatureGateError, match='evaluating gate for mutation "x": '):
            hpa.Builder(hpa_base).with_mutation(mutation).build().firing_set()

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            pytest.param(None, "with_mutation takes mutations, got None", id="None"),
            pytest.param(
                nothing,
                'with_mutation takes mutations, got the function nothing: name it, Mutation("nothing", nothing)',
                id="a function",
            ),
            pytest.param(
                lambda _m: None,
                'with_mutation takes mutations, got the function <lambda>: name it, Mutation("name", name)',
                id="a lambda",
            ),
            pytest.param("m", "with_mutation takes mutations, got 'm'", id="a text"),
            pytest.param(
                mistaken(None), "the name of a mutation must be a text, got None", id="a mutation without a name"
            ),
            pytest.param(mistaken("m", 5), "mutation m takes a function, got int 5", id="a mutation of a number"),
            pytest.param(
                mistaken("m", nothing, feature=True),
                "mutation m: a gate has a method enabled(), got bool True",
                id="a mutation with a bool as gate",
            ),
            pytest.param(
                mistaken("m", grow_later),
                "mutation m takes a plain function, without async and yield; this one records nothing",
                id="an asynchronous mutation",
            ),
        ],
    )
    def test_what_is_not_a_mutation_is_named_with_the_other_problems(
        self, hpa_base: Manifest, given: Any, problem: str
    ) -> None:
        builder = hpa.Builder(named(hpa_base, name="web")).with_mutation(given).with_metrics_identifier(" ")
        assert refused(builder) == ("object namespace cannot be empty", "metrics identifier cannot be blank", problem)

    def test_a_mutation_without_a_function_is_built(self, hpa_base: Manifest) -> None:
        assert hpa.Builder(hpa_base).with_mutation(hpa.Mutation("m", None)).build().registered_mutations == ("m",)


class TestSettings:
    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            pytest.param(True, "must be a function, not of type bool", id="a bool"),
            pytest.param(grow_later, "must be a plain function, without async and yield", id="an async function"),
        ],
    )
    def test_what_is_not_a_handler_is_named_with_the_other_problems(
        self, hpa_base: Manifest, given: Any, problem: str
    ) -> None:
        identifier: Any = 5
        builder = hpa.Builder(hpa_base).with_guard(given).with_custom_suspend_status(given)
        builder.with_custom_operational_status(given).with_custom_grace_status(given)
        builder.with_custom_suspend_mutation(given).with_custom_suspend_deletion_decision(given)
        assert set(refused(builder.with_metrics_identifier(identifier))) == {
            "metrics identifier must be a text, not of type int",
            f"guard {problem}",
            f"status handler {problem}",
            f"grace handler {problem}",
            f"suspend handler {problem}",
            f"suspension handler {problem}",
            f"delete_on_suspend handler {problem}",
        }

    def test_a_blank_metrics_identifier_is_rejected(self, hpa_base: Manifest) -> None:
        assert refused(hpa.Builder(hpa_base).with_metrics_identifier("  ")) == ("metrics identifier cannot be blank",)

    def test_without_a_metrics_identifier_it_is_empty(self, hpa_base: Manifest) -> None:
        assert hpa.Builder(hpa_base).build().metrics_identifier == ""
        assert hpa.Builder(hpa_base).with_metrics_identifier("backend").build().metrics_identifier == "backend"

    def test_a_cleared_operational_handler_is_rejected(self, hpa_base: Manifest) -> None:
        builder = hpa.Builder(hpa_base).with_custom_operational_status(None)
        assert refused(builder) == ("operational status handler is required",)

    def test_a_production_without_cell_or_function_is_rejected(self, hpa_base: Manifest) -> None:
        builder = hpa.Builder(hpa_base)
        builder.extract_into(None, lambda _live: 1)  # type: ignore[arg-type]  # the mistake under test
        builder.extract_into(Data[int]("count"), None)  # type: ignore[arg-type]  # likewise
        assert refused(builder) == (
            "declared data extraction requires a cell, not None",
            'declared data extraction into "count" requires a function',
        )

    def test_an_async_extraction_is_rejected(self, hpa_base: Manifest) -> None:
        async def read(_live: Any) -> int:
            return 1

        builder = hpa.Builder(hpa_base)
        builder.extract_into(Data[int]("count"), read)  # type: ignore[arg-type]  # the mistake under test
        assert refused(builder) == ('data extraction into "count" must be a plain function, without async and yield',)

    def test_a_read_without_cell_is_rejected(self, hpa_base: Manifest) -> None:
        builder = hpa.Builder(hpa_base).with_data_guard(None)  # type: ignore[arg-type]  # the mistake under test
        assert refused(builder) == (
            "declared data read (with_data_guard or with_optional_data) requires a cell, not None",
        )

    def test_independent_problems_are_reported_together(self, hpa_base: Manifest) -> None:
        builder = hpa.Builder(named(hpa_base, name="b")).with_metrics_identifier(" ")
        builder.with_mutation(hpa.Mutation("m", nothing), hpa.Mutation("m", nothing))
        assert len(refused(builder)) == 3


class TestResource:
    def test_says_what_it_is_called(self, hpa_base: Manifest) -> None:
        resource = hpa.Builder(hpa_base).build()
        assert resource.identity == "autoscaling/v2/HorizontalPodAutoscaler/shop/backend-hpa"
        assert resource.key == ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "backend-hpa", "shop")

    def test_is_operational(self, hpa_base: Manifest) -> None:
        assert isinstance(hpa.Builder(hpa_base).build(), Operational)

    def test_the_baseline_is_given_as_a_copy(self, hpa_base: Manifest) -> None:
        resource = hpa.Builder(hpa_base).build()
        resource.baseline().spec.max_replicas = 99
        assert resource.baseline().spec.max_replicas == 10

    def test_names_what_it_scales_as_its_mutations_leave_it(self, hpa_base: Manifest) -> None:
        def retarget(m: hpa.Mutator) -> None:
            reference = V2CrossVersionObjectReference(api_version="apps/v1", kind="StatefulSet", name="store")
            m.edit_hpa_spec(lambda spec: spec.set_scale_target_ref(reference))

        resource = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("retarget", retarget)).build()
        assert resource.scale_target() == ScaleTarget(ObjectKey("apps/v1", "StatefulSet", "store", "shop"))

    def test_names_the_target_of_the_baseline_while_a_mutation_waits_for_data(self, hpa_base: Manifest) -> None:
        cell = Data[int]("limit")

        def limited(m: hpa.Mutator) -> None:
            m.edit_hpa_spec(lambda spec: spec.set_max_replicas(cell.require()))

        resource = hpa.Builder(hpa_base).with_mutation(hpa.Mutation("limited", limited)).build()
        assert resource.scale_target() == ScaleTarget(ObjectKey("apps/v1", "Deployment", "backend", "shop"))
