"""Loading of manifests into a cluster before it is served."""

from collections.abc import Iterable
from typing import Final

from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import Manifest
from ocf.objects.manifest import split_api_version
from ocf_server.cluster import EmbeddedCluster
from ocf_server.http.backend import Backend

__all__ = ["NotAppliedError", "load_manifests"]

_FIRST: Final = ("CustomResourceDefinition", "Namespace")
"""Kinds that other objects depend on; they are applied first, in this order."""


class NotAppliedError(ConfigError):
    """A manifest cannot be applied.

    Args:
        manifest: The manifest, as it was given.
        problem: Why not.
    """

    def __init__(self, manifest: Manifest, problem: str) -> None:
        self.manifest = manifest
        name = (manifest.get("metadata") or {}).get("name")
        super().__init__(f"{manifest.get('kind')} {name} cannot be applied: {problem}")


async def load_manifests(cluster: EmbeddedCluster, manifests: Iterable[Manifest], *, field_manager: str) -> None:
    """Apply manifests as kubectl would.

    Args:
        manifests: The objects, or lists of them, in any order; namespaced objects without a namespace go to `default`.
        field_manager: The field manager of the apply.

    Raises:
        NotAppliedError: If an object cannot be applied; the objects before it are in the cluster.
    """
    found = [item for manifest in manifests for item in _items(manifest)]
    backend = Backend(cluster)
    # Stable, so that all others keep the order of the files.
    for manifest in sorted(found, key=lambda one: _FIRST.index(one["kind"]) if one.get("kind") in _FIRST else 9):
        try:
            await cluster.apply(_of_served_kind(backend, manifest), field_manager=field_manager, force=True)
        except ApiError as error:
            # An apply creates what does not exist, so only a namespace can be missing.
            remedy = "; apply its Namespace, too" if isinstance(error, NotFoundError) else ""
            raise NotAppliedError(manifest, f"{error}{remedy}") from error


def _items(manifest: Manifest) -> list[Manifest]:
    return list(manifest.get("items") or ()) if manifest.get("kind") == "List" else [manifest]


def _of_served_kind(backend: Backend, manifest: Manifest) -> Manifest:
    """Return a manifest with a namespace if its kind has one; raise an error if the kind is not served."""
    metadata = manifest.get("metadata") or {}
    api_version, kind = str(manifest.get("apiVersion")), manifest.get("kind")
    served = [one for one in backend.catalog().of(*split_api_version(api_version)) if one.kind == kind]
    if not served:
        problem = (
            f"{kind} of {api_version} is neither a built-in kind nor defined; load its CustomResourceDefinition, too"
        )
        raise NotAppliedError(manifest, problem)
    if metadata.get("namespace") or not any(one.namespaced for one in served):
        return manifest
    return {**manifest, "metadata": {**metadata, "namespace": "default"}}
