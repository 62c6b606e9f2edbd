"""Decoding of built-in objects."""

import re
from typing import Any

import pytest

from ocf.schema.builtin import struct
from ocf_server.codec.decoding import DecodeError, decode


def spec_of(kind: str, **spec: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = decode({"spec": spec}, struct(kind))["spec"]
    return decoded


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param({"replicas": 0}, {"replicas": 0}, id="a pointer keeps its zero"),
        pytest.param({"paused": False, "minReadySeconds": 0}, {}, id="a zero that is not a pointer vanishes"),
        pytest.param({"replicas": None}, {}, id="a null counts as unset"),
        pytest.param({"colour": "red"}, {}, id="an undeclared field is dropped"),
        pytest.param({"selector": {}}, {"selector": {}}, id="an empty object of a pointer is kept"),
    ],
)
def test_values_of_a_deployment_spec(sent: dict[str, Any], expected: dict[str, Any]) -> None:
    always = spec_of("apps.v1.Deployment")

    assert spec_of("apps.v1.Deployment", **sent) == {**always, **expected}


def test_fields_without_omitempty_are_added() -> None:
    assert decode({}, struct("apps.v1.Deployment")) == {
        "metadata": {},
        "spec": {
            "selector": None,
            "strategy": {},
            "template": {"metadata": {}, "spec": {"containers": None}},
        },
        "status": {},
    }


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param("0.5", "500m", id="fraction"),
        pytest.param("1000m", "1", id="whole"),
        pytest.param(2, "2", id="number"),
        pytest.param("1024Mi", "1Gi", id="binary"),
        pytest.param("1e3", "1e3", id="exponent is kept"),
    ],
)
def test_quantities_are_written_in_their_canonical_form(sent: Any, expected: str) -> None:
    spec = spec_of("core.v1.ResourceQuota", hard={"cpu": sent})

    assert spec == {"hard": {"cpu": expected}}


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        pytest.param(
            "replicas", "3", "string into Go struct field DeploymentSpec.spec.replicas of type int32", id="text"
        ),
        pytest.param("replicas", 1.5, "number 1.5 into Go struct field", id="fraction"),
        pytest.param("replicas", True, "bool into Go struct field", id="boolean"),
        pytest.param("replicas", 2**31, "of type int32", id="too large"),
        pytest.param("paused", 1, "number into Go struct field DeploymentSpec.spec.paused of type bool", id="number"),
        pytest.param("template", [], "array into Go struct field", id="list"),
        pytest.param("template", {"spec": {"containers": {}}}, "object into Go struct field", id="object"),
        pytest.param("selector", {"matchLabels": {"a": 1}}, "of type string", id="number in a map"),
        pytest.param("selector", {"matchLabels": "a"}, "of type map[string]string", id="text for a map"),
    ],
)
def test_a_wrong_type_names_the_field(field: str, value: Any, problem: str) -> None:
    with pytest.raises(DecodeError) as caught:
        spec_of("apps.v1.Deployment", **{field: value})

    assert problem in str(caught.value)


def test_an_invalid_quantity_is_rejected() -> None:
    with pytest.raises(DecodeError, match="quantities must match"):
        spec_of("core.v1.ResourceQuota", hard={"cpu": "much"})


@pytest.mark.parametrize(
    ("field", "sent", "expected"),
    [
        pytest.param("creationTimestamp", "2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z", id="another zone"),
        pytest.param("creationTimestamp", "2026-01-01T00:00:00.9Z", "2026-01-01T00:00:00Z", id="a fraction is cut"),
    ],
)
def test_times_are_stored_in_utc(field: str, sent: str, expected: str) -> None:
    assert decode({field: sent}, struct("meta.v1.ObjectMeta")) == {field: expected}


@pytest.mark.parametrize("text", ["yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z"])
def test_an_invalid_time_is_rejected(text: str) -> None:
    with pytest.raises(DecodeError, match="parsing time"):
        decode({"creationTimestamp": text}, struct("meta.v1.ObjectMeta"))


@pytest.mark.parametrize(
    ("field", "text"),
    [
        pytest.param("creationTimestamp", "0001-01-01T00:00:00+14:00", id="before the first year"),
        pytest.param("creationTimestamp", "9999-12-31T23:59:59-14:00", id="after the last year"),
    ],
)
def test_a_time_that_python_does_not_have_is_rejected_in_words_of_our_own(field: str, text: str) -> None:
    """A real API server stores it: Go has the years 0 and 10000."""
    with pytest.raises(
        DecodeError, match=rf'^parsing time "{re.escape(text)}": outside of the years 1 to 9999 in UTC$'
    ):
        decode({field: text}, struct("meta.v1.ObjectMeta"))


@pytest.mark.parametrize("field", ["items", "additionalProperties"])
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param({"type": "string", "title": "", "nullable": False, "no": 1}, {"type": "string"}, id="a schema"),
        pytest.param({"items": {"format": "", "type": "string"}}, {"items": {"type": "string"}}, id="a nested schema"),
        pytest.param([{"type": "string", "id": ""}], [{"type": "string"}], id="a list of schemas"),
        pytest.param({}, {}, id="an empty schema"),
        pytest.param(False, False, id="a boolean"),
    ],
)
def test_schemas_in_unions_are_decoded_as_other_schemas(field: str, sent: Any, expected: Any) -> None:
    """client-go sends the empty fields of a schema, because protobuf does not leave them out."""
    kind = "apiextensions.v1.JSONSchemaProps"
    assert decode({field: sent}, struct(kind)) == {field: expected}


def test_the_given_object_is_not_changed_and_shares_nothing() -> None:
    sent = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}}}, "metadata": {}}

    expected = decode(sent, struct("apps.v1.Deployment"))
    expected["spec"]["template"]["metadata"]["labels"]["a"] = "changed"

    assert sent["spec"]["template"] == {"metadata": {"labels": {"a": "b"}}}
