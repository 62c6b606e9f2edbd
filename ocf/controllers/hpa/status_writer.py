"""Writes of the controller: the Scale, retried on conflicts, and the status."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final

from ocf.autoscaling.algorithm import Status
from ocf.cluster import Cluster, Subresource
from ocf.concepts.backoff import with_jitter
from ocf.controllers.hpa.modes import OWN
from ocf.controllers.hpa.targets_text import targets_text
from ocf.errors import ApiError, ConflictError
from ocf.objects import Manifest, ObjectKey

__all__ = ["FIELD_MANAGER", "write_scale", "write_status"]

FIELD_MANAGER: Final = "ocf-hpa-controller"
"""The field manager of the controller."""

# The values of client-go's `retry.DefaultRetry`, which the built-in controller uses.
_TRIES: Final = 5
_PAUSE: Final = timedelta(milliseconds=10)
_JITTER: Final = 0.1


async def write_scale(
    cluster: Cluster,
    target: ObjectKey,
    replicas: int,
    *,
    version: str = "",
    retry: bool = True,
    random: Callable[[], float] = random.random,
) -> None:
    """Write the replicas of a target.

    On a conflict the Scale is read and written again, five times in all, as from Kubernetes 1.34. Other errors are not
    retried.

    Args:
        cluster: The cluster of the target.
        target: The target.
        replicas: The replicas.
        version: The resourceVersion of the target as read; empty reads its Scale first.
        retry: Whether to write again after a conflict.
        random: Draws a number from 0 up to 1.

    Raises:
        ApiError: The error of the last attempt.
    """
    for tries_left in reversed(range(_TRIES if retry else 1)):
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
        with suppress(ApiError):  # as the built-in controller, which then retries with the old version
            version = _version(await cluster.get(target, subresource=Subresource.SCALE))
        await asyncio.sleep(with_jitter(_PAUSE, _JITTER, random).total_seconds())


async def write_status(cluster: Cluster, manifest: Manifest, status: Status) -> None:
    """Write the status of an autoscaler; one of our own kind has the text of its metrics, too.

    Args:
        cluster: The cluster of the autoscaler.
        manifest: The autoscaler as read; if it has changed since, the write fails with a conflict.
        status: The status.

    Raises:
        ApiError: If the API server rejects the write.
    """
    written = {**manifest, "status": status.to_manifest()}
    if manifest["kind"] == OWN[1]:
        metrics = manifest["spec"].get("metrics") or ()
        written["status"]["targets"] = targets_text(metrics, written["status"].get("currentMetrics") or ())
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
