"""CustomResourceDefinitions of a cluster, which map kinds to the resources that RBAC rules name."""

from __future__ import annotations

from ocf.cluster import Cluster
from ocf.objects import Manifest

__all__ = ["custom_definitions"]


async def custom_definitions(cluster: Cluster) -> tuple[Manifest, ...]:
    """Read the CustomResourceDefinitions of a cluster, for `policy_rules`.

    Args:
        cluster: The cluster.
    """
    found = await cluster.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    return found.items
