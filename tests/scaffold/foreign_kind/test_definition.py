"""Kinds of definitions: version, category, and errors that name what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.errors import ConfigError
from ocf.scaffold import foreign_kinds

Json = dict[str, Any]

SCHEMA: Json = {"openAPIV3Schema": {"type": "object"}}
CONDITION: Json = {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}


def definition(*versions: Json, kind: object = "Cache", **fields: Any) -> Json:
    spec = {"group": "example.com", "names": {"kind": kind, "plural": "caches"}, "versions": [*versions], **fields}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}


def version(name: str, **fields: Any) -> Json:
    return {"name": name, "served": True, "schema": SCHEMA, **fields}


@pytest.mark.parametrize(
    ("names", "preferred"),
    [
        pytest.param(["v1", "v2"], "v2", id="the higher one"),
        pytest.param(["v9", "v10"], "v10", id="by number"),
        pytest.param(["v1", "v2beta1"], "v1", id="stable before beta"),
        pytest.param(["v2alpha1", "v1beta1"], "v1beta1", id="beta before alpha"),
        pytest.param(["v1beta2", "v1beta10"], "v1beta10", id="by number of the stage"),
        pytest.param(["foo", "v1alpha1"], "v1alpha1", id="versions before other names"),
    ],
)
def test_the_preferred_version(names: list[str], preferred: str) -> None:
    for order in (names, names[::-1]):
        (found,) = foreign_kinds([definition(*map(version, order))])
        assert found.version == preferred


def test_a_version_that_is_not_served_is_passed_over() -> None:
    (found,) = foreign_kinds([definition(version("v1"), version("v2", served=False))])

    assert found.api_version == "example.com/v1"


@pytest.mark.parametrize(
    ("columns", "ready"),
    [
        pytest.param([], "Ready", id="no column"),
        pytest.param(['.status.conditions[?(@.type=="Ready")].status'], "Ready", id="column"),
        pytest.param([".status.conditions[?(@.type=='Programmed')].status"], "Programmed", id="other quotes"),
        pytest.param(
            ['.status.conditions[?( @.type == "Valid" )].status'], "Valid", id="spaces, and a type of its own"
        ),
        pytest.param(['.status.conditions[?(@.type=="Paused")].status'], "Ready", id="not a condition of readiness"),
        pytest.param(
            ['.status.conditions[?(@.type=="Synced")].status', '.status.conditions[?(@.type=="Ready")].status'],
            "Ready",
            id="the usual one of several",
        ),
        pytest.param(['.status.conditions[?(@.type=="Valid")].reason'], "Ready", id="another field"),
    ],
)
def test_the_condition_of_readiness(columns: list[str], ready: str) -> None:
    conditions = {"type": "array", "items": CONDITION}
    status = {"type": "object", "properties": {"conditions": conditions}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}}
    shown = [{"name": "a", "type": "string", "jsonPath": path} for path in columns]

    (found,) = foreign_kinds([definition(version("v1", schema=schema, additionalPrinterColumns=shown))])

    assert found.ready == ready


def test_a_status_without_conditions_has_no_readiness() -> None:
    (found,) = foreign_kinds([definition(version("v1"))])

    assert found.ready == ""


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        pytest.param(
            {"kind": "Pod"}, "expected the manifest of a CustomResourceDefinition, got Pod", id="no definition"
        ),
        pytest.param(definition(version("v1"), kind=None), "spec.names.kind: must be a name", id="no kind"),
        pytest.param(definition(version("v1"), kind="a b"), "must be a name such as Cache, got 'a b'", id="kind"),
        pytest.param(definition(version("v1", served=False)), "no version is served", id="nothing served"),
        pytest.param(definition({"name": "v1", "served": True}), "openAPIV3Schema: required value", id="no schema"),
        pytest.param(
            {**definition(version("v1")), "apiVersion": "apiextensions.k8s.io/v1beta1"},
            "must be apiextensions.k8s.io/v1, got apiextensions.k8s.io/v1beta1",
            id="old definition",
        ),
    ],
)
def test_a_definition_that_cannot_be_used_is_an_error(manifest: Json, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        foreign_kinds([manifest])

    assert problem in str(caught.value)
