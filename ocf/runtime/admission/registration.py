"""Webhook configurations and policies that a process registers itself, for development."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final
from uuid import uuid4

from ocf.cluster import Cluster, DeleteOptions, PatchOptions, PatchType, Preconditions
from ocf.cluster.retry import MOST_TRIES, retry_on_conflict
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["registered"]

_PROCESSES: Final = "processes.ocf.dev/"
"""Annotations with this prefix name the processes for which an object is registered."""


@asynccontextmanager
async def registered(
    cluster: Cluster, manifests: Sequence[Manifest], *, field_manager: str, shared: bool = False
) -> AsyncIterator[None]:
    """Apply objects, and delete them when the block ends; those that an earlier process has left are taken over.

    Args:
        shared: Whether the objects are the same for all replicas, so that the last one that ends deletes them;
            otherwise they are those of the process that registered last.

    Raises:
        ConfigError: If an object was installed by another client, whose guards would be gone when the block ends.
        ApiError: If the API server rejects an object.
    """
    mark = f"{_PROCESSES}{uuid4().hex}"
    made: list[ObjectKey] = []
    try:
        for manifest in manifests:
            key = ObjectKey.of(manifest)
            await _require_own(cluster, key, field_manager)
            made.append(key)
            await _register(cluster, manifest, mark, field_manager, shared=shared)
        yield
    finally:
        for key in made:
            with suppress(ApiError):  # the API server may have stopped already, or another process has deleted it
                end = partial(_unregister, cluster, key, mark, field_manager)
                await retry_on_conflict(partial(cluster.get, key), end)


# The mark is a patch of its own field: an apply would take the marks of the other processes with it, because all have
# the same field manager.
async def _register(cluster: Cluster, manifest: Manifest, mark: str, field_manager: str, *, shared: bool) -> None:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=field_manager)
    for left in reversed(range(MOST_TRIES)):
        stored = await cluster.apply(manifest, field_manager=field_manager, force=True)
        others = {} if shared else dict.fromkeys(_marks(stored))
        try:
            await cluster.patch(ObjectKey.of(manifest), {"metadata": {"annotations": {**others, mark: ""}}}, options)
        except NotFoundError:
            # Another process has ended between the two requests.
            if not left:
                raise
        else:
            return


async def _unregister(cluster: Cluster, key: ObjectKey, mark: str, field_manager: str, live: Manifest) -> None:
    """Delete an object, unless another process needs it; raise ConflictError if it has changed since it was read."""
    metadata = live["metadata"]
    marks = _marks(live)
    version = metadata["resourceVersion"]
    if marks == [mark]:
        preconditions = Preconditions(uid=metadata["uid"], resource_version=version)
        await cluster.delete(key, DeleteOptions(preconditions=preconditions))
    elif mark in marks:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager=field_manager)
        await cluster.patch(key, {"metadata": {"resourceVersion": version, "annotations": {mark: None}}}, options)


def _marks(stored: Manifest) -> list[str]:
    return [name for name in stored["metadata"].get("annotations") or () if name.startswith(_PROCESSES)]


async def _require_own(cluster: Cluster, key: ObjectKey, field_manager: str) -> None:
    try:
        found = await cluster.get(key)
    except NotFoundError:
        return
    managers = [str(entry.get("manager")) for entry in found["metadata"].get("managedFields") or ()]
    if field_manager not in managers:
        by = ", ".join(dict.fromkeys(managers)) or "another client"
        raise ConfigError(
            f"{key}: {by} has installed it, and a process with `register=True` deletes it when it ends; leave"
            " `register` out, or delete the object first"
        )
