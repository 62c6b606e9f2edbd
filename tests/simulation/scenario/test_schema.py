"""The JSON schema of scenarios."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ocf.objects import load_document
from ocf.simulation import Scenario, initial_scenario
from tests.simulation.scenario.test_initial import CPU, hpa

PUBLISHED = Path(__file__).parents[3] / "docs" / "autoscaling" / "scenario.schema.json"


def schema() -> dict[str, Any]:
    """Return the schema."""
    return Scenario.model_json_schema(by_alias=True)


def test_the_published_schema_is_current() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == f"{json.dumps(schema(), indent=2)}\n", (
        "write it anew: ocf simulate --schema > docs/autoscaling/scenario.schema.json"
    )


def test_every_field_has_a_description() -> None:
    found = schema()
    parts = {"Scenario": found, **found["$defs"]}

    assert [
        f"{name}.{field}"
        for name, part in parts.items()
        for field, written in part.get("properties", {}).items()
        if not written.get("description")
    ] == []


def test_a_load_may_be_one_or_a_list() -> None:
    one, several = schema()["properties"]["load"]["anyOf"]

    assert {each["$ref"] for each in one["oneOf"]} == {each["$ref"] for each in several["items"]["oneOf"]}
    assert several["minItems"] == 1


def test_defaults_are_written_as_in_a_file() -> None:
    delays = schema()["$defs"]["Workload"]["properties"]

    assert delays["startup"]["default"] == {"mean": "2s", "spread": "0s"}
    assert delays["warmUp"]["default"] == "0s"


def keys(value: Any, part: dict[str, Any], found: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the keys of a map that the part of the schema does not have."""
    if "$ref" in part:
        part = found["$defs"][part["$ref"].rsplit("/", 1)[1]]
    for key in value if isinstance(value, dict) and "properties" in part else ():
        if key not in part["properties"]:
            yield key, part
        else:
            yield from keys(value[key], part["properties"][key], found)


def test_the_initial_scenario_uses_fields_of_the_schema() -> None:
    document = load_document(initial_scenario(hpa(CPU)))

    assert list(keys(document, schema(), schema())) == []
    assert set(schema()["required"]) <= set(document)
