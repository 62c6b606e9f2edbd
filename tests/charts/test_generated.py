"""The generated files: they are current, have each option of the commands, and query metrics that are exported."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import pytest
import yaml

from ocf.cli.hpa_controller import hpa_controller
from ocf.cli.nodegroups import nodegroups
from ocf.controllers.hpa.metrics import HpaMonitor
from ocf.controllers.nodegroup.metrics import NodeGroupMonitor
from scripts.generate.charts import hpa_controller as hpa_chart
from scripts.generate.charts import nodegroups_controller as node_group_chart
from scripts.generate.charts.__main__ import outdated, write
from scripts.generate.charts.alerts import alert_groups
from scripts.generate.charts.command_options import CommandOption
from tests.charts.support import CHART, ROOT

if TYPE_CHECKING:
    from prometheus_client.core import Metric

SCHEMA: Final = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
ELSEWHERE: Final = {
    "kubeconfig",
    "context",
    "host",
    "port",
    "traceback",
    "output",
    "image",
    "namespace",
    "leader_elect",
}
"""Parameters of both commands that are determined by the pod, or are other values."""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return a folder with what is generated, and the project's version."""
    shutil.copytree(ROOT / "charts", tmp_path / "charts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_generated_files_are_current() -> None:
    assert list(outdated()) == [], "run `python -m scripts.generate.charts`"


def remove_rule(root: Path) -> None:
    roles = root / "charts/ocf-controllers/templates/hpa-controller/roles.yaml"
    roles.write_text(roles.read_text().replace("    - patch\n", "", 1))


def set_version(root: Path) -> None:
    project = root / "pyproject.toml"
    project.write_text(re.sub(r'^version = ".*"$', 'version = "9.8.7"', project.read_text(), flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(remove_rule, "roles.yaml differs\n  +    - patch", id="a right"),
        pytest.param(set_version, "Chart.yaml differs", id="the version"),
        pytest.param(lambda root: (root / "charts/kustomize/old.yaml").touch(), "kustomize/old.yaml is not", id="old"),
        pytest.param(lambda root: (root / "charts/ocf-controllers/Chart.yaml").unlink(), "is missing", id="missing"),
    ],
)
def test_what_is_outdated_is_named_and_written(copied: Path, change: Callable[[Path], None], problem: str) -> None:
    change(copied)

    assert problem in "\n".join(outdated(copied))
    write(copied)
    assert list(outdated(copied)) == []
    assert len(list((copied / "charts/ocf-controllers/ci").iterdir())) > 0


def sections(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if "properties" in schema:
        yield schema
        for each in schema["properties"].values():
            yield from sections(each)


def test_each_section_of_the_schema_rejects_unknown_keys() -> None:
    found = list(sections(SCHEMA))

    assert len(found) > 10
    assert [each["description"] for each in found if each["additionalProperties"]] == []


def test_the_schema_and_the_defaults_have_the_same_keys() -> None:
    def paths(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[set[str], set[str]]]:
        if "properties" in schema and isinstance(value, dict) and value:
            yield set(value), set(schema["properties"]) - {"global"}
            for key, each in value.items():
                yield from paths(each, schema["properties"][key])

    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert all(given == known for given, known in paths(defaults, SCHEMA))


@pytest.mark.parametrize(
    ("command", "options", "others"),
    [
        pytest.param(
            hpa_controller,
            [hpa_chart.OPTIONS],
            {"action", "names", "back", "scales", "lease_namespace"},
            id="hpa-controller",
        ),
        pytest.param(
            nodegroups,
            [*node_group_chart.OPTIONS.values()],
            {
                "action",
                "boot_time",
                "credentials",
                "files",
                "length",
                "management_kubeconfig",
                "picture",
                "types",
            },
            id="nodegroups",
        ),
    ],
)
def test_each_option_of_the_command_is_a_value(
    command: click.Command, options: list[Mapping[str, CommandOption]], others: set[str]
) -> None:
    """Those in `others` are of other actions, or a value of the chart names a Secret or ConfigMap in their place."""
    valued = [option.parameter for each in options for option in each.values()]
    assert sorted([*valued, *ELSEWHERE, *others]) == sorted(each.name for each in command.params)


def families(controller: str) -> list[Metric]:
    """Return the metrics of a controller, without those that every target has."""
    monitor = HpaMonitor() if controller == "hpa-controller" else NodeGroupMonitor()
    return list(monitor.registry.collect())


@pytest.mark.parametrize("controller", ["hpa-controller", "nodegroup-controller"])
def test_alerts_query_metrics_that_are_exported(controller: str) -> None:
    exported = {name for family in families(controller) for name in _names(family)}
    rules = [rule for group in alert_groups(controller) for rule in group["rules"]]

    queried = {name for rule in rules for name in re.findall(r"\b(?:ocf|horizontal)_\w+", rule["expr"])}

    assert len(queried) > 1
    assert queried <= exported
    assert all({"summary", "description"} <= set(rule["annotations"]) for rule in rules)
    names = set(re.findall(r'job="([^"]+)"', "".join(rule["expr"] for rule in rules)))
    assert names == {f"ocf-{controller}"}


def _names(family: Metric) -> list[str]:
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
    return [f"{family.name}{ending}" for ending in endings]
