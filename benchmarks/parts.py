"""Parts of a reconcile: conversion between manifests and models, the check for drift, the embedded cluster.

They show which parts the other figures consist of. Only the embedded cluster has separate limits, because a user's
tests send it thousands of requests, and store thousands of objects in it.
"""

import asyncio
import itertools
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kubernetes.client import V2HorizontalPodAutoscaler

from benchmarks.autoscaler import NAMESPACE, base, plain
from benchmarks.figures import Case, Count, Suite
from benchmarks.timer import each_call, each_turn
from ocf.component.apply.drift import find_drift
from ocf.component.status.results import Drift
from ocf.objects import Manifest, ObjectKey, read_live
from ocf.objects.manifest import split_api_version
from ocf.objects.models import read_base
from ocf.schema.builtin import builtin_resource
from ocf_server import EmbeddedCluster

__all__ = ["suite"]

_API_VERSION: Final = "autoscaling/v2"
_KIND: Final = "HorizontalPodAutoscaler"
_TARGET: Final = "backend"
_KEY: Final = ObjectKey(_API_VERSION, _KIND, _TARGET, NAMESPACE)
_MANAGER: Final = "benchmark"
_GET_LIMIT: Final = 20_000
_APPLY_LIMIT: Final = 300_000
_OBJECT_LIMIT: Final = 12_000
_OBJECTS: Final = 500


@contextmanager
def suite() -> Iterator[Suite]:
    """Give the cases."""
    cluster = EmbeddedCluster(namespaces=(NAMESPACE,))
    wanted = plain(_TARGET)
    sizes = itertools.cycle((20, 10))

    async def apply_changed() -> None:
        changed = {**wanted, "spec": {**wanted["spec"], "maxReplicas": next(sizes)}}
        await cluster.apply(changed, field_manager=_MANAGER)

    with asyncio.Runner() as runner:
        live = runner.run(cluster.apply(wanted, field_manager=_MANAGER))
        assert not _compare(wanted, live)
        yield [
            Case(name="parts.base", what="reading a base, strictly", measure=each_call(_read_base)),
            Case(
                name="parts.live",
                what="reading a live HPA for a handler",
                measure=each_call(lambda: read_live(live, V2HorizontalPodAutoscaler)),
            ),
            Case(
                name="parts.compare",
                what="finding that an apply would change nothing",
                measure=each_call(lambda: _compare(wanted, live)),
            ),
            Case(
                name="parts.get",
                what="get on the embedded cluster",
                measure=each_turn(runner, lambda: cluster.get(_KEY)),
                limit=_GET_LIMIT,
            ),
            Case(
                name="parts.apply",
                what="apply of a changed HPA on the embedded cluster",
                measure=each_turn(runner, apply_changed),
                limit=_APPLY_LIMIT,
            ),
            Count(
                name="parts.memory",
                what="bytes that an HPA takes in the embedded cluster, its history included",
                value=lambda: runner.run(_bytes_per_object()),
                limit=_OBJECT_LIMIT,
            ),
        ]


async def _bytes_per_object() -> int:
    cluster = EmbeddedCluster(namespaces=(NAMESPACE,))
    await cluster.apply(plain("warm"), field_manager=_MANAGER)
    tracemalloc.start()
    try:
        for number in range(_OBJECTS):
            await cluster.apply(plain(f"hpa-{number}"), field_manager=_MANAGER)
        return tracemalloc.get_traced_memory()[0] // _OBJECTS
    finally:
        tracemalloc.stop()


def _read_base() -> Manifest:
    return read_base(base(_TARGET), V2HorizontalPodAutoscaler, api_version=_API_VERSION, kind=_KIND)


def _compare(wanted: Manifest, live: Manifest) -> list[Drift]:
    resource = builtin_resource(*split_api_version(_API_VERSION), _KIND)
    assert resource is not None
    return find_drift(wanted, live, manager=_MANAGER, rewrites={}, kind=resource.type)
