"""Custom resources: validation, defaults, pruning, and their subresources."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import PatchType, Subresource
from ocf.errors import BadRequestError, InvalidError, NotFoundError

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

WIDGET = "Widget.conformance.example.com"
ACCESSOR = "FieldValueInvalid .spec.size: Invalid value: 0: .spec.size accessor error"


class TestValidation:
    @pytest.mark.parametrize(
        ("spec", "reason", "field", "detail"),
        [
            pytest.param(
                "weight: 11",
                "FieldValueInvalid",
                "spec.weight",
                "Invalid value: 11: spec.weight in body should be less than or equal to 10",
                id="more than the maximum",
            ),
            pytest.param(
                "weight: -1",
                "FieldValueInvalid",
                "spec.weight",
                "Invalid value: -1: spec.weight in body should be greater than or equal to 0",
                id="less than the minimum",
            ),
            pytest.param(
                "weight: many",
                "FieldValueTypeInvalid",
                "spec.weight",
                'Invalid value: "string": spec.weight in body must be of type integer: "string"',
                id="a string in the place of a number",
            ),
            pytest.param(
                "enabled: 'true'",
                "FieldValueTypeInvalid",
                "spec.enabled",
                'Invalid value: "string": spec.enabled in body must be of type boolean: "string"',
                id="a string in the place of a boolean",
            ),
            pytest.param(
                "colour: pink",
                "FieldValueNotSupported",
                "spec.colour",
                'Unsupported value: "pink": supported values: "red", "green", "blue"',
                id="not in the enumeration",
            ),
            pytest.param(
                "title: a",
                "FieldValueInvalid",
                "spec.title",
                'Invalid value: "a": spec.title in body should be at least 2 chars long',
                id="too short",
            ),
            pytest.param(
                "title: abcdefghij",
                "FieldValueTooLong",
                "spec.title",
                "Too long: may not be more than 8 bytes",
                id="too long",
            ),
            pytest.param(
                "title: ABC",
                "FieldValueInvalid",
                "spec.title",
                "Invalid value: \"ABC\": spec.title in body should match '^[a-z]+$'",
                id="not of the pattern",
            ),
            pytest.param(
                "since: yesterday",
                "FieldValueTypeInvalid",
                "spec.since",
                'Invalid value: "yesterday": spec.since in body must be of type date-time: "yesterday"',
                id="not of the format",
            ),
            pytest.param(
                "order: [a, b, c, d]",
                "FieldValueTooMany",
                "spec.order",
                "Too many: 4: must have at most 3 items",
                id="too many items",
            ),
            pytest.param(
                "order: [1]",
                "FieldValueTypeInvalid",
                "spec.order[0]",
                'Invalid value: "integer": spec.order[0] in body must be of type string: "integer"',
                id="an item of another type",
            ),
            pytest.param("order: null", None, "", "", id="null is the same as a missing field"),
            pytest.param(
                "contact: {name: a}",
                "FieldValueRequired",
                "spec.contact.email",
                "Required value",
                id="a required field is missing",
            ),
            pytest.param(
                "port: {}",
                "FieldValueTypeInvalid",
                "spec.port",
                'Invalid value: "object": spec.port in body must be of type integer,string: "object"',
                id="neither a number nor a string",
            ),
            pytest.param(
                "labels: {a: 1}",
                "FieldValueTypeInvalid",
                "spec.labels.a",
                'Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
                id="a value of a map",
            ),
            pytest.param(
                "tags: [a, a]",
                "FieldValueDuplicate",
                "spec.tags[1]",
                'Duplicate value: "a"',
                id="a repeated member of a set",
            ),
            pytest.param(
                "parts: [{name: a}, {name: a}]",
                "FieldValueDuplicate",
                "spec.parts[1]",
                'Duplicate value: {"name":"a"}',
                id="two items with one key",
            ),
            pytest.param("note: null", None, "", "", id="null where it is allowed"),
            pytest.param("port: 80", None, "", "", id="a number where a string is also allowed"),
            pytest.param("port: http", None, "", "", id="a string where a number is also allowed"),
            pytest.param("ratio: 1", None, "", "", id="a whole number is a number"),
            pytest.param("since: '2026-01-31T12:00:00Z'", None, "", "", id="of the format"),
        ],
    )
    async def test_values_that_the_schema_does_not_allow_are_rejected(
        self, env: Env, spec: str, reason: str | None, field: str, detail: str
    ) -> None:
        if reason is None:
            await env.create("Widget", f"spec: {{{spec}}}")
            return
        with env.error(422, "Invalid", f'{WIDGET} "demo" is invalid: {field}: {detail}', f"{reason} {field}: {detail}"):
            await env.create("Widget", f"spec: {{{spec}}}")

    async def test_all_errors_are_reported(self, env: Env) -> None:
        with env.error(
            422,
            "Invalid",
            None,
            "FieldValueInvalid spec.weight: Invalid value: 11: spec.weight in body should be less than or equal to 10",
            'FieldValueNotSupported spec.colour: Unsupported value: "pink": supported values: "red", "green", "blue"',
        ):
            await env.create("Widget", "spec: {weight: 11, colour: pink}")

    async def test_a_missing_required_object_is_reported(self, env: Env) -> None:
        with env.error(
            422,
            "Invalid",
            f'{WIDGET} "demo" is invalid: spec: Required value',
            "FieldValueRequired spec: Required value",
        ):
            await env.create("Widget", "")

    @pytest.mark.parametrize("how", ["update", "merge patch", "JSON patch", "scale"])
    async def test_every_write_is_validated(self, env: Env, how: str) -> None:
        made = await env.create("Widget", "spec: {size: 2}")
        detail = "Invalid value: 11: spec.size in body should be less than or equal to 10"

        with env.error(422, "Invalid", None, f"FieldValueInvalid spec.size: {detail}"):
            match how:
                case "update":
                    await env.update({**made, "spec": {"size": 11}})
                case "merge patch":
                    await env.merge("Widget", "spec: {size: 11}")
                case "scale":
                    await env.merge("Widget", "spec: {replicas: 11}", part=Subresource.SCALE)
                case _:
                    operation = {"op": "replace", "path": "/spec/size", "value": 11}
                    await env.patch("Widget", [operation], patch_type=PatchType.JSON)

    async def test_a_status_is_validated(self, env: Env) -> None:
        await env.create("Widget")
        detail = 'Unsupported value: "Old": supported values: "New", "Done"'

        with env.error(422, "Invalid", None, f"FieldValueNotSupported status.phase: {detail}"):
            await env.merge("Widget", "status: {phase: Old}", part=Subresource.STATUS)


class TestDefaults:
    @pytest.mark.parametrize(
        ("spec", "expected"),
        [
            pytest.param("{}", {"size": 3}, id="a field"),
            pytest.param("{size: 0}", {"size": 0}, id="zero is a value"),
            pytest.param("{size: null}", {"size": 3}, id="null gets the default where it is not allowed"),
            pytest.param(
                "{contact: {email: a}}",
                {"size": 3, "contact": {"email": "a", "name": "anonymous"}},
                id="in an object",
            ),
            pytest.param("{parts: [{name: a}]}", {"size": 3, "parts": [{"name": "a", "count": 1}]}, id="in items"),
            pytest.param("{parts: []}", {"size": 3, "parts": []}, id="an empty list stays"),
            pytest.param("{note: null}", {"size": 3, "note": None}, id="null stays where it is allowed"),
        ],
    )
    async def test_omitted_fields_get_their_defaults(self, env: Env, spec: str, expected: dict[str, Any]) -> None:
        made = await env.create("Widget", f"spec: {spec}")

        assert made["spec"] == expected

    async def test_a_removed_field_gets_its_default_again(self, env: Env) -> None:
        await env.create("Widget", "spec: {size: 5}")

        assert (await env.merge("Widget", "spec: {size: null}"))["spec"] == {"size": 3}

    async def test_a_missing_object_is_not_created_for_its_defaults(self, env: Env) -> None:
        assert "contact" not in (await env.create("Widget"))["spec"]


class TestPruning:
    @pytest.mark.parametrize(
        ("body", "expected"),
        [
            pytest.param("{spec: {size: 1, other: 2}}", {"spec": {"size": 1}}, id="a field"),
            pytest.param("{spec: {size: 1}, other: {a: b}}", {"spec": {"size": 1}}, id="an object"),
            pytest.param(
                "{spec: {size: 1, contact: {email: a, other: b}}}",
                {"spec": {"size": 1, "contact": {"email": "a", "name": "anonymous"}}},
                id="in an object",
            ),
            pytest.param(
                "{spec: {size: 1, parts: [{name: a, other: b}]}}",
                {"spec": {"size": 1, "parts": [{"name": "a", "count": 1}]}},
                id="in items",
            ),
            pytest.param(
                "{spec: {size: 1, free: {other: [{a: b}]}}}",
                {"spec": {"size": 1, "free": {"other": [{"a": "b"}]}}},
                id="kept with preserveUnknownFields",
            ),
            pytest.param(
                "{spec: {size: 1, labels: {other: b}}}",
                {"spec": {"size": 1, "labels": {"other": "b"}}},
                id="keys of a map are not fields",
            ),
        ],
    )
    async def test_undeclared_fields_are_pruned(self, env: Env, body: str, expected: dict[str, Any]) -> None:
        made = await env.create("Widget", body)

        assert {
            name: value for name, value in made.items() if name not in {"apiVersion", "kind", "metadata"}
        } == expected

    @pytest.mark.parametrize("how", ["update", "merge patch"])
    async def test_every_write_is_pruned(self, env: Env, how: str) -> None:
        made = await env.create("Widget")
        if how == "update":
            await env.update({**made, "spec": {"size": 1, "other": 2}})
        else:
            await env.merge("Widget", "spec: {size: 1, other: 2}")

        assert (await env.get("Widget"))["spec"] == {"size": 1}

    async def test_metadata_follows_the_common_schema(self, env: Env) -> None:
        made = await env.create("Widget", "{metadata: {other: a, labels: {a: b}}, spec: {}}")

        assert "other" not in made["metadata"]
        assert made["metadata"]["labels"] == {"a": "b"}

    async def test_a_kind_that_preserves_unknown_fields_keeps_them(self, env: Env) -> None:
        made = await env.create("Gadget", "{anything: {goes: [1, null, {a: b}]}}")

        assert made["anything"] == {"goes": [1, None, {"a": "b"}]}


class TestSubresources:
    async def test_a_scale_without_a_status_has_zero_replicas(self, env: Env) -> None:
        made = await env.create("Widget")
        scale = await env.get("Widget", part=Subresource.SCALE)

        assert scale["spec"] == {"replicas": made["spec"]["size"]}
        assert scale["status"] == {"replicas": 0}

    async def test_a_status_write_changes_nothing_else(self, env: Env) -> None:
        made = await env.create("Widget")
        body = "{metadata: {labels: {a: b}, finalizers: [a.io/x]}, spec: {size: 9}, status: {replicas: 1}}"
        live = await env.merge("Widget", body, part=Subresource.STATUS)

        assert live["status"] == {"replicas": 1}
        assert live["spec"] == made["spec"]
        assert not {"labels", "finalizers"} & live["metadata"].keys()

    async def test_a_status_of_a_new_object_is_dropped(self, env: Env) -> None:
        assert "status" not in await env.create("Widget", "{spec: {}, status: {replicas: 1}}")

    async def test_without_the_subresource_the_status_is_an_ordinary_field(self, env: Env) -> None:
        assert (await env.create("Gadget", "status: {a: b}"))["status"] == {"a": "b"}

    async def test_a_kind_without_subresources_has_none(self, env: Env) -> None:
        await env.create("Gadget")
        for part in Subresource:
            with pytest.raises(NotFoundError):
                await env.get("Gadget", part=part)


async def test_a_custom_resource_does_not_accept_a_strategic_merge_patch(env: Env) -> None:
    await env.create("Widget")

    with pytest.raises(BadRequestError) as caught:
        await env.patch("Widget", {"spec": {"size": 1}}, patch_type=PatchType.STRATEGIC_MERGE)
    assert (caught.value.code, caught.value.reason) == (415, "UnsupportedMediaType")


class TestDefinitions:
    """Invalid definitions; nothing is stored."""

    @pytest.mark.parametrize(
        ("schema", "field", "reason", "detail"),
        [
            pytest.param(
                {"type": "object", "properties": {"spec": {}}},
                "spec.validation.openAPIV3Schema.properties[spec].type",
                "FieldValueRequired",
                "Required value: must not be empty for specified object fields",
                id="a field without a type",
            ),
            pytest.param(
                {"type": "string"},
                "spec.validation.openAPIV3Schema.type",
                "FieldValueInvalid",
                'Invalid value: "string": must be object at the root',
                id="a root that is not an object",
            ),
            pytest.param(
                {"type": "object", "properties": {"spec": {"type": "integer", "default": "many"}}},
                "spec.validation.openAPIV3Schema.properties[spec].default",
                "FieldValueTypeInvalid",
                'Invalid value: "string":  in body must be of type integer: "string"',
                id="a default of another type",
            ),
        ],
    )
    async def test_a_schema_is_validated(
        self, env: Env, schema: dict[str, Any], field: str, reason: str, detail: str
    ) -> None:
        manifest = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "gizmos.conformance.example.com"},
            "spec": {
                "group": "conformance.example.com",
                "scope": "Namespaced",
                "names": {"kind": "Gizmo", "plural": "gizmos"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
            },
        }
        with pytest.raises(Exception, match="invalid") as caught:
            await env.cluster.create(manifest, field_manager="author", dry_run=True)

        causes = [(cause.field, cause.reason, cause.message) for cause in caught.value.causes]  # type: ignore[attr-defined]
        assert (field, reason, detail) in causes


class TestCounts:
    """The counts of the Scale are validated in addition to the schema."""

    @pytest.mark.parametrize(
        ("spec", "causes"),
        [
            pytest.param(
                "{size: -1}",
                [
                    (
                        "FieldValueInvalid spec.size: Invalid value: -1: "
                        "spec.size in body should be greater than or equal to 0"
                    ),
                    "FieldValueInvalid .spec.size: Invalid value: -1: should be a non-negative integer",
                ],
                id="a negative number",
            ),
            pytest.param(
                "{size: 3000000000}",
                [
                    (
                        'FieldValueInvalid <nil>: Invalid value: "": '
                        "Checked value must be of type integer with format int32 in spec.size"
                    ),
                    (
                        "FieldValueInvalid spec.size: Invalid value: 3000000000: "
                        "spec.size in body should be less than or equal to 10"
                    ),
                    (
                        "FieldValueInvalid .spec.size: Invalid value: 3000000000: "
                        "should be less than or equal to 2147483647"
                    ),
                ],
                id="more than an int32",
            ),
            pytest.param(
                "{size: many}",
                [
                    (
                        'FieldValueTypeInvalid spec.size: Invalid value: "string": '
                        'spec.size in body must be of type integer: "string"'
                    ),
                    f"{ACCESSOR}: many is of the type string, expected int64",
                ],
                id="a string",
            ),
            pytest.param(
                "{size: 1.5}",
                [
                    (
                        'FieldValueTypeInvalid spec.size: Invalid value: "float64": '
                        'spec.size in body must be of type int32: "float64"'
                    ),
                    (
                        'FieldValueInvalid <nil>: Invalid value: "": '
                        "Checked value must be of type integer with format int32 in spec.size"
                    ),
                    f"{ACCESSOR}: 1.5 is of the type float64, expected int64",
                ],
                id="a fraction",
            ),
            pytest.param(
                "{size: true}",
                [
                    'FieldValueTypeInvalid spec.size: Invalid value: "": spec.size in body must be of type int32: ""',
                    f"{ACCESSOR}: true is of the type bool, expected int64",
                ],
                id="a boolean",
            ),
            pytest.param(
                "{size: [1]}",
                [
                    (
                        'FieldValueTypeInvalid spec.size: Invalid value: "array": '
                        'spec.size in body must be of type integer: "array"'
                    ),
                    f"{ACCESSOR}: [1] is of the type []interface {{}}, expected int64",
                ],
                id="a list",
            ),
            pytest.param(
                "text",
                [
                    (
                        'FieldValueTypeInvalid spec: Invalid value: "string": '
                        'spec in body must be of type object: "string"'
                    ),
                    f"{ACCESSOR}: text is of the type string, expected map[string]interface{{}}",
                ],
                id="a string in place of the parent",
            ),
        ],
    )
    async def test_the_desired_count_is_validated(self, env: Env, spec: str, causes: list[str]) -> None:
        with env.error(422, "Invalid", None, *causes):
            await env.create("Widget", f"spec: {spec}")

    @pytest.mark.parametrize(
        ("status", "causes"),
        [
            pytest.param(
                "{replicas: -1, selector: 5}",
                [
                    (
                        'FieldValueTypeInvalid status.selector: Invalid value: "integer": '
                        'selector in body must be of type string: "integer"'
                    ),
                    "FieldValueInvalid .status.replicas: Invalid value: -1: should be a non-negative integer",
                    (
                        'FieldValueInvalid .status.selector: Invalid value: "": '
                        ".status.selector accessor error: 5 is of the type int64, expected string"
                    ),
                ],
                id="a negative number, and an invalid selector",
            ),
            pytest.param(
                "{replicas: 1.5}",
                [
                    (
                        'FieldValueTypeInvalid status.replicas: Invalid value: "number": '
                        'replicas in body must be of type integer: "number"'
                    ),
                    (
                        'FieldValueInvalid status: Invalid value: "": '
                        "Checked value must be of type integer (default format) in replicas"
                    ),
                    (f"{ACCESSOR.replace('spec.size', 'status.replicas')}: 1.5 is of the type float64, expected int64"),
                ],
                id="a fraction",
            ),
        ],
    )
    async def test_the_counts_of_the_status_are_validated(self, env: Env, status: str, causes: list[str]) -> None:
        await env.create("Widget")

        with env.error(422, "Invalid", None, *causes):
            await env.merge("Widget", f"status: {status}", part=Subresource.STATUS)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        pytest.param("5", '"int64": spec.since in body must be of type date-time: "int64"', id="number"),
        pytest.param("true", '"": spec.since in body must be of type date-time: ""', id="boolean"),
        pytest.param("[a]", "", id="list"),
    ],
)
async def test_a_format_is_checked_before_the_type(env: Env, body: str, value: str) -> None:
    """A list in the place of a string with a format is even accepted."""
    cause = f"FieldValueTypeInvalid spec.since: Invalid value: {value}"
    with env.error(422, "Invalid", None, cause) if value else nullcontext():
        await env.create("Widget", f"spec: {{since: {body}}}")


async def test_a_scale_cannot_be_changed_by_an_apply(env: Env) -> None:
    await env.create("Widget", "spec: {size: 5}", by="scaler")
    await env.merge("Widget", "spec: {replicas: 4}", by="scaler", part=Subresource.SCALE)

    with env.error(
        500,
        "",
        "failed to convert new object (<namespace>/demo; autoscaling/v1, Kind=Scale) to proper version: "
        "request to convert CR to an invalid group/version: autoscaling/v1",
        kind=InvalidError,
    ):
        await env.apply("scaler", "Widget", "spec: {replicas: 6}", part=Subresource.SCALE, force=True)


async def test_a_negative_scale_is_rejected_like_the_object(env: Env) -> None:
    await env.create("Widget")

    with env.error(
        422,
        "Invalid",
        None,
        "FieldValueInvalid spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0",
        "FieldValueInvalid .spec.size: Invalid value: -1: should be a non-negative integer",
    ):
        await env.merge("Widget", "spec: {replicas: -1}", part=Subresource.SCALE)
