"""The Memcached operator of the examples as a program under measurement: `python -m benchmarks.ours`.

The module imports what such an operator imports, and nothing of the benchmarks: its imports are part of the figures.
"""

import os
from dataclasses import replace
from datetime import timedelta
from typing import Final

from examples.memcached.component import memcached
from examples.memcached.model import Memcached
from examples.memcached.operator import memcached_operator
from ocf.component import Component
from ocf.runtime.operator import ManagerOptions, main

__all__: list[str] = []

_RESYNC: Final = "OCF_BENCHMARK_RESYNC"
"""Seconds between resyncs; if set, each reconcile writes the name of its owner to the standard output."""


def _run() -> None:
    options = ManagerOptions(listen=None, events=False)
    resync = os.environ.get(_RESYNC)
    if resync is None:
        main(memcached_operator, options=options)
        return

    def components(owner: Memcached) -> Component:
        print(owner.metadata.name, flush=True)
        return memcached(owner)

    main(replace(memcached_operator, components=components, resync=timedelta(seconds=float(resync))), options=options)


if __name__ == "__main__":
    _run()
