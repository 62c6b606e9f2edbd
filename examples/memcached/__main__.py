"""The operator as a program of its own: `python -m examples.memcached`.

It works on the cluster of the kubeconfig, or of its pod, until it is told to stop; `examples.memcached.settings` says
what the environment may say.
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
