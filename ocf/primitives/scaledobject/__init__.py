"""The ScaledObject of KEDA (`keda.sh/v1alpha1`): operational, graceful, suspendable, and a scaler of its target.

Suspending pauses it by the annotation `autoscaling.keda.sh/paused`, and waits until KEDA reports that it is paused: it
has then deleted its HPA, and nothing scales the target up again while it is scaled to zero. Resuming removes the
annotation.

The models for its baseline and its editors are in `ocf.objects.third_party.keda`.
"""

from __future__ import annotations

from typing import TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus
from ocf.editors import ObjectMetaEditor, ScaledObjectSpecEditor
from ocf.objects import Manifest
from ocf.objects.third_party.lazy import ScaledObject
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.scaledobject.status import (
    PAUSED_ANNOTATION,
    default_grace_status_handler,
    default_operational_status_handler,
    default_suspension_status_handler,
)
from ocf.primitives.scaler import ScalerResource

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_grace_status_handler",
    "default_operational_status_handler",
    "default_suspension_status_handler",
]


class Mutator(BaseMutator):
    """Records edits of a ScaledObject: first its metadata, then its spec."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_scaledobject_spec = Edits(ScaledObjectSpecEditor, "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a ScaledObject."""


def _pause(mutator: Mutator) -> None:
    mutator.edit_object_metadata(lambda meta: meta.ensure_annotation(PAUSED_ANNOTATION, "true"))


_KIND: Kind[ScaledObject, Mutator] = Kind(
    "keda.sh/v1alpha1", "ScaledObject", "ocf.objects.third_party.keda:ScaledObject", Mutator
)
_HANDLERS: Handlers[ScaledObject, Mutator, OperationalStatus] = Handlers(
    status=default_operational_status_handler,
    grace=default_grace_status_handler,
    suspend=_pause,
    suspension=default_suspension_status_handler,
)


class Resource(ScalerResource[ScaledObject, Mutator]):
    """A ScaledObject as a resource of a component; only it sets the replica count of its target."""

    default_target = ("apps/v1", "Deployment")


class Builder(IntegrationBuilder[ScaledObject, Mutator]):
    """Builds a ScaledObject.

    Args:
        base: The desired baseline: a `ScaledObject`, a manifest, or a YAML text with one document.

    Example:
        >>> spec = {"scaleTargetRef": {"name": "web"}, "triggers": [{"type": "cpu", "metadata": {"value": "60"}}]}
        >>> metadata = {"name": "web", "namespace": "shop"}
        >>> base = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": spec}
        >>> resource = Builder(base).build()
        >>> str(resource.scale_target().key), resource.render(suspended=True)["metadata"]["annotations"]
        ('apps/v1/Deployment/shop/web', {'autoscaling.keda.sh/paused': 'true'})
    """

    def __init__(self, base: ScaledObject | Manifest | str) -> None:
        super().__init__(base, _KIND, _HANDLERS)

    def build(self) -> Resource:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(Resource)
