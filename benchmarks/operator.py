"""A thousand owners and one operator, which is a process of its own and talks to the embedded cluster over HTTP.

Timed by the wall: what an operator's user waits for. Beside it a bare operator of kopf, which does nothing but look at
the same owners, because that is what its memory is compared with. The programs are this module: `python -m
benchmarks.operator ocf`, or `kopf`.

It takes a while, so it is done when the first figure is asked for, and not where none is.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from benchmarks.autoscaler import NAMESPACE
from benchmarks.figures import Count, Suite
from benchmarks.fleet import component_of
from benchmarks.programs import PATIENCE, Program, reaction, resident, running, until
from ocf.cluster.embedded import EmbeddedCluster
from ocf.cluster.embedded.http import serving, write_kubeconfig
from ocf.objects import Manifest
from ocf.runtime.operator import Operator, Options, OwnerType, main

__all__ = ["small_suite", "suite"]

_SIZE: Final = 1_000
_SMALL: Final = 10
_RESOURCES: Final = 6
_EDITS: Final = 20
# How often the operator looks at all owners, in seconds, and where that is said.
_RESYNC: Final = 10.0
_OFTEN: Final = 0.5
_NEVER: Final = 1e6
_VARIABLE: Final = "OCF_BENCHMARK_RESYNC"
_DEFINITION: Final[Manifest] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "shops.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@dataclass(frozen=True, slots=True)
class _Found:
    """What was measured.

    Args:
        converged: Seconds from the first request to the last object and status.
        requests: How many requests that took.
        idle: How many requests a resync took.
        reaction: Seconds from an autoscaler that is edited to its repair; the median.
        memory: MiB that the process of the operator holds.
        bare: MiB that the process of a bare operator of kopf holds.
    """

    converged: float
    requests: int
    idle: int
    reaction: float
    memory: int
    bare: int


async def _measured(size: int, resync: float) -> _Found:
    cluster = EmbeddedCluster(namespaces=(NAMESPACE,), collect=False)
    await cluster.apply(_DEFINITION, field_manager="benchmark")
    for number in range(size):
        metadata = {"name": f"shop-{number:04}", "namespace": NAMESPACE}
        shop = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {"version": "2.3.1"}}
        await cluster.create(shop, field_manager="benchmark")
    async with serving(cluster) as server:
        with tempfile.TemporaryDirectory() as folder:
            kubeconfig = Path(folder, "kubeconfig")
            write_kubeconfig(server.kubeconfig(), kubeconfig)
            cluster.requests.clear()
            async with _running("ocf", kubeconfig, _NEVER) as operator:
                await until(lambda: bool(len(cluster.requests)))
                began = time.monotonic()
                await until(lambda: cluster.requests.changes >= size * (_RESOURCES + 1), every=0.1)
                converged, requests = time.monotonic() - began, len(cluster.requests)
                reactions = [await reaction(cluster, f"shop-{number % size:04}", NAMESPACE) for number in range(_EDITS)]
                memory = resident(operator)
            async with _running("ocf", kubeconfig, resync):
                idle = await _idle(cluster, resync)
            async with _running("kopf", kubeconfig, _NEVER) as bare:
                await asyncio.wait_for(bare.seen(size), PATIENCE)
                return _Found(converged, requests, idle, statistics.median(reactions), memory, resident(bare))


async def _idle(cluster: EmbeddedCluster, resync: float) -> int:
    """Count the requests of a resync in which nothing happens, after some that may have something to tell."""
    cluster.requests.clear()
    await until(lambda: bool(len(cluster.requests)))
    await asyncio.sleep(3 * resync + 2)
    before = len(cluster.requests)
    await asyncio.sleep(1.5 * resync)
    return len(cluster.requests) - before


def _running(which: str, kubeconfig: Path, resync: float) -> AbstractAsyncContextManager[Program]:
    return running("benchmarks.operator", which, kubeconfig, {_VARIABLE: str(resync)})


@contextmanager
def _suite(size: int, resync: float) -> Iterator[Suite]:
    @cache
    def found() -> _Found:
        return asyncio.run(_measured(size, resync))

    def count(name: str, what: str, value: Callable[[], int], limit: int | None = None) -> Count:
        return Count(name=f"operator.{name}", what=what, value=value, limit=limit)

    objects = size * (_RESOURCES + 1)
    yield [
        count("converge", f"ms to make 6 objects for each of {size} owners", lambda: round(found().converged * 1000)),
        count("requests", "requests per 100 objects and statuses", lambda: round(found().requests * 100 / objects)),
        count("idle", f"requests of a resync of {size} owners", lambda: found().idle, 0),
        count("reaction", "ms from an edited autoscaler to its repair", lambda: round(found().reaction * 1000)),
        count("memory", f"MiB of the operator's process, with {size} owners", lambda: found().memory),
        count("kopf", "MiB of a bare operator of kopf, which looks at the same owners", lambda: found().bare),
    ]


suite = partial(_suite, _SIZE, _RESYNC)
"""Give the counts."""
small_suite = partial(_suite, _SMALL, _OFTEN)
"""Give them with few owners, for a run that only shows that everything works."""


def _run_ocf() -> None:
    def components(shop: dict[str, Any]) -> Any:
        return component_of(shop["metadata"]["name"])

    resync = timedelta(seconds=float(os.environ[_VARIABLE]))
    shops = Operator[dict[str, Any]](
        name="shops", owner=OwnerType("example.com/v1", "Shop"), components=components, resync=resync
    )
    main(shops, options=Options(listen=None, events=False))


def _run_kopf() -> None:
    import kopf

    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    @kopf.on.event("example.com", "v1", "shops", registry=registry)
    async def seen(name: str, **_: object) -> None:
        print(name, flush=True)

    kopf.run(registry=registry, clusterwide=True, standalone=True)


if __name__ == "__main__":
    {"ocf": _run_ocf, "kopf": _run_kopf}[sys.argv[1]]()
