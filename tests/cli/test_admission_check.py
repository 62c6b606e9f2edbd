"""`ocf manifests` compiles the expressions of admission policies before it writes anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from ocf.cli.app import app

OPERATOR: Final = """
from kubernetes.client import V1Pod
from ocf.runtime.admission import ApplyConfiguration, JSONPatch, Policy, Validation
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.runtime.operator import Operator, OwnerType


class ShopSpec(CamelModel):
    size: int = 1


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    spec: ShopSpec = ShopSpec()


def operator(*policies):
    return Operator(name="shops", owner=OwnerType.of(Shop), components=lambda _: (), policies=policies)


def rule(expression):
    return Policy.of(V1Pod, "shops-pods", validations=[Validation("true"), Validation(expression)])


right = operator(rule("size(object.spec.containers) < 9"))
wrong = operator(rule("size(object.spec.containers) <"), Policy.of(V1Pod, "more", validations=[Validation("1")]))
misspelt = operator(
    rule("size(object.spec.container) < 9"),
    Policy.of(Shop, "shops", validations=[Validation("object.spec.size < 9"), Validation("object.spec.sise < 9")]),
)
mutating = operator(Policy.of(V1Pod, "shops-labels", mutations=[ApplyConfiguration("Object{}")]))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a folder with operators, as the working directory."""
    (tmp_path / "policy_operator.py").write_text(OPERATOR)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("policy_operator", None)


def run(name: str, *arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["manifests", f"policy_operator:{name}", *arguments, "--directory=deploy"])
    assert done.exit_code == code, done.output
    return done.stdout + done.stderr


def test_a_wrong_expression_is_an_error_with_its_place_and_nothing_is_written(folder: Path) -> None:
    printed = run("wrong", code=2)

    assert (
        'ValidatingAdmissionPolicy.admissionregistration.k8s.io "shops-pods" is invalid: spec.validations[1]' in printed
    )
    assert '"more" is invalid: spec.validations[0].expression: Invalid value: "1": must evaluate to bool' in printed
    assert not (folder / "deploy").exists()


def test_a_field_that_the_kind_does_not_have_is_a_note(folder: Path) -> None:
    """Evaluated, it fails each request; the API server accepts it, and kube-controller-manager reports it in a status.

    Of https://github.com/kyverno/kyverno/issues/9351: a check of such a field never fails, and nothing said so.
    """
    printed = run("misspelt")

    notes = [line for line in printed.splitlines() if line.startswith("note: ValidatingAdmissionPolicy")]
    assert notes == [
        f"note: ValidatingAdmissionPolicy {place}".format("spec.validations[1].expression")
        for place in (
            "shops-pods: {}: /v1, Kind=Pod: ERROR: <input>:1:17: undefined field 'container'",
            "shops: {}: example.com/v1, Kind=Shop: ERROR: <input>:1:12: undefined field 'sise'",
        )
    ]
    assert (folder / "deploy" / "base" / "policies.yaml").exists()
    assert "undefined field" not in run("right")


@pytest.mark.parametrize("layout", ["kustomize", "helm", "olm"])
def test_what_keeps_a_policy_from_being_enforced_is_a_note(layout: str) -> None:
    printed = {name: run(name, f"--format={layout}") for name in ("right", "mutating")}

    assert {name: "Kubernetes 1.36" in text for name, text in printed.items()} == {"right": False, "mutating": True}
    assert {"OLM does not install admission policies" in text for text in printed.values()} == {layout == "olm"}
