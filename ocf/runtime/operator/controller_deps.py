"""What a controller needs from its process."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocf.component.model.context_values import ContextValues
    from ocf.concepts import Clock, Recorder
    from ocf.objects import ObjectKey
    from ocf.runtime.workqueue.metrics import QueueMetrics

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
