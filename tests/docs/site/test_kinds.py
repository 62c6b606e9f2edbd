"""Each kind has a page with its declaration and an example that runs."""

from importlib import import_module
from typing import Any, Final

import pytest

from scripts.site import api, kinds

PACKAGES: Final = [each.rpartition("/")[2].removesuffix(".md") for each in api.kinds_navigation()]
STATIC: Final = "| category | static |"


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_example_runs(package: str) -> None:
    exec(compile(kinds.example(package), package, "exec"), {})  # noqa: S102 (an example of the documentation)


def test_the_example_would_fail_without_its_edit(package: str) -> None:
    text = kinds.example(package).replace(".with_mutation(mutation)", "")

    with pytest.raises((AssertionError, KeyError, IndexError)):
        exec(compile(text, package, "exec"), {})  # noqa: S102 (an example of the documentation)


def test_the_page_has_every_edit_in_its_order(package: str) -> None:
    mutator: Any = import_module(f"ocf.primitives.{package}").Mutator
    page = kinds.page(package, "")

    places = [page.index(f"\n| `{each.name}` | ") for each in mutator.categories]
    assert places == sorted(places)
    assert "| metadata |" not in page
    assert " |  |" not in page


def test_the_page_has_the_handlers_of_a_kind_with_a_status(package: str) -> None:
    module = import_module(f"ocf.primitives.{package}")
    page = kinds.page(package, "")
    wanted = {each for each in module.__all__ if each.startswith("default_") and each.endswith("_status_handler")}

    assert page.count("\n| Status | ") + page.count("\n| After the grace period | ") + page.count(
        "\n| Suspension | "
    ) == len(wanted)
    assert bool(wanted) != (STATIC in page)


def test_the_page_of_a_kind_ends_in_its_api() -> None:
    page = api.page("ocf.primitives.service")

    assert page.startswith("# Service\n\nThe kind `v1 Service` as a resource of a component")
    assert "## API\n\n::: ocf.primitives.service\n    options:\n      heading_level: 3\n" in page
