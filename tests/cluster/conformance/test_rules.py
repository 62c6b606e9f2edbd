"""CEL rules: validation of definitions and of objects, with the messages of a real server.

The rows are in `rules.yaml` and `rule_definitions.yaml`.
"""

from __future__ import annotations

import re
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import ListOptions, ObjectList, PatchOptions, PatchType, Subresource
from ocf.errors import AlreadyExistsError, ApiError, InvalidError, NotFoundError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.yaml_reader import read_yaml
from tests.support import eventually

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

HERE: Final = Path(__file__).parent
RULES: Final = "x-kubernetes-validations"


def rows(name: str) -> list[dict[str, Any]]:
    (found,) = read_yaml((HERE / name).read_text(encoding="utf-8"), name)
    assert isinstance(found, list)
    return found


def ruled(row: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a row, with its rules."""
    schema: dict[str, Any] = deepcopy(row["schema"])
    return schema | {RULES: row["rules"]} if "rules" in row else schema


def definition(group: str, **properties: Any) -> Manifest:
    schema = {"type": "object", "properties": properties}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"gizmos.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Gizmo", "plural": "gizmos"},
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


async def served(env: Env, definition: Manifest) -> str:
    """Wait until gizmos of a group are served, and return their version."""
    api_version = f"{definition['spec']['group']}/v1"

    async def page() -> ObjectList:
        try:
            return await env.cluster.list(api_version, "Gizmo", ListOptions(namespace=env.namespace))
        except NotFoundError:
            with suppress(AlreadyExistsError):
                await env.cluster.create(definition, field_manager="author")
            raise

    # TooManyRequests means that its storage is being created.
    await eventually(page, lambda _: True, ignore=(NotFoundError, TooManyRequestsError))
    return api_version


def causes(error: ApiError) -> list[str]:
    """Return causes in the form of the rows; the server generates a new name for the type of `self` each time."""
    reported = {f"{cause.reason} {cause.field}: {cause.message}" for cause in error.causes}
    return sorted(re.sub(r"selfType\d+", "selfType", text) for text in reported)


DEFINITIONS: Final = rows("rule_definitions.yaml")
VALUES: Final = rows("rules.yaml")


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in DEFINITIONS])
async def test_rules_of_a_definition_are_validated(env: Env, row: dict[str, Any]) -> None:
    reported: list[str] = []
    try:
        given = definition("ruled.example.com", spec=ruled(row))
        await env.cluster.create(given, field_manager="author", dry_run=True)
    except InvalidError as error:
        reported = causes(error)
    assert reported == row["causes"]


async def test_nested_expressions_have_a_limit(env: Env) -> None:
    def nested(depth: int) -> Manifest:
        rule = {"rule": "(" * depth + "self" + ")" * depth}
        return definition("nested.example.com", spec={"type": "boolean", RULES: [rule]})

    await env.cluster.create(nested(249), field_manager="author", dry_run=True)
    with pytest.raises(InvalidError) as caught:
        await env.cluster.create(nested(250), field_manager="author", dry_run=True)
    (cause,) = caught.value.causes
    assert cause.message.endswith("compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250")


@pytest.mark.parametrize("index", [pytest.param(index, id=row["id"]) for index, row in enumerate(VALUES)])
async def test_values_are_validated_by_rules(env: Env, index: int) -> None:
    row, field = VALUES[index], f"field{index}"
    fields = {f"field{number}": ruled(other) for number, other in enumerate(VALUES)}
    kind = definition("values.example.com", spec={"type": "object", "properties": fields})
    api_version = await served(env, kind)
    head = {"apiVersion": api_version, "kind": "Gizmo", "metadata": {"name": "demo", "namespace": env.namespace}}
    gizmo = {**head, "spec": {field: row["new"]}}
    reported: list[str] = []
    try:
        if "old" in row:
            before = {} if row["old"] is None else {field: row["old"]}
            live = await env.cluster.create({**head, "spec": before}, field_manager="author")
            await env.cluster.update({**live, "spec": gizmo["spec"]}, field_manager="author")
        else:
            await env.cluster.create(gizmo, field_manager="author", dry_run=True)
    except InvalidError as error:
        reported = [text.replace(f"spec.{field}", "spec.field") for text in causes(error)]
    assert reported == row["causes"]


COUNTED: Final = definition(
    "counted.example.com",
    spec={"type": "object", "properties": {"most": {"type": "integer"}, "note": {"type": "string", "maxLength": 9}}},
    status={
        "type": "object",
        "properties": {"count": {"type": "integer"}},
        RULES: [{"rule": "self.count >= oldSelf.count", "message": "it only grows", "reason": "FieldValueForbidden"}],
    },
)
COUNTED["spec"]["versions"][0]["schema"]["openAPIV3Schema"][RULES] = [
    {"rule": "!has(self.status) || self.status.count <= self.spec.most", "message": "more than there may be"},
    {"rule": "self.metadata.name.startsWith('demo') && self.kind == 'Gizmo'", "fieldPath": ".spec.note"},
]


class TestWholeObjects:
    async def made(self, env: Env, name: str = "demo") -> Manifest:
        api_version = await served(env, COUNTED)
        metadata = {"name": name, "namespace": env.namespace}
        gizmo = {"apiVersion": api_version, "kind": "Gizmo", "metadata": metadata, "spec": {"most": 3}}
        return await env.cluster.create(gizmo, field_manager="author")

    async def test_a_rule_of_the_root_reads_apiversion_kind_and_metadata(self, env: Env) -> None:
        rule = "self.metadata.name.startsWith('demo') && self.kind == 'Gizmo'"
        with env.error(422, "Invalid", None, f"FieldValueInvalid spec.note: Invalid value: failed rule: {rule}"):
            await self.made(env, "other")

    async def test_rules_of_the_root_validate_a_status_write(self, env: Env) -> None:
        live = await self.made(env)
        with env.error(422, "Invalid", None, "FieldValueInvalid <nil>: Invalid value: more than there may be"):
            await env.cluster.update(
                {**live, "status": {"count": 4}}, field_manager="author", subresource=Subresource.STATUS
            )

    async def test_rules_about_the_status_validate_other_writes(self, env: Env) -> None:
        live = await self.made(env)
        live = await env.cluster.update(
            {**live, "status": {"count": 2}}, field_manager="author", subresource=Subresource.STATUS
        )
        with env.error(422, "Invalid", None, "FieldValueInvalid <nil>: Invalid value: more than there may be"):
            await env.cluster.update({**live, "spec": {"most": 1}}, field_manager="author")

    async def test_transition_rules_validate_a_status_write(self, env: Env) -> None:
        live = await self.made(env)
        for count in (1, 2):
            live = await env.cluster.update(
                {**live, "status": {"count": count}}, field_manager="author", subresource=Subresource.STATUS
            )
        with env.error(422, "Invalid", None, "FieldValueForbidden status: Forbidden: it only grows"):
            await env.cluster.update(
                {**live, "status": {"count": 1}}, field_manager="author", subresource=Subresource.STATUS
            )


SIZE: Final = {"type": "integer"}
NOTE: Final = {"type": "string", "maxLength": 9}
STRICT: Final = {
    "type": "object",
    "properties": {
        "size": {**SIZE, RULES: [{"rule": "self > 3"}]},
        "note": NOTE,
        "list": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": NOTE, "size": {**SIZE, RULES: [{"rule": "self > 3"}]}},
            },
        },
        "items": {"type": "array", "maxItems": 3, "items": {**SIZE, RULES: [{"rule": "self > 3"}]}},
        "numbers": {"type": "array", "items": {**SIZE, "minimum": 4}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {**SIZE, "minimum": 4}},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": NOTE, "size": SIZE | {"minimum": 4}},
            },
        },
    },
}


def loose(schema: Any) -> Any:
    """Return a schema without its rules and limits."""
    if isinstance(schema, dict):
        return {name: loose(below) for name, below in schema.items() if name not in (RULES, "minimum")}
    return schema


BEFORE: Final = {
    "size": 1,
    "note": "a",
    "list": [{"name": "x", "size": 1}],
    "items": [1, 5],
    "numbers": [1],
    "set": [1],
    "map": [{"name": "x", "size": 1}],
}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"note": "b"}, [], id="what has not changed may stay"),
        pytest.param({"size": 2}, ["spec.size: Invalid value: 2: failed rule: self > 3"], id="what changes must fit"),
        pytest.param({"list": [{"name": "y", "size": 5}, {"name": "x", "size": 1}]}, [], id="items are known by keys"),
        pytest.param(
            {"list": [{"name": "y", "size": 1}]},
            ["spec.list[0].size: Invalid value: 1: failed rule: self > 3"],
            id="another item is new",
        ),
        pytest.param(
            {"items": [1, 6]},
            ["spec.items[0]: Invalid value: 1: failed rule: self > 3"],
            id="items without keys change together",
        ),
        pytest.param(
            {"numbers": [1, 5]},
            ["spec.numbers[0]: Invalid value: 1: spec.numbers[0] in body should be greater than or equal to 4"],
            id="a limit on items without keys",
        ),
        pytest.param(
            {"set": [1, 5]},
            ["spec.set[0]: Invalid value: 1: spec.set[0] in body should be greater than or equal to 4"],
            id="a limit on items of a set",
        ),
        pytest.param(
            {"map": [{"name": "y", "size": 5}, {"name": "x", "size": 1}]}, [], id="a limit on an item that moves"
        ),
        pytest.param(
            {"map": [{"name": "y", "size": 1}]},
            ["spec.map[0].size: Invalid value: 1: spec.map[0].size in body should be greater than or equal to 4"],
            id="a limit on another item",
        ),
    ],
)
async def test_ratcheting_allows_unchanged_invalid_values(env: Env, patch: dict[str, Any], expected: list[str]) -> None:
    """The definition becomes stricter after the object is created, so each test has a separate one."""
    group = f"{env.namespace}.strict.example.com"
    api_version = await served(env, definition(group, spec=loose(STRICT)))
    head = {"apiVersion": api_version, "kind": "Gizmo", "metadata": {"name": "demo", "namespace": env.namespace}}
    await env.cluster.create({**head, "spec": BEFORE}, field_manager="author")
    await env.cluster.apply(definition(group, spec=STRICT), field_manager="author", force=True)
    await _stricter(env, head)

    key = ObjectKey(api_version, "Gizmo", "demo", env.namespace)
    found: list[str] = []
    try:
        await env.cluster.patch(key, {"spec": patch}, PatchOptions(patch_type=PatchType.MERGE, field_manager="author"))
    except InvalidError as error:
        found = causes(error)
    assert found == [f"FieldValueInvalid {text}" for text in expected]


@pytest.mark.parametrize(
    "stricter",
    [
        pytest.param({"properties": {"size": {**SIZE, "minimum": 4}}}, id="a limit"),
        pytest.param({"properties": {"size": {**SIZE, RULES: [{"rule": "self > 3"}]}}}, id="a rule"),
        pytest.param({"properties": {"size": {**SIZE, "enum": [4, 5]}}}, id="an enumeration"),
        pytest.param({"properties": {"size": SIZE}, "required": ["other"]}, id="a required field"),
        pytest.param(
            {
                "properties": {"size": {**SIZE, "minimum": 4, RULES: [{"rule": "self == oldSelf"}]}},
            },
            id="a limit and a transition rule",
        ),
    ],
)
async def test_an_object_that_became_invalid_takes_finalizers_and_a_status(
    env: Env, stricter: Manifest, request: pytest.FixtureRequest
) -> None:
    """An owner from before an upgrade of its definition can be reported on and cleaned up.

    https://github.com/kubernetes/kubernetes/issues/60538, https://github.com/m3db/m3db-operator/issues/171.
    """
    group = f"{request.node.callspec.id.split('-')[-1].replace(' ', '-')}.{env.namespace}.aged.example.com"
    state = {"type": "object", "properties": {"phase": {"type": "string"}}}
    loose_spec = {"type": "object", "properties": {"size": SIZE}}
    api_version = await served(env, definition(group, spec=loose_spec, status=state))
    head = {"apiVersion": api_version, "kind": "Gizmo", "metadata": {"name": "demo", "namespace": env.namespace}}
    await env.cluster.create({**head, "spec": {"size": 1}}, field_manager="author")
    tightened = definition(group, spec={"type": "object", **stricter}, status=state)
    await env.cluster.apply(tightened, field_manager="author", force=True)
    await _stricter(env, head)

    key = ObjectKey(api_version, "Gizmo", "demo", env.namespace)
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="operator")
    held = await env.cluster.patch(key, {"metadata": {"finalizers": ["example.com/cleanup"]}}, options)
    assert held["metadata"]["finalizers"] == ["example.com/cleanup"]
    of_status = PatchOptions(patch_type=PatchType.MERGE, field_manager="operator", subresource=Subresource.STATUS)
    reported = await env.cluster.patch(key, {"status": {"phase": "Old"}}, of_status)
    assert (reported["status"], reported["spec"]) == ({"phase": "Old"}, {"size": 1})
    await env.cluster.delete(key)
    await env.cluster.patch(key, {"metadata": {"finalizers": []}}, options)
    with pytest.raises(NotFoundError):
        await env.cluster.get(key)


async def _stricter(env: Env, head: Manifest) -> None:
    """Wait until objects are validated by the stricter definition."""
    other = {**head, "metadata": {**head["metadata"], "name": "probe"}, "spec": {"size": 1}}

    async def is_refused() -> bool:
        try:
            await env.cluster.create(other, field_manager="author", dry_run=True)
        except InvalidError:
            return True
        return False

    await eventually(is_refused, ignore=(TooManyRequestsError,))
