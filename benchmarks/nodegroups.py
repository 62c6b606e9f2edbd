"""Decisions about node groups in large clusters.

The cost has to grow with the number of shapes of pods, not with the number of pods. A fifth of the shapes spread over
zones, a fifth keep their pods on different nodes, and a fifth are bound to one zone.
"""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final

from benchmarks.figures import Case, Count, Suite
from benchmarks.timer import Measure, each_call, once
from ocf.nodegroups.packing import pack, pending_pods
from ocf.nodegroups.rules import movable_pods
from ocf.nodegroups.scale_down import DrainSimulation
from ocf.nodegroups.snapshot import ClusterSnapshot
from ocf.objects import Manifest

__all__ = ["cluster", "pod_spec", "small_suite", "suite"]

_SECOND: Final = 1_000_000_000
_ZONE: Final = "topology.kubernetes.io/zone"
_HOST: Final = "kubernetes.io/hostname"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_MIB: Final = 2**20


def _node(number: int) -> Manifest:
    name = f"node-{number:05}"
    return {
        "metadata": {"name": name, "labels": {_HOST: name, _ZONE: "abc"[number % 3]}},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod_spec(shape: int, scale: int) -> dict[str, Any]:
    """Return the spec of a pod.

    Args:
        shape: The number of its shape; every fifth shape has the same kind of rule.
        scale: How large it is.
    """
    # Neighbouring numbers give unlike sizes.
    cpu, memory = 1 + shape * 7 % 20, 1 + shape * 11 % 32
    requests = {"cpu": f"{cpu * scale}m", "memory": f"{memory * scale}Mi"}
    spec: dict[str, Any] = {"containers": [{"name": "app", "image": "app:1", "resources": {"requests": requests}}]}
    selector = {"matchLabels": {"app": f"app-{shape}"}}
    rule = shape % 5
    if rule == 1:
        constraint = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule"}
        spec["topologySpreadConstraints"] = [{**constraint, "labelSelector": selector}]
    elif rule == 2:
        spec["affinity"] = {"podAntiAffinity": {_REQUIRED: [{"topologyKey": _HOST, "labelSelector": selector}]}}
    elif rule == 3:
        spec["nodeSelector"] = {_ZONE: "b"}
    return spec


def cluster(nodes: int, pods: int, shapes: int, *, running: bool) -> ClusterSnapshot:
    """Return a cluster.

    Args:
        nodes: The number of nodes.
        pods: The number of pods.
        shapes: The number of different pods.
        running: Whether the pods are on nodes; otherwise they wait for one. Running pods are half as large, and none of
            them is bound to a zone.
    """
    specs = [
        pod_spec(shape - shape % 5 if running and shape % 5 == 3 else shape, 50 if running else 100)
        for shape in range(shapes)
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "app", "uid": "1", "controller": True}
    made = []
    for number in range(pods):
        shape = number % shapes
        place = {"nodeName": f"node-{number * 7 % nodes:05}"} if running else {}
        labels = {"app": f"app-{shape}"}
        metadata = {"name": f"pod-{number:06}", "namespace": "shop", "labels": labels, "ownerReferences": [owner]}
        made.append({"metadata": metadata, "spec": {**specs[shape], **place}})
    return ClusterSnapshot.of(nodes=map(_node, range(nodes)), pods=made)


@contextmanager
def _suite(scale: int) -> Iterator[Suite]:
    # Made when they are first needed: other suites are run without these.
    many = cache(lambda: cluster(1_000 // scale, 5_000 // scale, 20, running=False))
    crowd = cache(lambda: cluster(5_000 // scale, 50_000 // scale, 200, running=False))
    full = cache(lambda: cluster(1_000 // scale, 30_000 // scale, 60, running=True))
    yield [
        Case(
            name="nodegroups.pack",
            what=f"packing {5_000 // scale:,} pods of 20 shapes onto {1_000 // scale:,} nodes",
            measure=_timed(many, _packed),
            limit=_SECOND / 2,
        ),
        Case(
            name="nodegroups.pack.many",
            what=f"packing {50_000 // scale:,} pods of 200 shapes onto {5_000 // scale:,} nodes, once",
            measure=once(_timed(crowd, _packed)),
            limit=10 * _SECOND,
            against="nodegroups.pack",
        ),
        Case(
            name="nodegroups.drain",
            what=f"draining each of {1_000 // scale:,} nodes with {30_000 // scale:,} pods, once",
            measure=once(_timed(full, _drained)),
            limit=2 * _SECOND,
        ),
        Count(
            name="nodegroups.memory",
            what=f"MiB for packing {50_000 // scale:,} pods onto {5_000 // scale:,} nodes, without the snapshot",
            value=lambda: _memory(crowd()),
        ),
    ]


def _timed(make: Callable[[], ClusterSnapshot], decide: Callable[[ClusterSnapshot], object]) -> Measure:
    def measure(calls: int) -> int:
        snapshot = make()
        return each_call(lambda: decide(snapshot))(calls)

    return measure


def _packed(snapshot: ClusterSnapshot) -> None:
    assert len(pack(snapshot, pending_pods(snapshot)).placements) == len(snapshot.pods)


def _drained(snapshot: ClusterSnapshot) -> None:
    simulation = DrainSimulation(snapshot)
    found = [simulation.drain(node, movable_pods(snapshot.pods_on(node.name))) for node in snapshot.nodes.values()]
    assert 0 < sum(blocked is None for _, blocked in found) < len(found)


def _memory(snapshot: ClusterSnapshot) -> int:
    tracemalloc.start()
    try:
        _packed(snapshot)
        return tracemalloc.get_traced_memory()[1] // _MIB
    finally:
        tracemalloc.stop()


suite = partial(_suite, 1)
"""Give the cases."""
small_suite = partial(_suite, 50)
"""Give them over few nodes, for a run that only shows that everything works."""
