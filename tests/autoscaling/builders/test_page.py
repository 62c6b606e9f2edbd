"""The page about authoring agrees with the code."""

import re
from pathlib import Path
from typing import Final

from ocf.autoscaling import metrics, scaling
from ocf.autoscaling.linter.findings import Code

PAGE: Final = (Path(__file__).parents[3] / "docs" / "autoscaling" / "authoring.md").read_text(encoding="utf-8")


def first_column(heading: str) -> list[str]:
    table = PAGE[PAGE.index(f"\n| {heading} |") :].strip().split("\n\n")[0]
    return [row.split("|")[1].strip() for row in table.splitlines()[2:]]


def test_every_code_is_in_the_table() -> None:
    assert first_column("code") == [f"`{code}`" for code in Code]


def test_every_factory_is_in_a_table() -> None:
    documented = set(re.findall(r"^\| .*`(?:metrics|scaling)\..*", PAGE, re.MULTILINE))
    named = {name for row in documented for name in re.findall(r"`(?:metrics|scaling)\.(\w+)", row)}

    assert named == {*metrics.__all__, *scaling.__all__} - {"Select"}
