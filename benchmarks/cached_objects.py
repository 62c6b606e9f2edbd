"""Bytes per object that a cache holds, for 10 000 objects of kinds that clusters have most of.

The objects have what the API server and other controllers add: a Deployment that an operator applies and the deployment
controller reports on; a pod with the entries of the ReplicaSet controller and the kubelet; one that `kubectl apply` has
created, with the annotation of its last configuration; a Secret of an operator. What differs from object to object is
what does so in a cluster: names, uids, versions, owners, times, addresses and the content of Secrets.
"""

import asyncio
import base64
import itertools
import json
import random
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Final

from benchmarks.figures import Count, Suite
from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.cluster.cache.store import Store
from ocf.objects import Manifest, ObjectKey
from ocf_server import EmbeddedCluster

__all__ = ["small_suite", "suite"]

_SIZE: Final = 10_000
_SMALL: Final = 100
_OWNER: Final = "11111111-1111-4111-8111-111111111111"
_DATA: Final = "c2VjcmV0"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
# What was measured, and a tenth more. Without compression they take 5 900, 6 600, 7 000 and 3 900.
_LIMITS: Final = {"deployment": 1_650, "pod": 1_500, "applied": 1_000, "secret": 2_200}


def _template(name: str) -> Manifest:
    env = [{"name": key, "value": value} for key, value in (("MODE", "production"), ("LOG_LEVEL", "info"))]
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    container = {
        "name": "main",
        "image": "registry.example.com/shop/web:1.17.3",
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": env,
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": probe,
        "livenessProbe": probe,
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop"}],
    }
    return {"containers": [container], "volumes": [{"name": "settings", "configMap": {"name": name}}]}


def _metadata(owner: str, api_version: str) -> Manifest:
    labels = {f"app.kubernetes.io/{one}": f"xname-{one}" for one in ("name", "instance", "component")}
    reference = {"apiVersion": api_version, "kind": owner, "name": "xname", "uid": _OWNER, "controller": True}
    return {"name": "xname", "namespace": "default", "labels": labels, "ownerReferences": [reference]}


async def _deployment(cluster: EmbeddedCluster) -> Manifest:
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"app.kubernetes.io/name": "xname-name"}},
        "template": {"metadata": {"labels": {"app.kubernetes.io/name": "xname-name"}}, "spec": _template("xname")},
    }
    wanted = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata("Shop", "example.com/v1"),
        "spec": spec,
    }
    made = await cluster.apply(wanted, field_manager=f"Shop/web/{_OWNER}")
    numbers = dict.fromkeys(("availableReplicas", "readyReplicas", "replicas", "updatedReplicas"), 3)
    conditions = [_condition("Available"), _condition("Progressing")]
    status = {**numbers, "observedGeneration": 1, "conditions": conditions}
    return await _reported(cluster, made, status, "kube-controller-manager")


async def _pod(cluster: EmbeddedCluster, *, applied: bool = False) -> Manifest:
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata("ReplicaSet", "apps/v1"),
        "spec": {**_template("xname"), "nodeName": "worker-1"},
    }
    if applied:
        del pod["metadata"]["ownerReferences"]
        pod["metadata"]["annotations"] = {_LAST_APPLIED: json.dumps(pod)}
    manager = "kubectl-client-side-apply" if applied else "kube-controller-manager"
    made = await cluster.create(pod, field_manager=manager)
    conditions = [_condition(one) for one in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    container = {"name": "main", "ready": True, "started": True, "restartCount": 0, "image": "web", "imageID": "web"}
    status = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "podIPs": [{"ip": "10.0.0.1"}],
        "hostIP": "10.0.0.2",
        "startTime": "2026-01-01T00:00:00Z",
        "conditions": conditions,
        "containerStatuses": [{**container, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}],
    }
    return await _reported(cluster, made, status, "kubelet")


async def _secret(cluster: EmbeddedCluster) -> Manifest:
    metadata = _metadata("Shop", "example.com/v1")
    wanted = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"password": _DATA, "tls.crt": _DATA}}
    return await cluster.apply(wanted, field_manager=f"Shop/web/{_OWNER}")


def _condition(name: str) -> Manifest:
    time = "2026-01-01T00:00:00Z"
    return {"type": name, "status": "True", "reason": f"{name}IsTrue", "message": "", "lastTransitionTime": time}


async def _reported(cluster: EmbeddedCluster, live: Manifest, status: Manifest, manager: str) -> Manifest:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager=manager, subresource=Subresource.STATUS)
    return await cluster.patch(ObjectKey.of(live), {"status": status}, options)


_MADE: Final[dict[str, Callable[[EmbeddedCluster], Any]]] = {
    "deployment": _deployment,
    "pod": _pod,
    "applied": partial(_pod, applied=True),
    "secret": _secret,
}


def _copies(which: str, size: int) -> Iterator[Manifest]:
    """Yield the objects of a cluster, each decoded by itself as those of a list are."""
    live = asyncio.run(_MADE[which](EmbeddedCluster(collect=False)))
    text, uid = json.dumps(live), live["metadata"]["uid"]
    chance = random.Random(7)  # noqa: S311 (of no secrets)
    for number in range(size):
        owner = f"{number // (3 if which == 'pod' else 1):08}-1111-4111-8111-111111111111"
        secret = base64.b64encode(chance.randbytes(600)).decode()
        changed = text.replace("xname", f"shop-{number:05}").replace(uid, f"{number:08}-{uid[9:]}")
        changed = changed.replace(_OWNER, owner).replace("10.0.0.1", f"10.0.{number // 250}.{number % 250}")
        found = json.loads(changed.replace(_DATA, secret))
        found["metadata"]["resourceVersion"] = str(1_000_000 + number)
        yield found


def _bytes_per_object(which: str, size: int) -> int:
    store = Store(None, lambda _: None)
    objects = _copies(which, size)
    tracemalloc.start()
    try:
        store.begin_listing()
        store.replace(dict(map(store.listed, objects)), "2000000")
        return tracemalloc.get_traced_memory()[0] // size
    finally:
        tracemalloc.stop()


def _json_bytes(which: str) -> int:
    return len(json.dumps(next(itertools.islice(_copies(which, 1), 1)), separators=(",", ":")))


@contextmanager
def _suite(size: int) -> Iterator[Suite]:
    @cache
    def found(which: str) -> int:
        return _bytes_per_object(which, size)

    rows: list[Count] = []
    for which, what in {
        "deployment": "a Deployment of an operator",
        "pod": "a pod of a ReplicaSet",
        "applied": "a pod of kubectl apply",
        "secret": "a Secret of an operator",
    }.items():
        sent = f"cached.json.{which}"
        rows += [
            Count(name=sent, what=f"bytes of {what} as JSON", value=partial(_json_bytes, which)),
            Count(
                name=f"cached.{which}",
                what=f"bytes of {what} in the cache, of {size}",
                value=partial(found, which),
                limit=_LIMITS[which] if size == _SIZE else None,
                against=sent,
            ),
        ]
    yield rows


suite = partial(_suite, _SIZE)
"""Give the counts."""
small_suite = partial(_suite, _SMALL)
"""Give them with few objects, for a run that only shows that everything works."""
