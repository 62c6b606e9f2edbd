"""The navigation of the site and the pages that are made from the code, without building the site."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import yaml

from scripts.site import api, commands, metrics
from scripts.site.build import assemble, configuration, redirects
from scripts.site.links import place_of

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK: Final = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class _Loader(yaml.SafeLoader):
    """A loader of the configuration, which passes over the tags of MkDocs."""


_Loader.add_multi_constructor("", lambda _loader, _tag, _node: None)


def places(entry: Any) -> Iterator[str]:
    """Yield the pages of an entry of the navigation."""
    if isinstance(entry, str):
        yield entry
        return
    for each in entry.values() if isinstance(entry, dict) else entry:
        yield from places(each)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return assemble()


def test_every_page_is_in_the_navigation_once(pages: dict[str, str]) -> None:
    listed = sorted(places(yaml.load(configuration(), _Loader)["nav"]))  # noqa: S506 (a safe loader)

    assert listed == sorted(place for place in pages if not place.startswith("source/"))


def test_the_former_place_of_each_page_leads_to_the_page(pages: dict[str, str]) -> None:
    found = redirects()
    assert (found["components.md"], found["using-the-playground.md"]) == (
        "operators/components.md",
        "autoscaling/playground.md",
    )
    # The pages of folders are newer than the folders.
    former = (page for page in PAGES[1:] if page.name != "index.md")
    assert sorted(found.values()) == sorted(place_of(page.relative_to(ROOT).as_posix()) for page in former)
    assert not {*found} & {*pages}


def test_links_to_files_of_the_repository_lead_to_copies(pages: dict[str, str]) -> None:
    linked = set(re.findall(r"\]\(\.\./(source/[^)#]+)", pages["project/promises.md"]))

    assert len(linked) > 10
    assert linked <= set(pages)
    assert pages["source/tests/faults/test_quiet.py.txt"].startswith('"""')


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_diagram_has_a_title_and_a_description(page: Path) -> None:
    for diagram in re.findall(r"^```mermaid\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        assert re.search(r"^    accTitle: .+\n    accDescr: .{80,}$", diagram, re.MULTILINE)


def imported(page: Path) -> Iterator[str]:
    """Yield the modules of the package from which the examples of a page import."""
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ocf."):
                module = import_module(str(node.module))
                for alias in node.names:
                    found = getattr(module, alias.name, None) or import_module(f"{module.__name__}.{alias.name}")
                    yield found.__name__ if isinstance(found, ModuleType) else module.__name__


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_that_a_page_imports_from_is_in_the_reference(page: Path) -> None:
    assert set(imported(page)) <= {name for names in api.MODULES.values() for name in names}


def test_the_guide_of_the_playground_opens_it_if_it_is_part_of_the_site() -> None:
    guide = "autoscaling/playground.md"

    assert assemble(with_playground=True)[guide].startswith(
        "# Use the playground\n\n[Open the playground](../playground/index"
    )
    assert "run `make playground` before `make site`" in assemble(with_playground=False)[guide]


def test_a_page_of_the_api_has_the_exported_names() -> None:
    assert "members: [JsonFormatter, PrometheusRecorder, " in api.page("ocf.runtime.monitoring")


def test_a_page_of_the_api_has_no_modules() -> None:
    assert not re.search(r"\b(metrics|scaling)\b", api.page("ocf.autoscaling"))


def test_the_page_of_the_commands_has_their_help() -> None:
    page = commands.page()

    assert "```text\nocf validate [OPTIONS] FILE...\n```\n\nValidate HorizontalPodAutoscalers like the API " in page
    assert "| `--fail-on` | Lowest severity for which the exit status is 1;" in page
    assert "\n\n```sh\nocf validate --lint web.yaml\n```\n\n## ocf default\n" in page
    assert " always count. One of `error`, `warning`. Default: `error`. |" in page


def test_the_page_of_the_metrics_has_each_with_its_labels() -> None:
    page = metrics.page()

    assert "| `controller_runtime_reconcile_total` | counter | `controller`, `result` |" in page
    assert "| `ocf_controller_condition` | gauge | `controller`, `kind`, `name`, `namespace`, `condition`, " in page
    assert "| `ocf_watch_healthy` | gauge | `api_version`, `kind`, `namespace` | Whether a watch has no problem" in page
