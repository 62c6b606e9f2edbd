"""The operator in a process of kopf: `kopf run -m examples.memcached.with_kopf`.

kopf watches the caches and answers its liveness probe; the work, the metrics and the webhooks are the same.
"""

from __future__ import annotations

import os
from contextlib import AsyncExitStack

import kopf

from examples.memcached.metrics import Metrics
from examples.memcached.operator import operator
from examples.memcached.process import admitting
from examples.memcached.settings import Settings
from ocf.cluster.apiserver import ApiServerCluster
from ocf.runtime.kopf import attach

__all__ = ["install"]


def install(settings: Settings, registry: kopf.OperatorRegistry | None = None) -> None:
    """Have kopf run the operator.

    Args:
        settings: How.
        registry: Where kopf's handlers are registered; its default one by default.
    """
    metrics, open_until_the_end = Metrics(), AsyncExitStack()

    async def begin(**_: object) -> None:
        cluster = await open_until_the_end.enter_async_context(await ApiServerCluster.connect())
        await open_until_the_end.enter_async_context(admitting(cluster, settings))

    async def end(**_: object) -> None:
        await open_until_the_end.aclose()

    kopf.on.startup(registry=registry, id="webhooks")(begin)
    kopf.on.cleanup(registry=registry, id="webhooks")(end)
    attach(operator(metrics, strict=settings.strict), options=settings.options(metrics.registry), registry=registry)


install(Settings.of(os.environ))
