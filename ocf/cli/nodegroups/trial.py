"""`ocf nodegroups try`: the controller in virtual time, with an embedded API server and a simulated cloud.

The controller is the one that `ocf nodegroups run` runs. Scheduler, kubelets and the controllers of workloads are those
of the embedded API server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ocf.cli.nodegroups.trial_steps import Observer, PodResult, Step, result_of

if TYPE_CHECKING:
    from ocf.cli.manifest_files import Document
    from ocf.cli.nodegroups.trial_files import TrialFiles
    from ocf.cluster import Cluster
    from ocf.concepts import Clock
    from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
    from ocf.nodegroups import InstanceType, Provider
    from ocf.objects import Manifest
    from ocf_server import EmbeddedCluster
    from ocf_server.http.preload import NotAppliedError

__all__ = ["Trial", "run_trial"]

_USER: Final = "user"
# Objects of these kinds count when others are admitted.
_FIRST: Final = ("Namespace", "PriorityClass", "StorageClass")
# Fields in the errors of structured-merge-diff, which have no causes.
_FIELDS: Final = re.compile(r"(?:^|\s)\.(\S+): (.+)$", re.MULTILINE)
_PARTS: Final = re.compile(r"""([^\[]+|\[\d+\])(?:\[(\w+)="([^"]*)"[^\]]*\])?""")
# A kubelet registers its node as often, which moves its start by at most as much.
_KUBELET: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What happened in a trial.

    Args:
        steps: All steps, in order.
        pods: The pods at the end, by namespace and name.
        nodes: The instance type of each node of a group at the end, by its name.
        hourly: What these nodes cost in an hour.
        cost: What all machines have cost.
    """

    length: timedelta
    steps: Sequence[Step]
    pods: Mapping[str, PodResult]
    nodes: Mapping[str, str]
    hourly: float
    cost: float

    @property
    def waiting(self) -> Mapping[str, str]:
        """Why pods do not run at the end, by namespace and name."""
        return {name: pod.text for name, pod in self.pods.items() if not pod.runs}


def run_trial(files: TrialFiles, types: Sequence[InstanceType], length: timedelta, boot_time: timedelta) -> Trial:
    """Run the controller for a virtual time.

    Args:
        types: The instance types of the simulated cloud.
        boot_time: The time from the request of a machine until its node is ready.
    """
    from ocf.testing import run_in_virtual_time

    return run_in_virtual_time(_run(files, types, length, boot_time))


async def _run(files: TrialFiles, types: Sequence[InstanceType], length: timedelta, boot_time: timedelta) -> Trial:
    from ocf.cluster.cache import CachedCluster
    from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
    from ocf.nodegroups import Catalog
    from ocf.testing import LoopClock
    from ocf_server import ControllerSettings

    clock = LoopClock()
    cluster, catalog = await _loaded(files, clock), Catalog.of(types)
    cloud = SimulatedProvider(types, clock, boot_time=boot_time)
    async with CachedCluster(cluster, keeps_manager=lambda _: False) as cached:
        observer = Observer(clock, catalog)
        async with (
            observer.watching(cached),
            _registering(cloud, cluster),
            cluster.controllers(ControllerSettings(nodes=0)).running(),
            _controller(cluster, cloud, observer, clock),
        ):
            await asyncio.sleep(length.total_seconds())
        pods, nodes = await result_of(cluster, observer)
    prices = (catalog.price(each.instance_type, each.zone) or 0.0 for each in cloud.machines())
    return Trial(length=length, steps=observer.steps, pods=pods, nodes=nodes, hourly=sum(prices), cost=cloud.cost())


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
    cluster: EmbeddedCluster, cloud: SimulatedProvider, observer: Observer, clock: Clock
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
async def _registering(cloud: SimulatedProvider, cluster: EmbeddedCluster) -> AsyncIterator[None]:
    """Register the nodes of machines while the block runs."""

    async def run() -> None:
        known: set[tuple[str, str]] = set()
        while True:
            found = {(each.name, each.state.value) for each in cloud.machines()}
            if found != known:
                await cloud.register_nodes(cluster)
                known = found
            await asyncio.sleep(_KUBELET.total_seconds())

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run())
        yield
        task.cancel()
