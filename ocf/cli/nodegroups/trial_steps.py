"""Steps of a trial: what the objects of a cluster and the plans of the controller show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.protocol import EventType
from ocf.objects.conditions import find_condition
from ocf.objects.owner_references import controller_of
from ocf.objects.paths import get_field

if TYPE_CHECKING:
    from ocf.cluster import Cluster, WatchEvent
    from ocf.cluster.cache import CachedCluster
    from ocf.concepts import Clock
    from ocf.controllers.nodegroup.plan import NodeGroupPlan
    from ocf.nodegroups import Catalog
    from ocf.nodegroups.snapshot.resources import Resources
    from ocf.objects import Manifest

__all__ = ["Observer", "PodResult", "Step", "result_of"]

_PRICE: Final = "{:.4g}"
_HASH: Final = "pod-template-hash"
_MILLI: Final = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happened.

    Args:
        at: Since the start of the trial.
        kind: `pod`, `node` or `group`.
        object: The name of what it happened to, with its namespace if it has one.
        what: What happened, in a word: `ordered`, `phase`, `condition` …
        text: The same in a line.
        fields: The same in parts, by their names in JSON.
    """

    at: timedelta
    kind: str
    object: str
    what: str
    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodResult:
    """A pod at the end.

    Args:
        runs: Whether it is ready, or has succeeded.
        node: Its node; empty if it has none.
        state: Its phase.
        text: Where it runs, or why it does not.
    """

    runs: bool
    node: str
    state: str
    text: str


class Observer:
    """Collects the steps of a trial.

    Args:
        clock: The clock of the trial.
        catalog: The instance types.
        price: Returns the price per hour of an instance type in a zone; None if it is not known.
        report: Receives each step at once.
    """

    def __init__(
        self, clock: Clock, catalog: Catalog, price: Callable[[str, str], float | None], report: Callable[[Step], None]
    ) -> None:
        self._clock = clock
        self._catalog = catalog
        self._price = price
        self._report = report
        self.steps: list[Step] = []
        self.waits: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self.plan: NodeGroupPlan | None = None
        self.prices: dict[str, float | None] = {}
        self.peak_nodes = 0
        self.peak_price: float | None = 0.0
        self.is_priced = True
        self._shown: dict[tuple[str, str], str] = {}

    def planned(self, plan: NodeGroupPlan) -> None:
        """Collect what the controller has planned: decisions, and what pods wait for."""
        from ocf.controllers.nodegroup.group_decision import NOTHING
        from ocf.controllers.nodegroup.plan_report import NEW_NODE, pod_texts

        self.plan = plan
        largest = {
            pod.key: values
            for each in plan.decision.scale_up.unplaced
            if each.never and (values := shortage(each.pods[0].shape.requests, self._catalog))
            for pod in each.pods
        }
        self.waits = {}
        for pod, text in pod_texts(plan):
            node = text.removeprefix("goes to ")
            if node == text:
                self.waits[pod] = text.replace(": ", f": {largest[pod]}: ", 1) if pod in largest else text
                self._show("pod", pod, "waits", self.waits[pod], reason=self.waits[pod])
            elif text.endswith(NEW_NODE):
                # The name of a new node in a plan is not that of an object.
                self.waits[pod] = "waits for a new node"
                self._show("pod", pod, "waits", self.waits[pod], reason=self.waits[pod])
            else:
                self.waits[pod] = f"planned on {node}"
                self._show("pod", pod, "planned", self.waits[pod], node=node)
        for name, group in plan.groups.items():
            decision = group.full_text
            if decision != NOTHING:
                self._show("group", name, "decision", f"decision: {decision}", reason=decision)
            else:
                self._shown.pop((name, "decision"), None)

    @asynccontextmanager
    async def watching(self, cached: CachedCluster) -> AsyncIterator[None]:
        """Collect the changes of objects while the block runs."""
        from ocf.controllers.nodegroup.objects import API_VERSION

        kinds = {
            (API_VERSION, "NodeGroup"): self._group,
            (API_VERSION, "VPSieNode"): self._node,
            ("v1", "Pod"): self._pod,
            ("events.k8s.io/v1", "Event"): self._event,
        }

        async def watch(kind: tuple[str, str]) -> None:
            async with aclosing(cached.subscribe(*kind)) as events:
                async for event in events:
                    kinds[kind](event)

        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(watch(kind)) for kind in kinds]
            yield
            # What the last instant has changed is seen before the end.
            await asyncio.sleep(0.1)
            for each in running:
                each.cancel()

    def _show(self, kind: str, name: str, what: str, text: str, **fields: Any) -> None:
        """Add a step, unless the last one of the object was the same; the order of reasons in it does not count."""
        topic, value = what if kind == "group" else "", "; ".join(sorted(text.split("; ")))
        if self._shown.get((name, topic)) != value:
            self._shown[name, topic] = value
            self._add(kind, name, what, text, **fields)

    def _add(self, kind: str, name: str, what: str, text: str, **fields: Any) -> None:
        step = Step(at=self._clock.elapsed(), kind=kind, object=name, what=what, text=text, fields=fields)
        self.steps.append(step)
        self._report(step)

    def _pod(self, event: WatchEvent) -> None:
        pod, name = event.object, _name(event.object)
        self.owners[name] = _owner(pod)
        phase = (pod.get("status") or {}).get("phase", "Pending")
        if event.type is EventType.DELETED:
            self._show("pod", name, "gone", "gone")
            self._shown.pop((name, ""), None)
        elif "deletionTimestamp" in pod["metadata"]:
            self._show("pod", name, "ends", "ends")
        elif pod["spec"].get("nodeName"):
            if phase != "Pending":
                text = _pod_text(pod)
                self._show("pod", name, text.partition(" ")[0], text, node=pod["spec"]["nodeName"])
        elif reason := _own_reason(pod):
            self._show("pod", name, "waits", reason, reason=reason)

    def _node(self, event: WatchEvent) -> None:
        name, spec = event.object["metadata"]["name"], event.object["spec"]
        phase = _node_phase(event.object)
        before = self._shown.get((name, "phase"))
        self._shown[name, "phase"] = phase
        self.owners[name] = f"{event.object['metadata']['namespace']}/{spec['nodeGroupName']}"
        if event.type is EventType.DELETED:
            self._add("node", name, "gone", "gone")
            self.prices.pop(name, None)
        elif before is None:
            price = self._price(spec["instanceType"], spec["datacenterID"])
            cost = "" if price is None else f", {_PRICE.format(price)} an hour"
            pods = spec.get("pods") or []
            text = f"ordered: {spec['instanceType']} in {spec['datacenterID']}{cost}{_several(pods)}"
            fields = {"instanceType": spec["instanceType"], "zone": spec["datacenterID"], "price": price, "pods": pods}
            self._add("node", name, "ordered", text, **fields)
            self.prices[name] = price
            self._count()
        elif phase != before:
            status = event.object.get("status") or {}
            self._add("node", name, "phase", phase, phase=status.get("phase"), reason=status.get("lastError", ""))

    def _count(self) -> None:
        """Note the most nodes that there were at once, and the highest price of all nodes."""
        self.peak_nodes = max(self.peak_nodes, len(self.prices))
        found = [each for each in self.prices.values() if each is not None]
        self.is_priced = self.is_priced and len(found) == len(self.prices)
        self.peak_price = max(self.peak_price or 0.0, sum(found)) if self.is_priced else None

    def _group(self, event: WatchEvent) -> None:
        status, name = event.object.get("status") or {}, _name(event.object)
        for each in status.get("conditions") or ():
            key = (name, each["type"])
            # A condition that was never True says nothing at first.
            value = (each["status"], each["reason"])
            before = self._shown.get(key, f"False {each['reason']}" if each["status"] == "False" else "")
            if " ".join(value) != before:
                message = f": {each['message']}" if each.get("message") else ""
                text = f"{each['type']}={each['status']} {each['reason']}{message}"
                fields = {key: each.get(key, "") for key in ("type", "status", "reason", "message")}
                self._add("group", name, "condition", text, **fields)
            self._shown[key] = " ".join(value)

    def _event(self, event: WatchEvent) -> None:
        found = event.object
        if event.type is not EventType.ADDED or found.get("reportingController") != _component():
            return
        about = found.get("regarding") or {}
        kind = {"NodeGroup": "group", "VPSieNode": "node"}.get(about.get("kind", ""), str(about.get("kind")))
        name = f"{about.get('namespace')}/{about.get('name')}" if kind == "group" else str(about.get("name"))
        note = found.get("note", "")
        self._add(kind, name, "event", f"event {found['reason']}: {note}", reason=found["reason"], message=note)


async def result_of(cluster: Cluster, observer: Observer) -> tuple[dict[str, PodResult], list[Manifest]]:
    """Return the pods by namespace and name, and the objects of the nodes of groups at the end."""
    from ocf.controllers.nodegroup.objects import API_VERSION

    pods = {
        _name(each): PodResult(
            runs=_runs(each),
            node=each["spec"].get("nodeName", ""),
            state=(each.get("status") or {}).get("phase", "Pending"),
            text=_final_text(each, observer.waits),
        )
        for each in (await cluster.list("v1", "Pod")).items
        if "deletionTimestamp" not in each["metadata"]
    }
    return pods, list((await cluster.list(API_VERSION, "VPSieNode")).items)


def _owner(pod: Manifest) -> str:
    """Return namespace and name of the workload that a user wrote for a pod; empty for a pod without a controller."""
    owner, metadata = controller_of(pod), pod["metadata"]
    if owner is None:
        return ""
    # A Deployment names its ReplicaSets with this hash.
    found = (metadata.get("labels") or {}).get(_HASH, "")
    return f"{metadata['namespace']}/{owner.name.removesuffix(f'-{found}') if found else owner.name}"


def shortage(requests: Resources, catalog: Catalog) -> str:
    """Return what a pod requests and no type has, with the largest type; empty if one type has enough of each."""
    units = {"cpu": ("CPU", _MILLI, 1000), "memory": ("GiB of memory", 10**9, 2**30)}
    found = []
    for name, amount in {"cpu": requests.cpu, "memory": requests.memory, **dict(requests.scalars)}.items():
        unit, nano, shown = units.get(name, (name, 10**9, 1))
        amounts = (each.allocatable[name].nano for each in catalog.types.values() if name in each.allocatable)
        most = max(amounts, default=0) / nano
        if amount > most:
            has = f"the largest type has {most / shown:.4g}" if most else "no type has any"
            found.append(f"{amount / shown:.4g} {unit} requested, {has}")
    return "; ".join(found)


def _component() -> str:
    from ocf.controllers.nodegroup.reporter import COMPONENT

    return COMPONENT


def _runs(pod: Manifest) -> bool:
    status = pod.get("status") or {}
    ready = find_condition(status.get("conditions"), "Ready") or {}
    return status.get("phase") == "Succeeded" or ready.get("status") == "True"


def _pod_text(pod: Manifest) -> str:
    phase, node = (pod.get("status") or {}).get("phase", "Pending"), pod["spec"]["nodeName"]
    if phase in ("Succeeded", "Failed"):
        return f"{phase.lower()} on {node}"
    return f"runs on {node}" if _runs(pod) else f"starts on {node}"


def _final_text(pod: Manifest, waits: Mapping[str, str]) -> str:
    if pod["spec"].get("nodeName"):
        return _pod_text(pod)
    if reason := _own_reason(pod):
        return reason
    scheduled = find_condition((pod.get("status") or {}).get("conditions"), "PodScheduled") or {}
    return waits.get(_name(pod)) or str(scheduled.get("message") or "waits for the scheduler")


def _own_reason(pod: Manifest) -> str:
    """Return why a pod has no node that no plan of the controller has; empty if there is no such reason."""
    from ocf_server.controllers.scheduler import SCHEDULER_NAME

    spec, status = pod["spec"], pod.get("status") or {}
    scheduler = spec.get("schedulerName", SCHEDULER_NAME)
    if scheduler != SCHEDULER_NAME:
        return f"waits: no scheduler {scheduler} runs here, only {SCHEDULER_NAME}"
    if spec.get("schedulingGates"):
        return "waits until its spec.schedulingGates are removed"
    owner = controller_of(pod)
    scheduled = find_condition(status.get("conditions"), "PodScheduled") or {}
    if owner is not None and owner.kind == "DaemonSet" and scheduled.get("status") == "False":
        hint = "" if spec.get("priority", 0) > 0 else "; with a priorityClassName its pods come before others"
        return f"has no place on {_target(spec)}, other pods came first: {scheduled.get('message', '')}{hint}"
    return ""


def _target(spec: Mapping[str, Any]) -> str:
    """Return the node for which the DaemonSet controller has made a pod."""
    found = get_field(spec, ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")) or {}
    terms = found.get("nodeSelectorTerms") or ()
    names = (name for term in terms for each in term.get("matchFields") or () for name in each.get("values") or ())
    return next(names, "its node")


def _node_phase(node: Manifest) -> str:
    status = node.get("status") or {}
    error = f": {status['lastError']}" if status.get("lastError") else ""
    drain = (status.get("drain") or {}).get("phase", "")
    # Drains begin with an event.
    return f"{str(status.get('phase', 'Pending')).lower()}{f' ({drain})' if drain else ''}{error}"


def _several(names: list[str]) -> str:
    if not names:
        return ""
    return f", for {names[0]} and {len(names) - 1} more" if len(names) > 1 else f", for {names[0]}"


def _name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
