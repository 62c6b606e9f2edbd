"""The definition of shops matches the fields that the operator reads, and a real API server accepts all its objects."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner, Result

from examples.web import played
from examples.web.shop import Scaling, ShopSpec
from ocf.cli.app import app
from ocf.cluster.client import ApiServerCluster
from ocf.errors import InvalidError
from ocf.objects import Manifest, load_document
from ocf.testing import VirtualClock, assert_quiet
from ocf.testing.envtest import ControlPlane
from ocf.testing.envtest.binaries import Programs

CHECKOUT: Final = Path(__file__).parents[3]
DEFINITION: Final = load_document((CHECKOUT / "examples" / "web" / "crd.yaml").read_text(encoding="utf-8"))


def schema_of_spec() -> Manifest:
    version: Manifest = DEFINITION["spec"]["versions"][0]
    found: Manifest = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def test_the_schema_names_the_fields_that_the_operator_reads() -> None:
    spec = schema_of_spec()

    assert set(spec["properties"]) == {field.alias for field in ShopSpec.model_fields.values()}
    assert set(spec["required"]) == {field.alias for field in ShopSpec.model_fields.values() if field.is_required()}
    assert set(spec["properties"]["scaling"]["properties"]) == {field.alias for field in Scaling.model_fields.values()}


@pytest.fixture(scope="module")
def plane(envtest_programs: Programs) -> Iterator[ControlPlane]:
    """Give a control plane of this module's own: other tests have other shops."""
    with ControlPlane(envtest_programs) as started:
        yield started


@pytest.fixture
async def real(plane: ControlPlane) -> AsyncIterator[ApiServerCluster]:
    """Return a real API server with the definition of shops."""
    await asyncio.to_thread(plane.install_crds, DEFINITION)
    async with await plane.cluster() as cluster:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": played.NAMESPACE}}
        await cluster.create(namespace, field_manager="user")
        yield cluster


async def diff(plane: ControlPlane, *more: str) -> Result:
    """Run the page's `ocf diff`; in a thread, because it runs a loop of its own."""
    command = ["diff", "examples.web.controller:components", "--owner", "examples/web/shop.yaml", *more]
    return await asyncio.to_thread(CliRunner().invoke, app, [*command, "--kubeconfig", str(plane.kubeconfig)])


async def test_a_real_server_accepts_all_objects(
    real: ApiServerCluster, plane: ControlPlane, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await played.open_shop(real, version="1.4.2", exporter=True)
    with pytest.raises(InvalidError, match=r"spec\.version"):
        await played.change(real, version="latest")
    await played.give_password(real)
    await played.reconcile_until_in_sync(real, clock)
    await played.scale(real, 5)
    counts = []
    for change in ({}, {"suspended": True}, {"suspended": False, "version": "2.0.3"}, {"version": "2.3.0"}):
        await played.change(real, **change)
        await played.reconcile_until_in_sync(real, clock)
        counts.append((await real.get(played.WEB))["spec"]["replicas"])

    assert counts == [5, 0, 5, 5]
    ready = {each["type"]: each["reason"] for each in (await real.get(played.SHOP))["status"]["conditions"]}
    assert ready == dict.fromkeys(["DatabaseReady", "ApplicationReady", "Ready"], "Healthy")
    await assert_quiet(real, lambda seen: played.reconcile_shop(seen, clock))
    monkeypatch.chdir(CHECKOUT)
    same, older = await diff(plane), await diff(plane, "--set", "spec.version=1.4.2")
    assert (same.exit_code, older.exit_code) == (0, 1)
    assert "is set by mutation few-connections" in older.stdout
