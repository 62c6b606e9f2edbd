"""The tables of kinds say what the code says."""

import importlib
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from ocf.primitives import (
    ConditionStatus,
    IntegrationBuilder,
    StaticBuilder,
    TaskBuilder,
    WorkloadBuilder,
)
from ocf.primitives.status import RolloutStatus
from scripts.site import kinds

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
# The smallest spec that the model of a kind accepts, by its name or else by category.
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
TABLE: Final = {name: rest.split(" | ") for name, rest in ROW.findall(KINDS)}
# The text before the table says what every kind starts with, and what *pod edits* stands for.
SHARED: Final = "`edit_object_metadata`, "
POD_EDITS: Final = re.findall(r"\*Pod edits\* stands for (.+?)\.\n", EDITS, re.DOTALL)
EDITED: Final = {name: f"{SHARED}{edits}".replace("*pod edits*", *POD_EDITS) for name, edits in ROW.findall(EDITS)}
TYPED: Final = sorted(set(TABLE) - {"unstructured"})


def module(name: str) -> ModuleType:
    return importlib.import_module(f"ocf.primitives.{name}")


def status_module(name: str) -> ModuleType:
    found = module(name)
    return importlib.import_module(f"{found.__name__}.status") if hasattr(found, "__path__") else found


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def resource(name: str) -> Any:
    """Build the smallest object of a kind."""
    api_version, kind = quoted(TABLE[name][0])[0].split(" ")
    metadata = {"name": "a"} if name in CLUSTER_SCOPED else {"name": "a", "namespace": "b"}
    category = TABLE[name][1]
    content = {"spec": SMALLEST.get(name, SMALLEST.get(category, {}))}
    if category == "static" and name not in SMALLEST:
        content = {}
    if name.endswith("binding"):
        content = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"}}
    return module(name).Builder({"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}).build()


def test_every_kind_is_in_the_table() -> None:
    assert set(TABLE) == set(kinds.NAMES)


def test_every_kind_has_its_edits() -> None:
    assert list(EDITED) == list(TABLE)
    assert f"Every kind starts with {SHARED[:-2]}." in EDITS


@pytest.mark.parametrize("name", TYPED)
class TestRow:
    def test_names_the_kind(self, name: str) -> None:
        built = resource(name)
        assert quoted(TABLE[name][0]) == [f"{built.key.api_version} {built.key.kind}"]

    def test_names_the_category(self, name: str) -> None:
        assert issubclass(module(name).Builder, CATEGORIES[TABLE[name][1]])

    def test_lists_the_edits_in_their_order(self, name: str) -> None:
        assert quoted(EDITED[name]) == [category.name for category in module(name).Mutator.categories]

    def test_lists_the_words_that_its_handlers_use(self, name: str) -> None:
        if TABLE[name][1] == "static":
            assert TABLE[name][2] == "none"
            return
        source = inspect.getsource(status_module(name))
        shared = {"RolloutStatus": RolloutStatus, "ConditionStatus": ConditionStatus}
        source += "".join(inspect.getsource(found) for used, found in shared.items() if used in source)
        reported = {word.removeprefix("Operation").removeprefix("Task").upper() for word in quoted(TABLE[name][2])}
        # The plain word for being operational is the vocabulary's own name.
        named = {"OPERATIONAL" if word == "AL" else word for word in reported}
        assert named == set(WORD.findall(source))

    def test_the_table_has_what_suspending_does(self, name: str) -> None:
        built, documented = resource(name), TABLE[name][3]
        if TABLE[name][1] == "static":
            assert documented == "unchanged"
            return
        verb, reason = documented.split(": ")
        assert {"kept": False, "deleted": True}[verb] is built.delete_on_suspend()
        assert f'"{built.suspension_status(built.render(suspended=True)).reason}"' == reason


@pytest.mark.parametrize("category", CATEGORIES)
def test_any_kind_has_a_builder_and_a_resource_per_category(category: str) -> None:
    found, prefix = module("unstructured"), category.capitalize()
    assert {f"{prefix}Builder", f"{prefix}Resource"} <= set(found.__all__)
    assert issubclass(getattr(found, f"{prefix}Builder"), CATEGORIES[category])


def test_every_kind_has_the_same_shape() -> None:
    for name in TYPED:
        assert {"Builder", "Mutation", "Mutator", "Resource"} <= set(module(name).__all__), name


def test_the_row_of_any_kind() -> None:
    assert quoted(EDITED["unstructured"]) == [category.name for category in module("unstructured").Mutator.categories]
