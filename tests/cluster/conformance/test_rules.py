"""Rules in CEL: what a definition may say, and what an object must be like, in the words of a real server.

The rows are in `rules.yaml` and `rule_definitions.yaml`.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource
from ocf.errors import AlreadyExistsError, ApiError, InvalidError, NotFoundError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.yaml_reader import read_yaml

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Place

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


async def served(place: Place, definition: Manifest) -> str:
    """Have gizmos of a group served, and return their version."""
    api_version = f"{definition['spec']['group']}/v1"
    async with asyncio.timeout(60):
        while True:
            try:
                await place.cluster.list(api_version, "Gizmo", ListOptions(namespace=place.namespace))
            except NotFoundError:
                with suppress(AlreadyExistsError):
                    await place.cluster.create(definition, field_manager="author")
            except TooManyRequestsError:  # its storage is being made
                pass
            else:
                return api_version
            await asyncio.sleep(0.05)


def causes(error: ApiError) -> list[str]:
    """Return causes as rows write them; what a server calls the type of `self` is another word each time."""
    told = {f"{cause.reason} {cause.field}: {cause.message}" for cause in error.causes}
    return sorted(re.sub(r"selfType\d+", "selfType", text) for text in told)


DEFINITIONS: Final = rows("rule_definitions.yaml")
VALUES: Final = rows("rules.yaml")


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in DEFINITIONS])
async def test_a_definition_has_rules_that_fit(place: Place, row: dict[str, Any]) -> None:
    told: list[str] = []
    try:
        given = definition("ruled.example.com", spec=ruled(row))
        await place.cluster.create(given, field_manager="author", dry_run=True)
    except InvalidError as error:
        told = causes(error)
    assert told == row["told"]


async def test_expressions_inside_one_another_have_a_limit(place: Place) -> None:
    def nested(depth: int) -> Manifest:
        rule = {"rule": "(" * depth + "self" + ")" * depth}
        return definition("nested.example.com", spec={"type": "boolean", RULES: [rule]})

    await place.cluster.create(nested(249), field_manager="author", dry_run=True)
    with pytest.raises(InvalidError) as caught:
        await place.cluster.create(nested(250), field_manager="author", dry_run=True)
    (cause,) = caught.value.causes
    assert cause.message.endswith("compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: 250")


@pytest.mark.parametrize("index", [pytest.param(index, id=row["id"]) for index, row in enumerate(VALUES)])
async def test_a_value_is_held_to_its_rules(place: Place, index: int) -> None:
    row, field = VALUES[index], f"field{index}"
    fields = {f"field{number}": ruled(other) for number, other in enumerate(VALUES)}
    kind = definition("values.example.com", spec={"type": "object", "properties": fields})
    api_version = await served(place, kind)
    head = {"apiVersion": api_version, "kind": "Gizmo", "metadata": {"name": "demo", "namespace": place.namespace}}
    gizmo = {**head, "spec": {field: row["new"]}}
    told: list[str] = []
    try:
        if "old" in row:
            before = {} if row["old"] is None else {field: row["old"]}
            live = await place.cluster.create({**head, "spec": before}, field_manager="author")
            await place.cluster.update({**live, "spec": gizmo["spec"]}, field_manager="author")
        else:
            await place.cluster.create(gizmo, field_manager="author", dry_run=True)
    except InvalidError as error:
        told = [text.replace(f"spec.{field}", "spec.field") for text in causes(error)]
    assert told == row["told"]


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
    async def made(self, place: Place, name: str = "demo") -> Manifest:
        api_version = await served(place, COUNTED)
        metadata = {"name": name, "namespace": place.namespace}
        gizmo = {"apiVersion": api_version, "kind": "Gizmo", "metadata": metadata, "spec": {"most": 3}}
        return await place.cluster.create(gizmo, field_manager="author")

    async def test_a_rule_of_the_whole_sees_its_head(self, place: Place) -> None:
        rule = "self.metadata.name.startsWith('demo') && self.kind == 'Gizmo'"
        with place.error(422, "Invalid", None, f"FieldValueInvalid spec.note: Invalid value: failed rule: {rule}"):
            await self.made(place, "other")

    async def test_a_status_is_held_to_rules_of_the_whole(self, place: Place) -> None:
        live = await self.made(place)
        with place.error(422, "Invalid", None, "FieldValueInvalid <nil>: Invalid value: more than there may be"):
            await place.cluster.update(
                {**live, "status": {"count": 4}}, field_manager="author", subresource=Subresource.STATUS
            )

    async def test_the_rest_is_held_to_rules_about_the_status(self, place: Place) -> None:
        live = await self.made(place)
        live = await place.cluster.update(
            {**live, "status": {"count": 2}}, field_manager="author", subresource=Subresource.STATUS
        )
        with place.error(422, "Invalid", None, "FieldValueInvalid <nil>: Invalid value: more than there may be"):
            await place.cluster.update({**live, "spec": {"most": 1}}, field_manager="author")

    async def test_a_status_has_transitions(self, place: Place) -> None:
        live = await self.made(place)
        for count in (1, 2):
            live = await place.cluster.update(
                {**live, "status": {"count": count}}, field_manager="author", subresource=Subresource.STATUS
            )
        with place.error(422, "Invalid", None, "FieldValueForbidden status: Forbidden: it only grows"):
            await place.cluster.update(
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
    },
}


def loose(schema: Any) -> Any:
    """Return a schema without its rules."""
    if isinstance(schema, dict):
        return {name: loose(below) for name, below in schema.items() if name != RULES}
    return schema


BEFORE: Final = {"size": 1, "note": "a", "list": [{"name": "x", "size": 1}], "items": [1, 5]}


@pytest.mark.parametrize(
    ("patch", "told"),
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
    ],
)
async def test_stricter_rules_do_not_lock_what_is_there(place: Place, patch: dict[str, Any], told: list[str]) -> None:
    """The definition is made stricter once the object is there, so each case has one of its own."""
    group = f"{place.namespace}.strict.example.com"
    api_version = await served(place, definition(group, spec=loose(STRICT)))
    head = {"apiVersion": api_version, "kind": "Gizmo", "metadata": {"name": "demo", "namespace": place.namespace}}
    await place.cluster.create({**head, "spec": BEFORE}, field_manager="author")
    await place.cluster.apply(definition(group, spec=STRICT), field_manager="author", force=True)
    await _stricter(place, head)

    key = ObjectKey(api_version, "Gizmo", "demo", place.namespace)
    found: list[str] = []
    try:
        await place.cluster.patch(
            key, {"spec": patch}, PatchOptions(patch_type=PatchType.MERGE, field_manager="author")
        )
    except InvalidError as error:
        found = causes(error)
    assert found == [f"FieldValueInvalid {text}" for text in told]


async def _stricter(place: Place, head: Manifest) -> None:
    """Wait until the stricter definition is what objects are held to."""
    other = {**head, "metadata": {**head["metadata"], "name": "probe"}, "spec": {"size": 1}}
    async with asyncio.timeout(60):
        while True:
            with suppress(TooManyRequestsError):
                try:
                    await place.cluster.create(other, field_manager="author", dry_run=True)
                except InvalidError:
                    return
            await asyncio.sleep(0.05)
