"""The Pod (`v1`): alive, graceful, suspendable.

A Pod cannot be paused, so suspending deletes it and resuming creates it again. The API server rejects most changes of
the spec of an existing Pod; a Deployment replaces its pods instead.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ocf import feature
from ocf.concepts import AliveStatus, ApplyOperation, GraceStatus, StatusReport
from ocf.editors import ObjectMetaEditor, PodSpecEditor
from ocf.editors.keyed_lists import CONTAINERS, INIT_CONTAINERS
from ocf.lazy_types.kubernetes import V1Pod, V1PodStatus
from ocf.primitives.builder import WorkloadBuilder
from ocf.primitives.containers import ContainerEdits, ContainerListEdits, PodMutator
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import Edits
from ocf.primitives.pod_causes import pod_problem
from ocf.primitives.resource import WorkloadResource
from ocf.primitives.status import always_suspended, conditions_of

__all__ = [
    "Builder",
    "Mutation",
    "Mutator",
    "Resource",
    "default_converging_status_handler",
    "default_grace_status_handler",
    "default_suspension_status_handler",
]


class Mutator(PodMutator):
    """Records edits of a Pod, in this order: metadata, spec, containers, init containers."""

    edit_object_metadata = Edits(ObjectMetaEditor, "metadata")
    edit_pod_spec = Edits(PodSpecEditor, "spec")
    _container_presence = ContainerListEdits(CONTAINERS, "spec")
    edit_containers = ContainerEdits("containers", "spec")
    _init_container_presence = ContainerListEdits(INIT_CONTAINERS, "spec")
    edit_init_containers = ContainerEdits("init_containers", "spec")


Mutation: TypeAlias = feature.Mutation[Mutator]
"""A mutation of a Pod."""

Resource: TypeAlias = WorkloadResource["V1Pod", Mutator]
"""A Pod as a resource of a component."""


# Default status handlers of a Pod (API reference, `PodStatus`).


def default_converging_status_handler(operation: ApplyOperation, live: V1Pod) -> StatusReport[AliveStatus]:
    """Return the status of a Pod.

    Args:
        operation: What this reconcile did to the object.
        live: The object as the API server returned it.

    Returns:
        `Failing` if a container is in a crash loop or has failed, or the Pod has failed; `Healthy` while it runs with
        all containers ready and its condition `Ready` is not False, as by a readiness gate, and after all of them have
        succeeded; else `Updating` after an update and `Creating`.
    """
    failure, health = _failure(live.status), _health(live.status)
    if failure or health:
        return StatusReport(AliveStatus.FAILING if failure else AliveStatus.HEALTHY, failure or health)
    if operation is ApplyOperation.UPDATED:
        return StatusReport(AliveStatus.UPDATING, "Pod is being recreated")
    if operation is ApplyOperation.CREATED:
        return StatusReport(AliveStatus.CREATING, "Pod is starting")
    waiting = _not_ready(live.status) if _phase(live.status) == "Running" else "Pod is pending"
    return StatusReport(AliveStatus.CREATING, f"{waiting}{_cause(live)}")


def default_grace_status_handler(live: V1Pod) -> StatusReport[GraceStatus]:
    """Return the status of a Pod after the grace period.

    Args:
        live: The object as the API server returned it.

    Returns:
        `Healthy` exactly when the status is `Healthy`; else `Degraded` while the Pod runs, and `Down`.
    """
    health = _health(live.status)
    if health and not _failure(live.status):
        return StatusReport(GraceStatus.HEALTHY, health)
    if _phase(live.status) == "Running":
        return StatusReport(GraceStatus.DEGRADED, f"{_not_ready(live.status)}{_cause(live)}")
    return StatusReport(GraceStatus.DOWN, f"Pod is not running{_cause(live)}")


default_suspension_status_handler: Final = always_suspended("Pod deleted on suspend")
"""Suspension handler: always `Suspended`; a Pod cannot be paused, so suspending deletes it."""


def _cause(live: V1Pod) -> str:
    cause = pod_problem(live)
    return f": {cause}" if cause else ""


def _phase(status: V1PodStatus | None) -> str | None:
    return status.phase if status else None


def _failure(status: V1PodStatus | None) -> str:
    for container in (status.container_statuses if status else None) or ():
        state = container.state
        if state and state.waiting and state.waiting.reason == "CrashLoopBackOff":
            return f"Container {container.name} is in CrashLoopBackOff"
        if state and state.terminated and state.terminated.exit_code:
            return f"Container {container.name} terminated with error"
    return "Pod has failed" if _phase(status) == "Failed" else ""


def _are_containers_ready(status: V1PodStatus | None) -> bool:
    return all(found.ready for found in (status.container_statuses if status else None) or ())


def _not_ready(status: V1PodStatus | None) -> str:
    return f"Pod running but {'not ready' if _are_containers_ready(status) else 'not all containers ready'}"


def _health(status: V1PodStatus | None) -> str:
    # A readiness gate, a sidecar or an unreachable node keeps a pod from traffic, whose containers are ready.
    is_ready = not any(one.type == "Ready" and one.status == "False" for one in conditions_of(status))
    if _phase(status) == "Running" and is_ready and _are_containers_ready(status):
        return "Pod is running and all containers are ready"
    return "Pod has completed successfully" if _phase(status) == "Succeeded" else ""


class Builder(WorkloadBuilder[V1Pod, Mutator]):
    """Builds a Pod.

    Args:
        base: The desired baseline: a `V1Pod`, a manifest, or a YAML text with one document.
    """

    kind = Kind("v1", "Pod", "V1Pod", Mutator)
    handlers = Handlers(
        status=default_converging_status_handler,
        grace=default_grace_status_handler,
        suspension=default_suspension_status_handler,
        delete_on_suspend=lambda _base: True,
    )
