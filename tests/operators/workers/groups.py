"""The operator of groups of workers: the scheduler says who leaves, which is stored before it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ocf import component
from ocf.component import Component, ReconcileContext
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.runtime.operator import Operator, OwnerType, spec_changed
from tests.operators.workers.clusters import pods
from tests.operators.workers.model import ComputeCluster, WorkerGroup
from tests.operators.workers.scheduler import SCHEDULERS, Connect, SchedulerError, Schedulers, StillAskedError, opening

__all__ = ["component_of", "groups"]

_CLUSTER: Final = (ComputeCluster.api_version, ComputeCluster.kind)
_DEPLOYMENT: Final = ("apps/v1", "Deployment")
_WAITING: Final = "WaitingForScheduler"
_AGAIN: Final = timedelta(seconds=10)
_SOON: Final = timedelta(seconds=1)


def groups(connect: Connect) -> Operator[WorkerGroup]:
    """Return the operator of groups of workers.

    Args:
        connect: Opens the session with which schedulers are asked.
    """
    return Operator(
        name="worker-groups",
        owner=OwnerType.of(WorkerGroup),
        components=components,
        abnormal_conditions=[_WAITING],
        triggers={_CLUSTER: spec_changed},
        reads=[_CLUSTER],
        deletes=[_DEPLOYMENT],
        lifespan=opening(connect),
    )


async def components(group: WorkerGroup, context: ReconcileContext) -> Component:
    """End who leaves, and return those who stay; without its cluster, a group has no work and is suspended."""
    found = {one["metadata"]["name"]: one for one in await context.children.list(*_DEPLOYMENT)}
    is_orphaned = not await _has_cluster(group, context)
    if context.is_ending:
        return component_of(group, [], suspended=is_orphaned)
    resizing = _Resizing(group, context, sorted(found, key=_number))
    if await (resizing.unasked() if is_orphaned else resizing.asked()):
        for name in resizing.leaving:
            await context.children.delete(found[name], when=lambda _: True)
    return component_of(group, resizing.names, suspended=is_orphaned)


def component_of(group: WorkerGroup, names: Sequence[str], *, suspended: bool) -> Component:
    """Return the workers of a group."""
    builder = component.Builder("workers", owner=group.key).suspend(suspended)
    for name in names:
        builder.with_resource(deployment.Builder(pods(name, group.spec.image, "worker")), independent=True)
    return builder.build()


@dataclass(frozen=True, slots=True)
class _Resizing:
    """The change of the number of workers in one reconcile.

    Args:
        existing: The workers that exist, the oldest first.
    """

    group: WorkerGroup
    context: ReconcileContext
    existing: Sequence[str]

    @property
    def names(self) -> list[str]:
        """Who belongs to the group, as it is stored."""
        return list(self.context.status["workers"])

    @property
    def leaving(self) -> list[str]:
        """Who exists, and does not belong to the group any more."""
        return [one for one in self.existing if one not in self.names]

    async def asked(self) -> bool:
        """Resize as the scheduler says; return whether those who leave can be ended now."""
        try:
            await self._resize(is_asked=True)
            if self.leaving and not self.context.dry_run:
                await self._schedulers.retire(*self._cluster, self.leaving)
        except StillAskedError:
            self.context.requeue_after(_SOON)
            return False
        except SchedulerError as error:
            return await self._without_answer(str(error))
        self.context.remove_condition(_WAITING)
        return True

    async def unasked(self) -> bool:
        """Resize by the age of the workers."""
        self.context.remove_condition(_WAITING)
        await self._resize(is_asked=False)
        return True

    async def _without_answer(self, problem: str) -> bool:
        """Wait for a scheduler that does not answer, and do without it once that takes too long."""
        self.context.set_condition(_WAITING, status="True", reason="NoAnswer", message=problem)
        self.context.requeue_after(_AGAIN)
        if not self.context.timed_out(_WAITING, timedelta(seconds=self.group.spec.patience_seconds)):
            return False
        await self._resize(is_asked=False)
        if self.leaving:
            note = f"{', '.join(self.leaving)} end unasked: {problem}"
            self.context.event("SchedulerTimedOut", note, action="ScaleDown", warning=True)
        return True

    async def _resize(self, *, is_asked: bool) -> None:
        status, wanted = self.context.status, self.group.spec.replicas
        stored = status.setdefault("workers", [*self.existing])
        count = len(stored) if wanted is None else wanted
        made = max([status.get("made", 0), *(_number(one) + 1 for one in self.existing)])
        status["made"] = made + max(0, count - len(stored))
        await component.stored_names(
            self.context,
            "workers",
            count=count,
            name=lambda number: f"{self.group.metadata.name}-{made + number}",
            remove=self._choose if is_asked else None,
        )

    async def _choose(self, names: Sequence[str]) -> str:
        return await self._schedulers.choose(*self._cluster, names)

    @property
    def _schedulers(self) -> Schedulers:
        found = self.context.values.get(SCHEDULERS)
        if found is None:
            raise SchedulerError("the scheduler is not asked: no lifespan is open")
        return found

    @property
    def _cluster(self) -> tuple[str, str]:
        return self.group.spec.cluster, self.group.metadata.namespace


async def _has_cluster(group: WorkerGroup, context: ReconcileContext) -> bool:
    """Return whether the cluster of a group exists, and stays."""
    try:
        live: Manifest = await context.cluster.get(ObjectKey(*_CLUSTER, group.spec.cluster, group.metadata.namespace))
    except NotFoundError:
        return False
    return "deletionTimestamp" not in live["metadata"]


def _number(name: str) -> int:
    number = name.rpartition("-")[2]
    return int(number) if number.isdigit() else -1
