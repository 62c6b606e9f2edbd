"""The examples of docs/testing/envtest.md do on a real API server what the page claims.

The page itself is run without one, so there they are only defined.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

from ocf.testing.envtest.binaries import Programs
from ocf.testing.envtest.versions import PINNED, cache_folder
from ocf.testing.plugin import Envtest, RunControllers, RunKwok, RunScheduler

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.metrics_stub import MetricsStub

PAGE = Path(__file__).parents[3] / "docs" / "testing" / "envtest.md"


@pytest.fixture
def page() -> dict[str, Any]:
    """Return the names that the code blocks of the page define."""
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(PAGE)
    for example in document.examples():
        example.evaluate()
    return document.namespace


@pytest.mark.parametrize("name", ["test_settings", "test_quiet"])
async def test_the_examples_with_a_cluster(
    name: str, page: dict[str, Any], envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    await page[name](envtest, envtest_cluster)


async def test_the_example_with_controllers(
    page: dict[str, Any], envtest: Envtest, envtest_cluster: ApiServerCluster, envtest_controllers: RunControllers
) -> None:
    await page["test_pods"](envtest, envtest_cluster, envtest_controllers)


async def test_the_example_with_nodes(  # noqa: PLR0917 (fixtures)
    page: dict[str, Any],
    envtest: Envtest,
    envtest_cluster: ApiServerCluster,
    envtest_controllers: RunControllers,
    envtest_scheduler: RunScheduler,
    envtest_kwok: RunKwok,
) -> None:
    await page["test_running"](envtest, envtest_cluster, envtest_controllers, envtest_scheduler, envtest_kwok)


async def test_the_example_with_metrics(
    page: dict[str, Any],
    envtest: Envtest,
    envtest_cluster: ApiServerCluster,
    envtest_controllers: RunControllers,
    metrics_stub: MetricsStub,
) -> None:
    await page["test_scaling"](envtest, envtest_cluster, envtest_controllers, metrics_stub)


async def test_the_example_without_pytest(page: dict[str, Any], envtest_programs: Programs) -> None:
    version = json.loads(await page["main"]())
    if envtest_programs.origin == "cache":
        assert version["serverVersion"]["gitVersion"] == f"v{PINNED.kubernetes}"


def test_the_page_names_the_versions_and_the_folder() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"Kubernetes {PINNED.kubernetes}, etcd {PINNED.etcd} and kwok {PINNED.kwok}" in text
    assert f"Go {PINNED.go} or newer" in text
    assert f"`~/{cache_folder({'HOME': '/'}).relative_to('/')}`" in text
