"""The numbered scenarios that need a cluster, 11 to 26, on both kinds of it."""

import pytest

from examples.memcached.samples import AUTOSCALED, DEFAULTS, EVERYTHING, PLAIN
from ocf.cluster import Verb
from ocf.objects import Manifest
from tests.examples.memcached.worlds import Env

HPA = "HorizontalPodAutoscaler"


def cpu(percent: int) -> Manifest:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def window(live: Manifest) -> int:
    return int(live["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"])


async def test_scenario_11_create_with_a_full_spec(world: Env) -> None:
    cache = await world.create(AUTOSCALED)
    await world.reconcile()
    live = await world.get(HPA)

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


async def test_scenario_12_create_with_defaults(world: Env) -> None:
    await world.create(DEFAULTS)
    await world.reconcile()
    live = await world.get(HPA)

    assert (live["spec"]["maxReplicas"], live["spec"]["metrics"], window(live)) == (5, [cpu(80)], 300)


async def test_scenario_13_without_a_minimum_the_server_stores_one(world: Env) -> None:
    cache = await world.create(DEFAULTS)
    await world.reconcile()

    assert "minReplicas" not in cache["spec"]["autoscaling"]
    assert (await world.get(HPA))["spec"]["minReplicas"] == 1


async def test_scenario_14_the_autoscaler_follows_the_spec_in_one_reconcile(world: Env) -> None:
    scaling = {"enabled": True, "minReplicas": 1, "maxReplicas": 5, "metrics": [cpu(70)]}
    await world.create(autoscaling=scaling)
    await world.reconcile()
    await world.change(autoscaling={**scaling, "minReplicas": 3, "maxReplicas": 10, "metrics": [cpu(90)]})
    await world.reconcile()
    spec = (await world.get(HPA))["spec"]

    assert (spec["minReplicas"], spec["maxReplicas"], spec["metrics"]) == (3, 10, [cpu(90)])


async def test_scenario_15_the_second_reconcile_does_not_write_the_autoscaler(world: Env) -> None:
    await world.create(AUTOSCALED)
    await world.settle()
    before = (await world.get(HPA))["metadata"]["resourceVersion"]
    world.cluster.requests.clear()
    await world.reconcile()

    assert not world.cluster.requests.of(Verb.APPLY)
    assert (await world.get(HPA))["metadata"]["resourceVersion"] == before


@pytest.mark.parametrize(
    "scaling", [pytest.param({"enabled": False, "maxReplicas": 5}, id="off"), pytest.param(None, id="nil")]
)
async def test_scenario_16_without_autoscaling_there_is_no_autoscaler(world: Env, scaling: Manifest | None) -> None:
    await world.create(**({} if scaling is None else {"autoscaling": scaling}))
    await world.reconcile()

    assert not await world.exists(HPA)


@pytest.mark.parametrize("off", [pytest.param({"enabled": False}, id="off"), pytest.param(None, id="nil")])
async def test_scenario_17_on_then_off(world: Env, off: Manifest | None) -> None:
    await world.create(AUTOSCALED)
    await world.settle()
    await world.change(autoscaling=off)
    await world.reconcile()
    gone, count = not await world.exists(HPA), await world.replicas()
    await world.settle()
    world.cluster.requests.clear()
    await world.reconcile()

    assert (gone, count) == (True, 3)
    assert not world.cluster.requests.writes
    assert await world.replicas() == 3


async def test_scenario_18_on_off_on(world: Env) -> None:
    await world.create(AUTOSCALED)
    await world.settle()
    await world.change(autoscaling={"enabled": False})
    await world.settle()
    await world.change(autoscaling={"enabled": True, "maxReplicas": 8})
    await world.reconcile()

    assert (await world.get(HPA))["spec"]["maxReplicas"] == 8


async def test_scenario_19_the_count_of_a_new_deployment_is_the_servers(world: Env) -> None:
    await world.create(DEFAULTS, replicas=7)
    await world.reconcile()

    assert await world.replicas() == 1


async def test_scenario_20_the_status_of_a_scaled_cache(embedded: Env) -> None:
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


async def test_scenario_20_the_status_once_pods_are_ready(world: Env) -> None:
    await world.create(AUTOSCALED)
    await world.settle()
    await world.scale(4)
    await world.settle()
    status = await world.status()

    assert await world.conditions() == {
        "Available": ("True", "Available", "4/4 replicas are ready (HPA-managed)"),
        "Progressing": ("False", "ProgressingComplete", "All 4 replicas are updated"),
        "Degraded": ("False", "NotDegraded", "All 4 desired replicas are ready"),
        "Ready": ("True", "MemcachedReady", "All 4 replicas are ready"),
    }
    assert (status["readyReplicas"], status["serverList"]) == (4, [f"my-cache.{world.namespace}:11211"])


async def test_scenario_21_from_the_autoscaler_to_three_by_hand(world: Env) -> None:
    await world.create(AUTOSCALED)
    await world.settle()
    await world.change(autoscaling=None, replicas=3)
    await world.settle()

    assert (await world.conditions())["Available"] == ("True", "Available", "3/3 replicas are ready")


async def test_scenario_22_a_deleted_autoscaler_is_created_again(world: Env) -> None:
    cache = await world.create(AUTOSCALED)
    await world.settle()
    before = await world.get(HPA)
    await world.cluster.delete(world.own(HPA))
    await world.reconcile()
    after = await world.get(HPA)

    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["ownerReferences"][0]["uid"] == cache["metadata"]["uid"]


async def test_scenario_23_all_features_with_an_autoscaler(world: Env) -> None:
    await world.secret("my-cache-sasl", **{"password-file": "user:password"})
    await world.secret("my-cache-tls", **{"tls.crt": "a", "tls.key": "b", "ca.crt": "c"})
    await world.create(EVERYTHING)
    await world.settle()
    before = await world.versions()
    await world.reconcile()

    kinds = {"Deployment", HPA, "Service", "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy", "Memcached"}
    assert set(before) == kinds
    assert await world.versions() == before


async def test_scenario_24_enable(world: Env) -> None:
    scaling = {"enabled": True, "minReplicas": 2, "maxReplicas": 10}
    await world.create(autoscaling=scaling, resources={"requests": {"cpu": "100m"}})
    await world.settle()
    live = await world.get(HPA)

    assert (live["spec"]["minReplicas"], live["spec"]["maxReplicas"]) == (2, 10)
    assert (live["spec"]["metrics"], window(live)) == ([cpu(80)], 300)
    states = {name: status for name, (status, *_) in (await world.conditions()).items()}
    assert states == {"Available": "True", "Progressing": "False", "Degraded": "False", "Ready": "True"}


async def test_scenario_25_disable(world: Env) -> None:
    await world.create(DEFAULTS)
    await world.settle()
    await world.change(autoscaling={"enabled": False}, replicas=3)
    await world.settle()

    assert not await world.exists(HPA)
    assert (await world.replicas(), (await world.status())["readyReplicas"]) == (3, 3)


async def test_scenario_26_update(world: Env) -> None:
    await world.create(autoscaling={"enabled": True, "minReplicas": 2, "maxReplicas": 5})
    await world.settle()
    await world.change(autoscaling={"enabled": True, "minReplicas": 3, "maxReplicas": 15})
    await world.settle()
    spec = (await world.get(HPA))["spec"]

    assert (spec["minReplicas"], spec["maxReplicas"]) == (3, 15)


async def test_a_plain_cache_is_ready(world: Env) -> None:
    await world.create(PLAIN)
    await world.settle()

    assert (await world.conditions())["Ready"] == ("True", "MemcachedReady", "All 3 replicas are ready")
