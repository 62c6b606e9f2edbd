"""The status of a cache: its conditions, its replica counts, and its address for clients.

The status is derived from the objects in the cluster, not from the actions of the reconcile. So a failed reconcile is
reported as well, with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples.memcached.conditions import View, conditions, view
from examples.memcached.model import MemcachedStatus
from examples.memcached.naming import PORT
from examples.memcached.secrets import used_secrets
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey, write_model

if TYPE_CHECKING:
    from examples.memcached.model import Memcached
    from ocf.cluster import Cluster
    from ocf.component import ReconcileContext
    from ocf.objects import Manifest

__all__ = ["observe", "report"]


async def observe(cache: Memcached, cluster: Cluster, failure: BaseException | None = None) -> View:
    """Return the observed state of a cache; with a cached cluster this sends no request.

    Args:
        cache: The owner.
        cluster: The cluster that the cache is in.
        failure: The error of the reconcile; None if it succeeded.
    """
    namespace = cache.metadata.namespace
    deployment = await _found(cluster, ObjectKey("apps/v1", "Deployment", cache.metadata.name, namespace))
    secrets = [ObjectKey("v1", "Secret", name, namespace) for name in used_secrets(cache)]
    missing = [key.name for key in secrets if await _found(cluster, key) is None]
    return view(cache, deployment, missing=missing, failure=str(failure or ""))


def report(context: ReconcileContext, cache: Memcached, seen: View) -> None:
    """Stage the status of a cache; it is written at the end of the reconcile if it changed.

    Args:
        context: The context of the reconcile.
        cache: The owner.
        seen: The observed state.
    """
    reported = conditions(seen)
    for name, sentence in reported.items():
        context.set_condition(name, status=sentence.status, reason=sentence.reason, message=sentence.message)
    is_ready = reported["Ready"].status == "True"
    status = MemcachedStatus(
        ready_replicas=seen.pods.ready if seen.pods else 0,
        observed_generation=cache.metadata.generation,
        server_list=[f"{cache.metadata.name}.{cache.metadata.namespace}:{PORT}"] if is_ready else None,
    )
    context.status.pop("serverList", None)  # None is not written
    context.status.update(write_model(status))


async def _found(cluster: Cluster, key: ObjectKey) -> Manifest | None:
    try:
        return await cluster.get(key)
    except NotFoundError:
        return None
