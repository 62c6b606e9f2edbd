"""From structural schemas to models: names, types, limits, and what a model does not check."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from ocf.objects import write_model
from tests.scaffold.foreign_kind.execution import compiled

Json = dict[str, Any]

TEXT: Json = {"type": "string"}


def with_spec(**properties: Json) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def model_of(**properties: Json) -> type[BaseModel]:
    return compiled("Cache", with_spec(**properties))


@pytest.mark.parametrize(
    ("schema", "accepted", "rejected"),
    [
        pytest.param(TEXT, ["", "a"], [1], id="string"),
        pytest.param({"type": "integer"}, [1, 0], ["1", True, 1.5], id="integer"),
        pytest.param({"type": "number"}, [1, 0.5], ["1"], id="number"),
        pytest.param({"type": "boolean"}, [True], ["yes", 1], id="boolean"),
        pytest.param({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3], [0, 4], id="bounds"),
        pytest.param({"type": "number", "minimum": 0, "exclusiveMinimum": True}, [0.1], [0], id="exclusive bound"),
        pytest.param({"type": "integer", "multipleOf": 5}, [10], [11], id="multiple"),
        pytest.param({**TEXT, "minLength": 1, "maxLength": 2}, ["a", "ab"], ["", "abc"], id="length"),
        pytest.param({**TEXT, "pattern": "^[a-z]+$"}, ["a"], ["A"], id="pattern"),
        pytest.param({**TEXT, "pattern": "^(?i)a$"}, ["A"], ["b"], id="pattern with a flag of Go"),
        pytest.param({**TEXT, "allOf": [{"pattern": "^a"}, {"maxLength": 2}]}, ["ab"], ["b", "abc"], id="all of"),
        pytest.param({**TEXT, "enum": ["a", "b"]}, ["a"], ["c"], id="enumeration"),
        pytest.param({"type": "integer", "enum": [1, 2]}, [1], [3, "1"], id="enumeration of numbers"),
        pytest.param({**TEXT, "format": "date-time"}, ["2026-01-31T12:00:00.5+01:00"], ["now"], id="time"),
        pytest.param({"x-kubernetes-int-or-string": True}, [1, "1", "50%"], [0.5, []], id="int or string"),
        pytest.param(
            {"x-kubernetes-int-or-string": True, "pattern": "^([0-9]+)([KMGTPE]i)?$"}, [1, "1Gi"], ["x"], id="quantity"
        ),
        pytest.param({"type": "array", "items": TEXT}, [[], ["a"]], [[1], "a"], id="list"),
        pytest.param(
            {"type": "array", "items": TEXT, "maxItems": 1, "minItems": 1}, [["a"]], [[], ["a", "b"]], id="items"
        ),
        pytest.param({"type": "array", "items": {**TEXT, "maxLength": 1}}, [["a"]], [["ab"]], id="limit of items"),
        pytest.param(
            {"type": "array", "items": {**TEXT, "nullable": True}}, [["a", None]], [[1]], id="null as an item"
        ),
        pytest.param({"type": "object", "additionalProperties": TEXT}, [{"a": "b"}], [{"a": 1}], id="map"),
        pytest.param({"type": "object", "additionalProperties": True}, [{"a": [1]}], [1], id="map of anything"),
        pytest.param(
            {"type": "object", "additionalProperties": TEXT, "maxProperties": 1},
            [{}],
            [{"a": "", "b": ""}],
            id="entries",
        ),
        pytest.param(
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [{"a": None}], [1], id="any object"
        ),
        pytest.param({"x-kubernetes-preserve-unknown-fields": True}, [1, "a", [None], {"a": {}}], [], id="anything"),
        pytest.param(
            {"type": "object", "x-kubernetes-embedded-resource": True},
            [{"kind": "Pod", "spec": {}}],
            [1],
            id="resource",
        ),
        pytest.param(
            {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, [{"a": "b"}], [{}, {"a": 1}], id="object"
        ),
    ],
)
def test_a_field_accepts_what_the_api_server_accepts(schema: Json, accepted: list[Any], rejected: list[Any]) -> None:
    model = model_of(field=schema)

    for value in accepted:
        manifest = {"spec": {"field": value}}
        assert write_model(model.model_validate(manifest)) == manifest
    for value in rejected:
        with pytest.raises(ValidationError):
            model.model_validate({"spec": {"field": value}})


@pytest.mark.parametrize(
    "name",
    [
        *("class", "from", "isCA", "$ref", "_private", "model_config", "schema", "json", "copy", "3scale", "podIPs"),
        *("int", "str", "list", "dict", "x.y", "a-b", "HTTPGet", "l", "nullableFields", "modelDumpJson", "snake_case"),
        *("Any", "Field", "ApiModel"),
    ],
)
def test_any_name_of_a_field_is_kept(name: str) -> None:
    manifest = {"spec": {name: [{name: "a"}]}}
    items = {"type": "array", "items": {"type": "object", "properties": {name: TEXT}}}

    assert write_model(model_of(**{name: items}).model_validate(manifest)) == manifest


@pytest.mark.parametrize("name", ["bool", "dict", "float", "frozenset", "int", "list", "str"])
def test_a_field_named_as_a_type_that_annotations_use_hides_it_from_no_other_field(name: str) -> None:
    others: dict[str, Json] = {
        "amount": {"type": "number"},
        "on": {"type": "boolean"},
        "at": {"type": "array", "items": TEXT},
    }
    nullable: dict[str, Json] = {
        "note": {**TEXT, "nullable": True},
        "labels": {"type": "object", "additionalProperties": TEXT},
    }
    manifest = {"spec": {name: "a", "amount": 1.5, "on": True, "at": ["b"], "note": None, "labels": {"c": "d"}}}

    model = model_of(**{name: TEXT}, **others, **nullable, count={"type": "integer"})

    assert write_model(model.model_validate(manifest)) == manifest


@pytest.mark.parametrize(
    "names",
    [
        *itertools.permutations(["fooBar", "foo_bar", "FooBar", "foo-bar"], 2),
        ("fooBar", "foo_bar", "FooBar", "foo-bar"),
    ],
    ids=",".join,
)
def test_fields_whose_names_differ_in_spelling_only_are_kept(names: tuple[str, ...]) -> None:
    manifest = {"spec": {name: f"value of {name}" for name in names}}

    assert write_model(model_of(**dict.fromkeys(names, TEXT)).model_validate(manifest)) == manifest


def test_a_required_field_with_a_default_may_be_absent() -> None:
    spec = {"type": "object", "required": ["a"], "properties": {"a": {**TEXT, "default": "x"}}}

    model = compiled("Cache", {"type": "object", "properties": {"spec": spec}})

    assert write_model(model.model_validate({"spec": {}})) == {"spec": {}}


def test_null_is_kept_where_it_is_a_value() -> None:
    manifest = {"spec": {"a": None, "b": {"c": None}}}
    nullable = {**TEXT, "nullable": True}
    inner = {"type": "object", "properties": {"c": nullable}}

    assert write_model(model_of(a=nullable, b=inner, d=TEXT).model_validate(manifest)) == manifest


def test_the_status_may_have_more_than_its_schema_says() -> None:
    phase = {**TEXT, "enum": ["Up"], "maxLength": 2}
    count = {"type": "integer", "minimum": 1}
    status = {"type": "object", "required": ["phase", "gone"], "properties": {"phase": phase, "count": count}}
    model = compiled("Cache", {"type": "object", "required": ["status"], "properties": {"status": status}})

    manifest = {"status": {"phase": "Unknown", "count": 0, "newer": [1]}}

    assert write_model(model.model_validate(manifest)) == manifest
    assert write_model(model.model_validate({})) == {}


def test_equal_schemas_share_a_class_and_others_do_not() -> None:
    reference = {"type": "object", "properties": {"name": TEXT}}
    model = model_of(
        first={**reference, "description": "One."},
        second={**reference, "description": "Another.", "nullable": True},
        third={"type": "object", "properties": {"name": {"type": "integer"}}},
    )
    fields = model.model_fields["spec"].annotation.__args__[0].model_fields  # type: ignore[union-attr]
    first, second, third = (fields[name].annotation.__args__[0].__name__ for name in ("first", "second", "third"))

    assert (first, second, third) == ("CacheFirst", "CacheFirst", "CacheThird")


def test_a_new_field_renames_no_class() -> None:
    reference = {"type": "object", "properties": {"name": TEXT}}
    before = model_of(zone=reference)
    after = model_of(area={"type": "object", "properties": {"size": TEXT}}, zone=reference)

    names = [
        model.model_fields["spec"].annotation.__args__[0].model_fields["zone"].annotation.__args__[0].__name__  # type: ignore[union-attr]
        for model in (before, after)
    ]
    assert names == ["CacheZone", "CacheZone"]
