"""Loading of manifests into a cluster before it is served."""

from collections.abc import Iterable
from typing import Final

from ocf.errors import ApiError, ConfigError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf_server.cluster import EmbeddedCluster
from ocf_server.http.backend import Backend

__all__ = ["load_manifests"]

_FIRST: Final = ("CustomResourceDefinition", "Namespace")
"""Kinds that other objects depend on; they are applied first, in this order."""


async def load_manifests(cluster: EmbeddedCluster, manifests: Iterable[Manifest], *, field_manager: str) -> None:
    """Apply manifests as kubectl would.

    Args:
        manifests: The objects, or lists of them, in any order; namespaced objects without a namespace go to `default`.
        field_manager: The field manager of the apply.

    Raises:
        ConfigError: If an object cannot be applied; the objects before it are in the cluster.
    """
    found = [item for manifest in manifests for item in _items(manifest)]
    backend = Backend(cluster)
    for manifest in sorted(found, key=lambda one: _FIRST.index(one["kind"]) if one.get("kind") in _FIRST else 9):
        try:
            await cluster.apply(_with_namespace(backend, manifest), field_manager=field_manager, force=True)
        except ApiError as error:
            name = (manifest.get("metadata") or {}).get("name")
            raise ConfigError(f"{manifest.get('kind')} {name} cannot be applied: {error}") from error


def _items(manifest: Manifest) -> list[Manifest]:
    return list(manifest.get("items") or ()) if manifest.get("kind") == "List" else [manifest]


def _with_namespace(backend: Backend, manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata") or {}
    version = split_api_version(str(manifest.get("apiVersion")))
    served = (one for one in backend.catalog().of(*version) if one.kind == manifest.get("kind"))
    if metadata.get("namespace") or not any(one.namespaced for one in served):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": "default"}}
