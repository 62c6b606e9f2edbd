"""The tables of kinds say what the code says."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from ocf import primitives
from ocf.primitives import (
    IntegrationBuilder,
    StaticBuilder,
    TaskBuilder,
    WorkloadBuilder,
    condition_status,
    rollout_status,
)

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "kinds.md"
ROW: Final = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
WORD: Final = re.compile(r"(?:Alive|Operational|Completion)Status\.([A-Z]+)")
CATEGORIES: Final = {
    "workload": WorkloadBuilder,
    "task": TaskBuilder,
    "integration": IntegrationBuilder,
    "static": StaticBuilder,
}
POD: Final[Any] = {"containers": []}
TEMPLATE: Final[Any] = {"template": {"metadata": {}, "spec": POD}}
# The smallest spec that the model of a kind accepts, by package or else by category.
SMALLEST: Final[dict[str, Any]] = {
    "workload": {**TEMPLATE, "selector": {}},
    "task": TEMPLATE,
    "hpa": {"maxReplicas": 1, "scaleTargetRef": {"kind": "Deployment", "name": "a"}},
    "pod": POD,
    "scaledobject": {"scaleTargetRef": {"name": "a"}, "triggers": []},
    "certificate": {"secretName": "a", "issuerRef": {"name": "a"}},
    "servicemonitor": {"selector": {}, "endpoints": []},
    "cronjob": {"schedule": "@daily", "jobTemplate": {"spec": TEMPLATE}},
}
CLUSTER_SCOPED: Final = {"pv", "clusterrole", "clusterrolebinding"}
KINDS, _, EDITS = PAGE.read_text(encoding="utf-8").partition("\n## Edits of each kind\n")
TABLE: Final = {package: rest.split(" | ") for package, rest in ROW.findall(KINDS)}
# The text before the table says what every kind starts with, and what *pod edits* stands for.
SHARED: Final = "`edit_object_metadata`, "
POD_EDITS: Final = re.findall(r"\*Pod edits\* stands for (.+?)\.\n", EDITS, re.DOTALL)
EDITED: Final = {
    package: f"{SHARED}{edits}".replace("*pod edits*", *POD_EDITS) for package, edits in ROW.findall(EDITS)
}
TYPED: Final = sorted(set(TABLE) - {"unstructured"})


def module(package: str) -> ModuleType:
    return importlib.import_module(f"ocf.primitives.{package}")


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def resource(package: str) -> Any:
    """Build the smallest object of a kind."""
    api_version, kind = quoted(TABLE[package][0])[0].split(" ")
    metadata = {"name": "a"} if package in CLUSTER_SCOPED else {"name": "a", "namespace": "b"}
    category = TABLE[package][1]
    content = {"spec": SMALLEST.get(package, SMALLEST.get(category, {}))}
    if category == "static" and package not in SMALLEST:
        content = {}
    if package.endswith("binding"):
        content = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"}}
    return module(package).Builder({"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}).build()


def test_every_kind_is_in_the_table() -> None:
    assert set(TABLE) == {found.name for found in pkgutil.iter_modules(primitives.__path__) if found.ispkg}


def test_every_kind_has_its_edits() -> None:
    assert list(EDITED) == list(TABLE)
    assert f"Every kind starts with {SHARED[:-2]}." in EDITS


@pytest.mark.parametrize("package", TYPED)
class TestRow:
    def test_names_the_kind(self, package: str) -> None:
        built = resource(package)
        assert quoted(TABLE[package][0]) == [f"{built.key.api_version} {built.key.kind}"]

    def test_names_the_category(self, package: str) -> None:
        assert issubclass(module(package).Builder, CATEGORIES[TABLE[package][1]])

    def test_lists_the_edits_in_their_order(self, package: str) -> None:
        assert quoted(EDITED[package]) == [category.name for category in module(package).Mutator.categories]

    def test_lists_the_words_that_its_handlers_use(self, package: str) -> None:
        if TABLE[package][1] == "static":
            assert TABLE[package][2] == "none"
            return
        source = inspect.getsource(importlib.import_module(f"ocf.primitives.{package}.status"))
        shared = {"rollout_status": rollout_status, "ConditionStatus": condition_status}
        source += "".join(inspect.getsource(found) for name, found in shared.items() if name in source)
        reported = {word.removeprefix("Operation").removeprefix("Task").upper() for word in quoted(TABLE[package][2])}
        # The plain word for being operational is the vocabulary's own name.
        named = {"OPERATIONAL" if word == "AL" else word for word in reported}
        assert named == set(WORD.findall(source))

    def test_tells_what_suspending_does(self, package: str) -> None:
        built, documented = resource(package), TABLE[package][3]
        if TABLE[package][1] == "static":
            assert documented == "unchanged"
            return
        verb, reason = documented.split(": ")
        assert {"kept": False, "deleted": True}[verb] is built.delete_on_suspend()
        assert f'"{built.suspension_status(built.render(suspended=True)).reason}"' == reason


@pytest.mark.parametrize("category", CATEGORIES)
def test_any_kind_has_a_module_of_the_same_shape_per_category(category: str) -> None:
    found = module(f"unstructured.{category}")
    assert set(found.__all__) == {"Builder", "Mutation", "Mutator", "Resource"}
    assert issubclass(found.Builder, CATEGORIES[category])


def test_every_kind_has_the_same_shape() -> None:
    for package in TYPED:
        assert {"Builder", "Mutation", "Mutator", "Resource"} <= set(module(package).__all__), package


def test_the_row_of_any_kind() -> None:
    assert quoted(EDITED["unstructured"]) == [category.name for category in module("unstructured").Mutator.categories]
