"""Names and values of others in the output of commands: nothing in them acts on a terminal or on a CI run."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app
from ocf.runtime.monitoring import JsonFormatter
from ocf.runtime.monitoring.text_logs import TextFormatter
from tests.objects.test_printable import is_harmless

FORGED: Final = "::error title=forged::forged"
HOSTILE: Final = f"web\x1b[2J\x1b]0;x\x07\r\n{FORGED}\n##[set-output name=a]b\u202e\u2028\x9b2K,:%0A"


def hpa(**metadata: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": HOSTILE}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": HOSTILE, "namespace": HOSTILE, **metadata},
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": 5,
            "maxReplicas": 3,
            HOSTILE: 1,
            "metrics": [{"type": "Resource", "resource": cpu}, {"type": HOSTILE}],
        },
    }


def valid() -> dict[str, Any]:
    """Return an autoscaler that the API server accepts, with a hostile metric and a hostile target."""
    made = hpa()
    made["metadata"] = {"name": "web", "namespace": "shop", "annotations": {HOSTILE: HOSTILE, "note": HOSTILE}}
    metric = {"metric": {"name": HOSTILE}, "target": {"type": "AverageValue", "averageValue": "1"}}
    made["spec"] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": HOSTILE},
        "maxReplicas": 3,
        "metrics": [{"type": "External", "external": metric}] * 2,
    }
    return made


def deployment(**metadata: Any) -> dict[str, Any]:
    container = {"name": HOSTILE, "image": HOSTILE, "resources": {"requests": {"cpu": HOSTILE}}}
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": HOSTILE, "namespace": "shop", **metadata},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


SNAPSHOT: Final = {
    "apiVersion": "ocf.dev/v1",
    "kind": "Snapshot",
    "now": "2026-01-31T12:00:00Z",
    "replicas": 2,
    "pods": [{"count": 2, "requests": {"cpu": "500m"}}],
    "metrics": [{"name": HOSTILE, "total": 5}],
}
SCENARIO: Final = {
    "name": HOSTILE,
    "hpa": {**valid(), "metadata": {"name": "web", "namespace": "shop"}},
    "workload": {"capacity": 10, "requests": {"cpu": "100m"}},
    "load": {"type": HOSTILE},
    HOSTILE: HOSTILE,
}
VALID_SCENARIO: Final = {
    "name": HOSTILE,
    "hpa": SCENARIO["hpa"],
    "workload": {"capacity": 10, "requests": {"cpu": "100m"}},
    "load": {"type": "Steps", "steps": [{"at": "0s", "rate": 10}]},
    "duration": "5m",
}
GROUP: Final = {
    "apiVersion": "autoscaling.ocf.dev/v1alpha1",
    "kind": "NodeGroup",
    "metadata": {"name": HOSTILE, "namespace": "default"},
    "spec": {"minNodes": 0, "maxNodes": 5, "datacenterID": HOSTILE, "offeringIDs": [HOSTILE]},
}
TYPES: Final = [
    {"name": HOSTILE, "allocatable": {"cpu": "2", "memory": "8Gi"}, "offerings": [{"zone": HOSTILE, "price": 1}]}
]


def pod(name: str) -> dict[str, Any]:
    container = {"name": "app", "image": "a", "resources": {"requests": {"cpu": "64"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": HOSTILE},
        "spec": {"containers": [container], "nodeSelector": {HOSTILE: HOSTILE}},
    }


def definition() -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {HOSTILE: 1}}},
    }
    names = {"kind": "Cache", "plural": HOSTILE}
    return {"kind": "CustomResourceDefinition", "spec": {"group": HOSTILE, "names": names, "versions": [version]}}


FILES: Final = {
    "invalid.json": hpa(),
    "valid.json": {"apiVersion": "v1", "kind": "List", "items": [valid(), deployment()]},
    "explained.json": {"apiVersion": "v1", "kind": "List", "items": [valid(), SNAPSHOT]},
    "scenario.json": SCENARIO,
    "run.json": VALID_SCENARIO,
    "groups.json": {"apiVersion": "v1", "kind": "List", "items": [GROUP, pod(HOSTILE), pod("web")]},
    "types.json": TYPES,
    "crd.json": definition(),
    f"{HOSTILE.replace('/', '')}.json": hpa(),
}
COMMANDS: Final = [
    pytest.param(["validate", "invalid.json"], id="validate"),
    pytest.param(["validate", "."], id="validate a folder with hostile names of files"),
    pytest.param(["validate", "valid.json", "--lint", "--severity=info"], id="lint"),
    pytest.param(["validate", ".", "--lint", "--output=json"], id="validate as JSON"),
    pytest.param(["validate", ".", "--lint", "--output=sarif"], id="validate as SARIF"),
    pytest.param(["default", "valid.json"], id="default"),
    pytest.param(["default", "valid.json", "--output=json"], id="default as JSON"),
    pytest.param(["default", "invalid.json"], id="default of what is not valid"),
    pytest.param(["explain", "-f", "explained.json"], id="explain"),
    pytest.param(["explain", "-f", "explained.json", "--output=json"], id="explain as JSON"),
    pytest.param(["explain", HOSTILE, "-f", "explained.json"], id="explain another name"),
    pytest.param(["simulate", "scenario.json"], id="simulate"),
    pytest.param(["simulate", "run.json"], id="a simulation"),
    pytest.param(["simulate", "run.json", "--output=json"], id="a simulation as JSON"),
    pytest.param(["simulate", "run.json", "run.json", "--compare"], id="a comparison"),
    pytest.param(["tune", "scenario.json", "--search=spec.minReplicas=1..2"], id="tune"),
    pytest.param(["nodegroups", "plan", "groups.json", "--types=types.json"], id="plan of node groups"),
    pytest.param(["nodegroups", "explain", "groups.json", "--types=types.json"], id="explain node groups"),
    pytest.param(["new", "kind", "crd.json"], id="new kind"),
    pytest.param(["new", "operator", HOSTILE], id="new operator"),
    pytest.param(
        ["preview", f"{HOSTILE.replace(':', ';')}:x", "--owner=valid.json"], id="a module with a hostile name"
    ),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the hostile files."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(json.dumps(content))
    return tmp_path


def printed(arguments: list[str]) -> str:
    """Run a command; return what it prints. It must end by itself, with an error of ours at most."""
    done = CliRunner().invoke(app, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.output
    return done.stdout + done.stderr


@pytest.mark.parametrize("arguments", COMMANDS)
@pytest.mark.usefixtures("folder")
def test_nothing_in_the_output_acts(arguments: list[str]) -> None:
    output = printed(arguments)

    assert is_harmless(output), repr(output)
    assert "forged" in output


@pytest.mark.usefixtures("folder")
def test_an_annotation_of_github_is_one_command_with_escaped_properties() -> None:
    """Source: https://github.com/actions/toolkit, packages/core/src/command.ts."""
    lines = printed(["validate", ".", "--lint", "--severity=info", "--output=github"]).splitlines()

    commands = [line for line in lines if line.startswith("::")]
    assert commands
    for line in lines:
        assert is_harmless(line.removeprefix("::"))
    for command in commands:
        found = re.fullmatch(r"::(error|warning|notice) ((?:[a-z]+=[^,:]*,?)+)::(.*)", command)
        assert found, command
        assert {each.partition("=")[0] for each in found[2].split(",")} <= {"file", "line", "col", "title"}
        assert not re.search(r"%(?!25|3A|2C)", found[2] + found[3])


def test_an_error_is_one_line_for_each_problem(folder: Path) -> None:
    (folder / "broken.yaml").write_text(f"a: [\n# {HOSTILE}")
    assert is_harmless(printed(["explain", "-f", "broken.yaml"]))


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()], ids=["text", "JSON"])
def test_a_log_line_is_one_line(formatter: logging.Formatter) -> None:
    record = logging.makeLogRecord({"msg": "reconciled %s", "args": (HOSTILE,), "levelname": "INFO"})

    line = formatter.format(record)

    assert is_harmless(line)
    assert len(line.splitlines()) == 1
    assert "forged" in line


def test_a_traceback_is_harmless() -> None:
    error = ValueError(HOSTILE)
    record = logging.makeLogRecord({"msg": "failed", "exc_info": (type(error), error, error.__traceback__)})

    found = TextFormatter().format(record)

    assert is_harmless(found)
    assert "forged" in found
