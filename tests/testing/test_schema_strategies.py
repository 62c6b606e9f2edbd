"""Random objects comply with the schema of their version, and cover what it allows."""

from __future__ import annotations

import sys
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from kubernetes.client import V1ResourceRequirements
from pydantic import AwareDatetime, BaseModel, Field, model_validator

import ocf.testing
from ocf.errors import ConfigError
from ocf.objects import Manifest
from ocf.runtime.crds import CRDVersion, GoDuration, ListMap, Preserve, QuantityText, VersionedResource
from ocf.testing import objects_of
from ocf_server.apiextensions import schema_faults


class Port(BaseModel):
    name: str = Field(max_length=3)
    number: int = Field(ge=1, lt=10)


class Spec(BaseModel):
    count: int = Field(default=3, multiple_of=3)
    share: float = Field(default=0.5, gt=0, le=1)
    word: str = Field(pattern="^[a-c]{1,4}$")
    size: QuantityText = "1"
    amount: Decimal = Decimal(1)
    every: timedelta = timedelta(0)
    delay: GoDuration = timedelta(0)
    since: AwareDatetime | None = None
    color: Literal["red", "blue"] = "red"
    motto: str | None = "open"
    either: int | Literal["auto"] = 1
    ports: Annotated[list[Port], ListMap("name")] = []
    tags: set[str] = set()
    few: Annotated[list[int], Field(min_length=2, max_length=3)] = [1, 2]
    limits: dict[str, int] = {}
    free: Annotated[dict[str, Any], Preserve()] = {}
    resources: V1ResourceRequirements | None = None


class Thing(BaseModel):
    spec: Spec


THINGS = VersionedResource("x.example.com", [CRDVersion("v1", Thing)])
SCHEMA: dict[str, Any] = THINGS.definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
# The first example is enough: the smallest is not needed.
FOUND = settings(max_examples=2000, phases=[Phase.generate], database=None)


@settings(max_examples=20)
@given(objects_of(THINGS))
def test_objects_comply_with_the_schema_and_the_model(manifest: Manifest) -> None:
    assert not schema_faults(manifest["spec"], SCHEMA["properties"]["spec"])
    Thing.model_validate(manifest)
    assert (manifest["apiVersion"], manifest["kind"]) == ("x.example.com/v1", "Thing")


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(lambda spec: spec["motto"] is None, id="null that is a value"),
        pytest.param(lambda spec: spec["either"] == "auto", id="the other alternative"),
        pytest.param(lambda spec: len(spec["ports"]) > 1, id="several entries"),
        pytest.param(lambda spec: "since" in spec and "resources" in spec, id="optional fields"),
        pytest.param(lambda spec: spec["limits"] and spec["free"], id="maps"),
        pytest.param(lambda spec: spec["every"] != "PT0S" and spec["amount"] != "1", id="durations and decimals"),
    ],
)
def test_what_a_schema_allows_is_drawn(wanted: Any) -> None:
    find(objects_of(THINGS), lambda manifest: bool(wanted(manifest["spec"])), settings=FOUND)


def test_a_field_can_have_a_strategy_of_its_own() -> None:
    fields = {"spec.word": st.just("abc"), "spec.ports[].name": st.just("x"), "spec.limits.*": st.just(7)}

    @settings(max_examples=10)
    @given(objects_of(THINGS, "v1", fields=fields))
    def check(manifest: Manifest) -> None:
        spec = manifest["spec"]
        assert spec["word"] == "abc"
        assert {port["name"] for port in spec["ports"]} <= {"x"}
        assert set(spec["limits"].values()) <= {7}

    check()


def test_a_path_that_no_version_has_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^things.x.example.com has no field spec.wrod in v1$"):
        objects_of(THINGS, fields={"spec.wrod": st.just("")})


class Ordered(BaseModel):
    low: int = Field(ge=0, le=3)
    high: int = Field(ge=0, le=3)

    @model_validator(mode="after")
    def _is_ordered(self) -> Ordered:
        if self.low > self.high:
            raise ValueError("low must not exceed high")
        return self


@given(objects_of(VersionedResource("x.example.com", [CRDVersion("v1", Ordered)])))
def test_objects_that_the_model_cannot_read_are_not_drawn(manifest: Manifest) -> None:
    assert manifest["low"] <= manifest["high"]


def test_without_hypothesis_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "ocf.testing.schema_strategies")
    monkeypatch.delattr(ocf.testing, "objects_of")
    with pytest.raises(ConfigError, match=r"pip install 'ocf\[testing\]'$"):
        _ = ocf.testing.objects_of
