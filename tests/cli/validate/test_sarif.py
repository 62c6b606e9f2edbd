"""SARIF output against the schema of SARIF 2.1.0, and against models of the objects that it contains.

The models allow less than the schema: a property that it knows and that we do not write is an error. The schema is that
of OASIS Open, errata 01, as published at the address in its `id`.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Annotated, Literal

import pytest
from click.testing import CliRunner
from jsonschema import Draft4Validator
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, PositiveInt
from pydantic.alias_generators import to_camel

from ocf.cli.app import app

VALID = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {minReplicas: 10, maxReplicas: 10, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""
FILES = {
    "good.yaml": VALID,
    "unknown field.yaml": VALID.replace("minReplicas: 10", "minReplicas: 1, bogus: 1"),
    "below the minimum.yaml": VALID.replace("minReplicas: 10", "minReplicas: -1"),
    "ünreadable.yaml": "kind: HorizontalPodAutoscaler\n a: [",
    "of_no_map.json": '["HorizontalPodAutoscaler"]',
    "list.yaml": "kind: HorizontalPodAutoscalerList\napiVersion: autoscaling/v2\nitems: 3",
    "empty.yaml": "",
}


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Region(_Object):
    start_line: PositiveInt
    start_column: PositiveInt


class ArtifactLocation(_Object):
    uri: Annotated[str, Field(pattern=r"^([A-Za-z0-9._~!$&'()*+,;=:@/?#-]|%[0-9A-F]{2})+$")]  # a URI reference


class PhysicalLocation(_Object):
    artifact_location: ArtifactLocation
    region: Region | None = None


class LogicalLocation(_Object):
    name: str
    kind: str


class Location(_Object):
    physical_location: PhysicalLocation
    logical_locations: list[LogicalLocation] | None = None


class Message(_Object):
    text: str


class Result(_Object):
    rule_id: Annotated[str, Field(min_length=1)]
    rule_index: Annotated[int, Field(ge=0)]
    level: Literal["none", "note", "warning", "error"]
    message: Message
    locations: list[Location]


class Rule(_Object):
    id: Annotated[str, Field(min_length=1)]


class ToolComponent(_Object):
    name: str
    version: str
    rules: list[Rule]


class Tool(_Object):
    driver: ToolComponent


class Run(_Object):
    tool: Tool
    column_kind: Literal["utf16CodeUnits", "unicodeCodePoints"]
    results: list[Result]


class Log(_Object):
    schema_: Annotated[AnyUrl, Field(alias="$schema", strict=False)]
    version: Literal["2.1.0"]
    runs: list[Run]


SCHEMA = Draft4Validator(
    json.loads(gzip.decompress(Path(__file__).with_name("sarif-schema-2.1.0.json.gz").read_bytes()))
)


def sarif(*arguments: str) -> Log:
    result = CliRunner().invoke(app, ["validate", "--output", "sarif", *arguments])
    SCHEMA.validate(json.loads(result.stdout))
    return Log.model_validate_json(result.stdout)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "lint", [pytest.param((), id="validation"), pytest.param(("--lint", "--severity", "info"), id="with lint")]
)
def test_every_kind_of_finding_keeps_the_schema(folder: Path, lint: tuple[str, ...]) -> None:
    files = [str(folder / name) for name in [*FILES, "gone.yaml"]]
    (run,) = sarif(*lint, *files).runs
    assert len({result.rule_id for result in run.results}) >= 2
    places = [each.physical_location.region for result in run.results for each in result.locations]
    assert None in places
    assert any(places)


def test_rules_are_unique_and_indexes_are_theirs(folder: Path) -> None:
    (run,) = sarif("--lint", str(folder)).runs
    rules = [rule.id for rule in run.tool.driver.rules]
    assert len(rules) == len(set(rules))
    assert [rules[result.rule_index] for result in run.results] == [result.rule_id for result in run.results]


def test_without_findings_it_is_a_run_without_results(folder: Path) -> None:
    assert sarif(str(folder / "good.yaml")).runs[0].results == []
