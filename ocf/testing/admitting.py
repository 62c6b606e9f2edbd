"""The webhooks of an operator, for an API server on the same machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.runtime.admission import Webhook

__all__ = ["admitting"]

_HOST: Final = "127.0.0.1"
_MANAGER: Final = "ocf-testing"


@asynccontextmanager
async def admitting(
    cluster: Cluster, name: str, webhooks: Sequence[Webhook[Any]], *, namespace: str = "kube-system"
) -> AsyncIterator[str]:
    """Serve webhooks on loopback, and have an API server of this machine ask them, while the block runs.

    Args:
        cluster: The API server: embedded, or one of `ocf.testing.envtest`.
        name: What their configurations are called.
        webhooks: The webhooks; without any, nothing is done.
        namespace: Where the certificate is kept, so that it is out of the way.

    Yields:
        Where they are served; empty if there are none.

    Raises:
        AlreadyExistsError: If there are configurations of that name.
    """
    if not webhooks:
        yield ""
        return
    from ocf.errors import ApiError
    from ocf.objects import ObjectKey
    from ocf.runtime.admission import SecretCertificates, Url, Webhooks, configurations, serving

    declared = Webhooks(name, webhooks)
    certificates = SecretCertificates(cluster, declared, Url(f"https://{_HOST}"), namespace=namespace)
    async with serving(declared, certificates=certificates, host=_HOST, port=0) as server:
        written = configurations(declared, Url(server.url))
        try:
            for manifest in written:
                await cluster.create(manifest, field_manager=_MANAGER)
            await server.refresh()  # writes into the configurations whom to trust
            yield server.url
        finally:
            # Nobody answers from now on, so nobody is to be asked.
            for manifest in written:
                with suppress(ApiError):  # the API server may be gone already, and they with it
                    await cluster.delete(ObjectKey.of(manifest))
