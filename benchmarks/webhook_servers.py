"""Webhook servers under measurement: `python -m benchmarks.webhook_servers ocf PORT FOLDER`.

Each has a handler of Pods that does nothing. With `ocf` it has the manifest, and with `model` it reads the Pod as a
model. `reconciling` reconciles 25 owners a second beside it, as an operator of 1 500 owners does that looks at each
once a minute. `kopf` has one of kopf. The folder has the certificate, and for
`kopf` a kubeconfig, since kopf serves webhooks only while it watches a cluster.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from ocf.cluster import Cluster

__all__ = ["PATHS"]

PATHS: Final = dict.fromkeys(("ocf", "model", "reconciling"), "/validate/core/pods") | {"kopf": "/nothing"}
"""The path of each server's webhook."""

_HOST: Final = "127.0.0.1"
_OWNERS: Final = 50
_RESYNC: Final = timedelta(seconds=2)


async def _serve(port: int, folder: Path, which: str) -> None:
    from kubernetes.client import V1Pod

    from benchmarks.autoscaler import NAMESPACE
    from ocf.runtime.admission import AdmissionRequest, FileCertificates, Webhook, Webhooks, serving
    from ocf_server import EmbeddedCluster

    async def nothing(request: AdmissionRequest[V1Pod]) -> None:
        if which == "model":
            assert request.new.metadata is not None

    webhooks = Webhooks("pods", [Webhook.of(V1Pod, validating=[nothing])])
    certificates = FileCertificates(folder / "tls.crt", folder / "tls.key")
    cluster = EmbeddedCluster(namespaces=[NAMESPACE])
    served = serving(webhooks, certificates=certificates, host=_HOST, port=port, cluster=cluster)
    async with _reconciling(cluster) if which == "reconciling" else nullcontext(), served:
        await asyncio.Event().wait()


@asynccontextmanager
async def _reconciling(cluster: Cluster) -> AsyncIterator[None]:
    """Reconcile owners that are in sync, each with a Deployment and its autoscaler."""
    from benchmarks.autoscaler import NAMESPACE, resource
    from benchmarks.bursts import Shop
    from benchmarks.reconciling import deployment_of
    from ocf import component
    from ocf.component import Component
    from ocf.primitives import deployment
    from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running

    def components(shop: Shop) -> Component:
        name = shop.metadata.name
        builder = component.Builder("web", owner=shop.key, condition_type="WebReady")
        return (
            builder.with_resource(deployment.Builder(deployment_of(name)).build()).with_resource(resource(name)).build()
        )

    shops = Operator(name="shops", owner=OwnerType.of(Shop), components=components, resync=_RESYNC)
    await cluster.apply(Shop.definition(), field_manager="benchmark")
    for metadata in ({"name": f"shop-{number}", "namespace": NAMESPACE} for number in range(_OWNERS)):
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata}
        await cluster.create(shop, field_manager="benchmark")
    async with running(cluster, shops, options=ManagerOptions(listen=None, events=False)):
        while not await _all_made(cluster):  # noqa: ASYNC110 (no event reports the end of the first reconciles)
            await asyncio.sleep(_RESYNC.total_seconds())
        yield


async def _all_made(cluster: Cluster) -> bool:
    return len((await cluster.list("autoscaling/v2", "HorizontalPodAutoscaler")).items) == _OWNERS


def _serve_kopf(port: int, folder: Path) -> None:
    import kopf

    @kopf.on.startup()
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.admission.server = kopf.WebhookServer(
            addr=_HOST, port=port, certfile=folder / "tls.crt", pkeyfile=folder / "tls.key"
        )

    @kopf.on.validate("pods", id="nothing")
    async def nothing(**_: Any) -> None:
        pass

    kopf.run(standalone=True, clusterwide=True)


if __name__ == "__main__":
    which, port, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    if which == "kopf":
        _serve_kopf(port, folder)
    else:
        asyncio.run(_serve(port, folder, which))
