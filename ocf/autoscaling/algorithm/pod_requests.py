"""What pods request: the number that a utilization is a percentage of.

Every pod of the selector is asked, those that do not count otherwise too. One container without a request is enough to
make a utilization impossible: the controller would rather not scale than guess.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from ocf.autoscaling.algorithm.arithmetic import wrap64
from ocf.autoscaling.algorithm.snapshot import Container, Pod, PodLevelResources, Unavailable

__all__ = ["pod_requests"]

_NOTHING: Final = PodLevelResources({})


def pod_requests(
    pods: Sequence[Pod], resource: str, container: str = "", *, pod_level: bool = True
) -> dict[str, int] | Unavailable:
    """Add up what each pod requests.

    Args:
        pods: The pods.
        resource: Name of the resource.
        container: Only this container, sidecars included; empty for all of them.
        pod_level: Whether requests of a whole pod replace those of its containers. They never do for one container.

    Returns:
        Thousandths by the name of a pod; or which request is missing, the first one found.

    Example:
        >>> pod_requests([Pod(name="web-0", containers=(Container("app", {"cpu": 250}),))], "cpu")
        {'web-0': 250}
    """
    found: dict[str, int] = {}
    for pod in pods:
        whole = pod.pod_level if pod_level else None
        if container or whole is not None:
            amount = _of_container(pod, resource, container) if container else _of_whole_pod(pod, whole, resource)
            if isinstance(amount, Unavailable):
                return amount
            found[pod.name] = amount
            continue
        # Nearly every pod is one of these, and there may be thousands. A sum that is too large wraps around later.
        total = 0
        for each in _running_containers(pod) if pod.init_containers else pod.containers:
            request = each.requests.get(resource)
            if request is None:
                return _missing(pod, resource, each)
            total += request
        found[pod.name] = total
    return found


def _of_container(pod: Pod, resource: str, container: str) -> int | Unavailable:
    for each in _running_containers(pod):
        if each.name == container:
            amount = each.requests.get(resource)
            return _missing(pod, resource, each) if amount is None else amount
    return Unavailable(f"container {container} not found in Pod {pod.name}")


def _missing(pod: Pod, resource: str, container: Container) -> Unavailable:
    return Unavailable(f"missing request for {resource} in container {container.name} of Pod {pod.name}")


def _running_containers(pod: Pod) -> Iterable[Container]:
    return (*pod.containers, *(each for each in pod.init_containers if each.restartable))


def _of_whole_pod(pod: Pod, whole: PodLevelResources | None, resource: str) -> int | Unavailable:
    """Return what the scheduler reserves: the pod's own request, or its containers' largest need, and the overhead."""
    whole = whole or _NOTHING
    own = whole.requests.get(resource)
    if own is None:
        own = _effective_request(pod, resource)
    overhead = whole.overhead.get(resource)
    if own is None and overhead is None:
        return Unavailable(f"missing pod-level request for {resource} in Pod {pod.name}")
    return wrap64((own or 0) + (overhead or 0))


def _effective_request(pod: Pod, resource: str) -> int | None:
    """Return the larger of what all lasting containers need together, and what it takes to start them one by one."""
    if not any(resource in each.requests for each in (*pod.containers, *pod.init_containers)):
        return None
    lasting = sum(each.requests.get(resource, 0) for each in pod.containers)
    sidecars = peak = 0
    for each in pod.init_containers:
        amount = each.requests.get(resource, 0)
        peak = max(peak, sidecars + amount)
        if each.restartable:
            sidecars += amount
    return max(lasting + sidecars, peak)
