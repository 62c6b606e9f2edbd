"""Models of other projects agree with the recorded definitions: fields, required fields, and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin

import pytest
from pydantic import BaseModel

from ocf.objects import Manifest
from ocf.objects.third_party.base import ApiModel
from ocf.objects.third_party.cert_manager import Certificate
from ocf.objects.third_party.gateway import HTTPRoute
from ocf.objects.third_party.keda import ScaledObject
from ocf.objects.third_party.prometheus import PrometheusRule, ServiceMonitor
from tests.primitives.third_party_definitions import third_party_definitions

MODELS: Final[dict[str, type[ApiModel]]] = {
    model.__name__: model for model in (Certificate, HTTPRoute, ScaledObject, PrometheusRule, ServiceMonitor)
}
OTHERS: Final = {
    "HTTPRoute.spec.rules[].name",  # of the experimental channel of the Gateway API
    "ScaledObject.status.conditions[].lastTransitionTime",  # the conditions of KEDA have less than usual ones
    "ScaledObject.status.conditions[].observedGeneration",
}
"""Fields of the models that the recorded versions do not have."""
NO_DEFAULT: Final = object()


def schema_of(kind: str) -> Manifest:
    (found,) = (each for each in third_party_definitions() if each["spec"]["names"]["kind"] == kind)
    schema: Manifest = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def models_in(annotation: Any) -> Iterator[tuple[type[ApiModel], str]]:
    """Yield the models in the type of a field, each with the path from the field to it."""
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation, ""
    for argument, mark in zip(get_args(annotation), marks(annotation), strict=False):
        yield from ((model, f"{mark}{path}") for model, path in models_in(argument))


def marks(annotation: Any) -> tuple[str, ...]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    return ("[]",) if origin is list else ("{}", "{}") if origin is dict else ("",) * len(arguments)


def fields(model: type[ApiModel], path: str) -> Iterator[tuple[str, bool, Any]]:
    """Yield the path of each field of a model, whether it is required, and its default as JSON."""
    for name, info in model.model_fields.items():
        at = f"{path}.{info.alias or name}"
        default = NO_DEFAULT if info.is_required() else info.get_default(call_default_factory=True)
        yield at, info.is_required(), plain(default)
        for inner, further in models_in(info.annotation):
            yield from fields(inner, f"{at}{further}")


def plain(value: Any) -> Any:
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.model_dump(by_alias=True, exclude_none=True) if isinstance(value, BaseModel) else value


def at(schema: Manifest, path: str) -> tuple[Manifest | None, bool]:
    """Return the schema at a path, None if there is none, and whether its parent requires it."""
    found: Manifest | None = schema
    required = False
    for name, mark in re.findall(r"\.([^.\[{]+)|(\[\]|\{\})", path):
        if found is None:
            break
        required = name in found.get("required", ())
        part = "items" if mark == "[]" else "additionalProperties"
        found = found.get(part) if mark else found.get("properties", {}).get(name)
    return found, required


def defaults(schema: Manifest, path: str = "", *, listed: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the defaults inside of lists, which have one owner as a whole."""
    if listed and "default" in schema:
        yield path, schema["default"]
    for key, inner in schema.get("properties", {}).items():
        yield from defaults(inner, f"{path}.{key}", listed=listed)
    for part, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(part), dict):
            yield from defaults(schema[part], f"{path}{mark}", listed=listed or part == "items")


@pytest.mark.parametrize("kind", MODELS)
def test_the_fields_of_a_model_are_those_of_the_definition(kind: str) -> None:
    schema, model = schema_of(kind), MODELS[kind]
    ours = [path for path, _, _ in fields(model, "") if not path.startswith((".apiVersion", ".kind", ".metadata"))]
    assert {f"{kind}{path}" for path in ours if at(schema, path)[0] is None} == {
        path for path in OTHERS if path.startswith(kind)
    }


@pytest.mark.parametrize("kind", MODELS)
def test_what_a_model_requires_the_definition_requires(kind: str) -> None:
    schema, model = schema_of(kind), MODELS[kind]
    beyond = {path for path, required, _ in fields(model, "") if required and not at(schema, path)[1]}
    # Kubernetes accepts a Certificate without a spec, of which cert-manager makes nothing.
    assert beyond == ({".spec"} if kind == "Certificate" else set())


@pytest.mark.parametrize("kind", MODELS)
def test_defaults_inside_of_lists_are_known_beforehand(kind: str) -> None:
    schema = {"properties": {"spec": schema_of(kind)["properties"]["spec"]}}
    known = {path: default for path, _, default in fields(MODELS[kind], "")}
    assert {path: known.get(path, NO_DEFAULT) for path, _ in defaults(schema)} == dict(defaults(schema))


@pytest.mark.parametrize("kind", MODELS)
def test_a_model_has_no_default_of_its_own(kind: str) -> None:
    schema = schema_of(kind)
    sent = {path: default for path, _, default in fields(MODELS[kind], "")}
    ours = {path: default for path, default in sent.items() if default not in (None, NO_DEFAULT)}
    written = {path: default for path, default in ours.items() if path.startswith(".spec")}
    assert written == {path: (at(schema, path)[0] or {}).get("default") for path in written}
