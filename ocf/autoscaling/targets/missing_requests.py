"""Missing resource requests: utilization targets that cannot be computed for the containers of a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ocf.autoscaling.targets.pod_resources import PodResources
from ocf.errors import FieldProblem
from ocf.objects import Manifest
from ocf.schema.metric_sources import RESOURCE_METRICS, source_field

__all__ = ["missing_requests"]


def missing_requests(hpa: Manifest, pods: PodResources, *, by_default: bool = False) -> Iterator[FieldProblem]:
    """Find metrics for containers that do not exist, and utilization targets for containers without a request.

    The controller cannot compute these metrics, even if only one container has no request, and then does not scale.

    Args:
        hpa: A manifest of autoscaling/v2, with its defaults.
        by_default: Whether the metrics are the default of the API server, not the user's.

    Yields:
        One problem per metric; it names the containers.
    """
    for position, metric in enumerate(hpa["spec"]["metrics"]):
        kind = metric.get("type", "")
        field = source_field(kind)
        source = metric.get(field)
        if kind not in RESOURCE_METRICS or not isinstance(source, Mapping):
            continue
        path = f"spec.metrics[{position}].{field}"
        container = source.get("container") if kind == "ContainerResource" else None
        if container is not None and container not in pods.names:
            known = ", ".join(pods.names) or "none"
            yield FieldProblem(f"{path}.container", f"there is no container {container!r}, the target has {known}")
        # Only a utilization needs requests; an average value is compared as it is.
        elif "averageUtilization" in (source.get("target") or {}):
            yield from _missing_request(source, container, path, pods, by_default=by_default)


def _missing_request(
    source: Mapping[str, Any], container: str | None, path: str, pods: PodResources, *, by_default: bool
) -> Iterator[FieldProblem]:
    resource = source.get("name", "")
    if container is None:
        missing = pods.without_request(resource)
    else:
        missing = tuple(each for each in pods.container_without_request(resource) if each == container)
    if missing:
        lack = f"{', '.join(missing)} requests no {resource}"
    elif pods.requested(resource, container) == 0:
        # The controller divides by the sum of the requests, so a single container may request 0.
        lack = f"the {resource} requests of the pod add up to 0"
    else:
        return
    origin = "without metrics the API server scales on 80 percent of the cpu requests; " if by_default else ""
    yield FieldProblem(path, f"{origin}a utilization is a share of the request, and {lack}")
