"""HPASpecEditor: the fields it sets, and the identity of metrics."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.client import (
    V1LabelSelector,
    V1LabelSelectorRequirement,
    V2ContainerResourceMetricSource,
    V2CrossVersionObjectReference,
    V2ExternalMetricSource,
    V2HorizontalPodAutoscalerBehavior,
    V2HorizontalPodAutoscalerSpec,
    V2HPAScalingRules,
    V2MetricIdentifier,
    V2MetricSpec,
    V2MetricTarget,
    V2ObjectMetricSource,
    V2PodsMetricSource,
    V2ResourceMetricSource,
)
from pydantic import ValidationError

from ocf.autoscaling import scaling
from ocf.editors import HPASpecEditor
from ocf.editors.metric_identity import ANY, AnyValue
from ocf.errors import ConfigError, ManifestError
from ocf.objects import write_model
from ocf.objects.models import copy_model


def reference(name: str, kind: str = "Service", api_version: str | None = "v1") -> V2CrossVersionObjectReference:
    return V2CrossVersionObjectReference(api_version=api_version, kind=kind, name=name)


def target(value: int) -> V2MetricTarget:
    return V2MetricTarget(type="AverageValue", average_value=str(value))


def resource(name: str, value: int = 1) -> V2MetricSpec:
    return V2MetricSpec(type="Resource", resource=V2ResourceMetricSource(name=name, target=target(value)))


def container_resource(name: str, container: str, value: int = 1) -> V2MetricSpec:
    source = V2ContainerResourceMetricSource(name=name, container=container, target=target(value))
    return V2MetricSpec(type="ContainerResource", container_resource=source)


def pods(name: str, selector: V1LabelSelector | None = None, value: int = 1) -> V2MetricSpec:
    metric = V2MetricIdentifier(name=name, selector=selector)
    return V2MetricSpec(type="Pods", pods=V2PodsMetricSource(metric=metric, target=target(value)))


def external(name: str, selector: V1LabelSelector | None = None, value: int = 1) -> V2MetricSpec:
    metric = V2MetricIdentifier(name=name, selector=selector)
    return V2MetricSpec(type="External", external=V2ExternalMetricSource(metric=metric, target=target(value)))


def on_object(
    name: str, described: V2CrossVersionObjectReference, selector: V1LabelSelector | None = None, value: int = 1
) -> V2MetricSpec:
    metric = V2MetricIdentifier(name=name, selector=selector)
    source = V2ObjectMetricSource(described_object=described, metric=metric, target=target(value))
    return V2MetricSpec(type="Object", object=source)


def labels(**pairs: str) -> V1LabelSelector:
    return V1LabelSelector(match_labels=pairs)


def expressions(*rows: tuple[str, str, list[str] | None]) -> V1LabelSelector:
    return V1LabelSelector(
        match_expressions=[V1LabelSelectorRequirement(key=key, operator=op, values=values) for key, op, values in rows]
    )


def spec_of(*metrics: V2MetricSpec) -> V2HorizontalPodAutoscalerSpec:
    return V2HorizontalPodAutoscalerSpec(
        scale_target_ref=reference("backend", "Deployment", "apps/v1"),
        max_replicas=5,
        metrics=list(metrics) or None,
    )


ONE_OF_EACH_TYPE = [
    pytest.param(lambda value: resource("cpu", value), id="Resource"),
    pytest.param(lambda value: container_resource("cpu", "app", value), id="ContainerResource"),
    pytest.param(lambda value: pods("rps", labels(a="b"), value), id="Pods"),
    pytest.param(lambda value: external("depth", labels(a="b"), value), id="External"),
    pytest.param(lambda value: on_object("rps", reference("web"), labels(a="b"), value), id="Object"),
]


class TestFields:
    def test_scale_target_ref_is_replaced_in_all_three_parts(self) -> None:
        spec = spec_of()

        HPASpecEditor(spec).set_scale_target_ref(reference("db", "StatefulSet", None))

        assert write_model(spec)["scaleTargetRef"] == {"kind": "StatefulSet", "name": "db"}

    def test_min_replicas_none_unsets_the_field(self) -> None:
        spec = spec_of()
        editor = HPASpecEditor(spec)

        editor.set_min_replicas(2)
        editor.set_min_replicas(None)

        assert "minReplicas" not in write_model(spec)

    def test_min_replicas_zero_is_a_value(self) -> None:
        spec = spec_of()

        HPASpecEditor(spec).set_min_replicas(0)

        assert write_model(spec)["minReplicas"] == 0

    @pytest.mark.parametrize("replicas", [-1, 0, 7, 2**40])
    def test_max_replicas_has_no_bounds_here(self, replicas: int) -> None:
        spec = spec_of()

        HPASpecEditor(spec).set_max_replicas(replicas)

        assert spec.max_replicas == replicas

    def test_behavior_is_replaced_not_merged(self) -> None:
        """A new behavior with only scaleUp removes the previous scaleDown."""
        spec = spec_of()
        editor = HPASpecEditor(spec)

        editor.set_behavior(V2HorizontalPodAutoscalerBehavior(scale_down=V2HPAScalingRules(select_policy="Min")))
        editor.set_behavior(V2HorizontalPodAutoscalerBehavior(scale_up=V2HPAScalingRules(select_policy="Max")))

        assert write_model(spec)["behavior"] == {"scaleUp": {"selectPolicy": "Max"}}

    def test_behavior_none_removes_it(self) -> None:
        spec = spec_of()
        editor = HPASpecEditor(spec)

        editor.set_behavior(V2HorizontalPodAutoscalerBehavior())
        editor.set_behavior(None)

        assert "behavior" not in write_model(spec)

    @pytest.mark.parametrize(
        ("method", "changed", "kept"),
        [
            pytest.param("set_scale_up", "scaleUp", "scaleDown", id="up"),
            pytest.param("set_scale_down", "scaleDown", "scaleUp", id="down"),
        ],
    )
    def test_the_rules_of_one_direction_are_replaced(self, method: str, changed: str, kept: str) -> None:
        """Those of the other direction stay, and the rules are a copy."""
        spec = spec_of()
        both = {"scaleUp": {"selectPolicy": "Min"}, "scaleDown": {"stabilizationWindowSeconds": 9}}
        HPASpecEditor(spec).set_behavior(V2HorizontalPodAutoscalerBehavior.model_validate(both))
        rules = scaling.disabled()

        getattr(HPASpecEditor(spec), method)(rules)
        rules.select_policy = "Max"

        assert write_model(spec)["behavior"] == {changed: {"selectPolicy": "Disabled"}, kept: both[kept]}

    @pytest.mark.parametrize("method", ["set_scale_up", "set_scale_down"])
    def test_the_rules_of_a_direction_need_no_behavior(self, method: str) -> None:
        spec = spec_of()

        getattr(HPASpecEditor(spec), method)(scaling.disabled())

        assert list(write_model(spec)["behavior"].values()) == [{"selectPolicy": "Disabled"}]

    def test_raw_is_the_live_spec(self) -> None:
        spec = spec_of()

        assert HPASpecEditor(spec).raw is spec

    @pytest.mark.parametrize(
        "edit",
        [
            pytest.param(lambda e: e.set_scale_target_ref(None), id="scaleTargetRef None"),
            pytest.param(lambda e: e.set_scale_target_ref({"kind": "Deployment", "name": "a"}), id="a mapping"),
            pytest.param(lambda e: e.set_behavior(V2HPAScalingRules()), id="rules instead of behavior"),
            pytest.param(lambda e: e.set_scale_up(V2HorizontalPodAutoscalerBehavior()), id="behavior instead of rules"),
            pytest.param(lambda e: e.set_scale_down({"selectPolicy": "Disabled"}), id="a mapping of rules"),
            pytest.param(lambda e: e.ensure_metric(None), id="metric None"),
            pytest.param(lambda e: e.ensure_metric(resource("cpu").resource), id="source instead of metric"),
        ],
    )
    def test_another_model_is_rejected(self, edit: Callable[[HPASpecEditor], None]) -> None:
        """A value that is not a model of the field's class is never stored."""
        spec = spec_of(resource("cpu"))
        before = write_model(spec)

        with pytest.raises(ConfigError, match=r"must be a kubernetes\.client\.V2"):
            edit(HPASpecEditor(spec))

        assert before == write_model(spec)

    @pytest.mark.parametrize("replicas", [None, "3", 3.0, True])
    def test_max_replicas_is_a_whole_number(self, replicas: int) -> None:
        """The model rejects everything but an integer, including None: the field is required."""
        with pytest.raises(ValidationError):
            HPASpecEditor(spec_of()).set_max_replicas(replicas)


class TestEnsureMetric:
    def test_makes_the_list_where_it_is_absent(self) -> None:
        spec = spec_of()

        HPASpecEditor(spec).ensure_metric(resource("cpu"))

        assert [resource("cpu")] == spec.metrics

    def test_replaces_whole_and_in_place(self) -> None:
        """Position and length are kept; the previous target is not merged."""
        spec = spec_of(resource("memory"), resource("cpu", 80), pods("rps"))
        new = V2MetricSpec(
            type="Resource",
            resource=V2ResourceMetricSource(
                name="cpu", target=V2MetricTarget(type="Utilization", average_utilization=70)
            ),
        )

        HPASpecEditor(spec).ensure_metric(new)

        assert [resource("memory"), new, pods("rps")] == spec.metrics

    @pytest.mark.parametrize("make", ONE_OF_EACH_TYPE)
    def test_the_target_never_makes_another_metric(self, make: Callable[[int], V2MetricSpec]) -> None:
        spec = spec_of(make(1))

        HPASpecEditor(spec).ensure_metric(make(2))

        assert [make(2)] == spec.metrics

    @pytest.mark.parametrize(
        ("present", "new"),
        [
            pytest.param(
                container_resource("cpu", "app"),
                container_resource("cpu", "app", 9),
                id="ContainerResource: name and container equal",
            ),
            pytest.param(pods("rps"), pods("rps", value=9), id="Pods: both without selector"),
            pytest.param(
                pods("rps", V1LabelSelector()), pods("rps", V1LabelSelector(), 9), id="Pods: two empty selectors"
            ),
            pytest.param(
                external("depth", labels(a="1", b="2")),
                external("depth", labels(b="2", a="1"), 9),
                id="External: labels in another order",
            ),
            pytest.param(
                external("depth", expressions(("a", "In", ["x", "y"]), ("b", "Exists", None))),
                external("depth", expressions(("b", "Exists", None), ("a", "In", ["y", "x"])), 9),
                id="External: expressions and their values in another order",
            ),
            pytest.param(
                external("depth", expressions(("a", "Exists", None))),
                external(
                    "depth",
                    V1LabelSelector(
                        match_labels={}, match_expressions=[V1LabelSelectorRequirement(key="a", operator="Exists")]
                    ),
                    9,
                ),
                id="External: no labels and an empty map of labels",
            ),
            pytest.param(
                on_object("rps", reference("web"), labels(a="b")),
                on_object("rps", reference("web"), labels(a="b"), 9),
                id="Object: all equal but the target",
            ),
            pytest.param(
                on_object("rps", reference("web", api_version=None)),
                on_object("rps", reference("web", api_version=""), value=9),
                id="Object: apiVersion absent and empty",
            ),
            pytest.param(resource(""), resource("", 9), id="two empty names"),
        ],
    )
    def test_same_metric_is_replaced(self, present: V2MetricSpec, new: V2MetricSpec) -> None:
        spec = spec_of(present)

        HPASpecEditor(spec).ensure_metric(new)

        assert [new] == spec.metrics

    @pytest.mark.parametrize(
        ("present", "new"),
        [
            pytest.param(resource("cpu"), resource("memory"), id="Resource: other name"),
            pytest.param(resource("cpu"), resource("CPU"), id="Resource: other case"),
            pytest.param(
                resource("cpu"), container_resource("cpu", "app"), id="Resource and ContainerResource coexist"
            ),
            pytest.param(
                container_resource("cpu", "app"),
                container_resource("cpu", "sidecar"),
                id="ContainerResource: other container",
            ),
            pytest.param(pods("rps"), pods("rps", V1LabelSelector()), id="Pods: no selector and the empty one"),
            pytest.param(pods("rps"), external("rps"), id="Pods and External of one name"),
            pytest.param(
                external("depth", labels(a="1")), external("depth", labels(a="2")), id="External: other label value"
            ),
            pytest.param(
                external("depth", expressions(("a", "In", ["x"]))),
                external("depth", expressions(("a", "In", ["x"]), ("a", "In", ["x"]))),
                id="External: one expression twice",
            ),
            pytest.param(
                external("depth", expressions(("a", "In", ["x"]))),
                external("depth", expressions(("a", "NotIn", ["x"]))),
                id="External: other operator",
            ),
            pytest.param(
                external("depth", expressions(("a", "Exists", None))),
                external("depth", expressions(("b", "Exists", None))),
                id="External: other key",
            ),
            pytest.param(
                external("depth", labels(a="b")),
                external("depth", expressions(("a", "In", ["b"]))),
                id="External: label and the expression that means it",
            ),
            pytest.param(
                on_object("rps", reference("web")), on_object("rps", reference("api")), id="Object: other object name"
            ),
            pytest.param(
                on_object("rps", reference("web")),
                on_object("rps", reference("web", "Ingress")),
                id="Object: other object kind",
            ),
            pytest.param(
                on_object("rps", reference("web")),
                on_object("rps", reference("web", api_version="v2")),
                id="Object: other apiVersion",
            ),
            pytest.param(
                on_object("rps", reference("web")),
                on_object("rps", reference("web", api_version=None)),
                id="Object: no apiVersion",
            ),
            pytest.param(
                on_object("rps", reference("web")), on_object("errors", reference("web")), id="Object: other metric"
            ),
            pytest.param(
                on_object("rps", reference("web")),
                on_object("rps", reference("web"), labels(a="b")),
                id="Object: other selector",
            ),
        ],
    )
    def test_another_metric_is_appended(self, present: V2MetricSpec, new: V2MetricSpec) -> None:
        spec = spec_of(present)

        HPASpecEditor(spec).ensure_metric(new)

        assert [present, new] == spec.metrics

    def test_of_two_equal_ones_in_the_base_only_the_first_is_replaced(self) -> None:
        spec = spec_of(resource("cpu", 1), resource("memory"), resource("cpu", 2))

        HPASpecEditor(spec).ensure_metric(resource("cpu", 3))

        assert [resource("cpu", 3), resource("memory"), resource("cpu", 2)] == spec.metrics

    @pytest.mark.parametrize(
        ("metric", "message"),
        [
            pytest.param(
                V2MetricSpec(type="Pods", resource=resource("cpu").resource),
                'of type "Pods" must have the source "pods" and no other, has "resource"',
                id="source of another type",
            ),
            pytest.param(
                V2MetricSpec(type="ContainerResource"),
                'of type "ContainerResource" must have the source "containerResource" and no other, has none',
                id="no source",
            ),
            pytest.param(
                V2MetricSpec(type="Pods", pods=pods("rps").pods, resource=resource("cpu").resource),
                'of type "Pods" must have the source "pods" and no other, has "pods" and "resource"',
                id="two sources",
            ),
            pytest.param(
                V2MetricSpec(type="resource", resource=resource("cpu").resource),
                'type "resource" is unknown, must be one of ContainerResource, External, Object, Pods, Resource',
                id="unknown type",
            ),
        ],
    )
    def test_a_metric_without_an_identity_is_rejected(self, metric: V2MetricSpec, message: str) -> None:
        """Type and source must match, or every call would append the metric again."""
        spec = spec_of(resource("cpu"))

        with pytest.raises(ConfigError) as caught:
            HPASpecEditor(spec).ensure_metric(metric)

        assert message in str(caught.value)
        assert [resource("cpu")] == spec.metrics

    def test_malformed_entries_never_match(self) -> None:
        """Entries without their source, of unknown type, or of no type at all stay where they are."""
        malformed = [
            V2MetricSpec(type="Resource"),
            V2MetricSpec(type="Foo"),
            V2MetricSpec(type="Foo", resource=resource("cpu").resource),
            42,
            {"type": "Resource", "resource": {"name": "cpu"}},
        ]
        spec = spec_of(resource("memory"))
        assert spec.metrics is not None
        spec.metrics[:0] = malformed  # type: ignore[assignment]  # what raw does not prevent

        HPASpecEditor(spec).ensure_metric(resource("cpu"))

        assert [*malformed, resource("memory"), resource("cpu")] == spec.metrics

    def test_an_unreadable_selector_never_matches(self) -> None:
        """It is neither the selector it would be without the garbage in it, nor no selector; only its name is known."""
        broken = pods("rps", expressions(("a", "Exists", None)))
        assert broken.pods is not None
        assert broken.pods.metric.selector is not None
        assert broken.pods.metric.selector.match_expressions is not None
        broken.pods.metric.selector.match_expressions.append(42)  # type: ignore[arg-type]  # what raw does not prevent
        spec = spec_of(broken)
        editor = HPASpecEditor(spec)

        editor.ensure_metric(pods("rps", expressions(("a", "Exists", None))))
        editor.ensure_metric(pods("rps"))
        editor.remove_metric("Pods", "rps", selector=None)

        assert [broken, pods("rps", expressions(("a", "Exists", None)))] == spec.metrics
        with pytest.raises(ManifestError):
            editor.ensure_metric(broken)
        with pytest.raises(ManifestError):
            editor.remove_metric("Pods", "rps", selector=broken.pods.metric.selector)

        editor.remove_metric("Pods", "rps")

        assert spec.metrics is None

    def test_extra_sources_in_the_base_do_not_hide_a_metric(self) -> None:
        """The type determines the source; replacing the entry fixes it."""
        crowded = V2MetricSpec(type="Resource", resource=resource("cpu").resource, pods=pods("rps").pods)
        spec = spec_of(crowded)

        HPASpecEditor(spec).ensure_metric(resource("cpu", 2))

        assert [resource("cpu", 2)] == spec.metrics


class TestRemoveMetric:
    def test_keeps_the_others_in_their_order(self) -> None:
        spec = spec_of(resource("memory"), resource("cpu"), pods("rps"), external("depth"))

        HPASpecEditor(spec).remove_metric("Resource", "cpu")

        assert [resource("memory"), pods("rps"), external("depth")] == spec.metrics

    @pytest.mark.parametrize("present", [(), (resource("memory"),)], ids=["absent list", "other metric"])
    def test_without_a_match_nothing_changes(self, present: tuple[V2MetricSpec, ...]) -> None:
        spec = spec_of(*present)

        HPASpecEditor(spec).remove_metric("Resource", "cpu")

        assert spec == spec_of(*present)

    @pytest.mark.parametrize(
        ("kind", "name", "variants"),
        [
            pytest.param("External", "m", [external("m"), external("m", labels(a="b"))], id="External: every selector"),
            pytest.param("Pods", "m", [pods("m"), pods("m", V1LabelSelector())], id="Pods: every selector"),
            pytest.param(
                "Object",
                "m",
                [on_object("m", reference("web")), on_object("m", reference("api"), labels(a="b"))],
                id="Object: every described object",
            ),
            pytest.param(
                "ContainerResource",
                "m",
                [container_resource("m", "app"), container_resource("m", "sidecar")],
                id="ContainerResource: every container",
            ),
            pytest.param("Resource", "m", [resource("m"), resource("m", 2)], id="Resource: duplicates"),
        ],
    )
    def test_removes_every_variant_and_no_other_type(self, kind: Any, name: str, variants: list[V2MetricSpec]) -> None:
        everything = [
            resource("m"),
            container_resource("m", "app"),
            pods("m"),
            external("m"),
            on_object("m", reference("web")),
        ]
        others = [metric for metric in everything if metric.type != kind]
        spec = spec_of(variants[0], *others, *variants[1:])

        HPASpecEditor(spec).remove_metric(kind, name)

        assert others == spec.metrics

    def test_the_empty_name_finds_entries_without_name_or_source(self) -> None:
        spec = spec_of(V2MetricSpec(type="Resource"), resource("cpu"), resource(""), V2MetricSpec(type="Pods"))

        HPASpecEditor(spec).remove_metric("Resource", "")

        assert [resource("cpu"), V2MetricSpec(type="Pods")] == spec.metrics

    @pytest.mark.parametrize(
        ("kind", "hint"),
        [
            pytest.param("resource", '; did you mean "Resource"?', id="in lower case"),
            pytest.param("Pod", '; did you mean "Pods"?', id="singular"),
            pytest.param("containerresource", '; did you mean "ContainerResource"?', id="two words"),
            pytest.param("", "", id="empty"),
            pytest.param("Foo", "", id="nothing like it"),
        ],
    )
    @pytest.mark.parametrize("name", ["cpu", ""])
    def test_an_unknown_type_is_rejected_with_the_nearest(self, kind: Any, hint: str, name: str) -> None:
        spec = spec_of(resource("cpu"), V2MetricSpec(type="Foo"))

        with pytest.raises(ConfigError) as caught:
            HPASpecEditor(spec).remove_metric(kind, name)

        allowed = "ContainerResource, External, Object, Pods, Resource"
        assert str(caught.value) == f'metrics: type "{kind}" is unknown, must be one of {allowed}{hint}'
        assert spec.metrics == [resource("cpu"), V2MetricSpec(type="Foo")]

    def test_an_entry_that_is_not_a_metric_is_not_changed(self) -> None:
        spec = spec_of(resource("cpu"))
        assert spec.metrics is not None
        spec.metrics.append(42)  # type: ignore[arg-type]  # what raw does not prevent

        HPASpecEditor(spec).remove_metric("Resource", "cpu")

        assert spec.metrics == [42]

    def test_removing_the_last_one_leaves_no_list(self) -> None:
        spec = spec_of(resource("cpu"))

        HPASpecEditor(spec).remove_metric("Resource", "cpu")

        assert "metrics" not in write_model(spec)

    def test_an_empty_list_written_by_the_user_stays(self) -> None:
        spec = spec_of()
        editor = HPASpecEditor(spec)

        editor.raw.metrics = []
        editor.remove_metric("Resource", "cpu")

        assert write_model(spec)["metrics"] == []

    @pytest.mark.parametrize(
        ("selector", "kept"),
        [
            pytest.param(None, [1, 2], id="without selector"),
            pytest.param(V1LabelSelector(), [0, 2], id="the empty selector"),
            pytest.param(labels(b="2", a="1"), [0, 1], id="a selector, by meaning"),
            pytest.param(labels(a="1"), [0, 1, 2], id="a selector that none has"),
            pytest.param(ANY, [], id="any selector"),
        ],
    )
    def test_selector_filter(self, selector: V1LabelSelector | AnyValue | None, kept: list[int]) -> None:
        variants = [pods("m"), pods("m", V1LabelSelector()), pods("m", labels(a="1", b="2"))]
        spec = spec_of(*variants, resource("cpu"))

        HPASpecEditor(spec).remove_metric("Pods", "m", selector=selector)

        assert [variants[place] for place in kept] + [resource("cpu")] == spec.metrics

    def test_container_filter(self) -> None:
        spec = spec_of(container_resource("cpu", "app"), container_resource("cpu", "sidecar"))

        HPASpecEditor(spec).remove_metric("ContainerResource", "cpu", container="app")

        assert [container_resource("cpu", "sidecar")] == spec.metrics

    def test_described_object_filter_and_selector_filter_together(self) -> None:
        kept = [on_object("m", reference("web"), labels(a="b")), on_object("m", reference("api"))]
        spec = spec_of(on_object("m", reference("web")), *kept)

        HPASpecEditor(spec).remove_metric("Object", "m", described_object=reference("web"), selector=None)

        assert kept == spec.metrics

    def test_a_filter_never_finds_an_entry_without_its_source(self) -> None:
        spec = spec_of(V2MetricSpec(type="Pods"))

        HPASpecEditor(spec).remove_metric("Pods", "", selector=None)

        assert [V2MetricSpec(type="Pods")] == spec.metrics

    @pytest.mark.parametrize(
        ("edit", "message"),
        [
            pytest.param(
                lambda e: e.remove_metric("Resource", "cpu", selector=None),
                'selector: a metric of type "Resource" has none',
                id="selector of a resource",
            ),
            pytest.param(
                lambda e: e.remove_metric("Resource", "cpu", container="app"),
                "metrics of type ContainerResource have one",
                id="container of a resource",
            ),
            pytest.param(
                lambda e: e.remove_metric("Pods", "m", described_object=reference("web")),
                "metrics of type Object have one",
                id="described object of pods",
            ),
            pytest.param(
                lambda e: e.remove_metric("Pods", "m", selector={"matchLabels": {}}),
                "selector: must be a kubernetes.client.V1LabelSelector, not of type dict",
                id="selector as a mapping",
            ),
            pytest.param(
                lambda e: e.remove_metric("Object", "m", described_object=None),
                "described_object: must be a kubernetes.client.V2CrossVersionObjectReference",
                id="no described object",
            ),
            pytest.param(
                lambda e: e.remove_metric("ContainerResource", "m", container=None),
                "container: must be a text",
                id="no container",
            ),
            pytest.param(lambda e: e.remove_metric("Resource", None), "name: must be a text", id="no name"),
            pytest.param(lambda e: e.remove_metric(None, "cpu"), "type: must be a text", id="no type"),
        ],
    )
    def test_an_inapplicable_filter_is_rejected(self, edit: Callable[[HPASpecEditor], None], message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            edit(HPASpecEditor(spec_of(resource("cpu"))))

        assert message in str(caught.value)

    def test_the_marker_prints_as_its_name(self) -> None:
        """Signatures in the documentation read `selector=ANY`."""
        assert repr(ANY) == "ANY"
        assert isinstance(ANY, AnyValue)


class TestRawAndCopies:
    def test_raw_edits_are_seen_by_later_edits_and_in_the_result(self) -> None:
        spec = spec_of()
        editor = HPASpecEditor(spec)

        editor.raw.metrics = [resource("cpu"), resource("memory")]
        editor.raw.min_replicas = 1
        editor.ensure_metric(resource("cpu", 2))

        assert [resource("cpu", 2), resource("memory")] == spec.metrics
        assert spec.min_replicas == 1

    def test_edits_reach_a_list_taken_from_raw(self) -> None:
        """Lists are changed in place, as far as they stay."""
        editor = HPASpecEditor(spec_of(resource("cpu")))
        held = editor.raw.metrics

        editor.ensure_metric(resource("memory"))

        assert held is editor.raw.metrics
        assert held == [resource("cpu"), resource("memory")]

    def test_the_callers_objects_are_copied(self) -> None:
        """Neither does a later edit show in what was given, nor a change of what was given in the spec."""
        spec = spec_of()
        editor = HPASpecEditor(spec)
        behavior = V2HorizontalPodAutoscalerBehavior(scale_down=V2HPAScalingRules(select_policy="Min"))
        metric = resource("cpu")
        ref = reference("db")
        given_before = [copy_model(behavior), copy_model(metric), copy_model(ref)]

        editor.set_behavior(behavior)
        editor.ensure_metric(metric)
        editor.set_scale_target_ref(ref)
        stored = copy_model(spec)
        assert spec.metrics is not None
        assert spec.metrics[0].resource is not None
        assert spec.behavior is not None
        assert spec.behavior.scale_down is not None
        spec.metrics[0].resource.target.average_value = "9"
        spec.behavior.scale_down.select_policy = "Max"
        spec.scale_target_ref.name = "other"

        assert given_before == [behavior, metric, ref]

        HPASpecEditor(other := spec_of()).ensure_metric(metric)
        HPASpecEditor(other).set_behavior(behavior)
        HPASpecEditor(other).set_scale_target_ref(ref)
        assert metric.resource is not None
        metric.resource.name = "changed"
        ref.name = "changed"
        behavior.scale_down = None

        assert stored == other


METRICS = st.builds(
    lambda make, value: make(value),
    st.sampled_from(
        [
            *(lambda value, name=name: resource(name, value) for name in ("cpu", "memory")),
            *(lambda value, name=name: container_resource("cpu", name, value) for name in ("app", "sidecar")),
            *(
                lambda value, kind=kind, selector=selector: kind("m", selector, value)
                for kind in (pods, external)
                for selector in (None, V1LabelSelector(), labels(a="b"))
            ),
            *(lambda value, name=name: on_object("m", reference(name), None, value) for name in ("web", "api")),
        ]
    ),
    st.integers(1, 3),
)


class TestLaws:
    @given(present=st.lists(METRICS, max_size=6), metric=METRICS)
    def test_ensuring_twice_is_ensuring_once(self, present: list[V2MetricSpec], metric: V2MetricSpec) -> None:
        spec = spec_of(*present)
        editor = HPASpecEditor(spec)

        editor.ensure_metric(metric)
        once = write_model(spec)
        editor.ensure_metric(metric)

        assert once == write_model(spec)

    @given(present=st.lists(METRICS, max_size=6), metric=METRICS)
    def test_removing_what_was_ensured_restores_the_others(
        self, present: list[V2MetricSpec], metric: V2MetricSpec
    ) -> None:
        kind: Any = metric.type
        name = write_model(metric)[metric.type[0].lower() + metric.type[1:]]
        name = name["metric"]["name"] if "metric" in name else name["name"]
        spec = spec_of(*present)
        editor = HPASpecEditor(spec)
        editor.remove_metric(kind, name)
        without = write_model(spec)

        editor.ensure_metric(metric)
        editor.remove_metric(kind, name)

        assert without == write_model(spec)
