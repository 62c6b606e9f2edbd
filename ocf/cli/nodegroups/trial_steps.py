"""Steps of a trial: what the objects of a cluster and the plans of the controller show."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from ocf.cluster.protocol import EventType
from ocf.objects.conditions import find_condition

if TYPE_CHECKING:
    from ocf.cluster import Cluster, WatchEvent
    from ocf.cluster.cache import CachedCluster
    from ocf.concepts import Clock
    from ocf.controllers.nodegroup.plan import NodeGroupPlan
    from ocf.nodegroups import Catalog
    from ocf.objects import Manifest

__all__ = ["Observer", "PodResult", "Step", "result_of"]

_PRICE: Final = "{:.4g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happened.

    Args:
        at: Since the start of the trial.
        object: What it happened to: `pod shop/web-0`, `node workers-1`, `group default/workers`.
        text: What happened.
    """

    at: timedelta
    object: str
    text: str


@dataclass(frozen=True, slots=True)
class PodResult:
    """A pod at the end.

    Args:
        runs: Whether it is ready, or has succeeded.
        text: Where it runs, or why it does not.
    """

    runs: bool
    text: str


class Observer:
    """Collects the steps of a trial.

    Args:
        clock: The clock of the trial.
        catalog: The instance types, for prices.
    """

    def __init__(self, clock: Clock, catalog: Catalog) -> None:
        self._clock = clock
        self._catalog = catalog
        self.steps: list[Step] = []
        self.waits: dict[str, str] = {}
        self._shown: dict[str, str] = {}

    def planned(self, plan: NodeGroupPlan) -> None:
        """Collect what pods wait for by a plan of the controller."""
        from ocf.controllers.nodegroup.plan_report import NEW_NODE, pod_texts

        self.waits = dict(pod_texts(plan))
        for pod, text in self.waits.items():
            # The name of a new node in a plan is not that of an object.
            self._show(f"pod {pod}", "waits for a new node" if text.endswith(NEW_NODE) else text)

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

    def _show(self, what: str, text: str) -> None:
        """Add a step, unless the last one of the object was the same."""
        if text and self._shown.get(what) != text:
            self._shown[what] = text
            self._add(what, text)

    def _add(self, what: str, text: str) -> None:
        self.steps.append(Step(at=self._clock.elapsed(), object=what, text=text))

    def _pod(self, event: WatchEvent) -> None:
        what = f"pod {_name(event.object)}"
        if event.type is EventType.DELETED:
            self._show(what, "gone")
            self._shown.pop(what, None)
        elif "deletionTimestamp" in event.object["metadata"]:
            self._show(what, "ends")
        elif event.object["spec"].get("nodeName") and (event.object.get("status") or {}).get("phase") != "Pending":
            self._show(what, _pod_text(event.object))

    def _node(self, event: WatchEvent) -> None:
        what, before = f"node {event.object['metadata']['name']}", self._shown.get(f"phase {_name(event.object)}")
        phase = _node_phase(event.object)
        if event.type is EventType.DELETED:
            self._add(what, "gone")
        elif before is None:
            self._add(what, self._purchase(event.object["spec"]))
        elif phase != before:
            self._add(what, phase)
        self._shown[f"phase {_name(event.object)}"] = phase

    def _purchase(self, spec: Mapping[str, Any]) -> str:
        price = self._catalog.price(spec["instanceType"], spec["datacenterID"])
        cost = "" if price is None else f", {_PRICE.format(price)} an hour"
        pods = f", for {_several(spec['pods'])}" if spec.get("pods") else ""
        return f"ordered: {spec['instanceType']} in {spec['datacenterID']}{cost}{pods}"

    def _group(self, event: WatchEvent) -> None:
        from ocf.controllers.nodegroup.group_decision import NOTHING

        status, what = event.object.get("status") or {}, f"group {_name(event.object)}"
        decision = status.get("lastDecision", "")
        if decision not in ("", NOTHING) and decision != self._shown.get(f"decision {what}"):
            self._add(what, f"decision: {decision}")
        self._shown[f"decision {what}"] = decision
        for each in status.get("conditions") or ():
            key = f"{what} {each['type']}"
            # A condition that was never True says nothing at first.
            value = (each["status"], each["reason"])
            before = self._shown.get(key, f"False {each['reason']}" if each["status"] == "False" else "")
            if " ".join(value) != before:
                message = f": {each['message']}" if each.get("message") else ""
                self._add(what, f"{each['type']}={each['status']} {each['reason']}{message}")
            self._shown[key] = " ".join(value)

    def _event(self, event: WatchEvent) -> None:
        found = event.object
        if event.type is not EventType.ADDED or found.get("reportingController") != _component():
            return
        about = found.get("regarding") or {}
        kind = {"NodeGroup": "group", "VPSieNode": "node"}.get(about.get("kind", ""), str(about.get("kind")))
        name = f"{about.get('namespace')}/{about.get('name')}" if kind == "group" else about.get("name")
        self._add(f"{kind} {name}", f"event {found['reason']}: {found.get('note', '')}")


async def result_of(cluster: Cluster, observer: Observer) -> tuple[dict[str, PodResult], dict[str, str]]:
    """Return the pods and the nodes of groups at the end.

    Returns:
        The pods by namespace and name, and the instance type of each node by its name.
    """
    from ocf.controllers.nodegroup.objects import API_VERSION

    pods = {
        _name(each): PodResult(_runs(each), _final_text(each, observer.waits))
        for each in (await cluster.list("v1", "Pod")).items
        if "deletionTimestamp" not in each["metadata"]
    }
    listed = (await cluster.list(API_VERSION, "VPSieNode")).items
    return pods, {each["metadata"]["name"]: each["spec"]["instanceType"] for each in listed}


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
    if pod["spec"].get("schedulingGates"):
        return "waits until its spec.schedulingGates are removed"
    scheduled = find_condition((pod.get("status") or {}).get("conditions"), "PodScheduled") or {}
    return waits.get(_name(pod)) or str(scheduled.get("message") or "waits for the scheduler")


def _node_phase(node: Manifest) -> str:
    status = node.get("status") or {}
    error = f": {status['lastError']}" if status.get("lastError") else ""
    drain = (status.get("drain") or {}).get("phase", "")
    # Drains begin with an event.
    return f"{str(status.get('phase', 'Pending')).lower()}{f' ({drain})' if drain else ''}{error}"


def _several(names: list[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def _name(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
