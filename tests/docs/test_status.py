"""What the page of the project's state calls missing is missing, and what it names has a page."""

from __future__ import annotations

import asyncio
import pkgutil
from collections.abc import Callable
from typing import Annotated, Final, Literal

import pytest
from pydantic import Field
from rich.console import Console

from ocf import component
from ocf.cluster.client.proxy import proxy_address
from ocf.component import reconciling
from ocf.concepts import GuardStatus, StatusReport
from ocf.controllers.nodegroup import providers
from ocf.errors import ConfigError, ManifestError
from ocf.objects import ObjectKey
from ocf.primitives import configmap
from ocf.runtime.crds import CamelModel, CustomResource
from ocf.testing.envtest.build import build_programs
from ocf.testing.envtest.progress import shown_on
from ocf.testing.envtest.versions import Machine
from ocf_server import CustomKind, EmbeddedCluster
from tests.docs.reader import ROOT

ROWS: Final = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in (ROOT / "docs/project/status.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| part"))
]


def order() -> None:
    """What comes after a blocked resource waits, although it needs nothing of it."""

    async def test() -> bool:
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")])
        owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "namespace": "default"}}
        live = await cluster.create(owner, field_manager="me")
        key = ObjectKey("example.com/v1", "Shop", "corner", "default")
        builder = component.Builder("web", owner=key)
        first, second = (configmap.Builder({"metadata": {"name": name, "namespace": "default"}}) for name in "ab")
        builder.with_resource(first.with_guard(lambda _base: StatusReport(GuardStatus.BLOCKED, "not yet")))
        builder.with_resource(second)
        async with reconciling(live, cluster) as context:
            await builder.build().reconcile(context)
        return bool((await cluster.list("v1", "ConfigMap")).items)

    assert not asyncio.run(test())


def unions() -> None:
    class Files(CamelModel):
        type: Literal["files"]
        path: str

    class Bucket(CamelModel):
        type: Literal["bucket"]
        url: str

    class Spec(CamelModel):
        store: Annotated[Files | Bucket, Field(discriminator="type")]

    class Backup(CustomResource[Spec], group="example.com", version="v1"):
        pass

    with pytest.raises(ManifestError, match=r"spec\.store.*no alternatives"):
        Backup.definition()


def proxies() -> None:
    with pytest.raises(ConfigError, match="'socks5' are not supported"):
        proxy_address("socks5://proxy:1080", "HTTPS_PROXY")


def systems() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "here", lambda: Machine("win32", "amd64"))
        with pytest.raises(ConfigError, match="do not run on win32"):
            build_programs({}, shown_on(Console()))


def clouds() -> None:
    found = {each.name for each in pkgutil.iter_modules(providers.__path__)}
    assert found == {"cluster_api", "cluster_api_record", "kwok", "node_manifest", "simulated", "vpsie"}


CHECKS: Final[dict[str, Callable[[], None]]] = {
    "order by dependency: resources go one after another, or are independent": order,
    "tagged unions in models": unions,
    "SOCKS proxies": proxies,
    "Windows; tests on macOS": systems,
    "providers of the large clouds": clouds,
}
# What no test can show: other systems, an index of packages, or a class that does not exist.
SAID: Final = {
    "a fence around requests to other systems",
    "ready-made clients; limits that several processes share",
    "a package index: install from a clone",
    "[admission plugins, kubelets](limits.md#the-embedded-cluster)",
    "the memory of another controller",
}


@pytest.mark.parametrize("claim", CHECKS)
def test_what_is_missing_is_missing(claim: str) -> None:
    CHECKS[claim]()


def test_every_claim_is_checked_or_cannot_be() -> None:
    assert {missing for _, _, missing in ROWS if missing} == {*CHECKS, *SAID}


def test_every_part_has_a_page() -> None:
    assert not [name for name, there, _ in ROWS if ".md" not in name + there]
