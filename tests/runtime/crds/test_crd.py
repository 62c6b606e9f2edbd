"""What `crd` writes, and what it refuses."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from kubernetes.client import V1JSONSchemaProps
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, create_model

from ocf.errors import ManifestError
from ocf.objects import Manifest
from ocf.runtime.crds import (
    CRDVersion,
    GoDuration,
    ListMap,
    ListSet,
    Preserve,
    PrinterColumn,
    ScaleSubresource,
    Scope,
    ValidationRule,
    crd,
    rules,
)
from ocf.runtime.crds.go_duration import GO_DURATION_PATTERN
from ocf.runtime.crds.markers import DECIMAL_PATTERN, DURATION_PATTERN


class Named(BaseModel):
    name: str
    size: int = 1


class Maybe(BaseModel):
    name: str | None = None
    inner: Named | None = None


class Tree(BaseModel):
    children: list[Tree] = []


class CutTree(BaseModel):
    children: list[Annotated[CutTree, Preserve()]] = []


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str


class SecondsModel(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")

    wait: timedelta


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Mode(StrEnum):
    SOFT = "soft"
    RED = "red"


class One(BaseModel):
    kind: str


def kind_with(**fields: Any) -> type[BaseModel]:
    spec = create_model("Spec", **fields)
    return create_model("Shop", spec=(spec, ...))


class Backups(BaseModel):
    waits: list[GoDuration] = [timedelta(minutes=5)]
    previous: list[Annotated[Backups, Preserve()]] = []


def schema_of(annotation: Any, default: Any = ...) -> Manifest:
    """Return the schema of one field of a spec."""
    written = crd("example.com", CRDVersion("v1", kind_with(field=(annotation, default))))
    schema = written["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found: Manifest = schema["properties"]["spec"]["properties"]["field"]
    return found


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [
        pytest.param(int, {"type": "integer"}, id="integer"),
        pytest.param(float, {"type": "number"}, id="number"),
        pytest.param(bool, {"type": "boolean"}, id="boolean"),
        pytest.param(int | str, {"x-kubernetes-int-or-string": True}, id="integer or text"),
        pytest.param(int | float, {"type": "number"}, id="integer or number"),
        pytest.param(list[str], {"type": "array", "items": {"type": "string"}}, id="list"),
        pytest.param(dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, id="map"),
        pytest.param(
            Annotated[int, Field(ge=1, lt=9)] | Annotated[str, Field(pattern="^[0-9]+%$", max_length=4)],
            {
                "x-kubernetes-int-or-string": True,
                "minimum": 1,
                "maximum": 9,
                "exclusiveMaximum": True,
                "pattern": "^[0-9]+%$",
                "maxLength": 4,
            },
            id="integer or text, each with limits",
        ),
        pytest.param(
            int | Literal["auto", "a.b"],
            {"x-kubernetes-int-or-string": True, "pattern": r"^(auto|a\.b)$"},
            id="integer or one of some texts",
        ),
        pytest.param(
            Literal["a", "b", "c"],
            {"type": "string", "enum": ["a", "b", "c"]},
            id="two enumerations of one type",
        ),
        pytest.param(
            Color | Mode, {"type": "string", "enum": ["red", "blue", "soft"]}, id="two enumerations by reference"
        ),
        pytest.param(
            set[str], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, id="Python's set"
        ),
        pytest.param(
            frozenset[int],
            {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            id="frozen set",
        ),
        pytest.param(GoDuration, {"type": "string", "pattern": GO_DURATION_PATTERN}, id="duration of Go"),
        pytest.param(timedelta, {"type": "string", "pattern": DURATION_PATTERN}, id="duration"),
        pytest.param(
            timedelta | None,
            {"type": "string", "pattern": DURATION_PATTERN, "nullable": True},
            id="duration or null",
        ),
        pytest.param(Decimal, {"x-kubernetes-int-or-string": True, "pattern": DECIMAL_PATTERN}, id="decimal"),
        pytest.param(
            CutTree,
            {
                "type": "object",
                "properties": {
                    "children": {
                        "type": "array",
                        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        "default": [],
                    }
                },
            },
            id="recursion, ended by Preserve",
        ),
        pytest.param(AwareDatetime, {"type": "string", "format": "date-time"}, id="instant"),
        pytest.param(
            Annotated[int, Field(gt=1, ge=3, lt=9)],
            {"type": "integer", "minimum": 3, "maximum": 9, "exclusiveMaximum": True},
            id="the tighter of two bounds",
        ),
        pytest.param(
            Annotated[list[str], ListSet()],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            id="set",
        ),
        pytest.param(
            Annotated[dict[str, Any], Preserve()],
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            id="open object",
        ),
        pytest.param(Annotated[Any, Preserve(kind="")], {"x-kubernetes-preserve-unknown-fields": True}, id="anything"),
        pytest.param(
            Annotated[int, ValidationRule("self > 1"), ValidationRule("self < 5", message="too much")],
            {
                "type": "integer",
                "x-kubernetes-validations": [{"rule": "self > 1"}, {"rule": "self < 5", "message": "too much"}],
            },
            id="rules add up",
        ),
    ],
)
def test_a_type_has_a_schema(annotation: Any, wanted: Manifest) -> None:
    assert schema_of(annotation) == wanted


@pytest.mark.parametrize(
    ("annotation", "path", "reason"),
    [
        pytest.param(Any, "spec.field", "a value of any type", id="anything"),
        pytest.param(Any | None, "spec.field", "a value of any type", id="anything or null"),
        pytest.param(dict[str, Any], "spec.field", "a map of any values", id="map of anything"),
        pytest.param(list[dict[str, Any]], "spec.field[]", "a map of any values", id="inside a list"),
        pytest.param(dict[str, list[Any]], "spec.field.*[]", "a value of any type", id="inside a map"),
        pytest.param(set[Frozen], "spec.field", "Annotated[list[...], ListMap(key)]", id="Python's set of objects"),
        pytest.param(None, "spec.field", "such as str | None", id="null"),
        pytest.param(list[None], "spec.field[]", "such as str | None", id="list of null"),
        pytest.param(tuple[int, str], "spec.field", "tuples", id="tuple"),
        pytest.param(Named | One, "spec.field", "an optional field for each", id="objects"),
        pytest.param(str | list[str], "spec.field", "use the list, also for a single value", id="text or list"),
        pytest.param(bool | str, "spec.field", "use one type", id="boolean or text"),
        pytest.param(int | bool | str, "spec.field", "no alternatives", id="three types"),
        pytest.param(Literal[1, 2] | str, "spec.field", "no alternatives", id="some integers, or text"),
        pytest.param(Annotated[Decimal, Field(ge=1)], "spec.field", "has no ge for strings", id="decimal with bounds"),
        pytest.param(
            Annotated[timedelta, Field(gt=timedelta(0))], "spec.field", "has no gt for strings", id="positive duration"
        ),
        pytest.param(Tree, "spec.field.children[]", "Annotated[..., Preserve()]", id="recursive model"),
        pytest.param(V1JSONSchemaProps, "spec.field.*", "contains itself", id="recursive model of the client"),
        pytest.param(SecondsModel, "spec.field.wait", "is written as a number", id="duration as a number"),
        pytest.param(bytes, "spec.field", 'the format "binary"', id="bytes"),
        pytest.param(list[Literal["a"] | None], "spec.field[]", "rejects null", id="enum or null"),
        pytest.param(Callable[[], int], "spec.field", "no schema can express this type", id="function"),
        pytest.param(Annotated[list[Maybe], ListMap("name")], "spec.field", "must be required", id="optional key"),
        pytest.param(Annotated[list[Named], ListMap("nam")], "spec.field", "not a field", id="misspelt key"),
        pytest.param(
            Annotated[list[Maybe], ListMap("inner")], "spec.field", "not a scalar", id="key that is an object"
        ),
        pytest.param(Annotated[list[Named], ListSet()], "spec.field", "scalars only", id="set of objects"),
        pytest.param(dict[Annotated[str, Field(pattern="^a")], int], "spec.field", "keys of a map", id="keys"),
    ],
)
def test_what_no_structural_schema_says_is_refused_with_its_path(annotation: Any, path: str, reason: str) -> None:
    with pytest.raises(ManifestError, match=re.escape(reason)) as caught:
        schema_of(annotation)

    assert any(re.fullmatch(re.escape(path).replace(r"\*", ".*"), problem.path) for problem in caught.value.problems)


def test_a_pattern_that_only_python_knows_is_refused() -> None:
    class Spec(BaseModel):
        model_config = ConfigDict(regex_engine="python-re")

        field: str = Field(pattern="^(?!kube-)")

    with pytest.raises(ManifestError, match="look-around"):
        crd("example.com", CRDVersion("v1", create_model("Shop", spec=(Spec, ...))))


def test_a_field_that_is_not_written_as_it_is_read_is_refused() -> None:
    class Spec(BaseModel):
        size: int = Field(validation_alias="size", serialization_alias="theSize")

    with pytest.raises(ManifestError, match=r'spec\.size: it is read as "size" but written as "theSize"'):
        crd("example.com", CRDVersion("v1", create_model("Shop", spec=(Spec, ...))))


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(ManifestError) as caught:
        crd("example.com", CRDVersion("v1", kind_with(one=(Any, ...), two=(None, ...), three=(int, ...))))

    assert [problem.path for problem in caught.value.problems] == ["spec.one", "spec.two"]


@pytest.mark.parametrize(
    ("default", "reason"),
    [
        pytest.param(Field(default_factory=lambda: str(uuid.uuid4())), "differs each time", id="chance"),
        pytest.param(Field(default_factory=lambda data: f"{data}"), "depends on other fields", id="other fields"),
        pytest.param(object(), "cannot be written as JSON", id="no JSON"),
    ],
)
def test_a_default_that_no_server_can_know_is_refused(default: Any, reason: str) -> None:
    with pytest.raises(ManifestError, match=reason):
        schema_of(str, default)


@pytest.mark.parametrize(
    ("annotation", "default", "wanted"),
    [
        pytest.param(set[str], {"c", "a", "b"}, ["a", "b", "c"], id="set, in a fixed order"),
        pytest.param(list[frozenset[int]], [frozenset({3, 1})], [[1, 3]], id="set in a list"),
        pytest.param(timedelta, timedelta(days=400, hours=1), "P1Y35DT1H", id="duration"),
        pytest.param(Decimal, Decimal("1.50"), "1.50", id="decimal, with its zeros"),
        pytest.param(list[GoDuration], [timedelta(minutes=5)], ["5m0s"], id="durations of Go in a list"),
        pytest.param(set[GoDuration], {timedelta(0), timedelta(1)}, ["0s", "24h0m0s"], id="durations of Go in a set"),
        pytest.param(dict[str, GoDuration], {"a": timedelta(hours=1)}, {"a": "1h0m0s"}, id="durations of Go in a map"),
        pytest.param(GoDuration | None, timedelta(hours=1), "1h0m0s", id="duration of Go or null"),
        pytest.param(Backups, Backups(), {"waits": ["5m0s"], "previous": []}, id="durations of Go in a model"),
        pytest.param(
            list[Backups],
            [Backups(previous=[Backups(waits=[])])],
            [{"waits": ["5m0s"], "previous": [{"waits": [], "previous": []}]}],
            id="durations of Go in a list of models",
        ),
    ],
)
def test_a_default_is_written_as_the_server_validates_it(annotation: Any, default: Any, wanted: Any) -> None:
    assert schema_of(annotation, default)["default"] == wanted


@pytest.mark.parametrize(
    ("annotation", "default", "wanted"),
    [
        pytest.param(int | None, None, {"type": "integer"}, id="null means absent"),
        pytest.param(int | None, 5, {"type": "integer", "default": 5, "nullable": True}, id="null is a value"),
        pytest.param(int | None, ..., {"type": "integer", "nullable": True}, id="null is declared"),
    ],
)
def test_null_is_a_value_only_where_it_differs_from_absence(annotation: Any, default: Any, wanted: Manifest) -> None:
    assert schema_of(annotation, default) == wanted


def test_rules_of_a_base_class_hold_too() -> None:
    @rules(ValidationRule("one"))
    class Base(BaseModel):
        name: str

    @rules(ValidationRule("two"))
    class Derived(Base):
        pass

    both = [{"rule": "one"}, {"rule": "two"}]
    assert schema_of(Derived)["x-kubernetes-validations"] == both
    assert schema_of(Derived | None, None)["x-kubernetes-validations"] == both
    assert schema_of(Base)["x-kubernetes-validations"] == both[:1]
    on_field = Annotated[Derived, ValidationRule("three")]
    assert schema_of(on_field)["x-kubernetes-validations"] == [*both, {"rule": "three"}]


@pytest.mark.parametrize(
    ("kind", "plural"), [("Shop", "shops"), ("Proxy", "proxies"), ("Class", "classes"), ("Memcached", "memcacheds")]
)
def test_a_plural_is_guessed_as_kubernetes_does(kind: str, plural: str) -> None:
    written = crd("example.com", CRDVersion("v1", create_model(kind, spec=(Named, ...))))

    assert written["metadata"]["name"] == f"{plural}.example.com"
    assert written["spec"]["names"] == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
    }


def test_what_every_object_has_is_left_to_the_server() -> None:
    class Shop(BaseModel):
        api_version: str = Field(alias="apiVersion")
        kind: str
        metadata: Annotated[dict[str, Any], Preserve()]
        spec: Named

    written = crd("example.com", CRDVersion("v1", Shop), scope=Scope.CLUSTER)

    schema = written["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert list(schema["properties"]) == schema["required"] == ["spec"]
    assert written["spec"]["scope"] == "Cluster"


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        pytest.param([], "at least one version", id="none"),
        pytest.param([CRDVersion("v1", One), CRDVersion("v2", Named)], "name of the kind", id="two kinds"),
        pytest.param(
            [CRDVersion("v1", One), CRDVersion("v2", One)],
            "exactly one version must be stored, got none",
            id="none stored",
        ),
        pytest.param(
            [CRDVersion("v1", One, stored=True), CRDVersion("v2", One, stored=True)], "got v1, v2", id="both stored"
        ),
        pytest.param(
            [CRDVersion("v1", Maybe, columns=[PrinterColumn("A", ".inner.nme")])], "no such field", id="column"
        ),
        pytest.param(
            [CRDVersion("v1", Maybe, scale=ScaleSubresource(".inner.name", ".inner.size"))], "type integer", id="scale"
        ),
        pytest.param([CRDVersion("v1", Maybe, selectable=[".inner.color"])], "no such field", id="selectable"),
    ],
)
def test_a_definition_that_cannot_be_is_refused(versions: list[CRDVersion], reason: str) -> None:
    with pytest.raises(ManifestError, match=reason):
        crd("example.com", *versions)


class TestMarks:
    """A model refuses what the server would refuse because of a mark."""

    @pytest.mark.parametrize(
        ("annotation", "value"),
        [
            pytest.param(Annotated[list[int], ListSet()], [1, 2, 1], id="set"),
            pytest.param(Annotated[list[Named], ListMap("name")], [{"name": "a"}, {"name": "a"}], id="models by key"),
            pytest.param(
                Annotated[list[dict[str, str]], ListMap("name")], [{"name": "a"}, {"name": "a"}], id="maps by key"
            ),
        ],
    )
    def test_doubles_are_refused(self, annotation: Any, value: Any) -> None:
        with pytest.raises(ValueError, match="is a duplicate"):
            kind_with(field=(annotation, ...)).model_validate({"spec": {"field": value}})

    def test_a_key_is_found_by_its_name_in_the_api(self) -> None:
        class Port(BaseModel):
            number: int = Field(alias="containerPort")

        model = kind_with(field=(Annotated[list[Port], ListMap("containerPort")], ...))

        model.model_validate({"spec": {"field": [{"containerPort": 1}, {"containerPort": 2}]}})
        with pytest.raises(ValueError, match="is a duplicate"):
            model.model_validate({"spec": {"field": [{"containerPort": 1}, {"containerPort": 1}]}})
