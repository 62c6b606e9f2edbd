"""The operator in a process of kopf: `kopf run -m examples.memcached.with_kopf`.

kopf watches the caches and answers its liveness probe; the work, the metrics and the webhooks are the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from examples.memcached.metrics import Metrics
from examples.memcached.operator import operator
from examples.memcached.settings import Settings
from ocf.runtime.kopf import attach

if TYPE_CHECKING:
    import kopf

__all__ = ["install"]


def install(settings: Settings, registry: kopf.OperatorRegistry | None = None) -> None:
    """Have kopf run the operator.

    Args:
        settings: How.
        registry: Where kopf's handlers are registered; its default one by default.
    """
    metrics = Metrics()
    attach(operator(metrics, strict=settings.strict), options=settings.options(metrics.registry), registry=registry)


install(Settings.of(os.environ))
