"""Objects of any kind that are ready as soon as they exist."""

from __future__ import annotations

from typing import Never, TypeAlias

from ocf.primitives import builder, resource
from ocf.primitives.unstructured.builder import AnyKindBuilder
from ocf.primitives.unstructured.model import Mutation, Mutator, Unstructured

__all__ = ["Builder", "Mutation", "Mutator", "Resource"]

Resource: TypeAlias = resource.StaticResource[Unstructured, Mutator]
"""An object of any kind as a resource of a component."""


class Builder(AnyKindBuilder[Never], builder.StaticBuilder[Unstructured, Mutator]):
    """Builds an object that is ready as soon as it exists.

    Args:
        base: The desired baseline: a manifest, a YAML text with one document, or a pydantic model of the user.
        cluster_scoped: Whether objects of the kind are cluster-scoped.

    Example:
        >>> monitor = Builder('''
        ...     apiVersion: monitoring.coreos.com/v1
        ...     kind: PodMonitor
        ...     metadata: {name: web, namespace: shop}
        ...     spec: {podMetricsEndpoints: [{port: metrics}]}
        ... ''').build()
        >>> monitor.identity
        'monitoring.coreos.com/v1/PodMonitor/shop/web'
    """
