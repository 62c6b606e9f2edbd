"""The page about the HPA controller matches the code, and its commands run."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app, load_command
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.crd import HorizontalAutoscalerSettings
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.hpa.plan import AutoscalerPhase
from ocf.objects.documents import load_documents

PAGE: Final = (Path(__file__).parents[3] / "docs" / "autoscaling" / "hpa-controller.md").read_text(encoding="utf-8")
COMMANDS: Final = re.findall(r"^```sh\nocf (.*?)\n```$", re.sub(r" \\\n *", " ", PAGE), re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table whose first column has this heading."""
    table = PAGE[PAGE.index(f"\n| {heading} |") :].strip().split("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]


def words(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def options() -> dict[str, str]:
    """Return the flags of the command, each with its default."""
    command = load_command("hpa-controller")
    return {flag: str(parameter.default) for parameter in command.params for flag in parameter.opts}


def test_the_flags_are_those_of_the_command() -> None:
    known = options()

    for flag, default, theirs, _ in rows("flag"):
        assert known[words(flag)[0]] == default
        assert known[words(theirs)[0]] == default


def test_the_settings_of_one_autoscaler_are_those_of_its_kind() -> None:
    fields = {info.alias or name for name, info in HorizontalAutoscalerSettings.model_fields.items()}
    documented = {word for row in rows("flag") for word in words(row[3])}

    assert documented | {"scaleUpLimitFactor", "scaleUpLimitMinimum"} == fields
    assert all(f"`{field}`" in PAGE for field in fields)


def test_the_modes_are_those_of_the_controller() -> None:
    assert [words(row[0])[0] for row in rows("`--mode`")] == list(Mode)


def test_the_metrics_are_those_that_are_counted() -> None:
    families = {
        f"{family.name}_total" if family.type == "counter" else family.name: family
        for family in HpaMonitor().describe()
    }
    documented = {words(name)[0]: words(labels) for name, labels in rows("metric")}

    assert documented.keys() == families.keys()
    assert {name: list(families[name]._labelnames) for name in documented} == documented
    assert all(f"`{state}`" in PAGE for state in AutoscalerPhase)


@pytest.mark.parametrize("line", [line for line in COMMANDS if " manifests" in line])
def test_the_manifests_are_printed(line: str) -> None:
    done = CliRunner().invoke(app, shlex.split(line))

    assert done.exit_code == 0, done.output
    kinds = [each["kind"] for each in load_documents(done.stdout)]
    # The namespace is part of them if it is the default one.
    assert kinds[kinds.count("Namespace")] == "CustomResourceDefinition"


def test_every_command_of_the_page_is_tested() -> None:
    """The one that runs is run by `tests/cli/test_hpa_controller.py`, with the same options.

    The block of several commands is run by `tests/docs/test_hpa_controller_page.py`, the arguments of helm by
    `tests/charts/test_rendered.py`, and the steps of the image by `tests/test_images.py`.
    """
    programs = Counter(re.findall(r"^```sh\n(\w+)", PAGE, re.MULTILINE))
    assert programs == {"ocf": len(COMMANDS) + 1, "helm": 1, "docker": 1}
    assert [line for line in COMMANDS if " manifests" not in line] == [
        "hpa-controller --mode dry-run --output json --port 0"
    ]
