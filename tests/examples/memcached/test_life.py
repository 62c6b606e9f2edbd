"""The numbered scenarios that need a cluster, 11 to 26, on both kinds of it."""

import pytest

from examples.memcached.samples import AUTOSCALED, DEFAULTS, EVERYTHING, PLAIN
from ocf.cluster import Verb
from ocf.objects import Manifest
from tests.examples.memcached.env import Env

HPA = "HorizontalPodAutoscaler"


def cpu(percent: int) -> Manifest:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def window(live: Manifest) -> int:
    return int(live["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"])


async def test_create_with_a_full_spec(env: Env) -> None:
    cache = await env.create(AUTOSCALED)
    await env.reconcile()
    live = await env.get(HPA)

    assert live["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "my-cache"}
    assert (live["spec"]["minReplicas"], live["spec"]["maxReplicas"]) == (2, 10)
    assert live["spec"]["metrics"] == [cpu(70)]
    assert window(live) == 600
    assert live["metadata"]["labels"] == {
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": "my-cache",
        "app.kubernetes.io/managed-by": "memcached-operator",
    }
    assert live["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "memcached.c5c3.io/v1alpha1",
            "kind": "Memcached",
            "name": "my-cache",
            "uid": cache["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


async def test_create_with_defaults(env: Env) -> None:
    await env.create(DEFAULTS)
    await env.reconcile()
    live = await env.get(HPA)

    assert (live["spec"]["maxReplicas"], live["spec"]["metrics"], window(live)) == (5, [cpu(80)], 300)


async def test_without_a_minimum_the_server_stores_one(env: Env) -> None:
    cache = await env.create(DEFAULTS)
    await env.reconcile()

    assert "minReplicas" not in cache["spec"]["autoscaling"]
    assert (await env.get(HPA))["spec"]["minReplicas"] == 1


async def test_the_autoscaler_follows_the_spec_in_one_reconcile(env: Env) -> None:
    scaling = {"enabled": True, "minReplicas": 1, "maxReplicas": 5, "metrics": [cpu(70)]}
    await env.create(autoscaling=scaling)
    await env.reconcile()
    await env.change(autoscaling={**scaling, "minReplicas": 3, "maxReplicas": 10, "metrics": [cpu(90)]})
    await env.reconcile()
    spec = (await env.get(HPA))["spec"]

    assert (spec["minReplicas"], spec["maxReplicas"], spec["metrics"]) == (3, 10, [cpu(90)])


async def test_the_second_reconcile_does_not_write_the_autoscaler(env: Env) -> None:
    await env.create(AUTOSCALED)
    await env.settle()
    before = (await env.get(HPA))["metadata"]["resourceVersion"]
    env.cluster.requests.clear()
    await env.reconcile()

    assert not env.cluster.requests.of(Verb.APPLY)
    assert (await env.get(HPA))["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    "scaling", [pytest.param({"enabled": False, "maxReplicas": 5}, id="off"), pytest.param(None, id="nil")]
)
async def test_without_autoscaling_there_is_no_autoscaler(env: Env, scaling: Manifest | None) -> None:
    await env.create(**({} if scaling is None else {"autoscaling": scaling}))
    await env.reconcile()

    assert not await env.exists(HPA)


@pytest.mark.parametrize("off", [pytest.param({"enabled": False}, id="off"), pytest.param(None, id="nil")])
async def test_on_then_off(env: Env, off: Manifest | None) -> None:
    await env.create(AUTOSCALED)
    await env.settle()
    await env.change(autoscaling=off)
    await env.reconcile()
    gone, count = not await env.exists(HPA), await env.replicas()
    await env.settle()
    env.cluster.requests.clear()
    await env.reconcile()

    assert (gone, count) == (True, 3)
    assert not env.cluster.requests.writes
    assert await env.replicas() == 3


async def test_on_off_on(env: Env) -> None:
    await env.create(AUTOSCALED)
    await env.settle()
    await env.change(autoscaling={"enabled": False})
    await env.settle()
    await env.change(autoscaling={"enabled": True, "maxReplicas": 8})
    await env.reconcile()

    assert (await env.get(HPA))["spec"]["maxReplicas"] == 8


async def test_the_count_of_a_new_deployment_is_the_servers(env: Env) -> None:
    await env.create(DEFAULTS, replicas=7)
    await env.reconcile()

    assert await env.replicas() == 1


async def test_the_status_of_a_scaled_cache(embedded: Env) -> None:
    """On the embedded cluster only: on a real one, pods may exist before the reconcile has ended."""
    cache = await embedded.create(AUTOSCALED)
    await embedded.reconcile()
    status = await embedded.status()

    assert await embedded.conditions() == {
        "Available": ("False", "Unavailable", "0/0 replicas are ready (HPA-managed)"),
        "Progressing": ("False", "ProgressingComplete", "All 0 replicas are updated"),
        "Degraded": ("False", "NotDegraded", "All 0 desired replicas are ready"),
        "Ready": ("False", "MemcachedNotReady", "Instance has zero desired replicas"),
    }
    generation = cache["metadata"]["generation"]
    assert {one["observedGeneration"] for one in status["conditions"]} == {status["observedGeneration"]} == {generation}
    assert (status["readyReplicas"], "serverList" in status) == (0, False)


async def test_the_status_once_pods_are_ready(env: Env) -> None:
    await env.create(AUTOSCALED)
    await env.settle()
    await env.scale(4)
    await env.settle()
    status = await env.status()

    assert await env.conditions() == {
        "Available": ("True", "Available", "4/4 replicas are ready (HPA-managed)"),
        "Progressing": ("False", "ProgressingComplete", "All 4 replicas are updated"),
        "Degraded": ("False", "NotDegraded", "All 4 desired replicas are ready"),
        "Ready": ("True", "MemcachedReady", "All 4 replicas are ready"),
    }
    assert (status["readyReplicas"], status["serverList"]) == (4, [f"my-cache.{env.namespace}:11211"])


async def test_from_the_autoscaler_to_three_by_hand(env: Env) -> None:
    await env.create(AUTOSCALED)
    await env.settle()
    await env.change(autoscaling=None, replicas=3)
    await env.settle()

    assert (await env.conditions())["Available"] == ("True", "Available", "3/3 replicas are ready")


async def test_a_deleted_autoscaler_is_created_again(env: Env) -> None:
    cache = await env.create(AUTOSCALED)
    await env.settle()
    before = await env.get(HPA)
    await env.cluster.delete(env.own(HPA))
    await env.reconcile()
    after = await env.get(HPA)

    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["ownerReferences"][0]["uid"] == cache["metadata"]["uid"]


async def test_all_features_with_an_autoscaler(env: Env) -> None:
    await env.secret("my-cache-sasl", **{"password-file": "user:password"})
    await env.secret("my-cache-tls", **{"tls.crt": "a", "tls.key": "b", "ca.crt": "c"})
    await env.create(EVERYTHING)
    await env.settle()
    before = await env.versions()
    await env.reconcile()

    kinds = {"Deployment", HPA, "Service", "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy", "Memcached"}
    assert set(before) == kinds
    assert await env.versions() == before


async def test_enable(env: Env) -> None:
    scaling = {"enabled": True, "minReplicas": 2, "maxReplicas": 10}
    await env.create(autoscaling=scaling, resources={"requests": {"cpu": "100m"}})
    await env.settle()
    live = await env.get(HPA)

    assert (live["spec"]["minReplicas"], live["spec"]["maxReplicas"]) == (2, 10)
    assert (live["spec"]["metrics"], window(live)) == ([cpu(80)], 300)
    states = {name: status for name, (status, *_) in (await env.conditions()).items()}
    assert states == {"Available": "True", "Progressing": "False", "Degraded": "False", "Ready": "True"}


async def test_disable(env: Env) -> None:
    await env.create(DEFAULTS)
    await env.settle()
    await env.change(autoscaling={"enabled": False}, replicas=3)
    await env.settle()

    assert not await env.exists(HPA)
    assert (await env.replicas(), (await env.status())["readyReplicas"]) == (3, 3)


async def test_update(env: Env) -> None:
    await env.create(autoscaling={"enabled": True, "minReplicas": 2, "maxReplicas": 5})
    await env.settle()
    await env.change(autoscaling={"enabled": True, "minReplicas": 3, "maxReplicas": 15})
    await env.settle()
    spec = (await env.get(HPA))["spec"]

    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 15)


async def test_a_plain_cache_is_ready(env: Env) -> None:
    await env.create(PLAIN)
    await env.settle()

    assert (await env.conditions())["Ready"] == ("True", "MemcachedReady", "All 3 replicas are ready")
