"""The operator beside the autoscaler of Kubernetes, which scales by a metric, while users go on changing the cache."""

import asyncio
from collections.abc import Callable

from examples.memcached.operator import memcached_operator
from examples.memcached.samples import PLAIN
from ocf.cluster import ApplyCache, ListOptions, WatchOptions
from ocf.objects import Manifest
from ocf.runtime.operator import ManagerOptions, running
from ocf.testing import RecordingCluster
from ocf.testing.envtest import ControlPlane
from ocf.testing.metrics_stub import MetricsStub
from tests.examples.memcached.env import Env, real_kubelet, served

QUEUE: Manifest = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "10"}},
}
AT_ONCE: Manifest = {
    "scaleDown": {"stabilizationWindowSeconds": 0},
    "scaleUp": {"policies": [{"type": "Pods", "value": 100, "periodSeconds": 1}]},
}


async def until(env: Env, reached: Callable[[Manifest], bool]) -> Manifest:
    """Follow the Deployment until it is somewhere."""
    key = env.own("Deployment")
    async with asyncio.timeout(600):
        while True:
            page = await env.cluster.list(key.api_version, key.kind, ListOptions(namespace=key.namespace))
            for live in page.items:
                if reached(live):
                    return live
            await anext(
                env.cluster.watch(
                    key.api_version,
                    key.kind,
                    WatchOptions(namespace=key.namespace, resource_version=page.resource_version),
                )
            )


def counts(number: int) -> Callable[[Manifest], bool]:
    return lambda live: bool(live["spec"].get("replicas") == number)


def runs(image: str) -> Callable[[Manifest], bool]:
    return lambda live: bool(live["spec"]["template"]["spec"]["containers"][0]["image"] == image)


async def trace(env: Env, since: str) -> list[int]:
    """Return the counts that the Deployment has asked for since a version, without repetitions."""
    found: list[int] = []
    key = env.own("Deployment")
    last = (await env.cluster.get(key))["metadata"]["resourceVersion"]
    async for event in env.cluster.watch(
        key.api_version, key.kind, WatchOptions(namespace=key.namespace, resource_version=since)
    ):
        count = int(event.object["spec"]["replicas"])
        if found[-1:] != [count]:
            found.append(count)
        if event.object["metadata"]["resourceVersion"] == last:
            break
    return found


async def test_the_count_is_the_autoscalers_whatever_else_is_written(caches_plane: ControlPlane) -> None:
    with caches_plane.namespace("scaled-") as namespace:
        async with await caches_plane.cluster() as server, MetricsStub(caches_plane) as stub:
            await served(server, memcached_operator.owner_kind)
            env = Env(RecordingCluster(server, apply_cache=ApplyCache()), namespace, real_kubelet)
            options = ManagerOptions(namespaces=[namespace], listen=None, events=False)
            async with running(env.cluster, memcached_operator, options=options):
                await env.create(PLAIN)
                since = (await until(env, counts(3)))["metadata"]["resourceVersion"]
                stub.metrics.set_external(namespace, "queue", "60")
                scaling = {"enabled": True, "minReplicas": 2, "maxReplicas": 9, "metrics": [QUEUE], "behavior": AT_ONCE}
                await env.change(autoscaling=scaling)
                await until(env, counts(6))
                for number, queue in enumerate(("40", "80", "20"), start=1):
                    image = f"memcached:1.6.{number}"
                    await env.change(image=image)  # the operator writes the Deployment ...
                    assert (await until(env, runs(image)))["spec"]["replicas"] != 1
                    stub.metrics.set_external(namespace, "queue", queue)  # ... and the autoscaler scales it
                    await until(env, counts(int(queue) // 10))
                await env.change(autoscaling=None)
                await until(env, counts(3))
            seen = await trace(env, since)

    assert seen == [3, 6, 4, 8, 2, 3]
