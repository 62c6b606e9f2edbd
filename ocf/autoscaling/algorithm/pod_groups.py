"""Which pods a metric counts, and as what.

A pod that is on its way out counts for nothing. One that cannot work yet must not pull the average down, and the cpu
that it burns while starting must not push it up. One without a sample is filled in later, so that a gap in the metrics
never causes a change that the missing numbers would not have caused.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ocf.autoscaling.algorithm.history import ZERO_TIME
from ocf.autoscaling.algorithm.settings import Settings
from ocf.autoscaling.algorithm.snapshot import Pod, Sample

__all__ = ["PodGroups", "count_ready_pods", "group_pods", "is_unready"]


class PodGroups(NamedTuple):
    """The pods of an autoscaler, for one metric.

    Args:
        ready: How many count with their sample.
        unready: Names of those that cannot work yet; their samples are dropped.
        missing: Names of those without a sample.
        ignored: Names of those that are on their way out or have failed.
    """

    ready: int
    unready: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def group_pods(
    pods: Sequence[Pod], samples: Mapping[str, Sample], *, resource: str, settings: Settings, now: datetime
) -> PodGroups:
    """Sort pods into groups.

    Readiness is looked at for cpu only, and strictly: whoever is exactly at a limit counts as ready. Of the phases,
    only Failed and Pending matter; a pod that has succeeded counts like a running one.

    Args:
        pods: The pods.
        samples: What was measured, by the name of a pod.
        resource: Name of the resource; empty for other metrics.
        settings: The controller's settings.
        now: The instant of the round.

    Returns:
        The groups, each in the order of the pods.
    """
    is_cpu = resource == "cpu"
    ready = 0
    unready: list[str] = []
    missing: list[str] = []
    ignored: list[str] = []
    for pod in pods:
        name, phase = pod.name, pod.phase
        sample = samples.get(name)
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
    """Tell whether the cpu of a pod says nothing about its work.

    In its first minutes that is so while it is not ready, and until a whole window of measuring has passed since it
    last changed; later only if it is not ready and never was.

    Args:
        pod: The pod.
        sample: What was measured of it.
        settings: The controller's settings.
        now: The instant of the round.
    """
    condition, started = pod.ready, pod.started
    if condition is None or started is None:
        return True
    status, since = condition
    if now - started >= settings.cpu_initialization_period:
        if status != "False":
            return False
        return (since or ZERO_TIME) - started < settings.initial_readiness_delay
    return status == "False" or sample.at - (since or ZERO_TIME) < sample.window


def count_ready_pods(pods: Sequence[Pod]) -> int:
    """Count the pods that run and are ready; those on their way out among them.

    Args:
        pods: The pods.
    """
    return sum(pod.phase == "Running" and pod.ready is not None and pod.ready.status == "True" for pod in pods)
