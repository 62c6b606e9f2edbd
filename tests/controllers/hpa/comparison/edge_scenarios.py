"""Scenarios at the edges: tolerance, failures in turn, limits of numbers, edits, rollouts and shared targets."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tests.controllers.hpa.comparison.env import Env, described, external, pods, resource
from tests.controllers.hpa.comparison.registry import HALF, INGRESS, NOW, QUEUE, policy, scenario

__all__: list[str] = []


@scenario
async def oscillation_around_the_tolerance(env: Env) -> AsyncIterator[None]:
    """A ratio of exactly 1.1 or 0.9 changes nothing; utilization is rounded down before it is divided."""
    await env.workload(4)
    env.use(cpu="275m")
    await env.hpa(HALF, behavior={"scaleDown": NOW})
    yield
    for cpu in ("279m", "225m", "229m", "280m", "224m"):
        env.use(cpu=cpu)
        yield
        await env.follow()


@scenario
async def metrics_that_fail_in_turn(env: Env) -> AsyncIterator[None]:
    """With one of two metrics missing a workload grows and does not shrink, whichever is missing."""
    await env.workload(3)
    env.use(cpu="50m")
    await env.hpa(HALF, QUEUE, behavior={"scaleDown": NOW})
    yield
    env.see("queue", "10")
    for name in env.running:
        env.metrics.forget_pod(env.namespace, name)
    yield
    env.see("queue", "50")
    yield
    await env.follow()
    env.see("queue")
    env.use(cpu="400m")
    yield
    await env.follow()
    env.see("queue", "10")
    env.use(cpu="50m")
    yield


@scenario
async def averages_of_objects(env: Env) -> AsyncIterator[None]:
    """The replicas of the status divide an average, those of the spec do not."""
    await env.workload(3, pods=2)
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "40")
    await env.hpa(described(INGRESS, "hits", average="10"), behavior={"scaleDown": NOW})
    yield
    await env.follow(pods=5)
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "54")
    yield
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "0")
    yield
    await env.follow()
    env.metrics.set_object_metric(env.namespace, INGRESS, "hits", "1n")
    yield


@scenario
async def a_series_near_63_bits(env: Env) -> AsyncIterator[None]:
    """The largest value whose thousandths fit, a sum just below it, and the most negative one."""
    await env.workload(2)
    env.see("queue", "9223372036854775")
    await env.hpa(QUEUE, maximum=50, behavior={"scaleDown": NOW})
    yield
    env.see("queue", "4611686018427387", "4611686018427387")
    yield
    env.see("queue", "9223372036854774999m")
    yield
    env.see("queue", "-9223372036854775")
    yield


@scenario
async def a_custom_target(env: Env) -> AsyncIterator[None]:
    """A target of another kind grows, shrinks to zero, and comes back."""
    await env.custom("Rollout", 2)
    env.see("queue", "45")
    await env.hpa(QUEUE, minReplicas=0, behavior={"scaleDown": NOW})
    yield
    env.see("queue", "30")
    yield
    env.see("queue", "0")
    yield
    yield
    env.see("queue", "25")
    yield
    yield


@scenario
async def bounds_that_are_edited_at_zero(env: Env) -> AsyncIterator[None]:
    await env.workload(1)
    env.see("queue", "0")
    await env.hpa(QUEUE, minReplicas=0, behavior={"scaleDown": NOW})
    yield
    yield
    env.change_hpa(minReplicas=2, maxReplicas=3)
    yield
    env.change_hpa(minReplicas=0)
    yield
    env.see("queue", "90")
    yield
    yield


@scenario
async def a_behavior_that_is_edited(env: Env) -> AsyncIterator[None]:
    """Scale events are only kept while there is a behavior; a new window counts older recommendations."""
    await env.workload(2)
    env.see("queue", "60")
    await env.hpa(QUEUE, maximum=30)
    yield
    env.see("queue", "200")
    env.change_hpa(behavior={"scaleUp": {"policies": [policy("Pods", 3, 60)]}, "scaleDown": NOW})
    yield
    yield
    yield
    env.change_hpa(behavior={"scaleUp": {"policies": [policy("Pods", 9, 60)]}, "scaleDown": NOW})
    yield
    yield
    env.see("queue", "10")
    env.change_hpa(behavior=None)
    yield
    yield
    for _ in range(3):
        yield


@scenario
async def an_autoscaler_that_is_made_anew(env: Env) -> AsyncIterator[None]:
    """Under the same name within a period, its recommendations are those of the one before."""
    await env.workload(5)
    env.see("queue", "50")
    await env.hpa(QUEUE)
    yield
    env.see("queue", "10")
    yield
    env.recreate_hpa()
    yield
    yield
    yield
    yield


@scenario
async def terminating_pods(env: Env) -> AsyncIterator[None]:
    """They count neither as measured nor as missing, and a target of which all pods end has no metrics."""
    await env.workload(4)
    env.use(cpu="300m")
    await env.hpa(HALF, behavior={"scaleDown": NOW})
    await env.begin_removal("web-0")
    await env.begin_removal("web-1")
    yield
    env.use("web-0", "web-1", cpu="900m")
    yield
    env.use("web-2", "web-3", cpu="100m")
    yield
    await env.begin_removal("web-2")
    await env.begin_removal("web-3")
    yield


@scenario
async def a_surge_of_a_rollout(env: Env) -> AsyncIterator[None]:
    """More pods than replicas: the measured pods count, and the direction is checked again with the missing ones."""
    await env.workload(4, pods=6)
    env.use(cpu="270m")
    await env.hpa(HALF, behavior={"scaleDown": NOW})
    yield
    env.use(cpu="300m")
    yield
    env.metrics.forget_pod(env.namespace, "web-4")
    env.metrics.forget_pod(env.namespace, "web-5")
    env.use("web-0", "web-1", "web-2", "web-3", cpu="180m")
    yield
    await env.follow(pods=4)
    env.use(cpu="180m")
    yield


@scenario
async def sidecars(env: Env) -> AsyncIterator[None]:
    """A restartable init container requests resources like a container; an ordinary one does not."""
    await env.workload(3, native_sidecar="500m")
    for name in env.running:
        env.use_of(name, {"app": {"cpu": "450m"}, "mesh": {"cpu": "50m"}})
    await env.hpa(HALF, behavior={"scaleDown": NOW})
    yield
    for name in env.running:
        env.use_of(name, {"app": {"cpu": "450m"}, "mesh": {"cpu": "300m"}})
    yield
    env.change_hpa(metrics=[resource(container="mesh", utilization=50)])
    yield
    yield


@scenario
async def saturation(env: Env) -> AsyncIterator[None]:
    """Proposals far above what 32 bits hold end at the maximum, or at the limit of one reconcile."""
    await env.workload(2)
    env.see("queue", "9P")
    await env.hpa(external("queue", average="1m"), maximum=2**31 - 1)
    yield
    yield
    env.change_hpa(behavior={"scaleUp": {"policies": [policy("Pods", 2**31 - 1, 1800)]}, "scaleDown": NOW})
    yield
    env.change_hpa(maxReplicas=40)
    yield
    yield


@scenario
async def pods_that_use_nothing(env: Env) -> AsyncIterator[None]:
    """A utilization of zero proposes zero, and the minimum applies."""
    await env.workload(3)
    env.use(cpu="0")
    await env.hpa(HALF, behavior={"scaleDown": NOW})
    yield
    await env.follow()
    env.use(cpu="1n")
    yield
    env.use(cpu="251m")
    yield


@scenario
async def selectors_of_metrics(env: Env) -> AsyncIterator[None]:
    """An empty result of a selector is a failure; an invalid selector is not sent."""
    await env.workload(2)
    env.see("queue", "35", shop="a", tier="back")
    env.see("queue", "70", shop="b", tier="back")
    either = {"matchExpressions": [{"key": "shop", "operator": "In", "values": ["a", "b"]}]}
    await env.hpa(external("queue", selector=either, average="20"), maximum=30, behavior={"scaleDown": NOW})
    yield
    env.change_hpa(metrics=[external("queue", selector={"matchLabels": {"shop": "c"}}, average="20")])
    yield
    yield
    wrong = [
        {"key": "shop", "operator": "Near", "values": ["a"]},
        {"key": "shop", "operator": "In"},
        {"key": "shop", "operator": "Exists", "values": ["a", "b"]},
        {"key": "-shop", "operator": "Exists"},
        {"key": "shop", "operator": "NotIn", "values": ["a", "b c", "-d"]},
        {"key": "", "operator": "DoesNotExist"},
    ]
    for requirement in wrong:
        selector = {"matchExpressions": [requirement]}
        env.change_hpa(metrics=[external("queue", selector=selector, average="20")])
        yield
    env.change_hpa(metrics=[external("queue", selector={"matchLabels": {"tier": "back c"}}, average="20")])
    yield
    env.change_hpa(metrics=[external("queue", selector={"matchLabels": {"tier": "back"}}, average="20")])
    yield
    yield


@scenario
async def the_larger_of_two_metrics(env: Env) -> AsyncIterator[None]:
    """The metric that decides changes from one sync to the next; of two equal proposals the first is named."""
    await env.workload(2)
    env.use(cpu="300m", memory="200Mi")
    await env.hpa(HALF, resource("memory", average="100Mi"), behavior={"scaleDown": NOW})
    yield
    await env.follow()
    env.use(cpu="450m", memory="80Mi")
    yield
    await env.follow()
    env.use(cpu="125m", memory="50Mi")
    yield
    await env.follow()
    env.use(cpu="100m", memory="105Mi")
    yield


@scenario
async def pods_that_become_ready(env: Env) -> AsyncIterator[None]:
    """Unready pods of a rollout count as idle for growing, until they are ready and measured."""
    await env.workload(4)
    env.use(cpu="400m")
    await env.hpa(HALF, maximum=12)
    for name in ("web-4", "web-5"):
        await env.pod(name, ready="False")
    yield
    env.use("web-4", "web-5", cpu="0")
    yield
    await env.follow()
    env.use(cpu="300m")
    yield


@scenario
async def two_autoscalers_of_one_target(env: Env) -> AsyncIterator[None]:
    """Neither of the two decides; when one is deleted, the other one does."""
    await env.workload(2)
    env.see("queue", "20")
    await env.twin(QUEUE)
    env.see("queue", "35")
    await env.hpa(QUEUE)
    yield
    yield
    await env.delete_twin()
    yield
    await env.follow()
    yield


@scenario
async def windows_of_both_directions(env: Env) -> AsyncIterator[None]:
    await env.workload(4)
    env.see("queue", "40")
    rules = {"scaleUp": {"stabilizationWindowSeconds": 3}, "scaleDown": {"stabilizationWindowSeconds": 5}}
    await env.hpa(QUEUE, behavior=rules)
    yield
    for length in ("90", "10", "60", "60", "20", "20", "20", "20"):
        env.see("queue", length)
        yield


@scenario
async def a_custom_metric_of_some_pods(env: Env) -> AsyncIterator[None]:
    """Pods without a value count as idle for growing, and as busy for shrinking."""
    await env.workload(4)
    env.count("hits", "20", "web-0", "web-1")
    await env.hpa(pods("hits", "5"), behavior={"scaleDown": NOW})
    yield
    env.count("hits", "1", "web-0", "web-1", "web-2")
    yield
    await env.follow()
    env.count("hits", "5500m")
    yield
    env.count("hits", "5501m")
    yield
