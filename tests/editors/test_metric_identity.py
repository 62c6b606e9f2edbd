"""Selectors in the identity of a metric; the other rules are tested with the editor of the HPA spec."""

import pytest
from kubernetes.client import (
    V1LabelSelector,
    V1LabelSelectorRequirement,
    V2CrossVersionObjectReference,
    V2ExternalMetricSource,
    V2MetricIdentifier,
    V2MetricSpec,
    V2MetricTarget,
    V2ObjectMetricSource,
    V2PodsMetricSource,
)

from ocf.editors.metric_identity import metric_identity

TARGET = V2MetricTarget(type="Value", value="1")


def with_selector(kind: str, selector: V1LabelSelector | None) -> V2MetricSpec:
    identifier = V2MetricIdentifier(name="m", selector=selector)
    if kind == "Pods":
        return V2MetricSpec(type=kind, pods=V2PodsMetricSource(metric=identifier, target=TARGET))
    if kind == "External":
        return V2MetricSpec(type=kind, external=V2ExternalMetricSource(metric=identifier, target=TARGET))
    described = V2CrossVersionObjectReference(kind="Service", name="web")
    source = V2ObjectMetricSource(described_object=described, metric=identifier, target=TARGET)
    return V2MetricSpec(type=kind, object=source)


def selector(labels: dict[str, str] | None = None, *expressions: tuple[str, str, list[str] | None]) -> V1LabelSelector:
    rows = [V1LabelSelectorRequirement(key=key, operator=op, values=values) for key, op, values in expressions]
    return V1LabelSelector(match_labels=labels, match_expressions=rows or None)


SELECTORS = [
    pytest.param(None, None, True, id="absent and absent"),
    pytest.param(None, selector(), False, id="absent and empty"),
    pytest.param(selector(), selector(), True, id="empty and empty"),
    pytest.param(selector({"a": "1", "b": "2"}), selector({"b": "2", "a": "1"}), True, id="labels in another order"),
    pytest.param(selector(None), selector({}), True, id="labels absent and empty"),
    pytest.param(selector(None), V1LabelSelector(match_expressions=[]), True, id="expressions absent and empty"),
    pytest.param(selector({"a": "1"}), selector({"a": "2"}), False, id="another label value"),
    pytest.param(selector({"a": "1"}), selector({"a": "1", "b": "2"}), False, id="one label more"),
    pytest.param(
        selector(None, ("a", "Exists", None), ("b", "In", ["x"])),
        selector(None, ("b", "In", ["x"]), ("a", "Exists", None)),
        True,
        id="expressions in another order",
    ),
    pytest.param(
        selector(None, ("a", "In", ["x", "y"])), selector(None, ("a", "In", ["y", "x"])), True, id="values reordered"
    ),
    pytest.param(
        selector(None, ("a", "Exists", None)),
        selector(None, ("a", "Exists", None), ("a", "Exists", None)),
        False,
        id="one expression twice",
    ),
    pytest.param(
        selector(None, ("a", "Exists", None)), selector(None, ("a", "Exists", [])), True, id="values absent and empty"
    ),
    pytest.param(
        selector(None, ("a", "In", ["x"])), selector(None, ("a", "In", ["x", "x"])), False, id="one value twice"
    ),
    pytest.param(selector(None, ("a", "Exists", None)), selector(None, ("b", "Exists", None)), False, id="another key"),
    pytest.param(
        selector(None, ("a", "In", ["x"])), selector(None, ("a", "NotIn", ["x"])), False, id="another operator"
    ),
    pytest.param(selector({"a": "b"}), selector(None, ("a", "In", ["b"])), False, id="label and equivalent expression"),
    pytest.param(
        selector(None, ("a", "In", [])), selector(None, ("a", "In", [""])), False, id="no value and the empty value"
    ),
    pytest.param(
        selector(None, ("a", "In", ["x\0y"])),
        selector(None, ("a", "In", ["x", "y"])),
        False,
        id="a separator inside a value",
    ),
]


@pytest.mark.parametrize("kind", ["Pods", "External", "Object"])
@pytest.mark.parametrize(("one", "other", "same"), SELECTORS)
def test_selectors_are_compared_by_meaning(
    kind: str,
    one: V1LabelSelector | None,
    other: V1LabelSelector | None,
    same: bool,
) -> None:
    """Order never counts, repetition does, and logical equivalence is not looked for; both ways round."""
    first, second = metric_identity(with_selector(kind, one)), metric_identity(with_selector(kind, other))

    assert (first == second) is same
    assert (second == first) is same
    assert not same or hash(first) == hash(second)
