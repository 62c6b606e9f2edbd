"""Groups of pods: ready, unready, missing and ignored.

Pods that are being deleted are ignored. A pod that is not ready yet must not lower the average, and the cpu it uses
while starting must not raise it. Pods without a sample are filled in later, so that a gap in the metrics does not cause
a change that the missing samples might not have caused.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ocf.autoscaling.algorithm.arithmetic import INT64_MAX
from ocf.autoscaling.algorithm.history import ZERO_TIME, window_start
from ocf.autoscaling.algorithm.pod import Pod
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Sample

__all__ = ["PodGroups", "count_ready_pods", "group_pods", "is_unready", "measured_samples"]


class PodGroups(NamedTuple):
    """The pods of an autoscaler, for one metric.

    Args:
        ready: Number of pods that count with their sample.
        unready: Names of the pods that are not ready yet; their samples are dropped.
        missing: Names of the pods without a sample.
        ignored: Names of the pods that are being deleted or have failed.
    """

    ready: int
    unready: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def measured_samples(samples: Mapping[str, Sample]) -> tuple[Mapping[str, Sample], int]:
    """Return the samples without those that cannot be true, and the sum of the others.

    A usage below zero, or one that fits no integer of 64 bits in thousandths, says nothing about the pod. It would
    distort every sum it is part of, so the pod counts as not measured.

    Example:
        >>> noon = datetime(2026, 1, 31, 12)
        >>> kept, total = measured_samples({"web-0": Sample(400, noon), "web-1": Sample(-1, noon)})
        >>> list(kept), total
        (['web-0'], 400)
    """
    total = 0
    for sample in samples.values():
        value = sample.value
        if not 0 <= value < INT64_MAX:
            return measured_samples({name: each for name, each in samples.items() if 0 <= each.value < INT64_MAX})
        total += value
    return samples, total


def group_pods(
    pods: Sequence[Pod], samples: Mapping[str, Sample], *, resource: str, settings: Settings, now: datetime
) -> PodGroups:
    """Group pods.

    Readiness matters for cpu only; a pod that is exactly at a time limit counts as ready. Of the phases, only Failed
    and Pending matter; a succeeded pod counts like a running one.

    Args:
        pods: The pods.
        samples: The samples by pod name.
        resource: Name of the resource; empty for other metrics.
        settings: The controller's settings.
        now: Time of the sync.

    Returns:
        The groups, each in the order of the pods.
    """
    is_cpu = resource == "cpu"
    initialized = window_start(now, settings.cpu_initialization_period)
    ready = 0
    unready: list[str] = []
    missing: list[str] = []
    ignored: list[str] = []
    for pod in pods:
        name, since = pod.name, pod.settled_since
        if since is not None and (not is_cpu or since < initialized) and name in samples:
            ready += 1  # nearly every pod
            continue
        phase, sample = pod.phase, samples.get(name)
        # In the order of groupPods: a deleted pod is ignored even while it is pending, and a pending one is unready,
        # not missing, whether or not it has a sample.
        if pod.deleted or phase == "Failed":
            ignored.append(name)
        elif phase == "Pending":
            unready.append(name)
        elif sample is None:
            missing.append(name)
        elif is_cpu and is_unready(pod, sample, settings, now):
            unready.append(name)
        else:
            ready += 1
    return PodGroups(ready, tuple(unready), tuple(missing), tuple(ignored))


def is_unready(pod: Pod, sample: Sample, settings: Settings, now: datetime) -> bool:
    """Return whether the cpu sample of a pod must not be used, because the pod is starting.

    During the cpu initialization period, that holds while the pod is not ready, and until the sample's window begins
    after the pod became ready. Later it holds only if the pod is not ready and never was.
    """
    condition, started = pod.ready, pod.started
    # The kubelet has not reported yet. So the pod cannot have been ready.
    if condition is None or started is None:
        return True
    status, since = condition
    # An instant exactly at the limit is past it, because Go's `After` is strict.
    if now - started >= settings.cpu_initialization_period:
        if status != "False":
            return False
        # The condition of a pod that never was ready changed last when the kubelet created it, shortly after the start;
        # one that changed later was ready in between, and its usage is real.
        return (since or ZERO_TIME) - started < settings.initial_readiness_delay
    # A window that began before the pod became ready has the cpu of its start in it (kubernetes/kubernetes#29989).
    return status == "False" or sample.at - (since or ZERO_TIME) < sample.window


def count_ready_pods(pods: Sequence[Pod]) -> int:
    """Return the number of running and ready pods, including those that are being deleted."""
    return sum(pod.phase == "Running" and pod.ready is not None and pod.ready.status == "True" for pod in pods)
