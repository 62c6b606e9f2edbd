"""What users import stands in a page, an example or a template, and no two exports are confused."""

import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from scripts.site.api import MODULES

ROOT: Final = Path(__file__).parents[2]
FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAMES: Final = [name for names in MODULES.values() for name in names]
# Each page that reads or writes a ScaledObject reaches its parts as attributes.
_PARTS: Final = "ocf.objects.third_party.keda"
# pytest calls them.
_HOOKS: Final = frozenset({"pytest_addoption", "pytest_runtest_makereport"})
# Names that several modules export, because users write them with the module: `deployment.Builder`, `scaling.pods`.
SHARED: Final = {
    *("Builder", "Mutation", "Mutator", "Resource"),
    *(
        f"{category}{part}"
        for category in ("Integration", "Static", "Task", "Workload")
        for part in ("Builder", "Resource")
    ),
    *(f"default_{status}_status_handler" for status in ("converging", "grace", "operational", "suspension")),
    *("GROUP", "NAME", "cluster_role", "decide", "pods", "render", "rules", "serving"),
}


@pytest.fixture(scope="module")
def words() -> frozenset[str]:
    """Return the words of all code that users read: blocks and code in sentences, examples, and templates."""
    texts = []
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = page.read_text(encoding="utf-8")
        texts += [*FENCE.findall(text), *re.findall(r"`[^`\n]+`", FENCE.sub("", text))]
    # The page of all errors is made from this table.
    texts.append((ROOT / "docs/site/errors.yaml").read_text(encoding="utf-8"))
    files = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "ocf/scaffold/templates").rglob("*")]
    texts += [file.read_text(encoding="utf-8") for file in files if file.is_file()]
    return frozenset(re.findall(r"\w+", "\n".join(texts)))


@pytest.mark.parametrize("name", [name for name in NAMES if name != _PARTS])
def test_an_exported_name_stands_in_a_page_an_example_or_a_template(name: str, words: frozenset[str]) -> None:
    """Any other one is imported from the module that defines it, and may change with it."""
    assert [each for each in import_module(name).__all__ if each not in words | _HOOKS] == []


def test_two_exports_have_the_same_name_only_if_they_are_used_with_that_of_their_module() -> None:
    found: dict[str, set[int]] = defaultdict(set)
    for module in map(import_module, NAMES):
        for each in module.__all__:
            if not isinstance(value := getattr(module, each), ModuleType):
                found[each].add(id(value))
    assert {each for each, values in found.items() if len(values) > 1} == SHARED
