"""`ocf nodegroups try`: the controller in virtual time, with an embedded API server and a simulated cloud.

The controller is the one that `ocf nodegroups run` runs. Scheduler, kubelets and the controllers of workloads are those
of the embedded API server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from ocf.cli.nodegroups.trial_steps import Observer, PodResult, Step, result_of

if TYPE_CHECKING:
    from ocf.cli.manifest_files import Document
    from ocf.cli.nodegroups.trial_files import TrialFiles
    from ocf.cli.nodegroups.trial_nodes import TrialCloud
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.nodegroups import InstanceType, Provider
    from ocf.objects import Manifest
    from ocf_server import EmbeddedCluster
    from ocf_server.http.preload import NotAppliedError

__all__ = ["Trial", "TrialSettings", "run_trial"]

_USER: Final = "user"
# Objects of these kinds count when others are admitted.
_FIRST: Final = ("Namespace", "PriorityClass", "StorageClass")
# Fields in the errors of structured-merge-diff, which have no causes.
_FIELDS: Final = re.compile(r"(?:^|\s)\.(\S+): (.+)$", re.MULTILINE)
_PARTS: Final = re.compile(r"""([^\[]+|\[\d+\])(?:\[(\w+)="([^"]*)"[^\]]*\])?""")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeResult:
    """A node of a group at the end.

    Args:
        price: Its price per hour; None if it is not known.
        ready_at: When it was ready, since the start; None if it was not.
        cpu: The percentage of its CPU that its pods request; None if the node has not joined.
        memory: The same of its memory.
        pods: The pods on it, by namespace and name.
        stays: Why it is not removed.
    """

    name: str
    group: str
    instance_type: str
    zone: str
    price: float | None
    ready_at: timedelta | None
    cpu: float | None
    memory: float | None
    pods: Sequence[str]
    stays: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What happened in a trial.

    Args:
        steps: All steps, in order.
        pods: The pods at the end, by namespace and name.
        owners: The workload of each pod, and the group of each node, by their names.
        nodes: The nodes of groups at the end.
        hourly: What these nodes cost in an hour; None if a price is not known.
        cost: What all machines have cost; None if a price is not known.
        peak_nodes: The most nodes at once.
        peak_hourly: What they cost in an hour when it was most; None if a price is not known.
    """

    length: timedelta
    steps: Sequence[Step]
    pods: Mapping[str, PodResult]
    owners: Mapping[str, str]
    nodes: Sequence[NodeResult]
    hourly: float | None
    cost: float | None
    peak_nodes: int
    peak_hourly: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSettings:
    """Settings of a trial.

    Args:
        types: The instance types of the simulated cloud.
        unpriced: Name and zone of the offerings whose price is not known.
        length: How much virtual time passes.
        boot_time: The time from the request of a machine until its node joins.
    """

    types: Sequence[InstanceType]
    unpriced: Collection[tuple[str, str]]
    length: timedelta
    boot_time: timedelta


def run_trial(files: TrialFiles, settings: TrialSettings, report: Callable[[Step, Mapping[str, str]], None]) -> Trial:
    """Run the controller for a virtual time.

    Args:
        report: Receives each step at once, and the owners of pods and nodes that are known so far.
    """
    from ocf.testing import run_in_virtual_time

    return run_in_virtual_time(_run(files, settings, report))


async def _run(files: TrialFiles, settings: TrialSettings, report: Callable[[Step, Mapping[str, str]], None]) -> Trial:
    from ocf.cli.nodegroups.trial_nodes import TrialCloud
    from ocf.cluster.cache import CachedCluster
    from ocf.nodegroups import Catalog
    from ocf.testing import LoopClock
    from ocf_server import ControllerSettings

    clock, catalog = LoopClock(), Catalog.of(settings.types)
    cluster = await _loaded(files, clock)
    cloud = TrialCloud(settings.types, clock, boot_time=settings.boot_time)

    def price(name: str, zone: str) -> float | None:
        return None if (name, zone) in settings.unpriced else catalog.price(name, zone)

    def reported(step: Step) -> None:
        report(step, observer.owners)

    observer = Observer(clock, catalog, price, reported)
    async with CachedCluster(cluster, keeps_manager=lambda _: False) as cached:
        async with (
            observer.watching(cached),
            _registering(cloud, cluster),
            cluster.controllers(ControllerSettings(nodes=0)).running(),
            _controller(cluster, cloud, observer, clock),
        ):
            await asyncio.sleep(settings.length.total_seconds())
        pods, nodes = await result_of(cluster, observer)
    known = [each for each in observer.prices.values() if each is not None]
    return Trial(
        length=settings.length,
        steps=observer.steps,
        pods=pods,
        owners=observer.owners,
        nodes=[_node_result(each, observer, pods, clock.now() - clock.elapsed()) for each in nodes],
        hourly=sum(known) if len(known) == len(observer.prices) else None,
        cost=cloud.cost() if observer.is_priced else None,
        peak_nodes=observer.peak_nodes,
        peak_hourly=observer.peak_price,
    )


def _node_result(node: Manifest, observer: Observer, pods: Mapping[str, PodResult], start: datetime) -> NodeResult:
    from ocf.controllers.nodegroup.plan_report import outcome_text
    from ocf.nodegroups.scale_down.utilization import utilization_of
    from ocf.objects import parse_time

    name, spec, status = node["metadata"]["name"], node["spec"], node.get("status") or {}
    plan, ready = observer.plan, status.get("readyAt")
    joined = plan.snapshot.nodes.get(name) if plan is not None else None
    used = utilization_of(joined, plan.snapshot) if plan is not None and joined is not None else None
    outcomes = plan.decision.scale_down.outcomes if plan is not None else ()
    stopped = plan.decision.scale_down.stopped if plan is not None else ""
    why = next((outcome_text(each) for each in outcomes if each.node == name), stopped)
    return NodeResult(
        name=name,
        group=observer.owners.get(name, ""),
        instance_type=spec["instanceType"],
        zone=spec["datacenterID"],
        price=observer.prices.get(name),
        ready_at=parse_time(ready) - start if ready else None,
        cpu=None if used is None else used.cpu,
        memory=None if used is None else used.memory,
        pods=sorted(key for key, pod in pods.items() if pod.node == name and pod.state not in ("Succeeded", "Failed")),
        stays=why or str(status.get("phase", "Pending")).lower(),
    )


async def _loaded(files: TrialFiles, clock: Clock) -> EmbeddedCluster:
    """Return a cluster with the objects of files."""
    from ocf.cli.owner_check import check_objects
    from ocf.cluster import PatchOptions, PatchType, Subresource
    from ocf.controllers.nodegroup.definitions import node_definition, node_group_definition
    from ocf.objects import ObjectKey
    from ocf_server import EmbeddedCluster

    cluster = EmbeddedCluster(now=clock.now)
    existing = {each["metadata"]["name"] for each in (await cluster.list("v1", "Namespace")).items}
    for name in (each for each in files.namespaces if each not in existing):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, field_manager=_USER)
    for definition in (node_group_definition(), node_definition()):
        await cluster.create(definition, field_manager=_USER)
    await check_objects(files.documents, cluster)
    await _apply(cluster, files.documents)
    for node in (each.manifest or {} for each in files.documents if (each.manifest or {})["kind"] == "Node"):
        # The kubelet would set it.
        options = PatchOptions(field_manager="kubelet", patch_type=PatchType.MERGE, subresource=Subresource.STATUS)
        await cluster.patch(ObjectKey.of(node), {"status": _with_ready(node)}, options)
    return cluster


async def _apply(cluster: EmbeddedCluster, documents: Sequence[Document]) -> None:
    """Apply the objects of documents; an error names all of them that the API server rejects."""
    from ocf.cli.owner_check import InvalidObjectsError
    from ocf_server.http.preload import NotAppliedError, load_manifests

    problems: list[str] = []
    for each in sorted(documents, key=lambda each: (each.manifest or {})["kind"] not in _FIRST):
        try:
            await load_manifests(cluster, [each.manifest or {}], field_manager=_USER)
        except NotAppliedError as error:
            problems += _rejections(each, error)
    if problems:
        raise InvalidObjectsError(problems)


def _rejections(document: Document, error: NotAppliedError) -> Iterator[str]:
    """Yield why the API server rejects an object, with the line of each field that it names."""
    from ocf.cli.nodegroups.trial_checks import place_of
    from ocf.errors import ApiError

    causes = error.__cause__.causes if isinstance(error.__cause__, ApiError) else ()
    for cause in causes:
        yield f"{place_of(document, cause.field)}: {cause.message}"
    if causes:
        return
    fields = _FIELDS.findall(str(error))
    yield from (f"{place_of(document, _with_indexes(path, document))}: {problem}" for path, problem in fields)
    if not fields:
        yield f"{place_of(document, '')}: {error}"


def _with_indexes(path: str, document: Document) -> str:
    """Return a path of structured-merge-diff, `containers[name="app"]`, as others are written, `containers[0]`."""
    from ocf.objects.paths import get_field
    from ocf.objects.yaml_places import split_path

    done = ""
    for before, key, value in _PARTS.findall(path):
        done = f"{done}{before}".removeprefix(".")
        if key:
            items = get_field(document.manifest or {}, split_path(done)) or ()
            found = (index for index, each in enumerate(items) if str(each.get(key)) == value)
            done += f"[{next(found, 0)}]"
    return done


def _with_ready(node: Manifest) -> Manifest:
    """Return the status of a node, which is ready unless it is written that it is not."""
    status = node.get("status") or {}
    return {**status, "conditions": status.get("conditions") or [{"type": "Ready", "status": "True"}]}


@asynccontextmanager
async def _controller(
    cluster: EmbeddedCluster, cloud: TrialCloud, observer: Observer, clock: Clock
) -> AsyncIterator[None]:
    from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
    from ocf.controllers.nodegroup.process import ProcessOptions, controller_runner

    def make(_: Cluster) -> Provider:
        return cloud

    stopped = asyncio.Event()
    options = ProcessOptions(controller=NodeGroupControllerOptions(report=observer.planned))
    runner = controller_runner(cluster, make, options, clock=clock, stopped=stopped)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(runner.run())
        yield
        stopped.set()


@asynccontextmanager
async def _registering(cloud: TrialCloud, cluster: EmbeddedCluster) -> AsyncIterator[None]:
    """Register the nodes of machines while the block runs."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(cloud.run(cluster))
        yield
        task.cancel()
