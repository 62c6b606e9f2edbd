"""Webhook configurations and policies that a process registers itself, for development."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from ocf.cluster import Cluster, DeleteOptions, Preconditions
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey

__all__ = ["registered"]


@asynccontextmanager
async def registered(cluster: Cluster, manifests: Sequence[Manifest], *, field_manager: str) -> AsyncIterator[None]:
    """Apply objects, and delete them when the block ends; those that an earlier process has left are taken over.

    Raises:
        ConfigError: If an object was installed by another client, whose guards would be gone when the block ends.
        ApiError: If the API server rejects an object.
    """
    made: list[Manifest] = []
    try:
        for manifest in manifests:
            await _require_own(cluster, ObjectKey.of(manifest), field_manager)
            made.append(await cluster.apply(manifest, field_manager=field_manager, force=True))
        yield
    finally:
        for manifest in made:
            same = DeleteOptions(preconditions=Preconditions(uid=manifest["metadata"]["uid"]))
            with suppress(ApiError):  # the API server may have stopped already, or another process has replaced it
                await cluster.delete(ObjectKey.of(manifest), same)


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
