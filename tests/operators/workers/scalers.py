"""The operator of scalers: it asks the scheduler how many workers the work takes; up at once, down after a while."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from ocf import component
from ocf.component import Component, ReconcileContext, Writes
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import unstructured
from ocf.runtime.operator import Operator, OwnerType, spec_changed
from tests.operators.workers.model import GroupScaler, ScalerSpec, WorkerGroup
from tests.operators.workers.scheduler import SCHEDULERS, Connect, SchedulerError, StillAskedError, opening

__all__ = ["component_of", "scalers"]

_GROUP: Final = (WorkerGroup.api_version, WorkerGroup.kind)
_ASKED: Final = "SchedulerAsked"
_LOWERING: Final = "ScalingDown"
_SOON: Final = timedelta(seconds=1)


def scalers(connect: Connect) -> Operator[GroupScaler]:
    """Return the operator of scalers.

    Args:
        connect: Opens the session with which schedulers are asked.
    """
    return Operator(
        name="group-scalers",
        owner=OwnerType.of(GroupScaler),
        components=components,
        published_conditions=[_ASKED],
        triggers={_GROUP: spec_changed},
        reads=[_GROUP],
        lifespan=opening(connect),
    )


async def components(scaler: GroupScaler, context: ReconcileContext) -> Component:
    """Decide how many workers the group has, and return the field that says so."""
    context.requeue_after(timedelta(seconds=scaler.spec.period_seconds))
    if context.is_ending:
        return component_of(scaler, None)
    try:
        group = await context.cluster.get(ObjectKey(*_GROUP, scaler.spec.group, scaler.metadata.namespace))
    except NotFoundError:
        group = {}
    replicas = context.status.get("replicas", group.get("spec", {}).get("replicas", scaler.spec.minimum))
    context.status["replicas"] = await _decided(scaler.spec, context, _limited(scaler.spec, replicas), group)
    return component_of(scaler, context.status["replicas"])


def component_of(scaler: GroupScaler, replicas: int | None) -> Component:
    """Return the number of workers in the group, which belongs to others.

    Args:
        replicas: The number; None for one that is not known.
    """
    builder = component.Builder("scaler", owner=scaler.key).with_prune(kinds=[_GROUP])
    if replicas is not None:
        kind = {"apiVersion": _GROUP[0], "kind": _GROUP[1]}
        field = {**kind, "metadata": {"name": scaler.spec.group}, "spec": {"replicas": replicas}}
        builder.with_resource(unstructured.StaticBuilder(field), writes=Writes.UPDATE_ONLY)
    return builder.build()


async def _decided(spec: ScalerSpec, context: ReconcileContext, replicas: int, group: Manifest) -> int:
    """Return how many workers there are to be, which is as many as before while the scheduler does not answer."""
    schedulers = context.values.get(SCHEDULERS)
    if not group or schedulers is None:
        return replicas
    try:
        found = await schedulers.desired(group["spec"]["cluster"], group["metadata"]["namespace"])
    except StillAskedError:
        context.requeue_after(_SOON)
        return replicas
    except SchedulerError as error:
        context.set_condition(_ASKED, status="False", reason="NoAnswer", message=str(error))
        return replicas
    context.set_condition(_ASKED, status="True", reason="Answered", message="the scheduler has answered")
    wanted = _limited(spec, found)
    if wanted < replicas:
        note = f"fewer than {replicas} workers suffice"
        context.set_condition(_LOWERING, status="True", reason="Waiting", message=note)
        if not context.timed_out(_LOWERING, timedelta(seconds=spec.down_after_seconds)):
            return replicas
    context.remove_condition(_LOWERING)
    return wanted


def _limited(spec: ScalerSpec, replicas: int) -> int:
    return min(max(replicas, spec.minimum), spec.maximum)
