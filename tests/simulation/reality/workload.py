"""A workload in real time: pods of a cluster share a load, and counters of what they used become samples.

It is written without the engine of the simulation, which the recorded runs check: time passes in small equal steps, and
samples are differences of counters, as in metrics-server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ocf.autoscaling.algorithm import Pod
from ocf.objects import Manifest
from ocf.schema.metric_sources import RESOURCE_METRICS
from ocf.simulation import LoadSeries, Scenario
from ocf.testing.fake_metrics import FakeMetricsClient
from tests.simulation.reality.scenarios import autoscaler_of

__all__ = ["LABELS", "RealPod", "RealWorkload"]

LABELS: Final = {"app": "web"}
_NANO: Final = 10**9


@dataclass(slots=True)
class RealPod:
    """A pod, as a watch of the cluster showed it, with times in seconds of the event loop.

    Args:
        created: When it was created.
        started: When `status.startTime` appeared; None before.
        ready: When it became ready; None before.
        deleted: When its deletion began; None before.
    """

    created: float
    started: float | None = None
    ready: float | None = None
    deleted: float | None = None
    used: float = 0.0
    """Cores, summed up over seconds."""
    served: float = 0.0
    """Load units."""

    @property
    def serves(self) -> bool:
        return self.ready is not None and self.deleted is None


@dataclass(slots=True)
class RealWorkload:
    """The pods of one scenario, their load and their counters.

    Args:
        scenario: The scenario.
        load: Its load.
        began: Time of the first sync, at which the load begins; None before it, when the load is that of the begin.
    """

    scenario: Scenario
    load: LoadSeries
    began: float | None = None
    pods: dict[str, RealPod] = field(default_factory=dict)
    gone: list[RealPod] = field(default_factory=list)
    offered: float = 0.0
    queue: float = 0.0
    _now: float = 0.0
    _last: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """Time, use and served load of each pod at the last scrape."""
    _last_offered: tuple[float, float] = (0.0, 0.0)
    _published: frozenset[str] = frozenset()

    def see(self, manifest: Manifest, now: float) -> None:
        """Note the state of a pod.

        Args:
            manifest: The pod.
            now: The time.
        """
        name = manifest["metadata"]["name"]
        pod, seen = self.pods.setdefault(name, RealPod(created=now)), Pod.of(manifest)
        if pod.started is None and seen.started is not None:
            pod.started = now
        if pod.ready is None and seen.ready is not None and seen.ready.status == "True":
            pod.ready = now
        if pod.deleted is None and seen.deleted:
            pod.deleted = now

    def forget(self, name: str, now: float) -> None:
        """Note that a pod is gone.

        Args:
            name: Its name.
            now: The time.
        """
        pod = self.pods.pop(name, None)
        if pod is not None:
            pod.deleted = now if pod.deleted is None else pod.deleted
            self.gone.append(pod)

    @property
    def ready(self) -> int:
        """Number of pods that serve."""
        return sum(pod.serves for pod in self.pods.values())

    def advance(self, now: float) -> None:
        """Let time pass: load arrives, waits and is served, and counters grow.

        Args:
            now: The time.
        """
        length, self._now = now - (self._now or now), now
        if not length:
            return
        rate = self.load.at(0.0 if self.began is None else max(0.0, now - self.began))
        serving = [pod for pod in self.pods.values() if pod.serves]
        capacity = self.scenario.workload.capacity * len(serving)
        waiting = self.queue + rate * length
        served = min(waiting, capacity * length)
        self.queue = waiting - served
        self.offered += rate * length
        utilization = served / (capacity * length) if serving else 0.0
        idle, busy = self._cores()
        for pod in self.pods.values():
            if pod.started is not None and pod.deleted is None:
                share = utilization if pod.serves else 0.0
                pod.used += (idle + (busy - idle) * share) * length
                pod.served += rate * length / len(serving) if pod.serves else 0.0

    def _cores(self) -> tuple[float, float]:
        workload = self.scenario.workload
        usage, request = workload.usage.get("cpu"), workload.requests.get("cpu", 0)
        return (0.0, request / 1000) if usage is None else (usage.idle / 1000, usage.busy / 1000)

    def scrape(self) -> Mapping[str, tuple[float, float]]:
        """Return cores and load of each started pod, averaged since the last scrape or its start; "" for the whole."""
        found: dict[str, tuple[float, float]] = {}
        last, self._last = self._last, {}
        for name, pod in self.pods.items():
            if pod.started is None:
                continue
            since, used, served = last.get(name, (pod.started, 0.0, 0.0))
            if self._now > since:
                span = self._now - since
                found[name] = (pod.used - used) / span, (pod.served - served) / span
            self._last[name] = self._now, pod.used, pod.served
        before, offered = self._last_offered
        found[""] = 0.0, (self.offered - offered) / (self._now - before or 1.0)
        self._last_offered = self._now, self.offered
        return found

    def publish(
        self, measured: Mapping[str, tuple[float, float]], metrics: FakeMetricsClient, namespace: str, at: datetime
    ) -> None:
        """Set samples in the metrics APIs.

        Args:
            measured: Cores and load by pod, as `scrape` returns them.
            metrics: The metrics APIs.
            namespace: The namespace of the scenario.
            at: When it was scraped.
        """
        window = self.scenario.metrics.scrape_period
        stamp = at.replace(microsecond=0)
        for name in self._published - measured.keys():
            metrics.forget_pod(namespace, name)
        self._published = frozenset(measured)
        for metric in autoscaler_of(self.scenario).metrics:
            if metric.type == "External":
                metrics.set_external(namespace, metric.name, _quantity(measured[""][1]), at=stamp)
                continue
            for name, (cores, load) in measured.items():
                if name and metric.type in RESOURCE_METRICS:
                    usage = {"app": {"cpu": _quantity(cores)}}
                    span = f"{window.total_seconds():g}s"
                    metrics.set_usage(namespace, name, usage, labels=LABELS, at=stamp, window=span)
                elif name:
                    values = {name: _quantity(load)}
                    metrics.set_pods_metric(namespace, metric.name, values, labels=LABELS, at=stamp, window=window)


def _quantity(value: float) -> str:
    return f"{round(value * _NANO)}n"
