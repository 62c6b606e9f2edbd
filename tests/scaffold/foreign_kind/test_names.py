"""No class of a generated module hides a name that its code uses.

Other generators wrote such names: https://github.com/glideapps/quicktype/pull/3457 (a class),
https://github.com/datamodel-code-generator/datamodel-code-generator/pull/2379 (a field).
"""

from __future__ import annotations

import ast
from typing import Any, Final

import pytest

from ocf.objects import write_model
from ocf.scaffold import KindOptions, render_kind
from ocf.scaffold.foreign_kind import ForeignKind
from ocf.scaffold.foreign_kind.names import RESERVED, class_names
from tests.scaffold.foreign_kind.execution import compiled

Json = dict[str, Any]
TEXT: Final = {"type": "string"}
PART: Final = {"type": "object", "properties": {"a": TEXT}}
STATUS: Final = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array",
            "items": {"type": "object", "properties": {"type": TEXT, "status": TEXT}},
        }
    },
}
FIELDS: Final[Json] = {
    "size": {"type": "integer", "minimum": 1},
    "on": {"type": "boolean"},
    "ratio": {"type": "number"},
    "at": {"type": "string", "format": "date-time"},
    "port": {"x-kubernetes-int-or-string": True},
    "memory": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+[KMGTPE]i$"},
    "nullable": {"type": "string", "nullable": True},
    "mode": {"type": "string", "enum": [f"mode-{number}" for number in range(30)]},
    "short": {"type": "array", "items": {"type": "string", "maxLength": 3}},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
}


def spec(**fields: Json) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}


def test_every_name_that_the_code_uses_is_reserved() -> None:
    used: set[str] = set()
    properties = {**spec(**FIELDS)["properties"], "status": STATUS}
    for ready in ("", "Ready"):
        kind = ForeignKind(
            group="example.com",
            version="v1",
            kind="Zebra",
            cluster_scoped=False,
            schema={"type": "object", "properties": properties},
            ready=ready,
        )
        for path, text in render_kind(kind, KindOptions()).texts.items():
            for node in ast.walk(ast.parse(text)) if path.endswith(".py") else ():
                match node:
                    case ast.alias(name=name, asname=None) | ast.Name(id=name) | ast.ClassDef(name=name):
                        used.add(name)

    classes = {name for name in used if name[0].isupper() and not name.startswith("Zebra")}
    # The editor of a kind ObjectMeta would be an ObjectMetaEditor.
    assert {*classes, "ObjectMeta"} == RESERVED


@pytest.mark.parametrize("kind", ["Edits", "BaseMutator", "ApplyOperation", "SAMPLE", "ObjectMeta", "Exception"])
def test_a_kind_with_such_a_name_has_another_class(kind: str) -> None:
    assert next(class_names(kind, ())) == f"{kind}Object"


@pytest.mark.parametrize(
    ("kind", "fields", "values"),
    [
        pytest.param(
            "Date",
            {"time": PART, "at": FIELDS["at"]},
            {"time": {"a": "b"}, "at": "2026-01-31T12:00:00Z"},
            id="DateTime",
        ),
        pytest.param("Api", {"model": PART, "object": PART}, {"model": {"a": "b"}, "object": {}}, id="ApiModel"),
        pytest.param("Strict", {"int": PART, "size": FIELDS["size"]}, {"int": {"a": "b"}, "size": 3}, id="StrictInt"),
        pytest.param(
            "Quantity",
            {"value": PART, "memory": FIELDS["memory"]},
            {"value": {"a": "b"}, "memory": "1Gi"},
            id="QuantityValue",
        ),
        pytest.param("Key", {"error": PART}, {"error": {"a": "b"}}, id="KeyError"),
    ],
)
def test_a_part_whose_name_would_be_one_of_them_has_another_class(kind: str, fields: Json, values: Json) -> None:
    model = compiled(kind, spec(**fields))
    manifest = {"apiVersion": "example.com/v1", "kind": kind, "spec": values}

    assert write_model(model.model_validate(manifest)) == manifest
