"""Rendering of an HPA: order, isolation and errors of mutations."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import V2HorizontalPodAutoscaler

from ocf.editors import HPASpecEditor, ObjectMetaEditor
from ocf.errors import ConfigError, MutationError
from ocf.feature import BooleanGate, VersionGate
from ocf.objects import Manifest, copy_json, write_model
from ocf.primitives import hpa


def resource(base: Manifest, *mutations: hpa.Mutation) -> hpa.Resource:
    return hpa.Builder(base).with_mutation(*mutations).build()


def labelled(name: str, value: str, *, feature: VersionGate | BooleanGate | None = None) -> hpa.Mutation:
    def mutate(m: hpa.Mutator) -> None:
        m.edit_object_metadata(lambda meta: meta.ensure_label("label", value))

    return hpa.Mutation(name, mutate, feature=feature)


def logging(log: list[str], *names: str) -> Callable[[hpa.Mutator], None]:
    """Record, for each name, an edit that logs it; `meta-…` is a metadata edit, the rest are spec edits."""

    def mutate(m: hpa.Mutator) -> None:
        for name in names:
            if name.startswith("meta"):
                m.edit_object_metadata(partial(_log, log, name))
            else:
                m.edit_hpa_spec(partial(_log, log, name))

    return mutate


def _log(log: list[str], name: str, _editor: object) -> None:
    log.append(name)


def failing(m: hpa.Mutator) -> None:
    @m.edit_hpa_spec
    def _(_spec: HPASpecEditor) -> None:
        raise ValueError("spec error")


def _record_last(m: hpa.Mutator, name: str) -> None:
    """Record an edit that the next one of its category overwrites, so that only the last one counts."""
    if name.startswith("meta"):
        m.edit_object_metadata(lambda meta: meta.ensure_annotation("last", name))
    else:
        m.edit_hpa_spec(lambda spec: spec.set_max_replicas(int(name[-1])))


class TestOrder:
    def test_recording_touches_nothing(self, hpa_base: Manifest) -> None:
        mutator = hpa.Mutator()
        log: list[str] = []
        logging(log, "spec", "meta")(mutator)
        assert log == []
        mutator.apply(hpa.Builder(hpa_base).build().baseline())
        assert log == ["meta", "spec"]

    def test_metadata_edits_run_before_spec_edits_whatever_the_order_of_recording(self, hpa_base: Manifest) -> None:
        log: list[str] = []
        resource(hpa_base, hpa.Mutation("m", logging(log, "spec-1", "meta-1", "spec-2", "meta-2"))).render()
        assert log == ["meta-1", "meta-2", "spec-1", "spec-2"]

    def test_a_mutation_is_finished_before_the_next_begins(self, hpa_base: Manifest) -> None:
        log: list[str] = []
        first = hpa.Mutation("first", logging(log, "spec-1", "meta-1"))
        second = hpa.Mutation("second", logging(log, "spec-2", "meta-2"))
        resource(hpa_base, first, second).render()
        assert log == ["meta-1", "spec-1", "meta-2", "spec-2"]

    def test_later_mutations_see_and_overwrite_what_earlier_ones_left(self, hpa_base: Manifest) -> None:
        seen: list[object] = []

        def second(m: hpa.Mutator) -> None:
            m.edit_object_metadata(lambda meta: seen.append(dict(meta.raw.labels or {})))
            m.edit_object_metadata(lambda meta: meta.ensure_label("label", "two"))
            m.edit_hpa_spec(lambda spec: spec.set_max_replicas(42))

        rendered = resource(hpa_base, labelled("one", "one"), hpa.Mutation("two", second)).render()
        assert seen == [{"label": "one"}]
        assert (rendered["metadata"]["labels"], rendered["spec"]["maxReplicas"]) == ({"label": "two"}, 42)

    def test_a_closed_gate_leaves_its_edits_out_and_the_others_in_order(self, hpa_base: Manifest) -> None:
        log: list[str] = []
        resource(
            hpa_base,
            hpa.Mutation("a", logging(log, "spec-a")),
            hpa.Mutation("b", logging(log, "spec-b"), feature=BooleanGate(value=False)),
            hpa.Mutation("c", logging(log, "meta-c")),
        ).render()
        assert log == ["spec-a", "meta-c"]

    @given(order=st.permutations(["meta-1", "meta-2", "spec-1", "spec-2", "spec-3"]))
    def test_only_the_order_inside_a_category_counts(self, order: list[str]) -> None:
        """Any interleaving of recordings that keeps the order inside each category renders the same."""

        def mutate(names: list[str]) -> Callable[[hpa.Mutator], None]:
            def record(m: hpa.Mutator) -> None:
                for name in names:
                    _record_last(m, name)

            return record

        base = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "b", "namespace": "a"},
            "spec": {"maxReplicas": 9, "scaleTargetRef": {"kind": "Deployment", "name": "x"}},
        }
        canonical = sorted(order, key=lambda name: (name.startswith("spec"), order.index(name)))
        assert (
            resource(base, hpa.Mutation("m", mutate(order))).render()
            == resource(base, hpa.Mutation("m", mutate(canonical))).render()
        )


class TestRecorders:
    def test_serve_as_decorator_with_a_lambda_and_with_a_function(self, hpa_base: Manifest) -> None:
        def elsewhere(meta: ObjectMetaEditor) -> None:
            meta.ensure_label("c", "3")

        def mutate(m: hpa.Mutator) -> None:
            @m.edit_object_metadata
            def _(meta: ObjectMetaEditor) -> None:
                meta.ensure_label("a", "1")

            m.edit_object_metadata(lambda meta: meta.ensure_label("b", "2"))
            assert m.edit_object_metadata(elsewhere) is elsewhere

        rendered = resource(hpa_base, hpa.Mutation("m", mutate)).render()
        assert rendered["metadata"]["labels"] == {"a": "1", "b": "2", "c": "3"}

    @pytest.mark.parametrize("category", ["edit_object_metadata", "edit_hpa_spec"])
    def test_none_is_rejected_where_it_is_recorded(self, hpa_base: Manifest, category: str) -> None:
        mutation = hpa.Mutation("m", lambda m: getattr(m, category)(None))
        problem = f"failed to apply mutation intent for m: {category} takes a function, got None"
        with pytest.raises(MutationError, match=problem):
            resource(hpa_base, mutation).render()

    def test_an_asynchronous_edit_is_rejected(self, hpa_base: Manifest) -> None:
        async def asynchronous(spec: HPASpecEditor) -> None:
            spec.set_max_replicas(99)

        edit: Any = asynchronous
        mutation = hpa.Mutation("m", lambda m: m.edit_hpa_spec(edit))
        with pytest.raises(MutationError, match="asynchronous is asynchronous"):
            resource(hpa_base, mutation).render()


class TestErrors:
    @pytest.mark.promise("error-names")
    def test_an_edit_that_raises_is_named_in_full(self, hpa_base: Manifest) -> None:
        with pytest.raises(MutationError) as caught:
            resource(hpa_base, hpa.Mutation("broken", failing)).render()
        error = caught.value
        assert (error.resource, error.mutation, error.category) == (
            "autoscaling/v2/HorizontalPodAutoscaler/shop/backend-hpa",
            "broken",
            "edit_hpa_spec",
        )
        assert isinstance(error.__cause__, ValueError)
        assert str(error) == (
            "autoscaling/v2/HorizontalPodAutoscaler/shop/backend-hpa: failed to apply planned mutations: "
            'mutation "broken", edit_hpa_spec: ValueError: spec error'
        )

    def test_nothing_runs_after_an_edit_that_raised(self, hpa_base: Manifest) -> None:
        log: list[str] = []

        def mutate(m: hpa.Mutator) -> None:
            logging(log, "meta-1")(m)
            failing(m)
            logging(log, "spec-1")(m)

        after = hpa.Mutation("after", logging(log, "meta-2"))
        with pytest.raises(MutationError):
            resource(hpa_base, hpa.Mutation("broken", mutate), after).render()
        assert log == ["meta-1"]

    @pytest.mark.promise("pure")
    def test_a_failed_render_leaves_the_resource_as_it_was(self, hpa_base: Manifest) -> None:
        armed = [True]

        def sometimes(m: hpa.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.ensure_label("half", "done"))
            if armed[0]:
                failing(m)

        tried = resource(hpa_base, hpa.Mutation("sometimes", sometimes))
        with pytest.raises(MutationError):
            tried.render()
        assert write_model(tried.baseline()) == hpa_base
        armed[0] = False
        assert tried.render()["metadata"]["labels"] == {"half": "done"}

    @pytest.mark.promise("versions")
    def test_a_gate_that_cannot_answer_fails_before_any_edit(self, hpa_base: Manifest) -> None:
        log: list[str] = []
        first = hpa.Mutation("first", logging(log, "meta-1"))
        gated = hpa.Mutation("gated", logging(log, "meta-2"), feature=VersionGate("nonsense", ">= 2"))
        with pytest.raises(MutationError, match="failed to apply mutation intent for gated: "):
            resource(hpa_base, first, gated).render()
        assert log == []

    def test_a_mutation_without_function_fails_only_when_it_fires(self, hpa_base: Manifest) -> None:
        with pytest.raises(MutationError) as caught:
            resource(hpa_base, hpa.Mutation("N", None)).render()
        assert caught.value.problem == "failed to apply mutation intent for N: mutation handler of N is None"
        silent = resource(hpa_base, hpa.Mutation("N", None, feature=BooleanGate(value=False)))
        assert silent.render() == hpa_base

    @pytest.mark.promise("error-names")
    def test_what_an_edit_assigns_is_checked_with_its_field(self, hpa_base: Manifest) -> None:
        mutation = hpa.Mutation("m", lambda m: m.edit_hpa_spec(lambda spec: setattr(spec.raw, "max_replicas", "ten")))
        with pytest.raises(
            MutationError, match=r"edit_hpa_spec: V2HorizontalPodAutoscalerSpec\.max_replicas: .* got 'ten'"
        ):
            resource(hpa_base, mutation).render()

    def test_what_an_edit_puts_into_a_list_is_found_and_blamed_on_it(self, hpa_base: Manifest) -> None:
        """The models do not see it, so it comes out when the object is written; the error still names the edit."""

        def mutate(m: hpa.Mutator) -> None:
            m.edit_hpa_spec(lambda spec: setattr(spec.raw, "metrics", []))
            m.edit_hpa_spec(lambda spec: spec.raw.metrics.append(42))  # type: ignore[union-attr, arg-type]  # the mistake

        mutations = (labelled("innocent", "x"), hpa.Mutation("guilty", mutate))
        with pytest.raises(MutationError) as caught:
            resource(hpa_base, *mutations).render()
        assert (caught.value.mutation, caught.value.category) == ("guilty", "edit_hpa_spec")
        assert "spec.metrics[0]" in str(caught.value)

    def test_a_metric_whose_source_does_not_match_is_rejected_with_its_place(self, hpa_base: Manifest) -> None:
        from kubernetes.client import V2MetricSpec

        mutation = hpa.Mutation("m", lambda m: m.edit_hpa_spec(lambda s: s.ensure_metric(V2MetricSpec(type="Pods"))))
        with pytest.raises(MutationError, match=r'mutation "m", edit_hpa_spec: .*Pods') as caught:
            resource(hpa_base, mutation).render()
        assert isinstance(caught.value.__cause__, ConfigError)

    def test_a_model_made_past_its_own_checks_is_named_before_any_edit(self, hpa_base: Manifest) -> None:
        unchecked = hpa.Builder(hpa_base).build().baseline()
        vars(unchecked)["spec"] = None
        tried = hpa.Builder(unchecked).with_mutation(labelled("m", "x")).build()
        problem = r"the object before the edits is not a valid HorizontalPodAutoscaler: .*spec: required value"
        with pytest.raises(MutationError, match=problem):
            tried.render()


class TestPurity:
    @pytest.mark.promise("pure")
    def test_rendering_twice_gives_equal_manifests_that_share_nothing(self, hpa_base: Manifest) -> None:
        tried = resource(hpa_base, labelled("m", "x"))
        first, second = tried.render(), tried.render()
        assert first == second
        first["metadata"]["labels"]["label"] = "changed"
        first["spec"]["maxReplicas"] = 99
        assert tried.render() == second

    @given(data=st.data())
    @pytest.mark.promise("pure")
    def test_never_changes_its_inputs(self, data: st.DataObject) -> None:
        """Whatever the mutations do, the base that was given and the baseline that is kept stay as they were."""
        base = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "b", "namespace": "a", "labels": {"label": "base"}},
            "spec": {"maxReplicas": 9, "scaleTargetRef": {"kind": "Deployment", "name": "x"}, "metrics": []},
        }
        before = copy_json(base)
        edits = {
            "max": lambda spec: spec.set_max_replicas(3),
            "raw": lambda spec: spec.raw.metrics.clear(),
            "min": lambda spec: spec.set_min_replicas(None),
            "ref": lambda spec: setattr(spec.raw.scale_target_ref, "name", "other"),
        }
        chosen = data.draw(st.lists(st.sampled_from(sorted(edits)), max_size=5))

        def mutate(m: hpa.Mutator) -> None:
            for name in chosen:
                m.edit_hpa_spec(edits[name])

        tried = resource(base, hpa.Mutation("m", mutate), labelled("n", "y"))
        assert tried.render() == tried.render()
        assert base == before
        assert write_model(tried.baseline()) == before

    def test_undeclared_fields_are_absent(self, hpa_base: Manifest) -> None:
        def look(m: hpa.Mutator) -> None:
            m.edit_object_metadata(lambda meta: meta.remove_label("absent"))
            m.edit_hpa_spec(lambda spec: spec.remove_metric("Resource", "cpu"))

        assert resource(hpa_base, hpa.Mutation("look", look)).render() == hpa_base

    def test_empty_values_of_the_author_are_kept(self, hpa_base: Manifest) -> None:
        hpa_base["spec"]["metrics"] = []
        hpa_base["metadata"]["labels"] = {}
        assert resource(hpa_base).render() == hpa_base


class TestPreview:
    def test_equals_the_rendered_object(self, hpa_base: Manifest) -> None:
        tried = resource(hpa_base, labelled("m", "x", feature=VersionGate("2.1.0", ">= 2")))
        preview = tried.preview()
        assert isinstance(preview, V2HorizontalPodAutoscaler)
        assert write_model(preview) == tried.render()
        assert write_model(tried.baseline()) == hpa_base

    def test_shows_no_suspension(self, hpa_base: Manifest) -> None:
        tried = (
            hpa.Builder(hpa_base)
            .with_custom_suspend_mutation(lambda m: m.edit_hpa_spec(lambda spec: spec.set_max_replicas(1)))
            .build()
        )
        assert tried.render(suspended=True)["spec"]["maxReplicas"] == 1
        assert tried.preview().spec.max_replicas == 10
