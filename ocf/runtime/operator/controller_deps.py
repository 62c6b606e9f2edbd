"""What a controller needs from its process."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from ocf.runtime.workqueue import WorkQueue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ocf.cluster import Cluster
    from ocf.cluster.cache import CachedCluster
    from ocf.cluster.cache.subscriptions import CacheChange
    from ocf.component.model.context_values import ContextValues
    from ocf.concepts import Clock, Recorder
    from ocf.objects import ObjectKey
    from ocf.runtime.page.timeline import OperatorTimeline
    from ocf.runtime.workqueue.metrics import QueueMetrics
    from ocf.runtime.workqueue.queue import RateLimiter

__all__ = ["ControllerDeps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerDeps:
    """Dependencies of a controller.

    Args:
        forget: Called with each deleted owner.
        namespaces: Namespaces that the controller watches; empty for all.
        metrics: Metrics of the queue; None collects none.
        shutdown_timeout: How long running reconciles may continue after `stop`.
        random: Returns a random number in [0, 1), for jitter.
        values: What the lifespan of the operator has set.
        folding: Returns a block for the reconcile of an owner, in which its events are held.
        timeline: What the page shows of reconciles; None records nothing.
    """

    clock: Clock
    recorder: Recorder
    forget: Callable[[ObjectKey], object]
    namespaces: tuple[str, ...] = ()
    metrics: QueueMetrics | None = None
    shutdown_timeout: timedelta = timedelta(0)
    cache_sync_timeout: timedelta = timedelta(minutes=2)
    random: Callable[[], float] = random.random
    values: ContextValues | None = None
    folding: Callable[[ObjectKey], AbstractContextManager[object]] = nullcontext
    timeline: OperatorTimeline | None = None

    def queue(self, name: str, delays: RateLimiter) -> WorkQueue[ObjectKey]:
        """Return the queue of an operator."""
        if self.timeline is None:
            return WorkQueue(name, delays=delays, metrics=self.metrics)
        return self.timeline.queue(name, delays=delays, metrics=self.metrics)

    def note_change(self, owners: Sequence[ObjectKey], key: ObjectKey, change: CacheChange) -> None:
        """Note which owners a change of an object enqueues."""
        if self.timeline is not None:
            self.timeline.changed(owners, key, change)

    def recorded(self, owner: ObjectKey, cluster: Cluster, *caches: CachedCluster) -> Cluster:
        """Return the cluster of a reconcile, whose writes are in the timeline."""
        return cluster if self.timeline is None else self.timeline.recording(owner, cluster, *caches)
