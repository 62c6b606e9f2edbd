"""An operator with kopf, with its webhooks, behaves the same on the embedded server and on a real one."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ocf.cluster import Cluster, PatchOptions, PatchType
from ocf.cluster.client import ApiServerCluster
from ocf.errors import ApiError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest.certificates import Authority
from tests.clients.support import Server
from tests.support import eventually

kopf: Any = pytest.importorskip("kopf")

GROUP = "kopf.example.com"
VERSION = f"{GROUP}/v1"
MANAGED = "ocf.test"  # the webhook configurations of the operator
REGISTRATION = "admissionregistration.k8s.io/v1"
WEBHOOKS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


@pytest.fixture
def definitions() -> list[Manifest]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shops.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    return [definition]


def shop(name: str, namespace: str, **spec: Any) -> Manifest:
    return {"apiVersion": VERSION, "kind": "Shop", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def operator(registry: Any) -> None:
    """Register an operator that reports the specs it got; its webhooks set a default and deny a value."""
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    @kopf.on.create(GROUP, "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    @kopf.on.update(GROUP, "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def seen(spec: Any, patch: Any, **_: Any) -> None:
        patch.status["seen"] = spec.get("size")

    @kopf.on.delete(GROUP, "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def gone(**_: Any) -> None:
        """Make kopf set a finalizer, which blocks the deletion until this has run."""

    @kopf.on.mutate(GROUP, "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def sized(spec: Any, patch: Any, **_: Any) -> None:
        if "size" not in spec:
            patch.spec["size"] = 1

    @kopf.on.validate(GROUP, "v1", "shops", registry=registry)  # type: ignore[untyped-decorator]  # loaded late
    def small(spec: Any, warnings: list[str], **_: Any) -> None:
        if spec.get("size", 0) > 10:
            raise kopf.AdmissionError("a shop has at most ten rooms", code=422)
        warnings.append("shops are old-fashioned")


@asynccontextmanager
async def running(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    settings.admission.managed = MANAGED
    authority = Authority(folder)
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
        kopf.operator(
            registry=registry, settings=settings, namespaces=[server.namespace], ready_flag=ready, stop_flag=stop
        )
    )
    try:
        await asyncio.wait_for(ready.wait(), 600)
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 600)


async def check(cluster: Cluster, namespace: str) -> None:
    """Check that the operator handles its objects, and that its webhooks are called."""
    key = ObjectKey(VERSION, "Shop", "corner", namespace)

    async def configured() -> bool:
        """Return whether both configurations contain webhooks; kopf writes one after the other."""
        found = [await cluster.list(REGISTRATION, kind) for kind in WEBHOOKS]
        return all(any(one.get("webhooks") for one in each.items) for each in found)

    async def defaulted() -> bool:
        """Return whether the webhooks are called: a real API server reads their configurations a moment later."""
        tried = shop("tried", namespace)
        created = await cluster.create(tried, field_manager="test", dry_run=True)
        return bool(created["spec"] == {"size": 1})

    async def refused() -> bool:
        """Return whether the validator is called, which is in the other configuration."""
        try:
            await cluster.create(shop("big", namespace, size=11), field_manager="test", dry_run=True)
        except ApiError as error:
            return "a shop has at most ten rooms" in str(error)
        return False

    async def reported() -> bool:
        status: Manifest = (await cluster.get(key)).get("status") or {}
        return status.get("seen") == 3

    async def finalized() -> bool:
        return bool((await cluster.get(key))["metadata"].get("finalizers"))

    async def gone() -> bool:
        return not (await cluster.list(VERSION, "Shop")).items

    await eventually(configured)
    await eventually(defaulted)
    created = await cluster.create(shop("corner", namespace), field_manager="test")
    assert created["spec"] == {"size": 1}
    await eventually(refused)
    await cluster.patch(key, {"spec": {"size": 3}}, PatchOptions(patch_type=PatchType.MERGE, field_manager="test"))
    await eventually(reported)
    await eventually(finalized)
    await cluster.delete(key)
    await eventually(gone)


async def run(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # When kopf ends it cancels all tasks that began after it, those of a server in this loop included.
    async with (
        await ApiServerCluster.connect(str(server.kubeconfig)) as cluster,
        running(server, folder, monkeypatch),
    ):
        try:
            await check(cluster, server.namespace)
        finally:
            for kind in WEBHOOKS:
                with suppress(NotFoundError):
                    await cluster.delete(ObjectKey(REGISTRATION, kind, MANAGED))


@pytest.mark.filterwarnings("default")
async def test_on_the_embedded_server(embedded: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await run(embedded, tmp_path, monkeypatch)


@pytest.mark.filterwarnings("default")
async def test_on_a_real_server(real: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await run(real, tmp_path, monkeypatch)
