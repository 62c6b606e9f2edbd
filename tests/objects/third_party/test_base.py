"""Base classes and types of the models of custom resources."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field, TypeAdapter, ValidationError

from ocf.objects import write_model
from ocf.objects.third_party.base import (
    ApiModel,
    ApiObject,
    DateTime,
    IntOrString,
    NullableFields,
    Number,
    QuantityValue,
)


class Probe(NullableFields):
    nullable_fields = frozenset({"time_out"})

    time_out: int | None = None
    period: int | None = Field(default=None, alias="every")


class Cache(ApiObject):
    probe: Probe | None = None
    probes: list[Probe] | None = None


@pytest.mark.parametrize(
    ("given", "written"),
    [
        pytest.param({"timeOut": None}, {"timeOut": None}, id="null of a nullable field is a value"),
        pytest.param({"every": None}, {}, id="null of another field is unset"),
        pytest.param({}, {}, id="an unset field stays unset"),
        pytest.param({"timeOut": 3, "newer": {"a": None}}, {"timeOut": 3, "newer": {"a": None}}, id="values are kept"),
    ],
)
def test_null_is_written_where_it_is_a_value(given: dict[str, Any], written: dict[str, Any]) -> None:
    manifest = {"probe": given, "probes": [given]}

    assert write_model(Cache.model_validate(manifest)) == {"probe": written, "probes": [written]}


def test_an_assigned_null_is_written() -> None:
    probe = Probe.model_validate({"timeOut": 3})
    probe.time_out = None

    assert write_model(probe) == {"timeOut": None}


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        pytest.param(DateTime, "2026-01-31T12:00:00.123456789+01:00", id="time with nanoseconds"),
        pytest.param(IntOrString, 8080, id="port by number"),
        pytest.param(IntOrString, "http", id="port by name"),
        pytest.param(QuantityValue, "0.5", id="quantity"),
        pytest.param(QuantityValue, 2, id="quantity as a number"),
        pytest.param(Number, 1, id="integer as a number"),
        pytest.param(Number, 1.5, id="number"),
    ],
)
def test_a_value_is_kept_as_it_was_written(type_: Any, value: object) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(type_)
    found = adapter.dump_python(adapter.validate_python(value), mode="json")

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        pytest.param(DateTime, "2026-01-31", id="date"),
        pytest.param(DateTime, "2026-02-31T12:00:00Z", id="day that does not exist"),
        pytest.param(IntOrString, 0.5, id="fraction"),
        pytest.param(QuantityValue, "5 Mi", id="quantity with a space"),
        pytest.param(Number, "1", id="text as a number"),
    ],
)
def test_a_value_that_the_api_server_rejects_is_an_error(type_: Any, value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(type_).validate_python(value)


def test_unknown_fields_are_kept() -> None:
    class Part(ApiModel):
        known: str | None = None

    manifest = {"known": "a", "newer": [{"b": 1}]}

    assert write_model(Part.model_validate(manifest)) == manifest
