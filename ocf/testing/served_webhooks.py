"""Webhook server of an operator for an API server on the same machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

from ocf.cluster import Cluster
from ocf.runtime.admission import Policy, Webhook
from ocf.runtime.crds import VersionedResource

__all__ = ["serve_webhooks"]

_HOST: Final = "127.0.0.1"


@asynccontextmanager
async def serve_webhooks(
    cluster: Cluster,
    name: str,
    webhooks: Sequence[Webhook[Any]] = (),
    *,
    conversions: Sequence[VersionedResource] = (),
    policies: Sequence[Policy] = (),
    namespace: str = "kube-system",
) -> AsyncIterator[str]:
    """Serve webhooks on loopback and register them at a local API server while the block runs.

    Args:
        cluster: The API server: embedded, or one of `ocf.testing.envtest`.
        name: Name of the webhook configurations.
        webhooks: The webhooks.
        conversions: Resources with several versions, whose definitions the cluster must have. Their conversion webhooks
            stay in the definitions.
        policies: Admission policies, which hold while the block runs, too.
        namespace: Namespace of the Secret with the certificate, which webhooks and policies of built-in kinds leave
            out.

    Yields:
        The URL of the server; empty if there are neither webhooks nor conversions.
    """
    from ocf.runtime.admission import Url, Webhooks
    from ocf.runtime.admission.policies import registered_policies
    from ocf.runtime.operator import WebhookOptions
    from ocf.runtime.operator.webhook_options import serving_webhooks

    local = WebhookOptions(address=Url(f"https://{_HOST}"), namespace=namespace, host=_HOST, port=0, register=True)
    async with AsyncExitStack() as stack:
        guards = registered_policies(cluster, policies, namespace=namespace, field_manager=f"{name}-policies")
        await stack.enter_async_context(guards)
        if not webhooks and not conversions:
            yield ""
            return
        served = serving_webhooks(cluster, Webhooks(name, webhooks, conversions=conversions), local)
        yield (await stack.enter_async_context(served)).url
