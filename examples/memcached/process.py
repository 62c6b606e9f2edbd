"""What the process of the operator holds besides the operator: the server of its webhooks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from examples.memcached.admission import webhooks
from ocf.runtime.admission import SecretCertificates, Service, serving

if TYPE_CHECKING:
    from examples.memcached.settings import Settings
    from ocf.cluster import Cluster

__all__ = ["admitting"]


@asynccontextmanager
async def admitting(cluster: Cluster, settings: Settings) -> AsyncIterator[None]:
    """Serve the webhooks while the block runs, with a certificate that is kept in a Secret and renewed; or none.

    Args:
        cluster: Where the Secret is, and the configurations of the webhooks.
        settings: Whether, and where.
    """
    if not settings.webhook_service:
        yield
        return
    served, address = webhooks(strict=settings.strict), Service(settings.webhook_service, settings.namespace)
    certificates = SecretCertificates(cluster, served, address, namespace=settings.namespace)
    async with serving(served, certificates=certificates, port=settings.webhook_port):
        yield
