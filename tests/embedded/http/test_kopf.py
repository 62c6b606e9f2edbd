"""An operator written with kopf runs unchanged on the embedded cluster, including its admission webhooks."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ocf.cluster import PatchOptions, PatchType
from ocf.embedded import EmbeddedCluster
from ocf.embedded.http import HttpServer, write_kubeconfig
from ocf.errors import ApiError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest.certificates import Authority

kopf: Any = pytest.importorskip("kopf")

SHOP = ObjectKey("example.com/v1", "Shop", "corner", "shop")


def definition() -> Manifest:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def shop(**spec: Any) -> Manifest:
    metadata = {"name": "corner", "namespace": "shop"}
    return {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": spec}


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(namespaces=["shop"])


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def operator(registry: Any) -> None:
    """Register an operator that reports the specs it got; its webhooks set a default and deny a value."""
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    @kopf.on.create("example.com", "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    @kopf.on.update("example.com", "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def seen(spec: Any, patch: Any, **_: Any) -> None:
        patch.status["seen"] = spec.get("size")

    @kopf.on.delete("example.com", "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def gone(**_: Any) -> None:
        """Make kopf set a finalizer, which blocks the deletion until this has run."""

    @kopf.on.mutate("example.com", "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def sized(spec: Any, patch: Any, **_: Any) -> None:
        if "size" not in spec:
            patch.spec["size"] = 1

    @kopf.on.validate("example.com", "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def small(spec: Any, warnings: list[str], **_: Any) -> None:
        if spec.get("size", 0) > 10:
            raise kopf.AdmissionError("a shop has at most ten rooms", code=422)
        warnings.append("shops are old-fashioned")


@asynccontextmanager
async def running(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    settings.admission.managed = "ocf.test"
    authority = Authority(kubeconfig.parent)
    pair = authority.server("webhook")
    settings.admission.server = kopf.WebhookServer(
        addr="127.0.0.1",
        host="127.0.0.1",
        port=free_port(),
        certfile=pair.certificate,
        pkeyfile=pair.key,
        cafile=authority.certificate,
    )
    settings.posting.enabled = True
    operator(registry)
    ready, stop = asyncio.Event(), asyncio.Event()
    task = asyncio.ensure_future(
        kopf.operator(registry=registry, settings=settings, namespaces=["shop"], ready_flag=ready, stop_flag=stop)
    )
    try:
        await asyncio.wait_for(ready.wait(), 600)
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 600)


async def until(holds: Callable[[], Any]) -> None:
    for _ in range(30_000):
        if await holds():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it never came to that")


@pytest.mark.filterwarnings("default")
async def test_an_operator_handles_its_objects_and_its_webhooks_are_called(
    server: HttpServer, cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operator finds the definition, handles objects, and its webhook configurations take effect."""
    await cluster.create(definition(), field_manager="test")
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(server.kubeconfig(), kubeconfig)
    async with running(kubeconfig, monkeypatch):

        async def configured() -> bool:
            """Return whether both configurations contain webhooks; kopf writes one after the other."""
            kinds = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
            found = [await cluster.list("admissionregistration.k8s.io/v1", kind) for kind in kinds]
            return all(any(one.get("webhooks") for one in each.items) for each in found)

        await until(configured)
        created = await cluster.create(shop(), field_manager="test")
        assert created["spec"] == {"size": 1}
        with pytest.raises(ApiError) as caught:
            await cluster.create({**shop(size=11), "metadata": {"name": "big", "namespace": "shop"}}, field_manager="t")
        assert "a shop has at most ten rooms" in str(caught.value)

        async def reported() -> bool:
            status: Manifest = (await cluster.get(SHOP)).get("status") or {}
            return status.get("seen") == 3

        await cluster.patch(SHOP, {"spec": {"size": 3}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))
        await until(reported)

        async def gone() -> bool:
            return not (await cluster.list("example.com/v1", "Shop")).items

        assert (await cluster.get(SHOP))["metadata"]["finalizers"]
        await cluster.delete(SHOP)
        await until(gone)
