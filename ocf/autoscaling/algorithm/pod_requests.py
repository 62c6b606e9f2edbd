"""Resource requests of pods; a utilization is a percentage of them.

The requests of all selected pods are needed, even of those that do not count. If one container has no request, there is
no utilization: the controller does not guess.
"""

from collections.abc import Sequence

from ocf.autoscaling.algorithm.arithmetic import saturate64
from ocf.autoscaling.algorithm.pod import Container, Pod, PodLevelResources
from ocf.autoscaling.algorithm.snapshot import Unavailable

__all__ = ["pod_requests"]


def pod_requests(
    pods: Sequence[Pod], resource: str, container: str = "", *, pod_level: bool = True, container_required: bool = True
) -> dict[str, int] | Unavailable:
    """Return the requests of each pod.

    Args:
        pods: The pods.
        resource: Name of the resource.
        container: Name of the only container to count, which may be a sidecar; empty for all containers.
        pod_level: Whether pod-level requests replace those of the containers. They never replace those of `container`.
        container_required: Whether a pod without `container` is an error; otherwise it requests 0, as before Kubernetes
            1.35.

    Returns:
        Thousandths by pod name; or the first missing request.

    Example:
        >>> pod_requests([Pod(name="web-0", containers=(Container("app", {"cpu": 250}),))], "cpu")
        {'web-0': 250}
    """
    amounts: dict[str, int] = {}
    # Pods that are ignored or unready are included: calculateRequests gets the list before groups are taken off it, so
    # one foreign pod without a request fails the metric (kubernetes/kubernetes#79365).
    for pod in pods:
        if container:
            found = _of_container(pod, resource, container, required=container_required)
        # Requests for the whole pod are no measure for one of its containers (KEP-2837), so a named container comes
        # first.
        elif pod_level and pod.pod_level is not None:
            found = _of_pod(pod, pod.pod_level, resource)
        else:
            amount = pod.requests.get(resource)
            if amount is not None:  # nearly every pod; the total is limited to 64 bits later
                amounts[pod.name] = amount
                continue
            found = _without_request(pod, resource)
        if isinstance(found, Unavailable):
            return found
        amounts[pod.name] = found
    return amounts


def _of_container(pod: Pod, resource: str, container: str, *, required: bool) -> int | Unavailable:
    for each in pod.running_containers:
        if each.name == container:
            amount = each.requests.get(resource)
            return _missing(pod, resource, each) if amount is None else amount
    # 0 is what the sum over no container gave; it raised the utilization by the pod's usage.
    return Unavailable(f"container {container} not found in Pod {pod.name}") if required else 0


def _without_request(pod: Pod, resource: str) -> int | Unavailable:
    """Return the first missing request; 0 for a pod without containers."""
    lacking = (each for each in pod.running_containers if resource not in each.requests)
    first = next(lacking, None)
    return 0 if first is None else _missing(pod, resource, first)


def _missing(pod: Pod, resource: str, container: Container) -> Unavailable:
    return Unavailable(f"missing request for {resource} in container {container.name} of Pod {pod.name}")


def _of_pod(pod: Pod, pod_level_resources: PodLevelResources, resource: str) -> int | Unavailable:
    """Return the amount that the scheduler reserves: the pod-level or effective request, plus the overhead."""
    own = pod_level_resources.requests.get(resource)
    if own is None:
        own = _effective_request(pod, resource)
    overhead = pod_level_resources.overhead.get(resource)
    if own is None and overhead is None:
        return Unavailable(f"missing pod-level request for {resource} in Pod {pod.name}")
    return saturate64((own or 0) + (overhead or 0))


def _effective_request(pod: Pod, resource: str) -> int | None:
    """Return the larger of the sum over all running containers and the peak while init containers run."""
    if not any(resource in each.requests for each in (*pod.containers, *pod.init_containers)):
        return None
    running = sum(each.requests.get(resource, 0) for each in pod.containers)
    sidecars = peak = 0
    # An init container runs beside the sidecars that were started before it, so the order in the list matters
    # (PodRequests in k8s.io/component-helpers/resource).
    for each in pod.init_containers:
        amount = each.requests.get(resource, 0)
        peak = max(peak, sidecars + amount)
        if each.restartable:
            sidecars += amount
    return max(running + sidecars, peak)
