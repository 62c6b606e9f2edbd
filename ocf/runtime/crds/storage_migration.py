"""Migration of stored objects to the storage version of their definition."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from ocf.cluster import Cluster, ListOptions, Subresource
from ocf.errors import ConfigError, ConflictError, ExpiredError, NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.crds.versioned_resource import VersionedResource
from ocf.runtime.rbac.policy_rule import PolicyRule

__all__ = ["migrate_storage", "migration_rules"]

_API: Final = "apiextensions.k8s.io"
_DEFINITIONS: Final = "customresourcedefinitions"
_PAGE: Final = 500


async def migrate_storage(cluster: Cluster, resource: VersionedResource, *, field_manager: str) -> int:
    """Write each object of a resource once, so that all are stored in the storage version.

    The API server writes an object in the storage version, and leaves it in its former version until then. Afterwards
    the former versions are removed from `status.storedVersions` of the definition, and can be removed from its
    versions. The objects are not changed; another migration at the same time does no harm.

    Call it some minutes after the definition was applied: an API server that has not observed the new storage version
    yet would leave the objects in the former one, and the response does not show that.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/.

    Args:
        cluster: The cluster, without a cache.
        resource: The resource, whose definition must have been applied.
        field_manager: Field manager of the writes.

    Returns:
        The number of objects written; 0 if only the storage version is stored already.

    Raises:
        ConfigError: If the definition in the cluster has another storage version, or changes meanwhile.
        ApiError: If an object cannot be written; then `status.storedVersions` is unchanged.
    """
    before = await _definition(cluster, resource)
    if before["status"]["storedVersions"] == [resource.stored.name]:
        return 0
    written = 0
    async for live in _objects(cluster, resource):
        with suppress(ConflictError, NotFoundError):  # written or deleted since it was read
            await cluster.update(live, field_manager=field_manager)
            written += 1
    after = await _definition(cluster, resource)
    if after["metadata"]["generation"] != before["metadata"]["generation"]:
        raise ConfigError(f"the definition {resource.name} has changed during the migration: migrate again")
    status = {**after["status"], "storedVersions": [resource.stored.name]}
    await cluster.update({**after, "status": status}, field_manager=field_manager, subresource=Subresource.STATUS)
    return written


def migration_rules(resource: VersionedResource) -> frozenset[PolicyRule]:
    """Return the RBAC rules that `migrate_storage` needs."""
    namespaced = resource.scope == "Namespaced"
    objects = {PolicyRule(resource.group, resource.plural, verb, namespaced=namespaced) for verb in ("list", "update")}
    return frozenset(objects) | {
        PolicyRule(_API, _DEFINITIONS, "get", resource.name, namespaced=False),
        PolicyRule(_API, f"{_DEFINITIONS}/status", "update", resource.name, namespaced=False),
    }


async def _definition(cluster: Cluster, resource: VersionedResource) -> Manifest:
    live = await cluster.get(ObjectKey(f"{_API}/v1", "CustomResourceDefinition", resource.name))
    (stored,) = (version["name"] for version in live["spec"]["versions"] if version["storage"])
    if stored != resource.stored.name:
        raise ConfigError(
            f"the definition {resource.name} in the cluster stores {stored}, expected {resource.stored.name}: "
            "apply the new definition first"
        )
    return live


async def _objects(cluster: Cluster, resource: VersionedResource) -> AsyncIterator[Manifest]:
    """Yield all objects; from the beginning again if the continue token has expired."""
    api_version, token = f"{resource.group}/{resource.stored.name}", ""
    while True:
        try:
            page = await cluster.list(api_version, resource.kind, ListOptions(limit=_PAGE, continue_token=token))
        except ExpiredError:
            token = ""
            continue
        for live in page.items:
            yield live
        token = page.continue_token
        if not token:
            return
