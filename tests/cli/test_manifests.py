"""`ocf manifests`: files are written, compared, and never taken from the user."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from ocf.cli.app import app

OPERATOR = """
from ocf import component
from ocf.cluster import ServiceAccount
from ocf.primitives import configmap
from ocf.runtime.admission import Match, Webhook
from ocf.runtime.crds import CamelModel, CustomResource, OwnerMetadata
from ocf.runtime.operator import Operator, OwnerType


class CornerSpec(CamelModel):
    motto: str


class Corner(CustomResource[CornerSpec], group="example.com", version="v1"):
    pass


def web(corner, name="web"):
    settings = configmap.Builder({"metadata": {"name": "settings"}, "data": {"motto": corner.spec.motto}})
    return component.Builder(name, owner=corner.key, condition_type=f"{name}Ready").with_resource(settings).build()


def components(corner: Corner):
    return web(corner)


def states():
    return components(Corner(metadata=OwnerMetadata(name="any", namespace="any"), spec=CornerSpec(motto="")))


def no_components():
    return [1]


corners = Operator(name="corners", owner=OwnerType.of(Corner), components=components)
reading = Operator(name="reading", owner=corners.owner, components=lambda corner, context: components(corner))
one_name = Operator(name="names", owner=corners.owner, components=lambda corner: [web(corner), web(corner)])
one_object = Operator(name="objects", owner=corners.owner, components=lambda corner: [web(corner), web(corner, "api")])


def guarding(**match):
    guard = Webhook("", "v1", "Pod", "pods", validating=[lambda request: None], match=Match(**match))
    return Operator(name="guard", owner=corners.owner, components=components, webhooks=[guard])


def acting(corner: Corner):
    account = ServiceAccount(corner.metadata.name, "accounts")
    settings = configmap.Builder({"metadata": {"name": "settings"}})
    return component.Builder("web", owner=corner.key).acting_as(account).with_resource(settings).build()


as_others = Operator(name="others", owner=corners.owner, components=acting)
guard = guarding(conditions={"no-nodes": "!('system:nodes' in request.userInfo.groups)"})
unparsed = guarding(conditions={"no-nodes": "request.userInfo.groups +"})
untyped = guarding(conditions={"no-nodes": "request.userInfo.username"})
"""
SAMPLE = "{apiVersion: example.com/v1, kind: Corner, metadata: {name: one}, spec: {motto: open}}"
PROJECT = '[project]\nname = "corners"\nversion = "1.4"\ndescription = "Corners of shops."\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a folder with an operator and a sample, as the working directory."""
    (tmp_path / "corner_operator.py").write_text(OPERATOR)
    (tmp_path / "corner.yaml").write_text(SAMPLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("corner_operator", None)


def run(*arguments: str, code: int = 0) -> str:
    """Run `ocf manifests` for the operator into `deploy`; return what it prints, errors last."""
    done = CliRunner().invoke(app, ["manifests", *arguments, "--directory=deploy"])
    assert done.exit_code == code, done.output
    return done.stdout + done.stderr


def write(*arguments: str, code: int = 0) -> str:
    return run("corner_operator:corners", "--owner=corner.yaml", *arguments, code=code)


@pytest.mark.parametrize("layout", ["kustomize", "helm", "olm"])
def test_what_was_written_is_current(layout: str) -> None:
    written = write(f"--format={layout}")

    assert "wrote deploy/" in written
    assert "deploy is current" in write(f"--format={layout}")
    assert "deploy is current" in write(f"--format={layout}", "--check")


def test_a_change_is_found_and_nothing_is_written(folder: Path) -> None:
    write()
    before = {path: path.read_text() for path in folder.glob("deploy/**/*.yaml")}

    found = write("--namespace=ops", "--check", code=1)

    assert "base/namespace.yaml differs\n  -  name: corners\n  +  name: ops\n" in found
    assert "deploy is not current: " in found
    assert {path: path.read_text() for path in folder.glob("deploy/**/*.yaml")} == before


def test_a_file_that_is_not_generated_any_more_is_removed(folder: Path) -> None:
    write("--replicas=2")
    assert "base/disruption-budget.yaml is not generated any more" in write("--check", code=1)

    assert "removed deploy/base/disruption-budget.yaml" in write()
    assert not (folder / "deploy/base/disruption-budget.yaml").exists()


def test_files_of_the_user_stay(folder: Path) -> None:
    write()
    overlay, patch = folder / "deploy/overlays/production/kustomization.yaml", folder / "deploy/base/patch.yaml"
    overlay.write_text("resources: [../../base]\n")
    patch.write_text("a: 1\n")

    assert "deploy is current" in write("--check")
    write("--namespace=ops")

    assert (overlay.read_text(), patch.read_text()) == ("resources: [../../base]\n", "a: 1\n")


def test_a_file_of_the_user_is_not_overwritten_and_nothing_is_written(folder: Path) -> None:
    own = folder / "deploy" / "base" / "roles.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("mine: true\n")

    error = write(code=2)

    assert "deploy has files of its own where manifests would be written: base/roles.yaml" in error
    assert [path.name for path in own.parent.iterdir()] == ["roles.yaml"]


@pytest.mark.parametrize("layout", ["kustomize", "helm", "olm"])
def test_files_of_another_operator_are_not_replaced_and_nothing_is_written(folder: Path, layout: str) -> None:
    write(f"--format={layout}")
    before = {path: path.read_bytes() for path in folder.glob("deploy/**/*") if path.is_file()}
    other = ["corner_operator:reading", "--components=corner_operator:states", f"--format={layout}"]

    error = run(*other, code=2)

    assert "deploy has the manifests of operator corners: " in error
    assert "choose another folder for operator reading, or delete them if it replaces that operator" in error
    assert {path: path.read_bytes() for path in folder.glob("deploy/**/*") if path.is_file()} == before
    assert "is not current" in run(*other, "--check", code=1)


def test_files_of_another_operator_that_would_be_left_over_are_not_removed(folder: Path) -> None:
    """The operator itself has no file of this name, so that only a removal would touch it."""
    left = folder / "deploy" / "base" / "disruption-budget.yaml"
    left.parent.mkdir(parents=True)
    left.write_text("# Generated by `ocf manifests` from the declaration of operator others; do not edit.\n")

    assert "has the manifests of operator others: base/disruption-budget.yaml" in write(code=2)
    assert left.exists()


def test_the_project_names_version_and_description(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(PROJECT)
    write("--format=helm")

    chart = (folder / "deploy" / "Chart.yaml").read_text()
    assert "version: 1.4.0\n" in chart
    assert "description: Corners of shops.\n" in chart
    assert "  repository: corners\n  tag: 1.4.0\n" in (folder / "deploy" / "values.yaml").read_text()


def test_a_function_can_return_the_components(folder: Path) -> None:
    run("corner_operator:reading", "--components=corner_operator:states")

    assert "  - configmaps\n" in (folder / "deploy/base/roles.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(
            ["corner_operator:corners"],
            "Corner.spec: required value; without --owner, the sample has nothing but a name: give complete ones, "
            "--owner FILE",
            id="no sample",
        ),
        pytest.param(
            ["corner_operator:corners", "--owner=other.yaml"],
            "other.yaml:1: operator corners reconciles Corner of example.com/v1, got ConfigMap of v1",
            id="other kind",
        ),
        pytest.param(
            ["corner_operator:corners", "--components=states"],
            '--components: invalid function "states": write MODULE:FUNCTION',
            id="no module",
        ),
        pytest.param(
            ["corner_operator:corners", "--components=corner_operator:no_components"],
            "corner_operator:no_components for Corner default/example must return one or more components, got int",
            id="no components",
        ),
        pytest.param(
            ["corner_operator:corners", "--owner=corner.yaml", "--replicas=2", "--no-leader-election"],
            "2 replicas need leader election",
            id="options",
        ),
        pytest.param(
            ["corner_operator:corners", "--owner=incomplete.yaml"],
            "incomplete.yaml:1: Corner one: spec.motto: Required value",
            id="a sample without a required field",
        ),
        pytest.param(
            ["corner_operator:one_name", "--owner=corner.yaml"],
            'components of Corner default/one: two components of one owner are named "web"',
            id="two components of one name",
        ),
        pytest.param(
            ["corner_operator:one_object", "--owner=corner.yaml"],
            "components of Corner default/one: ",
            id="an object of two components",
        ),
    ],
)
def test_what_cannot_be_rendered_is_one_line(folder: Path, arguments: list[str], problem: str) -> None:
    (folder / "other.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}")
    (folder / "incomplete.yaml").write_text(SAMPLE.replace("motto: open", ""))

    error = run(*arguments, code=2)

    assert problem in error
    assert error.count("\n") == 1
    assert not (folder / "deploy").exists()


@pytest.mark.parametrize("check", [(), ("--check",)], ids=["written", "checked"])
def test_what_a_webhook_stops_while_it_is_down_is_noted(check: tuple[str, ...]) -> None:
    run("corner_operator:guard", "--owner=corner.yaml")
    noted = run("corner_operator:guard", "--owner=corner.yaml", *check)
    assert (
        "note: validate.pods.core.k8s.io: failure policy Fail, so CREATE, UPDATE of pods that match its conditions "
        "(no-nodes) fail in all namespaces but kube-system, kube-public, kube-node-lease, guard while no process of "
        "the operator responds"
    ) in noted
    assert "note: validate" not in run("corner_operator:corners", "--owner=corner.yaml", "--format=helm")


@pytest.mark.parametrize(
    ("operator", "problem"),
    [
        pytest.param("unparsed", "webhooks[0].matchConditions[0].expression", id="it cannot be parsed"),
        pytest.param("untyped", "must evaluate to bool", id="it is not a condition"),
    ],
)
def test_a_condition_that_no_api_server_takes_is_found_and_nothing_is_written(
    folder: Path, operator: str, problem: str
) -> None:
    output = run(f"corner_operator:{operator}", "--owner=corner.yaml", code=2)
    assert "the API server would reject ValidatingWebhookConfiguration" in output
    assert problem in output
    assert not (folder / "deploy").exists()


def test_as_whom_the_operator_may_act_is_noted() -> None:
    assert "impersonate" not in run("corner_operator:corners", "--owner=corner.yaml")
    noted = run("corner_operator:as_others", "--owner=corner.yaml", "--format=helm")
    assert (
        "note: Role others of the namespace accounts may impersonate only: service account one, from the components "
        "for the owners given; others need their owners, too, with --owner, or a role of your own\n"
    ) in noted
