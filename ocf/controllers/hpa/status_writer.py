"""Writing: the Scale, with a few tries where somebody else was faster, and the status."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from ocf.autoscaling.algorithm import Status
from ocf.cluster import Cluster, Subresource
from ocf.concepts.backoff import with_jitter
from ocf.errors import ApiError, ConflictError
from ocf.objects import Manifest, ObjectKey

__all__ = ["FIELD_MANAGER", "write_scale", "write_status"]

FIELD_MANAGER: Final = "ocf-hpa-controller"
"""Whose name stands in `managedFields`."""

# The numbers of `retry.DefaultRetry` of client-go, with which the built-in controller writes.
_TRIES: Final = 5
_PAUSE: Final = timedelta(milliseconds=10)
_JITTER: Final = 0.1


async def write_scale(
    cluster: Cluster,
    target: ObjectKey,
    replicas: int,
    *,
    version: str = "",
    chance: Callable[[], float] = random.random,
) -> None:
    """Write how many replicas a target should have.

    Where the target was changed since it was read, it is read and written again, five times in all; nothing else is
    tried again.

    Args:
        cluster: Where it is.
        target: What is scaled.
        replicas: The number.
        version: The resourceVersion of the target as it was read; empty reads its Scale first.
        chance: Draws a number from 0 up to 1.

    Raises:
        ApiError: As the cluster refused the last try.
    """
    for tries_left in reversed(range(_TRIES)):
        if not version:
            version = _version(await cluster.get(target, subresource=Subresource.SCALE))
        try:
            await cluster.update(
                _scale(target, replicas, version), field_manager=FIELD_MANAGER, subresource=Subresource.SCALE
            )
        except ConflictError:
            if not tries_left:
                raise
        else:
            return
        with suppress(ApiError):  # as the controller does, which then tries once more with what it has
            version = _version(await cluster.get(target, subresource=Subresource.SCALE))
        await asyncio.sleep(with_jitter(_PAUSE, _JITTER, chance).total_seconds())


async def write_status(cluster: Cluster, manifest: Manifest, status: Status) -> None:
    """Write the status of an autoscaler.

    Args:
        cluster: Where it is.
        manifest: The autoscaler as it was read: one that was changed since is not written.
        status: The status.

    Raises:
        ApiError: As the cluster refused it.
    """
    written = {**manifest, "status": status.to_manifest()}
    await cluster.update(written, field_manager=FIELD_MANAGER, subresource=Subresource.STATUS)


def _scale(target: ObjectKey, replicas: int, version: str) -> Manifest:
    metadata = {"name": target.name, "namespace": target.namespace, "resourceVersion": version}
    return {
        "apiVersion": target.api_version,
        "kind": target.kind,
        "metadata": metadata,
        "spec": {"replicas": replicas},
    }


def _version(scale: Manifest) -> str:
    return str(scale["metadata"].get("resourceVersion") or "")
