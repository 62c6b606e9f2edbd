"""Null is written where it is a value, and left out where it means that the field is absent."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from kubernetes.client import V1ResourceRequirements
from pydantic import BaseModel, Field

from ocf.errors import ManifestError
from ocf.runtime.crds import Preserve
from ocf.runtime.crds.model_manifests import write_nullable


class Part(BaseModel):
    with_default: str | None = Field(default="x", alias="withDefault")
    required: int | None
    absent: int | None = None


class Whole(BaseModel):
    part: Part | None = None
    parts: list[Part] = []
    named: dict[str, Part] = {}
    tags: set[str] = set()
    free: Annotated[dict[str, Any], Preserve()] = {}
    resources: V1ResourceRequirements | None = None


PART = Part(withDefault=None, required=None)
WRITTEN = {"withDefault": None, "required": None}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"part": PART}, {"part": WRITTEN}, id="a model"),
        pytest.param({"parts": [PART]}, {"parts": [WRITTEN]}, id="models in a list"),
        pytest.param({"named": {"a": PART}}, {"named": {"a": WRITTEN}}, id="models in a map"),
        pytest.param({"tags": {"c", "a", "b"}}, {"tags": ["a", "b", "c"]}, id="a set is sorted"),
        pytest.param({"free": {"a": None}}, {"free": {"a": None}}, id="a value without a schema"),
        pytest.param(
            {"resources": V1ResourceRequirements(limits={"cpu": "1"})},
            {"resources": {"limits": {"cpu": "1"}}},
            id="a model of the client",
        ),
    ],
)
def test_null_is_written_only_where_it_is_a_value(given: dict[str, Any], expected: dict[str, Any]) -> None:
    empty: dict[str, Any] = {"parts": [], "named": {}, "tags": [], "free": {}}
    assert write_nullable(Whole(**given)) == {**empty, **expected}


def test_an_invalid_value_is_an_error_with_the_model() -> None:
    wrong = Whole()
    wrong.parts.append(5)  # type: ignore[arg-type]
    with pytest.raises(ManifestError, match=r"^Whole: cannot be written as JSON"):
        write_nullable(wrong)
