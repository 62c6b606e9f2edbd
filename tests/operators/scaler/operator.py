"""The operator of scalers: it starts and stops the target itself, and leaves what is between to an HPA."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

from aiohttp import ClientSession, web

from ocf import component
from ocf.autoscaling import metrics
from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource
from ocf.component import CleanupPending, Component, DeletionOrder, ReconcileContext
from ocf.concepts import Clock, SystemClock
from ocf.errors import ConflictError, NotFoundError
from ocf.objects import Manifest, ObjectKey, format_time, parse_time
from ocf.primitives import hpa
from ocf.runtime.admission import AdmissionRequest, FieldError, Webhook, invalid
from ocf.runtime.operator import (
    BackgroundTask,
    Operator,
    OwnerType,
    Process,
    ReconcileOutcome,
    annotations_changed,
    any_of,
    field_changed,
    spec_changed,
)
from tests.operators.scaler.metrics_api import SCALER_LABEL, effective_readings, metrics_app
from tests.operators.scaler.model import Scaler
from tests.operators.scaler.triggers import READINGS, Reading, Readings, activity

__all__ = ["Serve", "component_of", "scalers"]

Serve: TypeAlias = Callable[[web.Application], AbstractAsyncContextManager[object]]
"""Serves the metrics API for as long as its block runs."""

_NAME: Final = "scalers"
_HPA: Final = ("autoscaling/v2", "HorizontalPodAutoscaler")
_KINDS: Final = (("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"))
_ACTIVE: Final = "Active"
_TARGET: Final = "TargetReady"


def scalers(
    serve: Serve,
    *,
    open_session: Callable[[], AbstractAsyncContextManager[ClientSession]] = ClientSession,
    kinds: Sequence[tuple[str, str]] = _KINDS,
    clock: Clock | None = None,
) -> Operator[Scaler]:
    """Return the operator.

    Args:
        open_session: Opens the connections to the systems that the triggers name.
        kinds: The kinds of targets that the operator gets rights for; a scaler may name any other one.
        clock: The times of windows.
    """
    times = clock or SystemClock()

    @asynccontextmanager
    async def lifespan(process: Process) -> AsyncIterator[None]:
        async with open_session() as session:
            process.values[READINGS] = Readings(session, times)
            yield

    async def serve_metrics(process: Process) -> None:
        async with serve(metrics_app(process.cluster, process.values[READINGS])):
            await asyncio.Event().wait()

    return Operator(
        name=_NAME,
        owner=OwnerType.of(Scaler),
        components=_components,
        report=_report,
        on_delete=_on_delete,
        deletion_order=DeletionOrder.COMPONENTS_FIRST,
        lifespan=lifespan,
        tasks=[BackgroundTask(name="metrics-api", run=serve_metrics, on_leader=False)],
        reads=[*kinds, _HPA],
        webhooks=[Webhook.of(Scaler, validating=[_one_scaler_of_a_target])],
        writes=[(version, f"{kind}/scale") for version, kind in kinds],
        published_conditions=["Ready", _ACTIVE, _TARGET],
        # Neither the status of another scaler nor what an HPA has measured changes anything here.
        triggers={
            (Scaler.api_version, Scaler.kind): any_of(spec_changed, annotations_changed),
            _HPA: any_of(spec_changed, field_changed("status.conditions")),
        },
    )


async def _one_scaler_of_a_target(request: AdmissionRequest[Scaler], cluster: Cluster) -> list[FieldError]:
    """Reject a second scaler; of two that are made at the same moment, the reconcile finds the older one."""
    if request.is_being_deleted:
        return []
    new = request.new
    others = [one for one in await _scalers_of(new.target, cluster) if one.metadata.name != new.metadata.name]
    return [invalid("spec.target.name", new.target.name, f"has the Scaler {one.metadata.name}") for one in others]


async def _scalers_of(target: ObjectKey, cluster: Cluster) -> list[Scaler]:
    found = await cluster.list(Scaler.api_version, Scaler.kind, ListOptions(namespace=target.namespace))
    scalers = map(Scaler.model_validate, found.items)
    return [one for one in scalers if _identity(*one.target[:3]) == _identity(*target[:3])]


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why the target is scaled, or is not."""

    reason: str
    message: str


async def _components(scaler: Scaler, context: ReconcileContext) -> Component:
    if context.is_ending:
        return component_of(scaler)
    # Whatever fails from here on, the triggers are asked again.
    context.requeue_after(timedelta(seconds=scaler.spec.poll_seconds))
    problem = await _rival(scaler, context)
    scale = None if problem else await _scale(scaler.target, context.cluster)
    if problem is None and scale is None:
        problem = _Reason("NotFound", f"{_named(scaler.target)} does not exist, or has no Scale")
    note = problem.message if problem else f"{_named(scaler.target)} has {_replicas(scale)} replicas"
    _set(context, _TARGET, problem is None, problem.reason if problem else "Found", note if problem else "it is scaled")
    if scale is not None:
        await _drive(scaler, scale, context)
    return component_of(scaler, is_target_taken=problem is not None and problem.reason != "NotFound")


async def _drive(scaler: Scaler, scale: Manifest, context: ReconcileContext) -> None:
    """Start or stop the target; the count before the first time is stored before."""
    replicas, spec = _replicas(scale), scaler.spec
    if "originalReplicas" not in context.status:
        context.status["originalReplicas"] = replicas
        await context.write_status()
    if spec.suspended:
        context.remove_condition(_ACTIVE)
        wanted = replicas if spec.suspended_replicas is None else spec.suspended_replicas
        return await _set_replicas(scaler, scale, wanted, context, _Reason("Suspended", "the scaler is suspended"))
    readings = context.values.get(READINGS)
    if readings is None:  # a preview asks no trigger
        return None
    found = await effective_readings(scaler, readings)
    _note_failures(scaler, found, context)
    is_active = activity(found)
    _set_activity(is_active, found, context)
    if replicas == 0 and (is_active or spec.min_replicas):
        note = "there is something to do" if is_active else f"it has at least {spec.min_replicas} replicas"
        return await _set_replicas(scaler, scale, max(1, spec.min_replicas), context, _Reason("Activated", note))
    if replicas == 0 or spec.min_replicas or is_active is not False:
        return None
    if context.timed_out(_ACTIVE, timedelta(seconds=spec.cooldown_seconds), status="False"):
        note = f"there was nothing to do for {spec.cooldown_seconds} seconds"
        await _set_replicas(scaler, scale, 0, context, _Reason("Deactivated", note))
    return None


async def _set_replicas(scaler: Scaler, scale: Manifest, wanted: int, context: ReconcileContext, why: _Reason) -> None:
    """Scale the target, unless another writer was faster: then look again, at once or with the next poll."""
    if wanted == _replicas(scale):
        return None
    try:
        await _write_scale(scaler.target, scale, wanted, context.cluster)
    except ConflictError:
        return context.requeue_after(timedelta(0))
    except NotFoundError:
        return None
    note = f"{_named(scaler.target)} is scaled from {_replicas(scale)} to {wanted} replicas: {why.message}"
    return context.event(why.reason, note, action="Scale", related=scaler.target)


async def _write_scale(target: ObjectKey, scale: Manifest, replicas: int, cluster: Cluster) -> None:
    version = {"resourceVersion": scale["metadata"]["resourceVersion"]}
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=_NAME, subresource=Subresource.SCALE)
    await cluster.patch(target, {"metadata": version, "spec": {"replicas": replicas}}, options)


async def _scale(target: ObjectKey, cluster: Cluster) -> Manifest | None:
    try:
        return await cluster.get(target, subresource=Subresource.SCALE)
    except NotFoundError:
        return None


def _note_failures(scaler: Scaler, readings: Sequence[Reading], context: ReconcileContext) -> None:
    """Store since when triggers fail, and look again when the fallback begins."""
    known = context.status.get("failing") or {}
    failing = {one.trigger.name: known.get(one.trigger.name, format_time(one.at)) for one in readings if one.problem}
    context.status.pop("failing", None)
    if failing:
        context.status["failing"] = failing
    if scaler.spec.fallback:
        period = timedelta(seconds=scaler.spec.fallback.after_seconds)
        for since in failing.values():
            if (left := parse_time(since) + period - context.now) > timedelta(0):
                context.requeue_after(left)


def _set_activity(is_active: bool | None, readings: Sequence[Reading], context: ReconcileContext) -> None:
    problems = "; ".join(one.problem for one in readings if one.problem)
    if is_active is None:
        context.set_condition(_ACTIVE, status="Unknown", reason="TriggersFailing", message=problems)
    elif problems:
        _set(context, _ACTIVE, is_active, "Fallback" if is_active else "TriggersFailing", problems)
    else:
        _set(context, _ACTIVE, is_active, "Busy" if is_active else "Idle", "as the triggers say")


async def _rival(scaler: Scaler, context: ReconcileContext) -> _Reason | None:
    """Return who else scales the target: an older scaler, or an HPA that is not to be adopted."""
    wanted = _identity(*scaler.target[:3])
    mine = (scaler.metadata.creation_timestamp or "", scaler.metadata.name)
    others = await _scalers_of(scaler.target, context.cluster)
    for one in others:
        if (one.metadata.creation_timestamp or "", one.metadata.name) < mine:
            return _Reason("TargetTaken", f"{_named(scaler.target)} is scaled by the older Scaler {one.metadata.name}")
    ours = {one.metadata.uid for one in others}
    here = ListOptions(namespace=scaler.target.namespace)
    for live in (await context.cluster.list(*_HPA, here)).items:
        reference = live["spec"]["scaleTargetRef"]
        if _identity(reference.get("apiVersion", ""), reference["kind"], reference["name"]) != wanted:
            continue
        owners = {one["uid"] for one in live["metadata"].get("ownerReferences") or ()}
        if live["metadata"]["name"] != scaler.autoscaler and not owners & ours:
            note = f"{_named(scaler.target)} is scaled by the HPA {live['metadata']['name']}"
            return _Reason("ForeignAutoscaler", f"{note}; delete it, or name it in spec.autoscaler")
    return None


def component_of(scaler: Scaler, *, is_target_taken: bool = False) -> Component:
    """Return the HPA of a scaler.

    Args:
        is_target_taken: Whether another scaler or HPA scales the target: an HPA beside that one would stop both.
    """
    spec, name = scaler.spec, scaler.metadata.name
    base: Manifest = {
        "metadata": {"name": scaler.autoscaler},
        "spec": {
            "scaleTargetRef": spec.target.model_dump(by_alias=True),
            "minReplicas": max(1, spec.min_replicas),
            "maxReplicas": spec.max_replicas,
            "metrics": [
                metrics.external(one.name, average_value=one.per_replica, selector={SCALER_LABEL: name}).model_dump(
                    by_alias=True, exclude_none=True
                )
                for one in spec.triggers
            ],
        },
    }
    autoscaler = hpa.Builder(base).with_mutation(hpa.Mutation("default-behavior", _default_behavior))
    autoscaler.with_custom_operational_status(hpa.scaled_to_zero_operational_status_handler)
    autoscaler.with_custom_grace_status(hpa.scaled_to_zero_grace_status_handler)
    builder = component.Builder("autoscaler", owner=scaler.key, condition_type="AutoscalerReady")
    builder.with_prune(kinds=[_HPA]).suspend(spec.suspended)
    return builder.with_resource(autoscaler, delete_when=is_target_taken).build()


def _default_behavior(m: hpa.Mutator) -> None:
    """An HPA that is adopted loses the behavior that another writer has given it."""
    m.edit_hpa_spec(lambda spec: spec.set_behavior(None))


def _report(context: ReconcileContext, _: Scaler, outcome: ReconcileOutcome) -> None:
    """Summarize: what is said first is why nothing is scaled."""
    if outcome.error is not None:
        return
    target = context.condition(_TARGET)
    autoscaler = context.condition("AutoscalerReady")
    shown = target if not target.status else autoscaler
    context.set_condition("Ready", status=str(shown.status), reason=str(shown.reason), message=shown.message)


async def _on_delete(scaler: Scaler, context: ReconcileContext, cluster: Cluster) -> CleanupPending | None:
    """Give the target what it had, once no HPA scales it any more."""
    original = context.status.get("originalReplicas")
    scale = await _scale(scaler.target, cluster)
    if scaler.spec.on_deletion == "Keep" or original in (None, _replicas(scale)) or scale is None:
        return None
    if await _rival(scaler, context) is not None:
        return None
    try:
        await _write_scale(scaler.target, scale, original, cluster)
    except ConflictError:
        return CleanupPending(timedelta(seconds=1), f"{_named(scaler.target)} has changed meanwhile")
    return None


def _set(context: ReconcileContext, name: str, status: bool, reason: str, message: str) -> None:
    context.set_condition(name, status=str(status), reason=reason, message=message)


def _replicas(scale: Manifest | None) -> int:
    return int((scale or {}).get("spec", {}).get("replicas") or 0)


def _identity(api_version: str, kind: str, name: str) -> tuple[str, str, str]:
    """Return what a reference names; its version does not count."""
    return api_version.rpartition("/")[0], kind, name


def _named(target: ObjectKey) -> str:
    return f"{target.kind} {target.name}"
