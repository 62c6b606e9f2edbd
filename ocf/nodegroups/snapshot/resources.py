"""Amounts of resources: requests of pods and allocatable resources of nodes, in the scheduler's units.

CPU is counted in thousandths, every other resource in whole units, both rounded up, as the scheduler does.
Source: `pkg/scheduler/framework/types.go` and `k8s.io/component-helpers/resource` of Kubernetes 1.36.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ocf.nodegroups.snapshot.fields import NANO, Fields

__all__ = ["NO_RESOURCES", "Resources", "pod_requests", "to_resources", "total"]

_MILLI: Final = NANO // 1000
_HUGE_PAGES: Final = "hugepages-"
_POD_LEVEL: Final = frozenset({"cpu", "memory"})
_COUNTED_APART: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
_SCALAR_PREFIXES: Final = (_HUGE_PAGES, "attachable-volumes-")
_INFEASIBLE: Final = "Infeasible"
_INT64_MAX: Final = 2**63 - 1


class Resources(NamedTuple):
    """Amounts of resources.

    Args:
        cpu: Thousandths of a CPU.
        memory: Bytes.
        storage: Bytes of ephemeral storage.
        pods: Number of pods; for a node the number that it accepts, for a pod 1.
        scalars: Extended resources, huge pages and attachable volumes with their amounts, sorted by name.

    Example:
        >>> to_resources({"cpu": 1_500_000_001, "memory": 2**20 * NANO, "nvidia.com/gpu": NANO})
        Resources(cpu=1501, memory=1048576, storage=0, pods=0, scalars=(('nvidia.com/gpu', 1),))
    """

    cpu: int = 0
    memory: int = 0
    storage: int = 0
    pods: int = 0
    scalars: tuple[tuple[str, int], ...] = ()


NO_RESOURCES: Final = Resources()
"""No resources at all."""


def to_resources(amounts: Mapping[str, int], *, pods: int | None = None) -> Resources:
    """Return amounts in the scheduler's units; names that the scheduler does not count are left out.

    Args:
        amounts: Billionths by resource.
        pods: The number of pods; by default that of `amounts`.
    """
    scalars = ((name, _up(amount, NANO)) for name, amount in amounts.items() if _is_scalar(name))
    return Resources(
        _up(amounts.get("cpu", 0), _MILLI),
        _up(amounts.get("memory", 0), NANO),
        _up(amounts.get("ephemeral-storage", 0), NANO),
        _up(amounts.get("pods", 0), NANO) if pods is None else pods,
        tuple(sorted(scalars)),
    )


def pod_requests(spec: Fields, status: Fields | None = None) -> Resources:
    """Return the effective requests of a pod: what the scheduler reserves for it.

    These are the larger of the sum over containers and sidecars and the peak while init containers run, replaced by
    pod-level requests where these are set, plus the overhead. What the API server defaults is defaulted: a limit
    without a request counts as the request, but for a pod-level limit only if no container requests the resource or it
    is one of huge pages; and each amount is rounded up to thousandths before they are added up.

    Args:
        spec: The pod's `spec`.
        status: The pod's `status` for a pod on a node: while a resize is under way, the largest of the requested, the
            allocated and the actual amount counts. None for a pod that has to be scheduled.
    """
    resizes = _Resizes(status)
    running: dict[str, int] = {}
    for container in spec.items("containers"):
        _add(running, resizes.requests(container, "containerStatuses"))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.items("initContainers"):
        restartable = container.text("restartPolicy") == "Always"
        own = resizes.requests(container, "initContainerStatuses") if restartable else _requests(container)
        if restartable:
            _add(running, own)
            _add(sidecars, own)
            # While a sidecar starts, nothing of what comes later runs.
            _raise_to(peak, sidecars)
        else:
            starting = dict(sidecars)
            _add(starting, own)
            _raise_to(peak, starting)
    _raise_to(running, peak)
    running |= resizes.pod_level(_pod_level(spec, running))
    _add(running, _in_milli(spec.amounts("overhead")))
    return to_resources({name: max(amount, 0) for name, amount in running.items()}, pods=1)


class _Resizes:
    """Amounts of a pod whose resources are being resized in place."""

    def __init__(self, status: Fields | None) -> None:
        self._status = status
        self._containers: dict[tuple[str, str], Fields] = {}
        if status is None:
            return
        for key in ("containerStatuses", "initContainerStatuses"):
            for each in status.items(key):
                self._containers[key, each.text("name")] = each
        self._infeasible = any(
            each.text("type") == "PodResizePending" and each.text("reason") == _INFEASIBLE
            for each in status.items("conditions")
        )

    def requests(self, container: Fields, key: str) -> dict[str, int]:
        """Return the requests of a container."""
        own = _requests(container)
        status = self._containers.get((key, container.text("name")))
        return own if status is None or "resources" not in status else self._effective(own, status)

    def pod_level(self, own: dict[str, int]) -> dict[str, int]:
        """Return the pod-level requests."""
        if not own or self._status is None or "resources" not in self._status:
            return own
        effective = self._effective(own, self._status)
        return {name: effective.get(name, 0) for name in own}

    def _effective(self, own: Mapping[str, int], status: Fields) -> dict[str, int]:
        # The kubelet never grants an infeasible resize, so the scheduler leaves it out (determineEffectiveRequests).
        found = {} if self._infeasible else dict(own)
        _raise_to(found, status.child("resources").amounts("requests"))
        _raise_to(found, status.amounts("allocatedResources"))
        return found


def _pod_level(spec: Fields, containers: Mapping[str, int]) -> dict[str, int]:
    """Return the pod-level requests, with the defaults for limits (defaultPodRequests of `pkg/apis/core/v1`).

    Args:
        containers: What all containers request together.
    """
    if "resources" not in spec:
        return {}
    resources = spec.child("resources")
    limits, requests = resources.amounts("limits"), resources.amounts("requests")
    for name in limits:
        if name in containers and not name.startswith(_HUGE_PAGES):
            limits[name] = containers[name]
    return {name: amount for name, amount in _in_milli({**limits, **requests}).items() if _is_pod_level(name)}


def _in_milli(amounts: Mapping[str, int]) -> dict[str, int]:
    # SetDefaults_ResourceList: no quantity that the API server returns is finer.
    return {name: -(-amount // _MILLI) * _MILLI for name, amount in amounts.items()}


def _requests(owner: Fields) -> dict[str, int]:
    if "resources" not in owner:
        return {}
    resources = owner.child("resources")
    # The API server copies limits to requests when a pod is created; templates of DaemonSets have not seen it.
    return _in_milli({**resources.amounts("limits"), **resources.amounts("requests")})


def _add(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: dict[str, int], amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def _up(amount: int, unit: int) -> int:
    """Return whole units, rounded up and limited to 64 bits, as the scheduler counts."""
    return max(min(-(-amount // unit), _INT64_MAX), -_INT64_MAX)


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(_HUGE_PAGES)


def _is_scalar(name: str) -> bool:
    # What the scheduler's IsScalarResourceName accepts: extended resources, huge pages, attachable volumes.
    return name not in _COUNTED_APART and ("/" in name or name.startswith(_SCALAR_PREFIXES))


def total(parts: Iterable[Resources]) -> Resources:
    """Return the sum of amounts.

    Example:
        >>> total([Resources(cpu=500, pods=1), Resources(cpu=250, pods=1, scalars=(("a.io/b", 1),))])
        Resources(cpu=750, memory=0, storage=0, pods=2, scalars=(('a.io/b', 1),))
    """
    cpu = memory = storage = pods = 0
    scalars: dict[str, int] = {}
    for part in parts:
        more_cpu, more_memory, more_storage, more_pods, more = part
        cpu += more_cpu
        memory += more_memory
        storage += more_storage
        pods += more_pods
        # Most pods request none.
        if more:
            _add(scalars, dict(more))
    return Resources(cpu, memory, storage, pods, tuple(sorted(scalars.items())))
