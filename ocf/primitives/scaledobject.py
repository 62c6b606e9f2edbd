"""The ScaledObject of KEDA (`keda.sh/v1alpha1`): operational, graceful, suspendable, and a scaler of its target.

Suspending pauses it by the annotation `autoscaling.keda.sh/paused`, and waits until KEDA reports that it is paused: it
has then deleted its HPA, and nothing scales the target up again while it is scaled to zero. Resuming removes the
annotation.

The models for its baseline and its editors are in `ocf.objects.third_party.keda`.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus, StatusReport, SuspensionStatus
from ocf.editors import ObjectMetaEditor, ScaledObjectSpecEditor
from ocf.objects.third_party.lazy import ScaledObject
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import ScalerResource
from ocf.primitives.status import IntegrationStatus, SeenCondition, conditions_of

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
    mutator.edit_object_metadata(lambda meta: meta.ensure_annotation(_PAUSED, "true"))


# Default status handlers of a ScaledObject, based on its conditions.
#
# KEDA sets `Paused` once it has stopped to scale and deleted its HPA. Its conditions have no generation.
#
# Source: https://keda.sh/docs/latest/reference/scaledobject-spec/ and `controllers/keda/scaledobject_controller.go`.

_PAUSED: Final = "autoscaling.keda.sh/paused"
"""Annotation that makes KEDA stop scaling and delete its HPA; the target keeps its replica count."""


def _condition(live: ScaledObject, kind: str) -> SeenCondition | None:
    return next((condition for condition in conditions_of(live.status) if condition.type == kind), None)


def _observed(live: ScaledObject) -> StatusReport[OperationalStatus]:
    ready = _condition(live, "Ready")
    match ready.status if ready else "":
        case "True":
            return StatusReport(OperationalStatus.OPERATIONAL, ready.text if ready else "")
        case "False":
            return StatusReport(OperationalStatus.FAILING, ready.text if ready else "")
        case _:
            return StatusReport(OperationalStatus.PENDING, "Waiting for condition Ready of the ScaledObject")


def default_suspension_status_handler(live: ScaledObject) -> StatusReport[SuspensionStatus]:
    """Return the suspension status of a ScaledObject.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Suspended` once the pause annotation is set and KEDA reports that scaling is paused, before that `Suspending`.
    """
    annotations = (live.metadata.annotations if live.metadata else None) or {}
    if _PAUSED not in annotations:
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for the pause annotation to be applied")
    paused = _condition(live, "Paused")
    if paused is None or paused.status != "True":
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for KEDA to pause the ScaledObject")
    return StatusReport(SuspensionStatus.SUSPENDED, "ScaledObject paused")


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` while `Ready` is True, `OperationFailing` while it is False, else
`OperationPending`."""

default_grace_status_handler: Final = _STATUS.grace
"""Grace handler: `Healthy` while `Ready` is True, `Down` while it is False, else `Degraded`."""


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

    kind = Kind("keda.sh/v1alpha1", "ScaledObject", "ocf.objects.third_party.keda:ScaledObject", Mutator)
    handlers = Handlers(
        status=default_operational_status_handler,
        grace=default_grace_status_handler,
        suspend=_pause,
        suspension=default_suspension_status_handler,
    )

    def build(self) -> Resource:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(Resource)
