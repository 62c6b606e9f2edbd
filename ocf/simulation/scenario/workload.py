"""The workload of a scenario: what one pod serves and uses, and how long it takes to start and to stop."""

import re
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from ocf.simulation.fields import Milli, Model, Period, Positive, PositivePeriod, Rate
from ocf.simulation.scenario.schedule import Schedule

__all__ = ["Delay", "DisruptionBudget", "PodFailure", "Queue", "Rollout", "Signal", "SignalSource", "Usage", "Workload"]


_MOST_PODS: Final = 1_000_000
_HIGHEST_PRIORITY: Final = 1_000_000_000
"""The highest `value` of a PriorityClass that is not one of the system."""
_PERCENT: Final = re.compile("[0-9]{1,4}%")


class Delay(Model):
    """A delay that differs from pod to pod.

    Args:
        mean: The mean delay.
        spread: Delays are distributed evenly from `mean - spread` to `mean + spread`, but are never negative.
    """

    mean: Period
    spread: Period = timedelta()


class Usage(Model):
    """What one pod uses of a resource.

    Args:
        idle: Usage without load, in thousandths.
        busy: Usage at the full capacity of the pod, in thousandths; usage grows linearly between the two.
        starting: Usage in place of `idle` while the pod starts, in thousandths, as of a JVM that loads and compiles
            classes; None: `idle`. What its load uses is added.
        starting_time: How long that lasts from the start of the containers, whether the pod is ready or not; None:
            until it is ready.
        release_after: How long a pod keeps what its load needed, as the memory of a garbage-collected heap or a cache:
            its usage is that of the highest load of this time.
    """

    idle: Milli = 0
    busy: Milli
    starting: Milli | None = None
    starting_time: PositivePeriod | None = None
    release_after: Period = timedelta()


class SignalSource(StrEnum):
    """What the value of a metric follows."""

    LOAD = "load"
    """The offered load, in load units per second; shared evenly by the ready pods in a metric of type Pods."""
    SERVED = "served"
    """The load that is served."""
    QUEUE = "queue"
    """The load units that wait."""
    BACKLOG = "backlog"
    """The load units that wait or are in work, where each is in work for the service time."""
    SCHEDULE = "schedule"
    """The replicas of a schedule while it is active, otherwise 0; not in a metric of type Pods."""
    LATENCY = "latency"
    """The latency of a load unit that arrives at the moment of the measurement, in seconds, by the queueing model."""


class Signal(Model):
    """The values of a metric that is not about a resource.

    Args:
        source: What the metric follows.
        factor: The value of the metric for one unit of the source.
        percentile: With the source `latency`: the percentile of the latency; None for the mean.
        schedule: The schedule of the source `schedule`, and only of it.
    """

    source: SignalSource = SignalSource.LOAD
    factor: Positive = 1.0
    percentile: Annotated[float, Field(gt=0, lt=100)] | None = None
    schedule: Schedule | None = None


class Queue(Model):
    """What happens to load above the capacity.

    Args:
        length: The load units that can wait; what arrives while the queue is full is dropped. None: no limit.
    """

    length: Rate | None = None


class Connections(Model):
    """Long connections over which the load arrives, as of gRPC and WebSocket.

    Args:
        lifetime: The mean lifetime of a connection, after which it is opened anew to any ready pod.
    """

    lifetime: PositivePeriod


class PodFailure(Model):
    """Pods that fail; the workload replaces them.

    Args:
        at: Time since the start of the simulation.
        pods: Number of pods; the oldest ones fail.
    """

    at: Period
    pods: Annotated[int, Field(ge=1)] = 1


def _pods_or_percent(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_PODS:
        return value
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return value
    raise ValueError("must be a number of pods, or a percentage such as 25%")


PodShare = Annotated[
    int | str,
    BeforeValidator(_pods_or_percent),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]{1,4}%$"}]}),
]
"""A number of pods, or a percentage of `spec.replicas`."""


class Rollout(Model):
    """A rollout: all pods are replaced, as by a Deployment with the strategy RollingUpdate.

    Args:
        at: Time since the start of the simulation.
        max_surge: Pods beyond `spec.replicas` that may be there; a percentage is rounded up.
        max_unavailable: Pods of `spec.replicas` that need not be ready; a percentage is rounded down.
        image_pull: `imagePull` of the pods that it creates; None: that of the workload.
    """

    at: Period
    max_surge: PodShare = "25%"
    max_unavailable: PodShare = "25%"
    image_pull: Delay | None = None


class DisruptionBudget(Model):
    """A PodDisruptionBudget of the pods; one of the two fields.

    Args:
        min_available: Pods that stay ready, or a percentage of `spec.replicas`, rounded up.
        max_unavailable: Pods of `spec.replicas` that need not be ready; a percentage is rounded up.
    """

    min_available: PodShare | None = None
    max_unavailable: PodShare | None = None

    def least_ready(self, replicas: int) -> int:
        """Return how many pods have to stay ready.

        Example:
            >>> DisruptionBudget(max_unavailable="25%").least_ready(10)
            7
        """
        if self.min_available is not None:
            return _share_of(self.min_available, replicas)
        return max(0, replicas - _share_of(self.max_unavailable or 0, replicas))


def _share_of(share: int | str, replicas: int) -> int:
    return share if isinstance(share, int) else -(-int(share.removesuffix("%")) * replicas // 100)


class Workload(Model):
    """The workload that is scaled.

    Args:
        capacity: Load units per second, such as requests per second, that one warm pod serves.
        replicas: `spec.replicas` at the start; None: `minReplicas` of the HPA. These pods are ready and warm.
        requests: Requests of one pod by resource, in thousandths.
        usage: Usage of one pod by resource; a resource that is missing here is used up to its request.
        signals: Values of the metrics of types Pods, Object and External by name of the metric.
        startup: From the creation of a pod until the kubelet takes it (`status.startTime`).
        image_pull: From then to the start of its containers, as while their images are pulled.
        readiness: From the start of the containers to the condition Ready.
        warm_up: From Ready to full capacity, which grows linearly from none.
        termination: From the deletion of a pod, after which it serves nothing, until it is gone.
        queue: The queue in front of the pods.
        connections: The connections over which the load arrives, in equal parts; None: each load unit goes to any ready
            pod.
        service_time: Time that one load unit takes on an idle pod, for the latency; None: `1 / capacity`.
        priority: The priority of its pods, as `value` of a PriorityClass: those that wait for a node come first, and
            evict pods of a lower one.
        disruption_budget: How many pods may be evicted at once when nodes are drained; None: any number.
        failures: Pods that fail.
        rollouts: Rollouts, each of which replaces all pods.
    """

    capacity: Positive
    replicas: Annotated[int, Field(ge=0, le=_MOST_PODS)] | None = None
    requests: dict[str, Milli] = Field(default_factory=dict)
    usage: dict[str, Usage] = Field(default_factory=dict)
    signals: dict[str, Signal] = Field(default_factory=dict)
    startup: Delay = Delay(mean=timedelta(seconds=2))
    image_pull: Delay = Delay(mean=timedelta())
    readiness: Delay = Delay(mean=timedelta(seconds=8))
    warm_up: Period = timedelta()
    termination: Delay = Delay(mean=timedelta(seconds=5))
    queue: Queue = Queue()
    connections: Connections | None = None
    service_time: Period | None = None
    priority: Annotated[int, Field(ge=-_HIGHEST_PRIORITY, le=_HIGHEST_PRIORITY)] = 0
    disruption_budget: DisruptionBudget | None = None
    failures: tuple[PodFailure, ...] = ()
    rollouts: tuple[Rollout, ...] = ()
