"""Snapshot of a sync: the HPA, its scale, pods and metric values, and the selectors of the other HPAs.

Snapshots are immutable values, parsed from API objects. A simulation or a test creates them directly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from ocf.autoscaling.algorithm.entries import entries
from ocf.autoscaling.algorithm.hpa_spec import Autoscaler
from ocf.autoscaling.algorithm.pod_selectors import parse_selector
from ocf.autoscaling.algorithm.status import Status
from ocf.objects import LabelSelector, Manifest, Quantity, get_field
from ocf.objects.timestamps import parse_time

__all__ = [
    "Container",
    "MetricValues",
    "Pod",
    "PodLevelResources",
    "Readiness",
    "Sample",
    "Scale",
    "Snapshot",
    "Unavailable",
]

_MINUTE: Final = timedelta(minutes=1)
_UNSETTLED: Final = ("Failed", "Pending")


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A value that could not be read.

    Args:
        message: The error message of the server.
        spec: Whether the cause is the spec of the HPA.
    """

    message: str
    spec: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """The Scale of a workload.

    Args:
        replicas: `spec.replicas`, the desired replicas.
        observed: `status.replicas`, the observed replicas.
        selector: `status.selector`, the selector of the pods as a string.

    Example:
        >>> Scale.of({"spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "app=web"}})
        Scale(replicas=3, observed=2, selector='app=web')
    """

    replicas: int
    observed: int
    selector: str

    @classmethod
    def of(cls, scale: Manifest) -> "Scale":
        """Parse a Scale of autoscaling/v1.

        Args:
            scale: The manifest.

        Returns:
            The scale; missing numbers are 0.
        """
        status = scale.get("status") or {}
        replicas = (scale.get("spec") or {}).get("replicas") or 0
        return cls(replicas, status.get("replicas") or 0, status.get("selector") or "")


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

    Attributes:
        settled_since: Derived: `started` of a pod whose samples count once it is older than the initialization period,
            because it is neither deleted, failed, pending nor known to be unready; None for every other pod.
        requests: Derived: the requests of its containers and sidecars together, thousandths by resource. A resource
            that one of them does not request is left out.
    """

    # A pod is parsed once and used by many syncs, so what depends on it alone is derived once.

    name: str
    phase: str = "Running"
    deleted: bool = False
    started: datetime | None = None
    ready: Readiness | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    pod_level: PodLevelResources | None = None
    settled_since: datetime | None = field(init=False, repr=False, compare=False)
    requests: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ready = self.ready
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
        )


class Sample(NamedTuple):
    """A metric sample of one pod.

    Args:
        value: Thousandths.
        at: The end of the measurement.
        window: The length of the measurement.
    """

    value: int
    at: datetime
    window: timedelta = _MINUTE


MetricValues = Mapping[str, Sample] | Sequence[int] | Unavailable
"""The measured values of a metric: samples by pod name for Resource, ContainerResource and Pods; thousandths for Object
(one number) and External (one per series); or why they could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that one sync reads.

    Args:
        autoscaler: The spec of the HPA.
        status: The status of the HPA as it was read.
        scale: The scale of its target, or why it could not be read.
        pods: The pods in the namespace of the HPA that the scale's selector selects, whatever owns them.
        metric_values: The measured values, one entry per metric of the HPA, in the same order.
        others: The selectors of the other HPAs of the namespace by name, each as of the last sync of that HPA.
    """

    autoscaler: Autoscaler
    status: Status = field(default_factory=Status)
    scale: Scale | Unavailable
    pods: Sequence[Pod] = ()
    metric_values: Sequence[MetricValues] = ()
    others: Mapping[str, LabelSelector] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        hpa: Manifest,
        *,
        scale: Manifest,
        pods: Sequence[Manifest] = (),
        metric_values: Sequence[MetricValues] = (),
        others: Mapping[str, LabelSelector] | None = None,
    ) -> "Snapshot":
        """Parse a snapshot from manifests.

        Args:
            hpa: The HPA, autoscaling/v2, with its status.
            scale: The Scale of its target.
            pods: Pods; those that are in other namespaces or not selected by the scale are left out.
            metric_values: The measured values, one entry per metric.
            others: The selectors of the other HPAs of the namespace.

        Returns:
            The snapshot.

        Raises:
            ManifestError: If the HPA cannot be decoded, or a list has an entry that is not a map.
            QuantityError: If a request of a pod is not a quantity.
        """
        autoscaler, read = Autoscaler.of(hpa), Scale.of(scale)
        selector = parse_selector(read.selector)
        return cls(
            autoscaler=autoscaler,
            status=Status.of(hpa.get("status")),
            scale=read,
            pods=tuple(
                Pod.of(pod)
                for pod in entries(pods, "pods", "Snapshot")
                if _is_selected(pod, autoscaler.namespace, selector)
            ),
            metric_values=metric_values,
            others=others or {},
        )


def _is_selected(pod: Manifest, namespace: str, selector: LabelSelector | str) -> bool:
    metadata = pod.get("metadata") or {}
    if isinstance(selector, str) or (metadata.get("namespace") or "default") != namespace:
        return False
    return selector.matches(metadata.get("labels") or {})


def _sum_requests(containers: Sequence[Container]) -> Mapping[str, int]:
    if not containers:
        return {}
    first, *others = (each.requests for each in containers)
    if not others:
        return first
    return {
        resource: sum((each[resource] for each in others), amount)
        for resource, amount in first.items()
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


_POD_LEVEL_RESOURCES: Final = frozenset({"cpu", "memory"})
_HUGE_PAGES: Final = "hugepages-"


def _amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    return {name: Quantity.parse(value).milli for name, value in quantities.items()}


def _readiness(conditions: Sequence[Manifest]) -> Readiness | None:
    for condition in conditions:
        if condition.get("type") == "Ready":
            return Readiness(condition.get("status") or "", _instant(condition.get("lastTransitionTime")))
    return None


def _instant(text: str | None) -> datetime | None:
    return None if text is None else parse_time(text)
