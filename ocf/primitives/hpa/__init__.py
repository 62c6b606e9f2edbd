"""The HorizontalPodAutoscaler (`autoscaling/v2`): operational, graceful, suspendable, and a scaler of its target.

Suspending deletes it, so that nothing scales the target up again while it is scaled to zero; resuming creates it again
before its target is scaled up.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.editors import HPASpecEditor, ObjectMetaEditor
from ocf.lazy_types.kubernetes import V2HorizontalPodAutoscaler
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.hpa.status import (
    default_grace_status_handler,
    default_operational_status_handler,
    default_suspension_status_handler,
    scaled_to_zero_grace_status_handler,
    scaled_to_zero_operational_status_handler,
)
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import ScalerResource

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
    "scaled_to_zero_grace_status_handler",
    "scaled_to_zero_operational_status_handler",
]


class Mutator(BaseMutator):
    """Records edits of an autoscaler: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_hpa_spec = Edits(HPASpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of an autoscaler."""


class Resource(ScalerResource[V2HorizontalPodAutoscaler, Mutator]):
    """An autoscaler as a resource of a component; only it sets the replica count of its target."""


class Builder(IntegrationBuilder[V2HorizontalPodAutoscaler, Mutator]):
    """Builds an autoscaler.

    Args:
        base: The desired baseline: a `V2HorizontalPodAutoscaler`, a manifest, or a YAML text with one document.

    Example:
        >>> resource = Builder('''
        ...     apiVersion: autoscaling/v2
        ...     kind: HorizontalPodAutoscaler
        ...     metadata: {name: backend-hpa, namespace: shop}
        ...     spec:
        ...       scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: backend}
        ...       maxReplicas: 10
        ... ''').build()
        >>> resource.identity
        'autoscaling/v2/HorizontalPodAutoscaler/shop/backend-hpa'
    """

    kind = Kind("autoscaling/v2", "HorizontalPodAutoscaler", "V2HorizontalPodAutoscaler", Mutator)
    handlers = Handlers(
        status=OnManifest(default_operational_status_handler),
        grace=OnManifest(default_grace_status_handler),
        suspension=OnManifest(default_suspension_status_handler),
        delete_on_suspend=lambda _base: True,
    )

    def build(self) -> Resource:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(Resource)
