"""The whole way of an operator from the start of its process to rest, beside a bare kopf operator.

Both create the same six objects for each of 300 caches, by server-side apply, and then write the status of the cache.
Each is a separate process and talks over HTTP to an embedded cluster, which is served by this process. The bare
operator applies objects that were rendered before, compares nothing and writes a fixed status: the least that an author
can write. What counts is the CPU time of the operator's process, imports included, and the time until nothing more is
requested. The operators take turns after a first start of each, and every figure is the median of its rounds.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import Final

from benchmarks.caches import OBJECTS, created, running_operator, served
from benchmarks.figures import Count, Suite
from benchmarks.programs import cpu_seconds, until, waiting_for
from ocf.cluster import Subresource, Verb
from ocf_server import EmbeddedCluster

__all__ = ["small_suite", "suite"]

_SIZE: Final = 300
_SMALL: Final = 10
_ROUNDS: Final = 3
# Seconds without a request after which an operator is at rest.
_REST: Final = 1.0
_OURS: Final = "ocf"
_RIVAL: Final = "kopf-apply"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One operator, from its start to rest.

    Args:
        cpu: Seconds of CPU time of its process, user and system.
        elapsed: Seconds from the start of the process to its last request.
        requests: The requests that the cluster answered.
    """

    cpu: float
    elapsed: float
    requests: int


async def _measure(which: str, size: int) -> _Run:
    async with served(size) as (cluster, kubeconfig):
        began = time.monotonic()
        async with running_operator(which, kubeconfig) as operator:
            await created(cluster, size)
            await until(
                lambda: _reported(cluster) >= size,
                lambda: f"the status of {size} caches; {_reported(cluster)} have one",
                every=0.1,
            )
            last = await _last_request(cluster)
            return _Run(cpu=cpu_seconds(operator), elapsed=last - began, requests=len(cluster.requests))


def _reported(cluster: EmbeddedCluster) -> int:
    """Return how many caches have a status."""
    writes = cluster.requests.of(Verb.PATCH, Verb.UPDATE, Verb.APPLY)
    return len({one.name for one in writes if one.subresource is Subresource.STATUS and one.changed})


async def _last_request(cluster: EmbeddedCluster) -> float:
    """Wait until the operator is at rest, and return the time of its last request."""
    answered, last = len(cluster.requests), time.monotonic()
    async with waiting_for(lambda: f"{_REST:g} s without a request; {len(cluster.requests)} came"):
        while time.monotonic() - last < _REST:
            await asyncio.sleep(0.02)
            if len(cluster.requests) != answered:
                answered, last = len(cluster.requests), time.monotonic()
    return last


@contextmanager
def _suite(size: int, rounds: int) -> Iterator[Suite]:
    @cache
    def runs() -> dict[str, list[_Run]]:
        found: dict[str, list[_Run]] = {_RIVAL: [], _OURS: []}
        if rounds > 1:  # the first start compiles what it imports; one round judges no time
            for which in found:
                asyncio.run(_measure(which, 1))
        for _ in range(rounds):
            for which, measured in found.items():
                measured.append(asyncio.run(_measure(which, size)))
        return found

    def both(name: str, what: str, value: Callable[[_Run], float]) -> list[Count]:
        def middle(which: str) -> int:
            return round(median(value(run) for run in runs()[which]))

        rival = f"converging.kopf.{name}"
        return [
            Count(name=rival, what=f"{what}: a bare kopf operator", value=partial(middle, _RIVAL)),
            Count(name=f"converging.{name}", what=what, value=partial(middle, _OURS), against=rival),
        ]

    yield [
        *both("cpu", f"ms of CPU to bring {size} caches to rest, imports included", lambda run: run.cpu * 1000),
        *both("elapsed", "ms from the start of the process to the last request", lambda run: run.elapsed * 1000),
        *both("requests", "requests per 100 objects", lambda run: run.requests * 100 / (size * OBJECTS)),
    ]


suite = partial(_suite, _SIZE, _ROUNDS)
"""Give the counts."""
small_suite = partial(_suite, _SMALL, 1)
"""Give them with few caches, for a run that only shows that everything works."""
