"""A thousand caches: the Memcached operator of the examples, and a bare kopf operator that creates the same objects.

Each operator is a separate process and talks to an embedded cluster over HTTP; both clusters are equal. Every cache has
all six objects. Times are wall-clock times, which is what a user waits for. The bare operator does what an author
writes first: it reads each object, and creates or patches it. The programs are `benchmarks.ours` and `benchmarks.bare`.

The setup takes a while, so it runs only when the first figure is requested.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from benchmarks.autoscaler import NAMESPACE
from benchmarks.figures import Count, Suite
from benchmarks.programs import Program, reaction, resident, running, until, waiting_for
from ocf.cluster import Verb
from ocf.objects import Manifest
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig

__all__ = ["OBJECTS", "SPEC", "created", "running_operator", "served", "small_suite", "suite", "write_rendered"]

_SIZE: Final = 1_000
_SMALL: Final = 10
OBJECTS: Final = 6
"""Objects of each cache."""
_EDITS: Final = 40
# How often the operator looks at all caches, and for how long nothing is asked where all is done; seconds.
_RESYNC: Final = 10.0
_REST: Final = 3.0
_OFTEN: Final = 0.5
_RESYNCING: Final = "OCF_BENCHMARK_RESYNC"
_PROGRAMS: Final = {
    "ocf": ("benchmarks.ours",),
    "kopf": ("benchmarks.bare", "get"),
    "kopf-apply": ("benchmarks.bare", "apply"),
}
_MEDIAN: Final = 50
_SLOW: Final = 95
_MOST: Final = 10
# Requests for a cache that are more than any operator needs.
_KEPT: Final = 100
_API: Final = "memcached.c5c3.io/v1alpha1"
SPEC: Final[Manifest] = {
    "autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": _MOST},
    "highAvailability": {"podDisruptionBudget": {"enabled": True, "maxUnavailable": 1}},
    "monitoring": {"enabled": True, "serviceMonitor": {}},
    "security": {"networkPolicy": {"enabled": True}},
}
"""The spec of each cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What was measured of one operator.

    Args:
        converged: Seconds from its first request to the last object.
        requests: How many requests that took, those that follow at once included.
        reactions: Seconds from an autoscaler that is edited to its repair.
        memory: MiB that its process holds then.
        again: How many requests a new process asks of a cluster in which nothing is to be done.
        idle: How many it asks when it looks at all caches twice more; of the bare one, which never does, 0.
    """

    converged: float
    requests: int
    reactions: tuple[float, ...]
    memory: int
    again: int
    idle: int


async def _measured(which: str, size: int, rest: float, resync: float) -> _Found:
    async with served(size) as (cluster, kubeconfig):
        async with running_operator(which, kubeconfig) as operator:
            await until(lambda: bool(len(cluster.requests)), lambda: "the first request")
            began = time.monotonic()
            await created(cluster, size)
            converged = time.monotonic() - began
            await _rest(cluster, rest)
            requests = len(cluster.requests)
            # Each once: who undoes the same again and again is taken for an enemy, and waited for.
            reactions = [await reaction(cluster, _name(turn), NAMESPACE) for turn in range(min(_EDITS, size))]
            memory = resident(operator)
        cluster.requests.clear()
        async with running_operator(which, kubeconfig, resync) as operator:
            await _looked(which, cluster, operator, size)
            await _rest(cluster, rest)
            again = len(cluster.requests)
            idle = await _idle(cluster, operator, size) if which == "ocf" else 0
    return _Found(
        converged=converged,
        requests=requests,
        reactions=tuple(reactions),
        memory=memory,
        again=again,
        idle=idle,
    )


async def _looked(which: str, cluster: EmbeddedCluster, operator: Program, size: int) -> None:
    """Wait until a new process has looked at all caches; on a busy machine it may pause before it has."""
    if which == "ocf":
        await operator.seen(size)
        await until(lambda: not _unwatched(cluster), lambda: f"the watches of {sorted(_unwatched(cluster))}")
    else:
        await until(
            lambda: len(cluster.requests) >= size * OBJECTS,
            lambda: f"{size * OBJECTS} requests; {len(cluster.requests)} came",
        )


def _unwatched(cluster: EmbeddedCluster) -> set[str]:
    """Return the kinds that were listed and not watched yet; how often says nothing, because watches are renewed."""
    listed, watched = ({one.kind for one in cluster.requests.of(verb)} for verb in (Verb.LIST, Verb.WATCH))
    return listed - watched


async def _idle(cluster: EmbeddedCluster, operator: Program, size: int) -> int:
    """Return the number of requests of two resyncs of all caches that are in sync."""
    # Lines that the program has written so far may belong to a resync that began before.
    await operator.seen(size)
    before, watches = len(cluster.requests), len(cluster.requests.of(Verb.WATCH))
    for _ in range(2):
        await operator.seen(size)
    # On a busy machine two resyncs last longer than a watch without events; its renewal is a list of one object, and a
    # watch.
    renewals = len(cluster.requests.of(Verb.WATCH)) - watches
    return max(0, len(cluster.requests) - before - 2 * renewals)


async def created(cluster: EmbeddedCluster, size: int) -> None:
    """Wait until all objects exist; writes of status and annotations do not count."""

    def made() -> int:
        return sum(one.changed for one in cluster.requests.of(Verb.CREATE, Verb.APPLY))

    await until(
        lambda: cluster.requests.changes >= size * OBJECTS and made() >= size * OBJECTS,
        lambda: f"{size * OBJECTS} objects; {made()} were made",
        every=0.1,
    )


async def _rest(cluster: EmbeddedCluster, seconds: float) -> None:
    """Wait until nothing has been asked for a while."""
    asked = -1
    async with waiting_for(lambda: f"{seconds:g} s without a request; {len(cluster.requests)} came"):
        while asked != len(cluster.requests):
            asked = len(cluster.requests)
            await asyncio.sleep(seconds)


@asynccontextmanager
async def served(size: int) -> AsyncIterator[tuple[EmbeddedCluster, Path]]:
    """Serve a cluster with caches and nothing else in it.

    Args:
        size: The number of caches.

    Yields:
        The cluster, whose log of requests is empty, and the path of its kubeconfig.
    """
    from examples.memcached import monitor
    from examples.memcached.model import Memcached

    cluster = EmbeddedCluster(namespaces=(NAMESPACE,), collect=False)
    for one in (Memcached.definition(), monitor.DEFINITION):
        await cluster.create(one, field_manager="benchmark")
    for number in range(size):
        metadata = {"name": _name(number), "namespace": NAMESPACE}
        owner = {"apiVersion": _API, "kind": "Memcached", "metadata": metadata, "spec": SPEC}
        await cluster.create(owner, field_manager="benchmark")
    async with serving(cluster) as server:
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder, "kubeconfig")
            write_kubeconfig(server.kubeconfig(), kubeconfig)
            write_rendered(Path(folder, "objects"))
            cluster.requests.clear()
            cluster.requests.limit = size * _KEPT
            yield cluster, kubeconfig


def write_rendered(path: Path) -> None:
    """Write down the objects of a cache called NAME, for who cannot make them."""
    from examples.memcached.component import memcached
    from examples.memcached.model import Memcached

    owner = {"apiVersion": _API, "kind": "Memcached", "metadata": {"name": "NAME", "namespace": NAMESPACE}}
    rendered = memcached(Memcached.model_validate({**owner, "spec": SPEC})).render()
    path.write_text(json.dumps(rendered), encoding="utf-8")


def _name(number: int) -> str:
    return f"cache-{number:04}"


def running_operator(which: str, kubeconfig: Path, resync: float | None = None) -> AbstractAsyncContextManager[Program]:
    """Run an operator for as long as the block runs.

    Args:
        which: Its name in the figures: `ocf`, `kopf`, or `kopf-apply`.
        kubeconfig: How it finds the cluster.
        resync: Seconds between resyncs of ours, which then also writes the names of the caches that it looks at.
    """
    module, *arguments = _PROGRAMS[which]
    return running(["-m", module, *arguments], kubeconfig, {} if resync is None else {_RESYNCING: str(resync)})


@contextmanager
def _suite(size: int, rest: float, resync: float) -> Iterator[Suite]:
    @cache
    def found(which: str) -> _Found:
        return asyncio.run(_measured(which, size, rest, resync))

    def both(name: str, what: str, value: Callable[[_Found], float]) -> list[Count]:
        """Give a figure of the operator, whose ratio is taken to that of the bare one."""
        bare = f"caches.kopf.{name}"
        return [
            Count(
                name=bare,
                what=f"{what}: a bare operator of kopf",
                value=lambda: round(value(found("kopf"))),
            ),
            Count(name=f"caches.{name}", what=what, value=lambda: round(value(found("ocf"))), against=bare),
        ]

    def reacted(seen: _Found, percent: int) -> float:
        return 1000 * (median(seen.reactions) if percent == _MEDIAN else quantiles(seen.reactions, n=100)[percent - 1])

    yield [
        *both("converge", f"ms to make 6 objects for each of {size} caches", lambda seen: seen.converged * 1000),
        *both("requests", "requests per 100 objects", lambda seen: seen.requests * 100 / (size * OBJECTS)),
        *both("again", "requests of a new process that finds all as it should be", lambda seen: seen.again),
        *both("reaction", "ms from an edited autoscaler to its repair, median", lambda seen: reacted(seen, _MEDIAN)),
        *both(
            "reaction95",
            "ms of that, 95th percentile",
            lambda seen: reacted(seen, _SLOW),
        ),
        *both("memory", f"MiB of the process, with {size} caches", lambda seen: seen.memory),
        Count(
            name="caches.idle",
            what=f"requests of two resyncs of {size} caches",
            value=lambda: found("ocf").idle,
            limit=0,
        ),
    ]


suite = partial(_suite, _SIZE, _REST, _RESYNC)
"""Give the counts."""
small_suite = partial(_suite, _SMALL, _OFTEN, _OFTEN)
"""Give them with few caches, for a run that only shows that everything works."""
