"""Why a workload is not ready, as its pods say: read only while it is not, and added to its sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster import ListOptions
from ocf.concepts import StatusReport
from ocf.errors import ForbiddenError

if TYPE_CHECKING:
    from ocf.component.context import ReconcileContext
    from ocf.component.model.registration import Registration
    from ocf.component.status.conditions import ResourceObservation
    from ocf.concepts.resource import PodSource
    from ocf.objects import Manifest

__all__ = ["with_cause"]

# One cause is named. So many pods show it, and a reconcile of a large workload stays cheap.
_MOST_PODS: Final = 50
_MOST_EVENTS: Final = 50


async def with_cause(
    observation: ResourceObservation, entry: Registration, live: Manifest | None, context: ReconcileContext
) -> ResourceObservation:
    """Add to the sentences of a resource that is not ready why its pods are not; unchanged if that is not known."""
    source = entry.pod_source
    if observation.is_ready or observation.is_blocked or source is None or live is None:
        return observation
    try:
        cause = await _cause(source, live, context)
    except ForbiddenError as error:
        cause = f"its pods are not known: {error}"
    if not cause:
        return observation
    grade = observation.grade and _explained(observation.grade, cause)
    return replace(observation, report=_explained(observation.report, cause), grade=grade)


async def _cause(source: PodSource, live: Manifest, context: ReconcileContext) -> str:
    selector, namespace = source.pod_selector(live), live["metadata"].get("namespace", "")
    if not selector:
        return ""
    of_workload = ListOptions(namespace=namespace, label_selector=selector, limit=_MOST_PODS)
    pods = (await context.pages.list("v1", "Pod", of_workload)).items
    cause = source.pod_cause(pods)
    if cause or len(pods) == _MOST_PODS or not source.lacks_pods(live, pods):
        return cause
    # The controllers of StatefulSets, DaemonSets and Jobs report a pod that the API server refuses only as an event.
    about = ListOptions(
        namespace=namespace, field_selector=f"involvedObject.uid={live['metadata']['uid']}", limit=_MOST_EVENTS
    )
    return source.refusal_cause((await context.pages.list("v1", "Event", about)).items, context.now)


def _explained(report: StatusReport[Any], cause: str) -> StatusReport[Any]:
    return StatusReport(report.status, f"{cause} ({report.reason or report.status})")
