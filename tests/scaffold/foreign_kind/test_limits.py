"""Limits of a schema: the module of any accepted definition imports, and no model is stricter than the API server.

Other generators wrote limits that their target does not accept: a look-ahead
(https://github.com/datamodel-code-generator/datamodel-code-generator/issues/2232,
https://github.com/pydantic/pydantic/issues/6374), a multiple of zero
(https://github.com/litestar-org/polyfactory/issues/120), a fraction as the bound of an integer
(https://github.com/ballerina-platform/ballerina-library/issues/5340,
https://github.com/datamodel-code-generator/datamodel-code-generator/issues/805), any bound of an integer at all
(https://github.com/oxidecomputer/typify/issues/169), and an enumeration that is not one of texts
(https://github.com/kube-rs/kopium/issues/91).
"""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from ocf.errors import OcfError
from ocf.scaffold import KindOptions, foreign_kinds, render_kind
from ocf.scaffold.foreign_kind.sample import minimal_sample
from ocf_server import EmbeddedCluster
from tests.scaffold.foreign_kind.execution import compiled

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.cluster.client import ApiServerCluster
    from ocf.objects import Manifest
    from ocf.testing.envtest import ControlPlane

Json = dict[str, Any]
MAP: Final = {"type": "object", "additionalProperties": {"type": "string"}}
LIST: Final = {"type": "array", "items": {"type": "string"}}
INTEGER: Final = {"type": "integer"}
NUMBER: Final = {"type": "number"}
TEXT: Final = {"type": "string"}
ANYTHING: Final = {"x-kubernetes-preserve-unknown-fields": True}


class Case(NamedTuple):
    """A field that every API server accepts.

    Args:
        schema: Its schema.
        values: Values of it; the API server decides which are valid.
        notes: What the description of the field says of limits that the model does not check.
    """

    schema: Json
    values: tuple[Any, ...]
    notes: tuple[str, ...] = ()


def impossible(keyword: str, value: float) -> tuple[str, ...]:
    return (f"The API server rejects every value, because `{keyword}` is {value}.",)


CASES: Final[dict[str, Case]] = {
    "a multiple of zero": Case(INTEGER | {"multipleOf": 0}, (0, 1), impossible("multipleOf", 0)),
    "a number that is a multiple of zero": Case(NUMBER | {"multipleOf": 0}, (0, 0.5), impossible("multipleOf", 0)),
    "a negative multiple": Case(INTEGER | {"multipleOf": -2}, (4, 3), impossible("multipleOf", -2)),
    "an integer, a multiple of a fraction": Case(INTEGER | {"multipleOf": 0.5}, (1,), impossible("multipleOf", 0.5)),
    "a number, a multiple of a fraction": Case(
        NUMBER | {"multipleOf": 0.1}, (0.3, 0.7), ("Limit: `multipleOf` is 0.1.",)
    ),
    "a number, a multiple of two": Case(NUMBER | {"multipleOf": 2}, (4, 4.0, 3)),
    "two multiples": Case(INTEGER | {"multipleOf": 4, "allOf": [{"multipleOf": 6}]}, (12, 24, 6)),
    "a fraction as minimum": Case(INTEGER | {"minimum": 0.5}, (0, 1), impossible("minimum", 0.5)),
    "a negative fraction as minimum": Case(INTEGER | {"minimum": -0.5}, (0,), impossible("minimum", -0.5)),
    "a fraction as exclusive maximum": Case(
        INTEGER | {"maximum": 2.5, "exclusiveMaximum": True}, (2, 3), impossible("maximum", 2.5)
    ),
    "a fraction without digits behind the point": Case(INTEGER | {"maximum": 2.0}, (2, 3)),
    "a fraction in allOf": Case(INTEGER | {"allOf": [{"minimum": 0.5}]}, (0, 1), ("Limit: `minimum` is 0.5.",)),
    "a negative fraction in allOf": Case(
        INTEGER | {"allOf": [{"minimum": -0.5}]}, (0, -1), ("Limit: `minimum` is -0.5.",)
    ),
    "a minimum above the maximum": Case(INTEGER | {"minimum": 5, "maximum": 1}, (3,)),
    "both bounds equal and exclusive": Case(
        NUMBER | {"minimum": 5, "maximum": 5, "exclusiveMinimum": True, "exclusiveMaximum": True}, (5,)
    ),
    "a minimum beyond 64 bits": Case(INTEGER | {"minimum": 2**70}, (1,)),
    "a maximum beyond 64 bits": Case(INTEGER | {"maximum": 1e308}, (1,)),
    "the largest double": Case(NUMBER | {"maximum": 1.7976931348623157e308}, (1, 0.5)),
    "a negative length": Case(TEXT | {"maxLength": -1}, ("", "a"), impossible("maxLength", -1)),
    "a negative length in allOf": Case(TEXT | {"allOf": [{"maxLength": -1}]}, ("",), impossible("maxLength", -1)),
    "a negative least length": Case(TEXT | {"minLength": -1}, ("", "a")),
    "the largest length": Case(TEXT | {"maxLength": 2**63 - 1}, ("a",)),
    "a least length above the largest": Case(TEXT | {"minLength": 5, "maxLength": 1}, ("a",)),
    "a negative number of items": Case(LIST | {"maxItems": -1}, ([], ["a"]), impossible("maxItems", -1)),
    "a negative least number of items": Case(LIST | {"minItems": -1}, ([],)),
    "a negative number of keys": Case(MAP | {"maxProperties": -1}, ({}, {"a": "b"}), impossible("maxProperties", -1)),
    "a negative least number of keys": Case(MAP | {"minProperties": -1}, ({},)),
    "limits of other types": Case({"type": "boolean", "maxLength": -3, "minimum": 7, "pattern": "^x$"}, (True,)),
    "characters that are operators to Rust": Case(
        TEXT | {"pattern": "^[a&&b]$"}, ("a", "&"), ("Pattern: `^[a&&b]$`.",)
    ),
    "a range from plus to minus": Case(TEXT | {"pattern": "^[+--]$"}, ("+", ",", "-"), ("Pattern: `^[+--]$`.",)),
    "a bracket in brackets": Case(TEXT | {"pattern": "^[a[b]$"}, ("[", "a"), ("Pattern: `^[a[b]$`.",)),
    "nested brackets": Case(TEXT | {"pattern": "^[a[b]]$"}, ("[]", "a]", "a"), ("Pattern: `^[a[b]]$`.",)),
    "escaped brackets": Case(TEXT | {"pattern": r"^[\[\]]$"}, ("[", "a")),
    "not a blank": Case(TEXT | {"pattern": r"^\S$"}, ("\u00a0", "a", " "), (r"Pattern: `^\S$`.",)),
    "not a digit": Case(TEXT | {"pattern": r"^[^\d]$"}, ("\u0663", "a", "1"), (r"Pattern: `^[^\d]$`.",)),
    "not a letter": Case(TEXT | {"pattern": r"^\W$"}, ("\u00e9", "a"), (r"Pattern: `^\W$`.",)),
    "the end of a word": Case(TEXT | {"pattern": r"^a\b"}, ("a\u00e9", "ab"), (r"Pattern: `^a\b`.",)),
    "a quotation": Case(TEXT | {"pattern": r"^\Qa.b\E$"}, ("a.b", "axb"), (r"Pattern: `^\Qa.b\E$`.",)),
    "a posix class": Case(TEXT | {"pattern": "^[[:alpha:]]$"}, ("a", "1")),
    "the end of the text": Case(TEXT | {"pattern": r"^a\z"}, ("a", "a\n")),
    "a pattern with an override of direction": Case(TEXT | {"pattern": "^\u202e$"}, ("\u202e", "a")),
    "texts and a number": Case(TEXT | {"enum": ["a", 1]}, ("a", 1)),
    "numbers and booleans": Case(INTEGER | {"enum": [True, 1, 0, False]}, (0, 1, True)),
    "integers as fractions": Case(INTEGER | {"enum": [1.0, 2.0]}, (1, 3)),
    "values of any type": Case(ANYTHING | {"enum": ["a", 1, True, 1.5, {"a": 1}]}, ("a", True, 1.5, {"a": 1}, 2)),
    "null and nothing else": Case(TEXT | {"enum": [None], "nullable": True}, (None, "a")),
    "no value at all": Case(TEXT | {"enum": []}, ("a",)),
    "a default that is null": Case(TEXT | {"default": None}, ("a",)),
    "a default in invisible characters": Case(TEXT | {"default": "a\u202e\U000e0001"}, ("a",)),
}
NAMES: Final = {name: f"f{number}" for number, name in enumerate(CASES)}


def definition(fields: Json) -> Manifest:
    """Return a definition whose spec has fields, each of them also in a list and as the values of a map."""
    inner = {
        name: below
        for field, schema in fields.items()
        for name, below in (
            (field, schema),
            (f"{field}List", {"type": "array", "items": schema}),
            (f"{field}Map", {"type": "object", "additionalProperties": schema}),
        )
    }
    names = {"kind": "Limit", "plural": "limits", "singular": "limit", "listKind": "LimitList"}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": inner}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "limits.limits.example.com"},
        "spec": {"group": "limits.example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def limit(**fields: Any) -> Manifest:
    metadata = {"name": "sample", "namespace": "default"}
    return {"apiVersion": "limits.example.com/v1", "kind": "Limit", "metadata": metadata, "spec": fields}


def accepts(fields: Json, value: Manifest) -> bool:
    """Return whether the model of the fields accepts an object."""
    (kind,) = foreign_kinds([definition(fields)])
    try:
        compiled(kind.kind, kind.schema).model_validate(value)
    except ValidationError:
        return False
    return True


def assert_importable(manifest: Manifest) -> None:
    """Check that the modules of a definition can be executed, and that the model can read an object."""
    (kind,) = foreign_kinds([manifest])
    made = render_kind(kind, KindOptions())
    model, texts = compiled(kind.kind, kind.schema), made.texts
    declaration = ModuleType(made.module)
    exec(compile(texts["kinds/limit/__init__.py"], "declaration", "exec"), vars(declaration))  # noqa: S102 (generated)
    model.model_validate(minimal_sample(kind))


async def is_stored(cluster: Cluster, value: Manifest) -> bool:
    try:
        await cluster.create(value, field_manager="test", dry_run=True)
    except OcfError:
        return False
    return True


async def test_a_model_accepts_what_the_api_server_stores(
    envtest_plane: ControlPlane, envtest_cluster: ApiServerCluster
) -> None:
    fields = {NAMES[name]: case.schema for name, case in CASES.items()}
    await asyncio.to_thread(envtest_plane.install_crds, definition(fields))
    for name, case in CASES.items():
        field = NAMES[name]
        for value in case.values:
            for manifest in (limit(**{field: value}), limit(**{f"{field}List": [value], f"{field}Map": {"a": value}})):
                stored = await is_stored(envtest_cluster, manifest)
                assert accepts({field: case.schema}, manifest) or not stored, (name, value)
                assert not (stored and any("rejects every value" in note for note in case.notes)), (name, value)


@pytest.mark.parametrize("name", CASES)
def test_the_description_says_what_is_not_checked(name: str) -> None:
    case = CASES[name]
    manifest = definition({"field": case.schema})
    assert_importable(manifest)
    (kind,) = foreign_kinds([manifest])
    model = render_kind(kind, KindOptions()).texts["kinds/limit/model.py"]

    said = [line.strip().removeprefix("r").strip('"') for line in model.splitlines()]
    for note in case.notes:
        assert said.count(note) >= 1
    unchecked = [line for line in said if line.startswith(("The API server rejects", "Limit: ", "Pattern: "))]
    assert set(unchecked) == set(case.notes)


BOUNDS: Final = st.one_of(
    st.sampled_from([0, -1, 0.5, -0.5, 1e19, -1e300, 5e-324, 2**63, -(2**63), 1.7976931348623157e308]),
    st.integers(-3, 9),
    st.floats(-9, 9),
)
SIZES: Final = st.sampled_from([-(2**63), -1, 0, 1, 3, 2**31, 2**63 - 1])
PATTERNS: Final = st.text(st.sampled_from(r"ab1[]()^$\.*+?{},|-&~:SWDdswbQEpL<P=! "), max_size=8)
VALUES: Final = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.text(max_size=2)
LIMITS: Final = st.fixed_dictionaries(
    {},
    optional={
        "minimum": BOUNDS,
        "maximum": BOUNDS,
        "multipleOf": BOUNDS,
        "exclusiveMinimum": st.booleans(),
        "exclusiveMaximum": st.booleans(),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), SIZES),
        "pattern": PATTERNS,
        "enum": st.lists(VALUES, max_size=3),
        "nullable": st.booleans(),
    },
)
TYPES: Final = st.sampled_from([INTEGER, NUMBER, TEXT, LIST, MAP, {"type": "boolean"}, ANYTHING])


@given(TYPES, LIMITS, st.lists(LIMITS, max_size=2))
@example(INTEGER, {"multipleOf": 0}, [])
@example(INTEGER, {"minimum": 0.5}, [])
@example(TEXT, {"maxLength": -1}, [])
async def test_the_module_of_any_accepted_definition_imports(kind: Json, limits: Json, parts: list[Json]) -> None:
    inner = [{name: value for name, value in part.items() if name != "nullable"} for part in parts]
    schema = {**kind, **limits, **({"allOf": inner} if inner else {})}
    manifest = definition({"field": schema})
    if await is_stored(EmbeddedCluster(), manifest):
        assert_importable(manifest)
