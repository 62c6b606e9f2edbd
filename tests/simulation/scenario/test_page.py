"""The YAML of the documentation is valid."""

import re
from pathlib import Path
from typing import Final

import pytest

from ocf.objects import load_document
from ocf.simulation import Scenario

PAGE: Final = Path(__file__).parents[3] / "docs" / "autoscaling" / "scenario.md"
BLOCKS: Final = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_is_a_scenario_or_a_part_of_one(block: str) -> None:
    written = {"hpa": "hpa.yaml", "workload": {"capacity": 1}, **load_document(block)}

    assert Scenario.model_validate(written, by_alias=True, by_name=False).load


def test_every_type_of_load_is_in_the_table() -> None:
    named = set(re.findall(r"^\| `([A-Z]\w+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    schema = Scenario.model_json_schema(by_alias=True)

    assert named == {name.removesuffix("Load") for name in schema["$defs"] if name.endswith("Load")}
