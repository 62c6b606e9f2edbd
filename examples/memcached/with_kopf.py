"""The operator in a kopf process: `kopf run -m examples.memcached.with_kopf`.

kopf watches the caches and answers its liveness probe; reconciles, metrics and webhooks are the same.
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
    """Register the operator with kopf.

    Args:
        settings: The settings of the operator.
        registry: The registry of kopf's handlers; kopf's default registry by default.
    """
    metrics = Metrics()
    attach(operator(metrics, strict=settings.strict), options=settings.options(metrics.registry), registry=registry)


install(Settings.of(os.environ))
