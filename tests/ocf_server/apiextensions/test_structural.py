"""Pruning, defaulting and validation by structural schemas, compared with the packages of the API server (1.36.3).

`scripts/record/structural.py` records the answers.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from ocf.cluster import PatchOptions, PatchType
from ocf.errors import BadRequestError, InvalidError
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster
from ocf_server.apiextensions import custom_update_problems, prune, schema_faults, set_schema_defaults, undeclared
from ocf_server.codec.decoding import DecodeError

FILE: Final = Path(__file__).parent / "recorded" / "structural.jsonl.gz"


def ours(case: dict[str, Any]) -> dict[str, Any]:
    """Return what we make of an object, in the form of a record."""
    sent, schema = case["object"], case["schema"]
    try:
        decoded = set_schema_defaults(prune(sent, schema, sent=True), schema)
    except DecodeError as error:
        return {"unknown": None, "problems": None, "error": str(error)}
    problems = sorted(str(fault.problem) for fault in schema_faults(decoded, schema))
    return {"unknown": undeclared(sent, schema), "object": decoded, "problems": problems}


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).decode().splitlines()]


def test_drawn_objects_are_decoded_and_validated_as_by_the_api_server() -> None:
    cases = recorded()
    different = [case for case in cases if ours(case) != case["real"]]
    assert not different, f"{len(different)} of {len(cases)}, the first: {different[0]}, ours: {ours(different[0])}"


def test_the_record_has_each_kind_of_answer() -> None:
    answers = [case["real"] for case in recorded()]
    assert sum(bool(answer["unknown"]) for answer in answers) > 100
    assert sum(bool(answer["problems"]) for answer in answers) > 100
    assert sum("error" in answer for answer in answers) > 5


KEPT: Final = {"x-kubernetes-preserve-unknown-fields": True}
SPEC: Final = {
    "type": "object",
    "properties": {
        "any": KEPT,
        "rules": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}, **KEPT},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True, **KEPT},
    },
}
STATUS: Final = {
    "type": "object",
    "default": {"phase": "New"},
    "properties": {"phase": {"type": "string"}, "restarts": {"type": "integer", "default": 3}},
}
DEFINITION: Final[Manifest] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
                "subresources": {"status": {}},
            }
        ],
    },
}
KEY: Final = ObjectKey("example.com/v1", "Thing", "t")


def thing(**spec: Any) -> Manifest:
    return {"apiVersion": KEY.api_version, "kind": KEY.kind, "metadata": {"name": KEY.name}, "spec": spec}


@pytest_asyncio.fixture
async def defined(cluster: EmbeddedCluster) -> EmbeddedCluster:
    await cluster.create(DEFINITION, field_manager="author")
    return cluster


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_new_object_has_the_defaults_of_its_status(defined: EmbeddedCluster, *, dry_run: bool) -> None:
    sent = {**thing(), "status": {"phase": "Old"}}
    assert (await defined.create(sent, field_manager="user", dry_run=dry_run))["status"] == {
        "phase": "New",
        "restarts": 3,
    }


async def test_unknown_fields_in_items_of_a_list_that_preserves_them_can_be_applied(defined: EmbeddedCluster) -> None:
    rules = [{"host": "a", "paths": [{"path": "/"}]}]
    assert (await defined.apply(thing(rules=rules), field_manager="user"))["spec"] == {"rules": rules}


async def test_an_applied_null_of_no_type_is_owned_and_not_stored(defined: EmbeddedCluster) -> None:
    stored = await defined.apply(thing(any=None), field_manager="user")
    assert stored["spec"] == {}
    assert stored["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {"f:any": {}}}


HEADS: Final = [
    pytest.param({"apiVersion": 5, "kind": "Pod"}, "spec.template.apiVersion: Invalid value: 5: must be a string"),
    pytest.param(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}},
        'spec.template.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field '
        "ObjectMeta.labels of type string",
    ),
]


@pytest.mark.parametrize(("template", "problem"), HEADS)
async def test_an_embedded_object_that_cannot_be_decoded_is_rejected(
    defined: EmbeddedCluster, template: Manifest, problem: str
) -> None:
    with pytest.raises(BadRequestError) as created:
        await defined.create(thing(template=template), field_manager="user")
    assert created.value.message == f'Thing in version "v1" cannot be handled as a Thing: {problem}'

    await defined.create(thing(), field_manager="user")
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    with pytest.raises(InvalidError) as patched:
        await defined.patch(KEY, {"spec": {"template": template}}, options)
    assert patched.value.causes[0].message.endswith(problem)


async def test_the_head_of_an_applied_embedded_object_has_types(defined: EmbeddedCluster) -> None:
    with pytest.raises(InvalidError, match=r"\.spec\.template\.metadata: expected map, got &\{x\}"):
        await defined.apply(thing(template={"apiVersion": "v1", "kind": "Pod", "metadata": "x"}), field_manager="user")


def test_embedded_objects_are_validated_even_if_they_do_not_change() -> None:
    schema = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    stored = thing(template={"apiVersion": "a/b/c", "kind": "Pod"})
    assert list(map(str, custom_update_problems(stored, stored, schema, None))) == [
        'spec.template.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'
    ]
