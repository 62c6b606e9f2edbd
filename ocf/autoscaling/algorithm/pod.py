"""Pods, reduced to what the algorithm uses.

A pod is parsed once and used by every sync until it changes. So what depends on it alone is derived when it is created:
whether it has settled, and what its containers request together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm.entries import entries
from ocf.objects import Manifest, Quantity
from ocf.objects.paths import get_field
from ocf.objects.timestamps import parse_time

__all__ = ["Container", "Pod", "PodLevelResources", "Readiness"]

_UNSETTLED: Final = ("Failed", "Pending")
_POD_LEVEL_RESOURCES: Final = frozenset({"cpu", "memory"})
_HUGE_PAGES: Final = "hugepages-"


class Readiness(NamedTuple):
    """The condition `Ready` of a pod.

    Args:
        status: `True`, `False` or `Unknown`.
        since: `lastTransitionTime`; None if it is missing.
    """

    status: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod.

    Args:
        name: Its name.
        requests: Its requests, thousandths by resource.
        restartable: Whether its `restartPolicy` is Always: an init container with it is a sidecar.
    """

    name: str
    requests: Mapping[str, int] = field(default_factory=dict)
    restartable: bool = False


@dataclass(frozen=True, slots=True)
class PodLevelResources:
    """The pod-level resources of a pod.

    Args:
        requests: Thousandths by resource, from `spec.resources.requests`; at least one.
        overhead: Thousandths by resource, from `spec.overhead`.
    """

    requests: Mapping[str, int]
    overhead: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """The parts of a pod that the algorithm uses.

    Args:
        name: Its name.
        phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
        deleted: Whether it is being deleted.
        started: `status.startTime`; None if it has not started.
        ready: Its condition `Ready`; None if it does not have one.
        labels: Its labels.
        containers: Its containers.
        init_containers: Its init containers, including sidecars.
        pod_level: Its pod-level resources; None without any.
        owner: Its controller by `ownerReferences`, as `ReplicaSet/web-6d4f`; empty without one. The algorithm selects
            by labels and does not look at it.

    Attributes:
        settled_since: Derived: `started` of a pod whose samples count once it is older than the initialization period,
            because it is neither deleted, failed, pending nor known to be unready; None for every other pod.
        requests: Derived: the requests of its containers and sidecars together, thousandths by resource. A resource
            that one of them does not request is left out.
    """

    name: str
    phase: str = "Running"
    deleted: bool = False
    started: datetime | None = None
    ready: Readiness | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    pod_level: PodLevelResources | None = None
    owner: str = ""
    settled_since: datetime | None = field(init=False, repr=False, compare=False)
    requests: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ready = self.ready
        # `Unknown` is not `False`: a pod on an unreachable node keeps its sample (groupPods compares with
        # ConditionFalse).
        unsettled = self.deleted or self.phase in _UNSETTLED or ready is None or ready.status == "False"
        object.__setattr__(self, "settled_since", None if unsettled else self.started)
        object.__setattr__(self, "requests", _sum_requests(self.running_containers))

    @property
    def running_containers(self) -> tuple[Container, ...]:
        """The containers that run side by side: all but the init containers that end."""
        if not self.init_containers:
            return self.containers
        return (*self.containers, *(each for each in self.init_containers if each.restartable))

    @classmethod
    def of(cls, pod: Manifest) -> "Pod":
        """Parse a Pod.

        Args:
            pod: The manifest, as the API server returns it.

        Returns:
            The pod.

        Raises:
            ManifestError: If a list has an entry that is not a map.
            QuantityError: If a request is not a quantity.
            ValueError: If a timestamp is invalid.

        Example:
            >>> Pod.of({"metadata": {"name": "web-0"}, "status": {"phase": "Pending"}}).phase
            'Pending'
        """
        metadata, spec, status = (pod.get(part) or {} for part in ("metadata", "spec", "status"))
        name = metadata.get("name") or ""
        containers = entries(spec.get("containers"), "spec.containers", "Pod", name)
        init_containers = entries(spec.get("initContainers"), "spec.initContainers", "Pod", name)
        return cls(
            name=name,
            phase=status.get("phase") or "",
            deleted=metadata.get("deletionTimestamp") is not None,
            started=_instant(status.get("startTime")),
            ready=_readiness(entries(status.get("conditions"), "status.conditions", "Pod", name)),
            labels=metadata.get("labels") or {},
            containers=tuple(map(_container, containers)),
            init_containers=tuple(map(_container, init_containers)),
            pod_level=_pod_level(spec),
            owner=_owner(metadata.get("ownerReferences") or ()),
        )


def _owner(references: Sequence[Manifest]) -> str:
    for each in references:
        if each.get("controller"):
            return f"{each.get('kind') or ''}/{each.get('name') or ''}"
    return ""


def _sum_requests(containers: Sequence[Container]) -> Mapping[str, int]:
    if not containers:
        return {}
    first, *others = (each.requests for each in containers)
    if not others:
        return first
    return {
        resource: sum((each[resource] for each in others), amount)
        for resource, amount in first.items()
        # A sum over some containers would make the utilization of the pod look higher than it is.
        if all(resource in each for each in others)
    }


def _container(container: Manifest) -> Container:
    requests = get_field(container, ("resources", "requests")) or {}
    restartable = container.get("restartPolicy") == "Always"
    return Container(container.get("name") or "", _amounts(requests), restartable)


def _pod_level(spec: Manifest) -> PodLevelResources | None:
    """Return the pod-level resources; resources that cannot be requested at pod level are ignored."""
    requests = get_field(spec, ("resources", "requests")) or {}
    counted = {
        name: value for name, value in requests.items() if name in _POD_LEVEL_RESOURCES or name.startswith(_HUGE_PAGES)
    }
    return PodLevelResources(_amounts(counted), _amounts(spec.get("overhead") or {})) if counted else None


def _amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    return {name: Quantity.parse(value).milli for name, value in quantities.items()}


def _readiness(conditions: Sequence[Manifest]) -> Readiness | None:
    for condition in conditions:
        if condition.get("type") == "Ready":
            return Readiness(condition.get("status") or "", _instant(condition.get("lastTransitionTime")))
    return None


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_time(text)
