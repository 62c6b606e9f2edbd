"""Names of a new operator, and that its files fit together."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ocf.errors import ConfigError
from ocf.runtime.pod_objects import USER
from ocf.scaffold import OperatorProject, render_operator
from ocf.scaffold.operator_project import RESERVED

LINE_LENGTH = 120  # that of the projects' linter
EVERYTHING = {"cluster_scoped": True, "webhooks": True, "kopf": True, "autoscaling": True}


def rendered(**options: Any) -> dict[str, str]:
    project = OperatorProject(**{"name": "shop-operator", **options})
    return render_operator(project, requirement="ocf>=0.1", locks={})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param("shop-operator", "Shop", id="suffix"),
        pytest.param("shop", "Shop", id="no suffix"),
        pytest.param("web-shop", "WebShop", id="two words"),
        pytest.param("s3", "S3", id="digits"),
    ],
)
def test_the_kind_follows_from_the_name(name: str, kind: str) -> None:
    assert OperatorProject(name=name).owner_kind == kind


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"name": "Shop"}, r'name: "Shop": a lowercase RFC 1123 label', id="capital letter"),
        pytest.param({"name": ""}, r'name: "": ', id="empty"),
        pytest.param({"name": "a" * 31}, "must be at most 30 characters, got 31", id="too long"),
        pytest.param({"name": "3scale"}, "is not an identifier of Python: begin with a letter", id="digit first"),
        pytest.param({"name": "lambda"}, "is a keyword of Python", id="keyword"),
        pytest.param({"name": "match"}, "is a keyword of Python", id="soft keyword"),
        pytest.param({"name": "operator"}, "hides a module of Python's standard library", id="standard library"),
        pytest.param({"name": "ocf"}, "hides another package", id="ocf"),
        pytest.param({"name": "tests"}, "a folder of the project", id="folder"),
        pytest.param({"name": "redis", "taken": {"redis"}}, "hides another package", id="installed package"),
        pytest.param({"kind": "shop"}, '--kind: must be CamelCase, such as Shop, of at most 30 characters, got "shop"'),
        pytest.param({"kind": "Web_Shop"}, "--kind: must be CamelCase", id="underscore"),
        pytest.param({"kind": "S" * 31}, "--kind: must be CamelCase", id="long kind"),
        pytest.param({"kind": "Operator"}, "--kind: Operator is a name that the project itself uses", id="our name"),
        pytest.param({"kind": "Exception"}, "--kind: Exception is a name", id="builtin"),
        pytest.param({"kind": "True"}, "--kind: True is a name", id="keyword as a kind"),
        pytest.param({"group": "shops"}, "--group: must be a domain such as shops.example.com", id="no domain"),
        pytest.param({"group": "Shops.example.com"}, '--group: "Shops.example.com": a lowercase', id="invalid group"),
        pytest.param({"version": "1"}, "--version: must be a version such as v1, v1beta1", id="version"),
    ],
)
def test_an_invalid_name_is_rejected(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        OperatorProject(**{"name": "shop", **options})


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(ConfigError, match=r"^name: .*; --kind: .*; --group: .*; --version: "):
        OperatorProject(name="3", kind="x", group="y", version="z")


def test_no_kind_hides_a_name_that_the_code_uses() -> None:
    """Every imported or assigned name of the generated modules that a kind could have is reserved."""
    used = set()
    for path, text in rendered(kind="Zebra", **EVERYTHING).items():
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Name):
                    used.add(node.id)
                elif isinstance(node, ast.alias):
                    used.add(node.asname or node.name)
                elif isinstance(node, ast.ClassDef):
                    used.add(node.name)
    candidates = {name for name in used if name[0].isupper() and not name.startswith("Zebra")}

    assert candidates == RESERVED


@pytest.mark.parametrize(
    ("option", "path"),
    [
        pytest.param("webhooks", "shop_operator/admission.py"),
        pytest.param("webhooks", "tests/test_admission.py"),
        pytest.param("kopf", "shop_operator/with_kopf.py"),
    ],
)
def test_a_file_exists_only_with_its_option(option: str, path: str) -> None:
    assert path not in rendered()
    assert path in rendered(**{option: True})


def test_the_readme_names_files_that_exist() -> None:
    for options in ({}, EVERYTHING):
        files = rendered(**options)
        package = {path.rpartition("/")[2] for path in files if path.startswith("shop_operator/")}
        missing = [name for name in package - {"__init__.py"} if f"{name}`" not in files["README.md"]]
        assert missing == []


@settings(max_examples=30)
@given(
    name=st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True), kind=st.sampled_from(["", "Zoo", "X"])
)
def test_a_name_is_rejected_or_gives_code_that_compiles(name: str, kind: str) -> None:
    try:
        project = OperatorProject(name=name, kind=kind, webhooks=True, autoscaling=True)
    except ConfigError:
        return
    for path, text in render_operator(project, requirement="ocf", locks={}).items():
        if path.endswith(".py"):
            assert all(part.isidentifier() for part in path.removesuffix(".py").split("/"))
            ast.parse(text)


@pytest.mark.parametrize("options", [{}, *({name: True} for name in EVERYTHING), EVERYTHING], ids=list)
def test_the_longest_names_fit_into_the_lines_of_the_code(options: dict[str, Any]) -> None:
    longest = rendered(name="a" * 30, kind="K" * 30, **options)

    lines = [(path, line) for path, text in longest.items() if path.endswith(".py") for line in text.splitlines()]
    assert [(path, line) for path, line in lines if len(line) > LINE_LENGTH] == []


@pytest.mark.parametrize("kopf", [False, True])
def test_the_image_does_not_run_as_root_and_contains_no_build_tools(*, kopf: bool) -> None:
    text = rendered(kopf=kopf)["Containerfile"]
    build, image = text.split("\nFROM ")[1:]

    assert f"USER {USER}:{USER}\n" in image
    assert "\nRUN" not in image
    assert [stage.split()[0] for stage in (build, image)] == [
        "docker.io/library/python:3.13-slim${PYTHON_DIGEST:+@${PYTHON_DIGEST}}"
    ] * 2
    assert ("shop_operator.with_kopf" in image) is kopf


@pytest.mark.parametrize("kind", ["No", "Yes", "On", "Off", "Null", "Y"])
def test_a_kind_that_yaml_reads_as_another_value_is_quoted_in_the_sample(kind: str) -> None:
    project = OperatorProject(name="shop-operator", kind=kind)

    sample = render_operator(project, requirement="ocf", locks={})[f"samples/{kind.lower()}.yaml"]

    assert yaml.safe_load(sample)["kind"] == kind
