"""The metric source types of autoscaling/v2."""

import pytest
from kubernetes.client import V2MetricSpec

from ocf.schema.builtin import struct
from ocf.schema.metric_sources import (
    METRIC_SOURCES,
    PODLESS_METRICS,
    RESOURCE_METRICS,
    TARGET_FIELDS,
    MetricSourceKind,
    source_field,
)

KINDS = [pytest.param(kind, id=kind.type) for kind in METRIC_SOURCES.values()]


@pytest.mark.parametrize("name", ["MetricSpec", "MetricStatus"])
def test_the_fields_are_those_of_the_api(name: str) -> None:
    fields = set(struct(f"autoscaling.v2.{name}").fields) - {"type"}

    assert {kind.field for kind in METRIC_SOURCES.values()} == fields


@pytest.mark.parametrize("name", ["MetricTarget", "MetricValueStatus"])
def test_the_target_fields_are_those_of_the_api(name: str) -> None:
    assert set(TARGET_FIELDS.values()) == set(struct(f"autoscaling.v2.{name}").fields) - {"type"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_attributes_are_those_of_the_client(kind: MetricSourceKind) -> None:
    assert V2MetricSpec.model_fields[kind.attribute].alias in {kind.field, None}


def test_the_types_are_sorted() -> None:
    assert list(METRIC_SOURCES) == sorted(METRIC_SOURCES)


def test_the_groups_of_types() -> None:
    assert frozenset({"Resource", "ContainerResource"}) == RESOURCE_METRICS
    assert frozenset({"Object", "External"}) == PODLESS_METRICS


@pytest.mark.parametrize("kind", KINDS)
def test_source_field(kind: MetricSourceKind) -> None:
    assert source_field(kind.type) == kind.field


def test_an_unknown_type_has_no_field() -> None:
    assert not source_field("pods")
