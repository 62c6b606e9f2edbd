"""The operator as a process: `python -m examples.memcached`.

It runs on the cluster of the kubeconfig, or of its pod, until it receives a stop signal. `examples.memcached.settings`
lists the environment variables that configure it.
"""

from __future__ import annotations

import os

from examples.memcached.metrics import Metrics
from examples.memcached.operator import operator
from examples.memcached.settings import Settings
from ocf.runtime.operator import main

if __name__ == "__main__":
    settings, metrics = Settings.of(os.environ), Metrics()
    main(operator(metrics, strict=settings.strict), options=settings.options(metrics.registry))
