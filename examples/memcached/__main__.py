"""The operator as a program of its own: `python -m examples.memcached`.

It works on the cluster of the kubeconfig, or of its pod, until it is told to stop; `examples.memcached.settings` says
what the environment may say.
"""

from __future__ import annotations

import asyncio
import logging
import os

from examples.memcached.metrics import Metrics
from examples.memcached.operator import operator
from examples.memcached.process import admitting
from examples.memcached.settings import Settings
from ocf.cluster.apiserver import ApiServerCluster
from ocf.runtime import JsonFormatter
from ocf.runtime.operator import run

__all__ = ["main"]


async def main(settings: Settings) -> None:
    """Run the operator until it is told to stop.

    Args:
        settings: How.
    """
    metrics = Metrics()
    async with await ApiServerCluster.connect() as cluster, admitting(cluster, settings):
        declared = operator(metrics, strict=settings.strict)
        await run(cluster, declared, options=settings.options(metrics.registry))


if __name__ == "__main__":
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    asyncio.run(main(Settings.of(os.environ)))
