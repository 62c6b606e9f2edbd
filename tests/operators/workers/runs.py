"""The operator of runs: a cluster and a pod that works with it; the cluster ends with the pod."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from ocf import component
from ocf.component import Adoption, Component, ReconcileContext
from ocf.concepts import GuardStatus, StatusReport
from ocf.objects import Manifest, write_model
from ocf.primitives import custom_kind, pod
from ocf.runtime.operator import Operator, OwnerType
from tests.operators.workers.model import ComputeCluster, ComputeRun, Result
from tests.operators.workers.scheduler import scheduler_name

__all__ = ["Phase", "component_of", "runs"]

_CLUSTERS: Final = custom_kind(ComputeCluster, ComputeCluster.api_version)
_CLUSTER: Final = (ComputeCluster.api_version, ComputeCluster.kind)
_POD: Final = ("v1", "Pod")
_FINISHED: Final = "Finished"


class Phase(Enum):
    """How far a run is."""

    WAITING = auto()
    STARTING = auto()
    RUNNING = auto()
    ENDED = auto()


def runs() -> Operator[ComputeRun]:
    """Return the operator of runs."""
    return Operator(
        name="compute-runs",
        owner=OwnerType.of(ComputeRun),
        components=components,
        published_conditions=[_FINISHED],
        reads=[_POD, _CLUSTER],
    )


async def components(run: ComputeRun, context: ReconcileContext) -> Component:
    """Store the result once there is one, and return the cluster and the runner."""
    if await _result(context) is not None:
        return component_of(run, Phase.ENDED)
    if "runner" in context.status:
        return component_of(run, Phase.RUNNING)
    is_ready = any(map(_is_ready, await context.children.list(*_CLUSTER)))
    return component_of(run, Phase.STARTING if is_ready else Phase.WAITING)


def component_of(run: ComputeRun, phase: Phase) -> Component:
    """Return the objects of a run: its cluster until it has ended, and its runner."""
    builder = component.Builder("run", owner=run.key)
    cluster = {"metadata": {"name": run.metadata.name}, "spec": write_model(run.spec.cluster)}
    # What another client has made under the name would be deleted at the end.
    builder.with_adoption(Adoption.NEVER)
    builder.with_resource(_CLUSTERS.integration(cluster), delete_when=phase is Phase.ENDED)
    if phase is not Phase.ENDED:
        # A runner that has started is only read: one that goes between two requests must not be made again.
        has_started = phase is Phase.RUNNING
        runner = pod.Builder(_runner(run)).with_guard(lambda _: _when(starts=phase is not Phase.WAITING))
        builder.with_resource(runner, read_only=has_started, ignore_if_absent=has_started)
    return builder.build()


def _when(*, starts: bool) -> StatusReport[GuardStatus]:
    if starts:
        return StatusReport(GuardStatus.UNBLOCKED)
    return StatusReport(GuardStatus.BLOCKED, "the cluster is not ready")


def _runner(run: ComputeRun) -> Manifest:
    address = {"name": "SCHEDULER", "value": f"{scheduler_name(run.metadata.name)}.{run.metadata.namespace}"}
    container = {"name": "runner", "image": run.spec.image, "command": [*run.spec.command], "env": [address]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"name": f"{run.metadata.name}-runner"}, "spec": spec}


async def _result(context: ReconcileContext) -> Result | None:
    """Return how the run has ended, stored before anything is done because of it."""
    status = context.status
    if "result" in status:
        return Result(status["result"])
    runner = next(iter(await context.children.list(*_POD)), None)
    if runner is not None:
        status["runner"] = runner["metadata"]["uid"]
    result, note = _ended(runner, was_started="runner" in status)
    reason = "Running" if result is None else str(result)
    context.set_condition(_FINISHED, status=str(result is not None), reason=reason, message=note)
    if result is not None:
        status["result"] = str(result)
        context.event(reason, note, action="Run", warning=result is Result.FAILED)
        await context.write_status()
    return result


def _ended(runner: Manifest | None, *, was_started: bool) -> tuple[Result | None, str]:
    """Return how a runner has ended, None while it has not, and a sentence about it."""
    if runner is None:
        return (Result.FAILED, "the runner is gone before it ended") if was_started else (None, "it has not started")
    phase = str((runner.get("status") or {}).get("phase"))
    if phase not in [*Result]:
        return None, "the runner has not ended"
    return Result(phase), f"the runner has {phase.lower()}"


def _is_ready(cluster: Manifest) -> bool:
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)
