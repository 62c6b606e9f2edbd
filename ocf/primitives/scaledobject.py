"""The ScaledObject of KEDA (`keda.sh/v1alpha1`): operational, graceful, suspendable, and a scaler of its target.

Suspending pauses it by the annotation `autoscaling.keda.sh/paused`, and waits until KEDA reports that it is paused: it
has then deleted its HPA, and nothing scales the target up again while it is scaled to zero. Resuming removes the
annotation.

The models for its baseline and its editors are in `ocf.objects.third_party.keda`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeAlias

from ocf import feature
from ocf.concepts import OperationalStatus, StatusReport, SuspensionStatus
from ocf.editors import ObjectMetaEditor, ScaledObjectSpecEditor
from ocf.objects import Manifest
from ocf.objects.managed_fields import fields_path
from ocf.objects.paths import get_field
from ocf.objects.third_party.lazy import ScaledObject
from ocf.objects.timestamps import parse_rfc3339
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind, OnManifest
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import ScalerResource
from ocf.primitives.status import IntegrationStatus, condition_of, is_stale, live_field

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
# KEDA reports `Paused` for a pause of one direction, too, which keeps its HPA, and before it has deleted the HPA. Its
# conditions have neither a generation nor a time. What remains is the message of `Ready`, since 2.20 in every reconcile
# of a paused object, and when the status was written last.
#
# Source: https://keda.sh/docs/latest/reference/scaledobject-spec/, `NeedToBePausedByAnnotation` of
# `apis/keda/v1alpha1/scaledobject_types.go`, and `handlePause` of `controllers/keda/scaledobject_controller.go`.

_PAUSED: Final = "autoscaling.keda.sh/paused"
"""Annotation that makes KEDA stop scaling and delete its HPA; the target keeps its replica count."""

_PAUSED_REPLICAS: Final = "autoscaling.keda.sh/paused-replicas"
"""Annotation that pauses whatever its value is, and sets the replica count of the target."""

_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""Values with which `paused` does not pause, those of Go's `strconv.ParseBool`; any other text pauses."""

_PAUSED_MESSAGE: Final = "ScaledObject is paused"


def _observed(live: ScaledObject) -> StatusReport[OperationalStatus]:
    ready = condition_of(live, "Ready")
    match ready.status if ready else "":
        case "True":
            if ready and ready.message == _PAUSED_MESSAGE and not _pausing_annotation(live)[0]:
                # The status is that of the suspension.
                return StatusReport(OperationalStatus.PENDING, "Waiting for KEDA to resume the ScaledObject")
            return StatusReport(OperationalStatus.OPERATIONAL, ready.text if ready else "")
        case "False":
            return StatusReport(OperationalStatus.FAILING, ready.text if ready else "")
        case _:
            return StatusReport(OperationalStatus.PENDING, "Waiting for condition Ready of the ScaledObject")


def default_suspension_status_handler(live: ScaledObject | Manifest) -> StatusReport[SuspensionStatus]:
    """Return the suspension status of a ScaledObject.

    Source: https://keda.sh/docs/latest/concepts/scaling-deployments/#pausing-autoscaling.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Suspended` once an annotation pauses it and KEDA reports that it has paused it, in a status that is not older
        than the annotation; before that `Suspending`.

    Example:
        >>> metadata = {"name": "web", "annotations": {"autoscaling.keda.sh/paused": "false"}}
        >>> status = {"conditions": [{"type": "Paused", "status": "True"}]}
        >>> default_suspension_status_handler({"metadata": metadata, "status": status}).reason
        'Waiting for the annotation autoscaling.keda.sh/paused to be applied, which is "false"'
    """
    annotation, waiting = _pausing_annotation(live)
    if waiting:
        return StatusReport(SuspensionStatus.SUSPENDING, waiting)
    paused, ready = condition_of(live, "Paused"), condition_of(live, "Ready")
    if paused is None or paused.status != "True":
        return StatusReport(SuspensionStatus.SUSPENDING, "Waiting for KEDA to pause the ScaledObject")
    if ready is not None and ready.status == "False":
        return StatusReport(SuspensionStatus.SUSPENDING, f"KEDA has not paused the ScaledObject: {ready.text}")
    confirmed = ready is not None and ready.message == _PAUSED_MESSAGE
    if is_stale(live, paused.observed_generation) or not (confirmed or _is_newer_than(live, annotation)):
        text = "Waiting for KEDA to pause the ScaledObject: its condition Paused is older than the annotation"
        return StatusReport(SuspensionStatus.SUSPENDING, text)
    return StatusReport(SuspensionStatus.SUSPENDED, "ScaledObject paused")


def _pausing_annotation(live: ScaledObject | Manifest) -> tuple[str, str]:
    """Return the annotation that pauses an object; empty if none does, and what is waited for."""
    annotations = live_field(live, "metadata", "annotations") or {}
    if _PAUSED_REPLICAS in annotations:
        return _PAUSED_REPLICAS, ""
    value = annotations.get(_PAUSED)
    if value is None:
        return "", "Waiting for the pause annotation to be applied"
    if value in _FALSE:
        return "", f'Waiting for the annotation {_PAUSED} to be applied, which is "{value}"'
    return _PAUSED, ""


def _is_newer_than(live: ScaledObject | Manifest, annotation: str) -> bool:
    """Return whether the conditions were written after an annotation, or in the same second, or that is not known.

    Times of `managedFields` have seconds. A cache keeps only our own entry, so from it, that is not known.
    """
    reported = _last_write(live, "status", "conditions")
    applied = _last_write(live, "metadata", "annotations", annotation)
    return reported is None or applied is None or reported >= applied


def _last_write(live: ScaledObject | Manifest, *path: str) -> datetime | None:
    """Return when a manager of a field has last written the object; None if that is not known."""
    entries = live_field(live, "metadata", "managedFields") or ()
    owning = (each for each in entries if get_field(live_field(each, "fieldsV1"), fields_path(path)) is not None)
    return max((each for each in map(_time, owning) if each is not None), default=None)


def _time(entry: Any) -> datetime | None:
    """Return the time of an entry of `managedFields`, of a manifest or a model."""
    time = live_field(entry, "time")
    return parse_rfc3339(time) if isinstance(time, str) else time


_STATUS: Final = IntegrationStatus(_observed)

default_operational_status_handler: Final = _STATUS.operational
"""Status handler: `Operational` while `Ready` is True, `OperationFailing` while it is False, else `OperationPending`,
also until KEDA has resumed the object."""

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
        suspension=OnManifest(default_suspension_status_handler),
    )

    def build(self) -> Resource:
        """Return the resource.

        Raises:
            BuildError: If any setting is invalid; it contains all problems.
        """
        return self._build(Resource)
