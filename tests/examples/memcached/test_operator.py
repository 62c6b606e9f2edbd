"""The running operator in virtual time: its triggers, requests, metrics and events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.memcached import monitor
from examples.memcached.metrics import Metrics
from examples.memcached.model import Memcached
from examples.memcached.operator import NAME, operator
from examples.memcached.samples import AUTOSCALED, EVERYTHING, PLAIN
from ocf.cluster import ListOptions, PatchOptions, PatchType
from ocf.errors import NotFoundError
from ocf.objects import Manifest
from ocf.runtime.operator import ManagerOptions, running
from ocf.testing import LoopClock, fake_workload_controllers, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.examples.memcached.env import Env, embedded_kubelet

HPA = "HorizontalPodAutoscaler"
MINUTE = 60.0


class OperatorEnv(Env):
    """A cluster with a running operator."""

    def __init__(self, clock: LoopClock, *, monitors: bool) -> None:
        self.server = EmbeddedCluster(namespaces=["caches"], now=clock.now)
        super().__init__(self.server, "caches", embedded_kubelet)
        self.loop_clock = clock
        self.metrics = Metrics(clock=clock)
        self._monitors = monitors

    @asynccontextmanager
    async def operating(self) -> AsyncIterator[None]:
        kinds = [Memcached.definition(), *([monitor.DEFINITION] if self._monitors else [])]
        for one in kinds:
            await self.server.create(one, field_manager="user")
        options = ManagerOptions(listen=None, clock=self.loop_clock, random=lambda: 0.5)
        async with (
            fake_workload_controllers(self.server),
            running(self.server, operator(self.metrics), options=options),
        ):
            yield

    async def events(self) -> list[tuple[str, str, str, str]]:
        found = (await self.server.list("events.k8s.io/v1", "Event", ListOptions(namespace="caches"))).items
        return [(one["reason"], one["action"], one["note"], one["reportingController"]) for one in found]

    def sample(self, metric: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"memcached_operator_{metric}", labels)


def run_test(test: Callable[[OperatorEnv], Awaitable[None]], *, monitors: bool = True) -> None:
    async def on_stage() -> None:
        env = OperatorEnv(LoopClock(), monitors=monitors)
        async with env.operating():
            await test(env)

    run_in_virtual_time(on_stage())


def test_a_ready_cache_causes_no_requests() -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(AUTOSCALED)
        await asyncio.sleep(MINUTE)
        ready = (await env.conditions())["Ready"]
        env.server.requests.clear()
        await asyncio.sleep(5 * MINUTE)

        assert ready == ("True", "MemcachedReady", "All 1 replicas are ready")
        assert env.server.requests.writes == 0
        assert {request.verb for request in env.server.requests} <= {"watch"}

    run_test(test)


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        pytest.param(HPA, {"spec": {"maxReplicas": 99}}, id="the autoscaler"),
        pytest.param("Deployment", {"metadata": {"labels": {"app.kubernetes.io/name": "mine"}}}, id="the Deployment"),
        pytest.param("Service", {"spec": {"selector": {"a": "b"}}}, id="the Service"),
        pytest.param("NetworkPolicy", {"spec": {"ingress": []}}, id="the NetworkPolicy"),
        pytest.param("ServiceMonitor", {"spec": {"endpoints": []}}, id="the ServiceMonitor"),
        pytest.param("PodDisruptionBudget", {"spec": {"maxUnavailable": 7}}, id="the PodDisruptionBudget"),
    ],
)
def test_drift_is_reverted_when_its_event_arrives(kind: str, patch: Manifest) -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(EVERYTHING)
        await asyncio.sleep(MINUTE)
        before = await env.get(kind)
        await env.meddle(kind, **patch)
        await asyncio.sleep(1)
        after = await env.get(kind)

        assert after["spec"] == before["spec"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    run_test(test)


def test_a_created_or_changed_secret_is_rolled_out() -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(EVERYTHING)
        await asyncio.sleep(MINUTE)
        degraded = (await env.conditions())["Degraded"]
        hashes = [await annotation(env)]
        for text in ("a", "b"):
            await env.secret("my-cache-sasl", **{"password-file": text})
            await asyncio.sleep(1)
            hashes.append(await annotation(env))

        assert degraded[2] == "Referenced Secrets not found: my-cache-sasl, my-cache-tls"
        assert (await env.conditions())["Degraded"][2] == "Referenced Secrets not found: my-cache-tls"
        assert len(set(hashes)) == 3

    async def annotation(env: OperatorEnv) -> str:
        template = (await env.get("Deployment"))["spec"]["template"]
        return str(template["metadata"]["annotations"].get("memcached.c5c3.io/secret-hash", ""))

    run_test(test)


def test_events_in_the_operators_own_words() -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(AUTOSCALED)
        await asyncio.sleep(MINUTE)
        await env.change(autoscaling=None, image="memcached:1.6.1")
        await asyncio.sleep(MINUTE)
        made = ", ".join(f"{kind} my-cache" for kind in ("Deployment", HPA, "Service"))
        notes = [("Created", f"Created 3 objects: {made}"), ("Updated", "Updated Deployment my-cache")]
        reporter = f"memcached.c5c3.io/{NAME}"

        # None for the autoscaler that was deleted.
        assert await env.events() == [(reason, "Reconcile", note, reporter) for reason, note in notes]

    run_test(test)


def test_metrics_are_removed_with_the_cache() -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(PLAIN)
        await asyncio.sleep(MINUTE)
        one: dict[str, Any] = {"name": "my-cache", "namespace": "caches"}
        shown = [
            env.sample("instance_info", **one, image="memcached:1.6"),
            env.sample("instance_replicas_desired", **one),
            env.sample("instance_replicas_ready", **one),
        ]
        passes = env.sample("reconcile_total", **one, result="success")
        durations = env.sample("reconcile_duration_seconds_count", **one)
        await env.change(image="memcached:1.6.1", replicas=2)
        await asyncio.sleep(MINUTE)
        images = [env.sample("instance_info", **one, image=f"memcached:{tag}") for tag in ("1.6", "1.6.1")]
        await env.server.delete(env.owner)
        await asyncio.sleep(MINUTE)
        left = [
            sample
            for family in env.metrics.registry.collect()
            for sample in family.samples
            if sample.labels.get("name") == "my-cache"
        ]

        assert shown == [1, 3, 3]
        assert passes is not None
        assert passes == durations
        assert images == [None, 1]
        assert left == []
        assert (env.sample("reconcile_resource_total", resource_kind="Deployment", result="success") or 0) > 0

    run_test(test)


def test_a_failed_reconcile_is_counted_and_reported() -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(PLAIN)
        await asyncio.sleep(MINUTE)
        bad = {"spec": {"autoscaling": {"enabled": True}}}  # without webhooks the missing upper limit is accepted
        await env.server.patch(env.owner, bad, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await asyncio.sleep(MINUTE)

        assert (await env.conditions())["Degraded"][1] == "Degraded"
        assert (env.sample("reconcile_resource_total", resource_kind=HPA, result="error") or 0) > 0
        assert (env.sample("reconcile_total", name="my-cache", namespace="caches", result="error") or 0) > 0
        await env.change(autoscaling={"enabled": True, "maxReplicas": 4})
        await asyncio.sleep(2 * MINUTE)
        assert (await env.conditions())["Degraded"][1] == "NotDegraded"

    run_test(test)


def test_without_the_kind_service_monitor_other_caches_are_reconciled() -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(AUTOSCALED)
        await asyncio.sleep(MINUTE)
        ready = (await env.conditions())["Ready"][0]
        env.server.requests.clear()
        await asyncio.sleep(10 * MINUTE)
        writes, others = env.server.requests.writes, len(list(env.server.requests))
        await env.change(monitoring={"enabled": True, "serviceMonitor": {}})
        await asyncio.sleep(MINUTE)
        degraded = (await env.conditions())["Degraded"]
        await env.server.create(monitor.DEFINITION, field_manager="user")
        await asyncio.sleep(10 * MINUTE)

        assert (ready, writes) == ("True", 0)
        assert others < 100
        assert degraded[1] == "Degraded"
        assert "monitoring.coreos.com/v1/ServiceMonitor" in degraded[2]
        assert (await env.conditions())["Degraded"][1] == "NotDegraded"
        assert await env.exists("ServiceMonitor")

    run_test(test, monitors=False)


def test_all_objects_of_a_deleted_cache_are_deleted() -> None:
    async def test(env: OperatorEnv) -> None:
        await env.create(EVERYTHING)
        await asyncio.sleep(MINUTE)
        await env.server.delete(env.owner)
        await asyncio.sleep(MINUTE)

        with pytest.raises(NotFoundError):
            await env.get("Memcached")
        kinds = ("Deployment", HPA, "Service", "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy")
        assert not any([await env.exists(kind) for kind in kinds])

    run_test(test)
