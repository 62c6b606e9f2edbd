"""A scenario of all HPAs of a namespace or a cluster, with their workloads on its nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ocf.autoscaling import default
from ocf.autoscaling.algorithm import Autoscaler
from ocf.autoscaling.api.betas import as_v2
from ocf.autoscaling.api.versions import read_hpa
from ocf.errors import ConfigError
from ocf.nodegroups.snapshot import Node, PodDisruptionBudget, SnapshotPod
from ocf.objects import Manifest, Quantity, dump_document
from ocf.objects.paths import get_field
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation.scenario.initial import assumed_request, beyond_target, target_requests
from ocf.simulation.scenario.node_values import scheduled_requests

__all__ = ["DumpedAutoscaler", "dumped_scenario"]

_CAPACITY: Final = 100
_TYPE: Final = "node.kubernetes.io/instance-type"
_ZONE: Final = "topology.kubernetes.io/zone"
_CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_KEDA: Final = "ScaledObject"
_GENERAL: Final = (
    f"capacity: an assumption, {_CAPACITY} load units per second for each pod; measure it",
    "load: the present use of cpu by the status of the HPA, or half of the capacity of the pods; write yours",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedAutoscaler:
    """An HPA of a cluster with what belongs to it.

    Args:
        hpa: The HPA.
        target: The workload that it scales; None if it is not known.
        pods: The pods of the workload; empty if they are not known.
    """

    hpa: Manifest
    target: Manifest | None = None
    pods: tuple[Manifest, ...] = ()


def dumped_scenario(
    autoscalers: Sequence[DumpedAutoscaler],
    *,
    budgets: Sequence[Manifest] = (),
    nodes: Sequence[Manifest] = (),
    pods: Sequence[Manifest] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return a scenario in which HPAs run together, as YAML with a comment that says what is assumed.

    Args:
        autoscalers: The HPAs; the first one by namespace and name is the scenario, the others are its neighbors.
        budgets: The PodDisruptionBudgets of their namespaces.
        nodes: The nodes; empty: pods never wait for a node.
        pods: All pods of the cluster, of which those of other workloads take room on the nodes; None if they are not
            known.
        notes: What could not be read, for the comment.

    Raises:
        ConfigError: If there is no HPA.
        ManifestError: If an object cannot be decoded.

    Example:
        >>> reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        >>> hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        ...        "spec": {"maxReplicas": 9, "scaleTargetRef": reference}}
        >>> text = dumped_scenario([DumpedAutoscaler(hpa=hpa)])
        >>> [line for line in text.splitlines() if line.startswith(("name", "duration"))]
        ['name: web', 'duration: 1h']
    """
    if not autoscalers:
        raise ConfigError("there is no HorizontalPodAutoscaler to dump")
    ordered = sorted(autoscalers, key=lambda each: _key(each.hpa))
    namespaces = {_key(each.hpa)[0] for each in ordered}
    written = list(notes)
    services: list[dict[str, Any]] = []
    for each in ordered:
        namespace, name = _key(each.hpa)
        service = {"name": f"{namespace}/{name}" if len(namespaces) > 1 else name}
        services.append({**service, **_service(each, budgets, written)})
    first, *neighbors = services
    groups = _node_groups(nodes, ordered, pods, written)
    document = {
        "apiVersion": "ocf.dev/v1",
        "kind": "Scenario",
        **first,
        **({"nodeGroups": groups} if groups else {}),
        **({"neighbors": neighbors} if neighbors else {}),
        "duration": "1h",
    }
    comment = "".join(f"# * {line}\n" for line in (*_GENERAL, *dict.fromkeys(written)))
    return f"# What the HPAs would do together: ocf simulate FILE\n{comment}{dump_document(document)}"


def _key(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest.get("metadata") or {}
    return str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def _service(dumped: DumpedAutoscaler, budgets: Sequence[Manifest], notes: list[str]) -> dict[str, Any]:
    """Return the fields of a workload."""
    hpa = {name: part for name, part in dumped.hpa.items() if name != "status"}
    autoscaler = Autoscaler.of(default(read_hpa(hpa)))
    where = "/".join(_key(hpa))
    if any(owner.get("kind") == _KEDA for owner in get_field(hpa, ("metadata", "ownerReferences")) or ()):
        notes.append(f"{where}: KEDA scales it from and to zero, which needs an `activator`")
    v2, metadata = as_v2(hpa), hpa.get("metadata") or {}
    replicas = get_field(dumped.target, ("spec", "replicas"))
    workload: dict[str, Any] = {"capacity": _CAPACITY}
    if isinstance(replicas, int):
        workload["replicas"] = replicas
    workload |= _pods(autoscaler, dumped, where, notes)
    signals = dict.fromkeys(each.name for each in autoscaler.metrics if each.type not in RESOURCE_METRICS)
    if signals:
        workload["signals"] = {name: {"source": "load", "factor": 1} for name in signals}
        notes.append(f"{where}: {', '.join(signals)} is assumed to follow the load, with one for each load unit")
    if (budget := _budget(dumped, budgets, where, notes)) is not None:
        workload["disruptionBudget"] = budget
    return {
        "hpa": {
            "apiVersion": v2["apiVersion"],
            "kind": v2["kind"],
            "metadata": {name: metadata[name] for name in ("name", "namespace") if name in metadata},
            "spec": v2["spec"],
        },
        "workload": workload,
        "load": {"type": "Steady", "rate": _present_load(dumped.hpa, replicas, autoscaler)},
    }


def _pods(autoscaler: Autoscaler, dumped: DumpedAutoscaler, where: str, notes: list[str]) -> dict[str, Any]:
    """Return requests, use and priority: those of a pod that runs, or of the template."""
    template = get_field(dumped.target, ("spec", "template", "spec")) or {}
    running = next((spec for each in dumped.pods if (spec := each.get("spec"))), template)
    requests = scheduled_requests(running) | {
        name: _amount(milli) for name, milli in target_requests(autoscaler, dumped.target).items()
    }
    resources = dict.fromkeys(each.name for each in autoscaler.metrics if each.type in RESOURCE_METRICS)
    for name in resources:
        if name not in requests:
            requests[name] = _amount(assumed_request(autoscaler, name))
            notes.append(f"{where}: its request for {name} is not known, {requests[name]} is an assumption")
    found: dict[str, Any] = {"requests": requests} if requests else {}
    busy = {name: beyond_target(autoscaler, name) for name in resources}
    usage = {
        name: {"idle": 0, "busy": _amount(milli)}
        for name, milli in busy.items()
        if milli > Quantity.parse(requests[name]).milli
    }
    if usage:
        found["usage"] = usage
    # Admission resolves the class of a pod, which a template only names.
    priority = running.get("priority")
    if isinstance(priority, int) and priority:
        # Beyond it are the classes of the system.
        found["priority"] = min(priority, 10**9)
    elif running.get("priorityClassName"):
        notes.append(f"{where}: write the value of the PriorityClass {running['priorityClassName']} as `priority`")
    return found


def _budget(
    dumped: DumpedAutoscaler, budgets: Sequence[Manifest], where: str, notes: list[str]
) -> dict[str, Any] | None:
    namespace = _key(dumped.hpa)[0]
    labels = get_field(dumped.target, ("spec", "template", "metadata", "labels")) or next(
        (get_field(each, ("metadata", "labels")) or {} for each in dumped.pods), {}
    )
    found = [
        each
        for each in budgets
        if _key(each)[0] == namespace and PodDisruptionBudget.of(each).selector.matches(labels) and labels
    ]
    if len(found) > 1:
        notes.append(
            f"{where}: several disruption budgets select its pods, so the API server evicts none; none is here"
        )
        return None
    spec = found[0].get("spec") or {} if found else {}
    return {name: spec[name] for name in ("minAvailable", "maxUnavailable") if spec.get(name) is not None} or None


def _present_load(hpa: Manifest, replicas: Any, autoscaler: Autoscaler) -> float:
    status = hpa.get("status") or {}
    pods = status.get("currentReplicas") or (replicas if isinstance(replicas, int) else autoscaler.minimum)
    for each in status.get("currentMetrics") or ():
        if get_field(each, ("resource", "name")) == "cpu":
            used = get_field(each, ("resource", "current", "averageUtilization"))
            if isinstance(used, int):
                return round(_CAPACITY * pods * used / 100, 3)
    return _CAPACITY * max(pods, 1) / 2


def _node_groups(
    nodes: Sequence[Manifest], dumped: Sequence[DumpedAutoscaler], pods: Sequence[Manifest] | None, notes: list[str]
) -> list[dict[str, Any]]:
    """Return a group for each instance type and zone, with the room that other workloads leave."""
    groups: dict[tuple[str, str], list[Node]] = {}
    for manifest in nodes:
        node = Node.of(manifest)
        if _CONTROL_PLANE in node.labels or not node.ready or node.unschedulable:
            continue
        if any(taint.effect != "PreferNoSchedule" for taint in node.taints):
            notes.append(f"nodes have taints, such as {node.name}: here they take all pods")
        groups.setdefault((node.labels.get(_TYPE, "node"), node.labels.get(_ZONE, "")), []).append(node)
    if not groups:
        return []
    notes.append("nodeGroups: minNodes and maxNodes are the present number of nodes; write those of your autoscaler")
    others: Mapping[str, Sequence[SnapshotPod]] = {}
    if pods is None:
        notes.append("nodeGroups: pods of other workloads and of DaemonSets are not known, and take no room")
    else:
        others = _others(dumped, pods)
    return [_group(*kind, found, others) for kind, found in sorted(groups.items())]


def _others(dumped: Sequence[DumpedAutoscaler], pods: Sequence[Manifest]) -> Mapping[str, Sequence[SnapshotPod]]:
    """Return the pods of each node that are of no workload with an HPA."""
    own = {_key(pod) for each in dumped for pod in each.pods}
    found: dict[str, list[SnapshotPod]] = {}
    for manifest in pods:
        if _key(manifest) not in own:
            pod = SnapshotPod.of(manifest)
            if pod.node_name and not pod.finished:
                found.setdefault(pod.node_name, []).append(pod)
    return found


def _group(
    instance_type: str, zone: str, nodes: Sequence[Node], others: Mapping[str, Sequence[SnapshotPod]]
) -> dict[str, Any]:
    taken = [pod.shape.requests for node in nodes for pod in others.get(node.name, ())]
    # Nodes of a kind are alike here: other pods are spread over them.
    count = len(nodes)
    cpu, memory, slots = (
        min(getattr(node.allocatable, name) for node in nodes) - sum(getattr(each, name) for each in taken) // count
        for name in ("cpu", "memory", "pods")
    )
    extended = dict(nodes[0].allocatable.scalars)
    for requests in taken:
        for name, amount in requests.scalars:
            extended[name] = extended.get(name, 0) - amount // count
    left = {name: amount for name, amount in extended.items() if amount > 0}
    return {
        "name": f"{instance_type}-{zone}" if zone else instance_type,
        **({"zone": zone} if zone else {}),
        "minNodes": count,
        "maxNodes": count,
        "initialNodes": count,
        "instanceTypes": [
            {
                "name": instance_type,
                "cpu": f"{max(cpu, 1)}m",
                "memory": str(max(memory, 1)),
                "pods": max(slots, 1),
                **({"extended": left} if left else {}),
            }
        ],
    }


def _amount(milli: int) -> str:
    return str(Quantity.parse(f"{milli}m"))
