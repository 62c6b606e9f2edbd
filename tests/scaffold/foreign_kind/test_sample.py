"""The smallest object of a kind, with which the tests of an author begin."""

from __future__ import annotations

from typing import Any, Final

import pytest

from ocf.errors import ApiError
from ocf.scaffold.foreign_kind import ForeignKind
from ocf.scaffold.foreign_kind.sample import minimal_sample
from ocf_server import EmbeddedCluster
from tests.scaffold.foreign_kind.corpus import definitions

RULES: Final = {"HelmRelease", "JobSet", "VolumeSnapshot"}
"""Kinds whose CEL rules ask for more than the schema."""
PATTERNS: Final = {"AlertmanagerConfig", "CiliumNetworkPolicy", "PrometheusRule"}
"""Kinds with patterns that the embedded API server may not be able to read."""


def sample(**spec: Any) -> Any:
    schema = {"type": "object", "properties": {"spec": {"type": "object", **spec}}}
    kind = ForeignKind(group="a.example.com", version="v1", kind="A", cluster_scoped=True, schema=schema, ready="")
    return minimal_sample(kind)["spec"]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"type": "string", "pattern": "^[A-Z]"}, "Sample", id="pattern"),
        pytest.param({"type": "string", "minLength": 20}, "sampleaaaaaaaaaaaaaa", id="least length"),
        pytest.param({"type": "string", "maxLength": 3}, "10m", id="most length"),
        pytest.param({"type": "string", "enum": ["", "b"]}, "b", id="enumeration"),
        pytest.param({"type": "integer", "minimum": 7, "multipleOf": 5}, 10, id="multiple"),
        pytest.param({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, 1, id="exclusive bound"),
        pytest.param({"type": "integer", "maximum": -3}, -3, id="negative"),
        pytest.param({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True], id="items"),
        pytest.param(
            {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
            {"sample0": 0},
            id="entries",
        ),
        pytest.param({"x-kubernetes-int-or-string": True}, 0, id="int or string"),
        pytest.param(
            {"type": "object", "x-kubernetes-embedded-resource": True},
            {"apiVersion": "v1", "kind": "ConfigMap"},
            id="resource",
        ),
    ],
)
def test_a_required_field_has_a_value(schema: dict[str, Any], value: object) -> None:
    assert sample(required=["a"], properties={"a": schema, "b": {"type": "string"}}) == {"a": value}


def test_the_first_alternative_is_taken() -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}

    assert sample(properties=properties, oneOf=[{"required": ["b"]}, {"required": ["a"]}]) == {"b": "sample"}


async def test_the_api_server_accepts_the_smallest_objects_of_real_definitions() -> None:
    rejected: set[str] = set()
    for definition, kind in definitions():
        cluster = EmbeddedCluster()
        try:
            await cluster.create(definition, field_manager="test")
            await cluster.create(minimal_sample(kind), field_manager="test", dry_run=True)
        except ApiError:
            rejected.add(kind.kind)

    assert rejected - PATTERNS == RULES
