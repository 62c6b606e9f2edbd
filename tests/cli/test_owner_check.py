"""Owners are checked by their CustomResourceDefinition before a command uses them."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from ocf.cli.app import app
from ocf.cli.operator_loader import load_components, load_operators
from ocf.objects import dump_document

MODULE: Final = """
from typing import Any

from pydantic import Field

from ocf import component
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
from ocf.runtime.crds import CamelModel, CustomResource, ValidationRule, rules
from ocf.runtime.operator import Operator, OwnerType


class Port(CamelModel):
    number: int
    protocol: str = "TCP"


@rules(ValidationRule("self.low <= self.high", message="low is above high", field_path=".low"))
class ShopSpec(CamelModel):
    low: int = Field(default=0, ge=0)
    high: int = 9
    motto: str
    ports: list[Port] = []
    labels: dict[str, str] = {}


class Shop(CustomResource[ShopSpec], group="example.com", version="v1"):
    pass


def build(owner, high):
    return component.Builder("web", owner=owner).with_resource(configmap.Builder({"data": {"high": str(high)}})).build()


def components(shop: Shop) -> component.Component:
    return build(shop.key, shop.spec.high)


async def later(shop: Shop) -> component.Component:
    return components(shop)


def other(owner: Manifest) -> component.Component:
    return build(ObjectKey("example.com/v1", "Shop", "other", "town"), owner["spec"]["high"])


def with_cluster(shop: Shop, context: Any) -> component.Component:
    return components(shop)


OWNER = OwnerType.of(Shop)
shops = Operator(name="shops", owner=OWNER, components=components)


def made():
    return Operator(name="made", owner=OWNER, components=later)


def clustered():
    return Operator(name="clustered", owner=OWNER, components=with_cluster)
"""
OWNER: Final = """\
# a comment
apiVersion: example.com/v1
kind: Shop
metadata:
  name: corner
  namespace: town
  uid: 11111111-1111-1111-1111-111111111111
  resourceVersion: "7"
spec:
  motto: open
  high: 5
"""

Run = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Create a folder with an operator and its owner, as the working directory."""
    (tmp_path / "checked_shop.py").write_text(MODULE)
    (tmp_path / "owner.yaml").write_text(OWNER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("checked_shop", None)


@pytest.fixture
def ocf(folder: Path) -> Run:
    """Run a command of the command line."""
    del folder

    def run(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, list(words), input=stdin)

    return run


def preview(ocf: Run, target: str = "checked_shop", *more: str) -> Result:
    return ocf("preview", target, "--owner", "owner.yaml", "--output", "json", *more)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("checked_shop", id="a module"),
        pytest.param("checked_shop.py", id="a file"),
        pytest.param("checked_shop:shops", id="an operator"),
        pytest.param("checked_shop:made", id="a function that returns an operator, with asynchronous components"),
        pytest.param("checked_shop:components", id="the function of an operator"),
        pytest.param("checked_shop:later", id="a coroutine function"),
        pytest.param("checked_shop:with_cluster", id="a function that takes the context"),
        pytest.param("checked_shop:clustered", id="a function that returns an operator whose components take it"),
    ],
)
def test_every_form_of_a_target_gives_components(ocf: Run, target: str) -> None:
    answer = preview(ocf, target)
    assert answer.exit_code == 0, answer.stderr
    assert [item["data"] for item in json.loads(answer.stdout)["items"]] == [{"high": "5"}]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("target", ["checked_shop", "checked_shop:shops", "checked_shop:components"])
def test_the_same_target_is_the_same_operator_everywhere(target: str) -> None:
    [source], [operator] = load_components(target), load_operators(target)
    assert source.operator is operator
    assert source.definitions == operator.all_definitions


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        pytest.param(
            "high: 5",
            "hihg: 5",
            ['owner.yaml:11: Shop corner: spec.hihg: unknown field, did you mean "high"?'],
            id="misspelt field",
        ),
        pytest.param(
            "high: 5",
            "zzz: 5",
            ["owner.yaml:11: Shop corner: spec.zzz: unknown field; known fields: high, labels, low, motto, ports"],
            id="unknown field without a similar one",
        ),
        pytest.param(
            "high: 5",
            "ports:\n  - number: 1\n    protcol: UDP",
            ['owner.yaml:13: Shop corner: spec.ports[0].protcol: unknown field, did you mean "protocol"?'],
            id="misspelt field in a list",
        ),
        pytest.param(
            "spec:",
            "specs: {}\nspec:",
            ['owner.yaml:9: Shop corner: specs: unknown field, did you mean "spec"?'],
            id="misspelt field of the object",
        ),
        pytest.param(
            "namespace: town",
            "namespce: town",
            ['owner.yaml:6: Shop corner: metadata.namespce: unknown field, did you mean "namespace"?'],
            id="misspelt field of the metadata",
        ),
        pytest.param(
            "high: 5",
            "high: many",
            [
                (
                    'owner.yaml:11: Shop corner: spec.high: Invalid value: "string": '
                    'spec.high in body must be of type integer: "string"'
                )
            ],
            id="type",
        ),
        pytest.param(
            "high: 5",
            "low: 12",
            ["owner.yaml:11: Shop corner: spec.low: Invalid value: low is above high"],
            id="CEL rule, with a default of the schema",
        ),
        pytest.param(
            "  motto: open\n", "", ["owner.yaml:9: Shop corner: spec.motto: Required value"], id="required field"
        ),
        pytest.param(
            "example.com/v1",
            "example.com/v2",
            [
                "owner.yaml:3: operator shops reconciles Shop of example.com/v1, got Shop of example.com/v2",
            ],
            id="another version",
        ),
        pytest.param(
            "kind: Shop",
            "kind: Store",
            ["owner.yaml:3: operator shops reconciles Shop of example.com/v1, got Store of example.com/v1"],
            id="another kind",
        ),
        pytest.param(
            "  motto: open\n  high: 5",
            "  low: -1\n  hihg: 5",
            [
                'owner.yaml:11: Shop corner: spec.hihg: unknown field, did you mean "high"?',
                (
                    "owner.yaml:10: Shop corner: spec.low: Invalid value: -1: "
                    "spec.low in body should be greater than or equal to 0"
                ),
                "owner.yaml:9: Shop corner: spec.motto: Required value",
            ],
            id="several",
        ),
    ],
)
def test_an_invalid_owner_is_rejected_with_line_and_field(
    ocf: Run, folder: Path, old: str, new: str, problems: list[str]
) -> None:
    assert old in OWNER
    (folder / "owner.yaml").write_text(OWNER.replace(old, new))
    answer = preview(ocf)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert sorted(answer.stderr.splitlines()) == sorted(f"error: {each}" for each in problems)


def test_a_problem_in_a_later_document_has_the_line_of_the_file(ocf: Run, folder: Path) -> None:
    (folder / "owner.yaml").write_text(f"{OWNER}---\n{OWNER.replace('high', 'hihg')}")
    assert preview(ocf).stderr.startswith("error: owner.yaml:23: Shop corner: spec.hihg: unknown field")


def test_a_field_of_the_command_line_is_named_with_its_option(ocf: Run) -> None:
    assert preview(ocf, "checked_shop", "--set", "spec.low=7").stderr == (
        "error: --set spec.low=7: Shop corner: spec.low: Invalid value: low is above high\n"
    )


def test_diff_checks_the_owner_before_it_connects(ocf: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(*_: Any) -> None:
        raise AssertionError("connected")

    monkeypatch.setattr("ocf.cli.diff.connect", connect)
    (folder / "owner.yaml").write_text(OWNER.replace("high", "hihg"))
    answer = ocf("diff", "checked_shop:shops", "--owner", "owner.yaml")
    assert answer.exit_code == 2
    assert "owner.yaml:11: Shop corner: spec.hihg: unknown field" in answer.stderr


def test_the_definition_of_a_function_without_an_operator_is_a_file(ocf: Run, folder: Path) -> None:
    [definition] = load_operators("checked_shop")[0].all_definitions
    (folder / "crd.yaml").write_text(dump_document(definition))
    (folder / "owner.yaml").write_text(OWNER.replace("motto", "moto"))
    assert preview(ocf, "checked_shop:other").exit_code == 0
    answer = preview(ocf, "checked_shop:other", "--crd", "crd.yaml")
    assert answer.exit_code == 2
    assert 'spec.moto: unknown field, did you mean "motto"?' in answer.stderr


@pytest.mark.parametrize("kind", ["v1beta1", "v3"])
def test_a_version_that_is_not_served_is_named(ocf: Run, folder: Path, kind: str) -> None:
    [definition] = load_operators("checked_shop")[0].all_definitions
    (folder / "crd.yaml").write_text(dump_document(definition))
    (folder / "owner.yaml").write_text(OWNER.replace("example.com/v1", f"example.com/{kind}"))
    answer = preview(ocf, "checked_shop:other", "--crd", "crd.yaml")
    assert answer.stderr == (
        f"error: owner.yaml:2: Shop corner: apiVersion: example.com/{kind} is not served, only example.com/v1\n"
    )
