"""Declaration of the operator: `ocf run examples.jobset` runs it in a cluster.

Each reconcile reads the Jobs, decides, stores what it has decided, and only then acts on it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Final

from examples.jobset.model import JobSet, JobSetStatus
from examples.jobset.objects import claims, jobs, service
from examples.jobset.policy import Child, Decision, child_of, decide, refreshed
from ocf import component
from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Preconditions, Propagation
from ocf.component import Component, ReconcileContext, Writes
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey, parse_time, write_model
from ocf.primitives import unstructured
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome

__all__ = ["components", "operator", "report"]

JOB: Final = ("batch/v1", "Job")
_NAME: Final = "jobset-controller"
_SUSPENSION: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager=_NAME)


async def components(jobset: JobSet, context: ReconcileContext) -> list[Component]:
    """Return the Jobs that should run now, and what they share."""
    if jobset.is_foreign or context.is_ending:
        return []
    live = await context.children.list(*JOB)
    decision = decide(jobset, [child_of(one) for one in live])
    await _store(context, decision)
    obsolete = {job.uid for job in decision.obsolete}
    for one in live:
        if one["metadata"]["uid"] in obsolete:
            # In the foreground: the name stays taken until the pods of the Job are gone.
            await context.children.delete(one, propagation=Propagation.FOREGROUND, when=lambda _: True)
    if decision.status.terminal_state:
        return []
    for job in decision.children:
        if jobset.spec.suspend and not (job.end or job.is_suspended):
            # Nothing else is changed now: the API server rejects a change of the pod template before the Job stands.
            await context.cluster.patch(_key(jobset, job), {"spec": {"suspend": True}}, _SUSPENSION)
    builder = component.Builder("jobs").unpublished()
    shared = [(service(jobset), False)] if jobset.spec.network.hostnames else []
    for manifest, is_kept in [*shared, *claims(jobset)]:
        # What others have made is used as it is.
        resource = unstructured.StaticBuilder(manifest)
        builder.with_resource(resource, writes=Writes.CREATE_ONLY, unowned=is_kept, independent=True)
    for manifest in jobs(jobset, decision):
        builder.with_resource(unstructured.StaticBuilder(manifest), independent=True)
    return [builder.build()]


async def report(context: ReconcileContext, jobset: JobSet, outcome: ReconcileOutcome) -> None:
    """Report the Jobs, and those that cannot be made, and delete a JobSet that has ended once its time is over."""
    if jobset.is_foreign or context.is_ending:
        return
    # What was made just now counts, too: a reconcile is not triggered by its own writes.
    live = [child_of(one) for one in await context.children.list(*JOB)]
    _stage(context, refreshed(JobSetStatus.model_validate(context.status), live))
    for error in outcome.errors.values():
        context.event("JobCreationFailed", str(error), warning=True)
    ttl = jobset.spec.ttl_seconds_after_finished
    ended = next((one for name in ("Completed", "Failed") if (one := context.condition(name)).status), None)
    if ttl is None or ended is None:
        return
    left = parse_time(ended.last_transition_time) + timedelta(seconds=ttl) - context.now
    if left > timedelta(0):
        context.requeue_after(left)
    else:
        options = DeleteOptions(
            propagation=Propagation.FOREGROUND, preconditions=Preconditions(uid=jobset.metadata.uid)
        )
        with suppress(NotFoundError):
            await context.cluster.delete(jobset.key, options)


def _stage(context: ReconcileContext, status: JobSetStatus) -> None:
    context.status.update(write_model(status.model_copy(update={"conditions": None})))


async def _store(context: ReconcileContext, decision: Decision) -> None:
    """Stage the status; store it at once, which posts the events, if it changes what becomes of the JobSet."""
    _stage(context, decision.status)
    for one in decision.transitions:
        if one.type:
            context.set_condition(one.type, status=one.status, reason=one.reason, message=one.message)
        warning = one.type in {"Failed", "RestartingJobSet", ""} and one.status == "True"
        context.event(one.reason, one.message, warning=warning)
    if decision.transitions:
        await context.write_status()


def _key(jobset: JobSet, child: Child) -> ObjectKey:
    return ObjectKey(*JOB, child.name, jobset.metadata.namespace)


operator: Final = Operator(
    name=_NAME,
    owner=OwnerType.of(JobSet),
    components=components,
    report=report,
    published_conditions=["Completed", "StartupPolicyCompleted"],
    abnormal_conditions=["Failed"],
    owns=[JOB],
    deletes=[JOB, (JobSet.api_version, JobSet.kind)],
    reads=[("v1", "Service"), ("v1", "PersistentVolumeClaim")],
    # An object of Kubernetes takes few events at once: those about each Job would displace those about the JobSet.
    event_formatter=lambda event: None if event.type == "Normal" and event.resource != event.owner else event,
)
