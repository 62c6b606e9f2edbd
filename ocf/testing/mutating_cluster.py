"""Cluster whose admission changes the objects it receives, like a mutating webhook.

An operator that compares the sent object with the stored one writes for ever against such a server. To test for this,
run the operator on this cluster and check that it stops writing.
"""

from collections.abc import Callable

from ocf.cluster import ApplyCache, Cluster, Subresource
from ocf.cluster.interceptor import InterceptingCluster
from ocf.objects import Manifest, copy_json

__all__ = ["MutatingCluster"]


class MutatingCluster(InterceptingCluster):
    """A cluster that changes every object of an apply, create or update.

    As on a real server, the field manager of the request owns the fields that the webhook sets. Requests to
    subresources and patches are not changed.

    Args:
        cluster: The wrapped cluster.
        rewrite: Changes a copy of the sent object in place.
        apply_cache: The apply cache of the operator that uses this cluster; None shares that of `cluster`.

    Example:
        >>> import asyncio
        >>> from ocf_server import EmbeddedCluster
        >>> def label(manifest: Manifest) -> None:
        ...     manifest["metadata"]["labels"] = {"seen": "yes"}
        >>> cluster = MutatingCluster(EmbeddedCluster(), label)
        >>> sent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        >>> asyncio.run(cluster.apply(sent, field_manager="demo"))["metadata"]["labels"]
        {'seen': 'yes'}
    """

    def __init__(
        self, cluster: Cluster, rewrite: Callable[[Manifest], object], *, apply_cache: ApplyCache | None = None
    ) -> None:
        super().__init__(cluster, apply_cache=apply_cache)
        self._rewrite = rewrite

    async def apply(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        force: bool = False,
        subresource: Subresource | None = None,
        dry_run: bool = False,
    ) -> Manifest:
        """Apply an object after the webhook changed it."""
        admitted = self._admitted(manifest, subresource)
        return await super().apply(
            admitted, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
        )

    async def create(
        self,
        manifest: Manifest,
        *,
        field_manager: str,
        subresource: Subresource | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Manifest:
        """Create an object after the webhook changed it."""
        admitted = self._admitted(manifest, subresource)
        return await super().create(
            admitted, field_manager=field_manager, subresource=subresource, dry_run=dry_run, strict=strict
        )

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Update an object after the webhook changed it."""
        admitted = self._admitted(manifest, subresource)
        return await super().update(admitted, field_manager=field_manager, subresource=subresource, dry_run=dry_run)

    def _admitted(self, manifest: Manifest, subresource: Subresource | None) -> Manifest:
        if subresource is not None:
            return manifest
        copied: Manifest = copy_json(manifest)
        self._rewrite(copied)
        return copied
