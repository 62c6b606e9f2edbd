"""What an autoscaler has to know of the pods that it counts: what their containers request, and where they end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ocf.objects import Manifest, Quantity, get_field

__all__ = ["PodResources", "read_pods"]


@dataclass(frozen=True, slots=True)
class PodResources:
    """What is known of a target's pods.

    Args:
        containers: Those that run as long as the pod does, sidecars included.
        requests: What the pod requests as a whole, instead of its containers.
        limits: The same for limits.
    """

    containers: tuple[Manifest, ...]
    requests: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the containers."""
        return tuple(str(container.get("name", "")) for container in self.containers)

    def without_request(self, resource: str) -> tuple[str, ...]:
        """Return the names of the containers that request none of a resource.

        Args:
            resource: `cpu` or `memory`.
        """
        whole = resource in self.requests or resource in self.limits
        return () if whole else self.container_without_request(resource)

    def container_without_request(self, resource: str) -> tuple[str, ...]:
        """Return the same, whatever the pod requests as a whole: that does not count for a single container.

        Args:
            resource: `cpu` or `memory`.
        """
        named = zip(self.names, self.containers, strict=True)
        return tuple(name for name, container in named if _request(container, resource) is None)

    def highest_usage(self, resource: str, container: str | None = None) -> int | None:
        """Return where the limits of a pod end.

        Args:
            resource: `cpu` or `memory`.
            container: Only this container; None for the whole pod.

        Returns:
            Billionths of the resource's unit; None where there is no limit.
        """
        if container is None and resource in self.limits:
            return _amount(self.limits[resource])
        return _sum(_limit(each, resource) for each in self._chosen(container))

    def highest_utilization(self, resource: str, container: str | None = None) -> float | None:
        """Return the percentage of the requests at which the limits end.

        Args:
            resource: `cpu` or `memory`.
            container: Only this container; None for the whole pod.

        Returns:
            Percent; None where there is no limit, or no request.
        """
        usage = self.highest_usage(resource, container)
        requested = _sum(_request(each, resource) for each in self._chosen(container))
        if container is None and (resource in self.requests or resource in self.limits):
            requested = _amount(self.requests.get(resource, self.limits.get(resource)))
        return 100 * usage / requested if usage is not None and requested else None

    def _chosen(self, container: str | None) -> list[Manifest]:
        return [each for each in self.containers if container in {None, each.get("name")}]


def _sum(amounts: Iterable[int | None]) -> int | None:
    """Add up; one that is not known makes the sum unknown, and so does having none."""
    found = list(amounts)
    known = [amount for amount in found if amount is not None]
    return sum(known) if known and len(known) == len(found) else None


def _request(container: Manifest, resource: str) -> int | None:
    """Return a request in billionths; a limit counts, as the API server makes it the request where there is none."""
    found = _amount(get_field(container, ("resources", "requests", resource)))
    return _limit(container, resource) if found is None else found


def _limit(container: Manifest, resource: str) -> int | None:
    return _amount(get_field(container, ("resources", "limits", resource)))


def _amount(value: Any) -> int | None:
    return None if value is None else Quantity.parse(value).nano


def read_pods(template: Mapping[str, Any]) -> PodResources:
    """Read the pods of a template.

    Args:
        template: A pod template, with `spec`.

    Returns:
        Its containers, and the requests of the whole pod.
    """
    spec = _map(template.get("spec"))
    whole = _map(spec.get("resources"))
    sidecars = (each for each in _maps(spec.get("initContainers")) if each.get("restartPolicy") == "Always")
    containers = (*_maps(spec.get("containers")), *sidecars)
    return PodResources(containers, _map(whole.get("requests")), _map(whole.get("limits")))


def _map(value: Any) -> Mapping[str, Any]:
    """Return a map; a target is judged by its own validation, so whatever else is there counts as nothing here."""
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> list[Manifest]:
    return [dict(each) for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
