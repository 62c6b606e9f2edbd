"""Requests and limits of the pods of a target."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ocf.errors import QuantityError
from ocf.objects import Manifest, Quantity
from ocf.objects.paths import get_field

__all__ = ["PodResources", "read_pods", "with_limit_ranges"]


@dataclass(frozen=True, slots=True)
class PodResources:
    """The resources of the pods of a target.

    Args:
        containers: The containers that run as long as the pod does, including sidecars.
        requests: Pod-level requests, which replace those of the containers.
        limits: Pod-level limits.
    """

    containers: tuple[Manifest, ...]
    requests: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the containers."""
        return tuple(str(container.get("name", "")) for container in self.containers)

    def invalid_amounts(self) -> Iterator[str]:
        """Yield every request and limit that is not a quantity: the API server rejects a workload with one."""
        named = [*zip(self.names, (each.get("resources") for each in self.containers), strict=True)]
        for name, resources in [("the pod", {"requests": self.requests, "limits": self.limits}), *named]:
            for field_name in ("requests", "limits"):
                amounts = get_field(resources, (field_name,))
                for resource, value in amounts.items() if isinstance(amounts, Mapping) else ():
                    if value is not None and _amount(value) is None:
                        yield f"{field_name}.{resource} of {name} is {value!r:.60}"

    def requests_above_limits(self) -> Iterator[str]:
        """Yield every request that exceeds the limit of the same container, or of the pod: no such pod is created."""
        named = [*zip(self.names, (_map(each.get("resources")) for each in self.containers), strict=True)]
        for name, resources in [("the pod", {"requests": self.requests, "limits": self.limits}), *named]:
            limits = _map(resources.get("limits"))
            for resource, value in _map(resources.get("requests")).items():
                request, limit = _amount(value), _amount(limits.get(resource))
                if request is not None and limit is not None and request > limit:
                    yield f"requests.{resource} of {name} is {value!s:.60}, and its limit {limits[resource]!s:.60}"

    def without_request(self, resource: str) -> tuple[str, ...]:
        """Return the names of the containers without a request for a resource; none if there is a pod-level request.

        Args:
            resource: `cpu` or `memory`.
        """
        # A pod-level limit is the default of the pod-level request, as for containers.
        has_pod_level = resource in self.requests or resource in self.limits
        return () if has_pod_level else self.container_without_request(resource)

    def container_without_request(self, resource: str) -> tuple[str, ...]:
        """Return the names of the containers without a request of their own, regardless of pod-level requests.

        Args:
            resource: `cpu` or `memory`.
        """
        named = zip(self.names, self.containers, strict=True)
        return tuple(name for name, container in named if not _has_request(container, resource))

    def highest_usage(self, resource: str, container: str | None = None) -> int | None:
        """Return the highest usage that the limits allow.

        Args:
            resource: `cpu` or `memory`.
            container: Name of the only container to count; None for the whole pod.

        Returns:
            Thousandths of the resource's unit, rounded up as by the controller; None without a limit.
        """
        if container is None and resource in self.limits:
            return _amount(self.limits[resource])
        return _sum(_limit(each, resource) for each in self._chosen(container))

    def highest_utilization(self, resource: str, container: str | None = None) -> int | None:
        """Return the highest utilization that the limits allow.

        Args:
            resource: `cpu` or `memory`.
            container: Name of the only container to count; None for the whole pod.

        Returns:
            Whole percents of the requests, truncated as by the controller; None without a limit or a request.
        """
        usage, requested = self.highest_usage(resource, container), self.requested(resource, container)
        return 100 * usage // requested if usage is not None and requested else None

    def requested(self, resource: str, container: str | None = None) -> int | None:
        """Return the request of a pod.

        Args:
            resource: `cpu` or `memory`.
            container: Name of the only container to count; None for the whole pod.

        Returns:
            Thousandths of the resource's unit; None if a container has no request.
        """
        if container is None and (resource in self.requests or resource in self.limits):
            return _amount(self.requests.get(resource, self.limits.get(resource)))
        return _sum(_request(each, resource) for each in self._chosen(container))

    def _chosen(self, container: str | None) -> list[Manifest]:
        return [each for each in self.containers if container in (None, each.get("name"))]


def _sum(amounts: Iterable[int | None]) -> int | None:
    """Return the sum of the amounts; None if one is unknown or there are none."""
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    return sum(known) if known and len(known) == len(found) else None


def _has_request(container: Manifest, resource: str) -> bool:
    """Return whether a container has a request, even if it is not a quantity."""
    return any(get_field(container, ("resources", each, resource)) is not None for each in ("requests", "limits"))


def _request(container: Manifest, resource: str) -> int | None:
    """Return a request in thousandths; the API server uses the limit as the default of the request."""
    found = _amount(get_field(container, ("resources", "requests", resource)))
    return _limit(container, resource) if found is None else found


def _limit(container: Manifest, resource: str) -> int | None:
    return _amount(get_field(container, ("resources", "limits", resource)))


def _amount(value: Any) -> int | None:
    """Return an amount in thousandths; None if it is missing or not a quantity."""
    try:
        return None if value is None else Quantity.parse(value).milli
    except QuantityError:
        return None


def read_pods(template: Mapping[str, Any]) -> PodResources:
    """Parse the resources of a pod template.

    Args:
        template: A pod template, with `spec`.
    """
    spec = _map(template.get("spec"))
    pod_level = _map(spec.get("resources"))
    sidecars = (each for each in _maps(spec.get("initContainers")) if each.get("restartPolicy") == "Always")
    containers = (*_maps(spec.get("containers")), *sidecars)
    return PodResources(containers, _map(pod_level.get("requests")), _map(pod_level.get("limits")))


def with_limit_ranges(pods: PodResources, others: Iterable[Manifest]) -> PodResources:
    """Return the resources that pods have after admission by the LimitRanges among some objects.

    A container without a request gets its limit or, without that, the default request; the default of that is the
    default limit, then the minimum. Source: `SetDefaults_LimitRangeItem` and the plugin LimitRanger of Kubernetes.
    """
    for other in others:
        if other.get("kind") == "LimitRange" and other.get("apiVersion") == "v1":
            for item in _maps(_map(other.get("spec")).get("limits")):
                if item.get("type") == "Container":
                    pods = replace(pods, containers=tuple(_admitted(each, item) for each in pods.containers))
    return pods


def _admitted(container: Manifest, item: Manifest) -> Manifest:
    limits = {**_map(item.get("max")), **_map(item.get("default"))}
    requests = {**_map(item.get("min")), **limits, **_map(item.get("defaultRequest"))}
    resources = _map(container.get("resources"))
    set_limits, set_requests = _map(resources.get("limits")), _map(resources.get("requests"))
    admitted = {"limits": {**limits, **set_limits}, "requests": {**requests, **set_limits, **set_requests}}
    return {**container, "resources": {**resources, **admitted}}


def _map(value: Any) -> Mapping[str, Any]:
    """Return a map; empty for any other value, because validating the target is not done here."""
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> list[Manifest]:
    return [dict(each) for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
