"""A cluster whose admission changes what it is sent, as a mutating webhook does.

An operator that compares what it sent with what is stored fights such a server for ever, write after write. Whether
yours does is one test: put this cluster under it and demand that it comes to rest.
"""

from collections.abc import Callable

from ocf.cluster import ApplyCache, Cluster, Subresource
from ocf.cluster.interceptor import InterceptingCluster
from ocf.objects import Manifest, copy_json

__all__ = ["MutatingCluster"]


class MutatingCluster(InterceptingCluster):
    """A cluster that changes every object it is sent by apply, create or update.

    The fields that the webhook sets belong to whoever sent the request, as they do on a real server. Subresources and
    patches pass as they are.

    Args:
        cluster: The cluster that does the work.
        rewrite: Changes an object in place; it gets a copy of what was sent.
        apply_cache: The memory of the operator that uses this one; None shares that of `cluster`.

    Example:
        >>> import asyncio
        >>> from ocf.embedded import EmbeddedCluster
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
        """Apply what the webhook makes of an object."""
        admitted = self._admitted(manifest, subresource)
        return await super().apply(
            admitted, field_manager=field_manager, force=force, subresource=subresource, dry_run=dry_run
        )

    async def create(self, manifest: Manifest, *, field_manager: str, dry_run: bool = False) -> Manifest:
        """Create what the webhook makes of an object."""
        return await super().create(self._admitted(manifest, None), field_manager=field_manager, dry_run=dry_run)

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        """Replace an object by what the webhook makes of it."""
        admitted = self._admitted(manifest, subresource)
        return await super().update(admitted, field_manager=field_manager, subresource=subresource, dry_run=dry_run)

    def _admitted(self, manifest: Manifest, subresource: Subresource | None) -> Manifest:
        if subresource is not None:
            return manifest
        copied: Manifest = copy_json(manifest)
        self._rewrite(copied)
        return copied
