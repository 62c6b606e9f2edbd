"""The running operator in virtual time: its triggers, requests, metrics and events."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from examples.memcached import monitor
from examples.memcached.definition import definition
from examples.memcached.metrics import Metrics
from examples.memcached.operator import NAME, operator
from examples.memcached.samples import AUTOSCALED, EVERYTHING, PLAIN
from ocf.cluster import ListOptions, PatchOptions, PatchType
from ocf.embedded import EmbeddedCluster
from ocf.errors import NotFoundError
from ocf.objects import Manifest
from ocf.runtime.operator import ManagerOptions, running
from ocf.testing import LoopClock, fake_workload_controllers, run_in_virtual_time
from tests.examples.memcached.worlds import Env, embedded_kubelet

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
        kinds = [definition(), *([monitor.DEFINITION] if self._monitors else [])]
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


def play(test: Callable[[OperatorEnv], Awaitable[None]], *, monitors: bool = True) -> None:
    async def on_stage() -> None:
        stage = OperatorEnv(LoopClock(), monitors=monitors)
        async with stage.operating():
            await test(stage)

    run_in_virtual_time(on_stage())


def test_a_ready_cache_causes_no_requests() -> None:
    async def test(stage: OperatorEnv) -> None:
        await stage.create(AUTOSCALED)
        await asyncio.sleep(MINUTE)
        ready = (await stage.conditions())["Ready"]
        stage.server.requests.clear()
        await asyncio.sleep(5 * MINUTE)

        assert ready == ("True", "MemcachedReady", "All 1 replicas are ready")
        assert stage.server.requests.writes == 0
        assert {request.verb for request in stage.server.requests} <= {"watch"}

    play(test)


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
    async def test(stage: OperatorEnv) -> None:
        await stage.create(EVERYTHING)
        await asyncio.sleep(MINUTE)
        before = await stage.get(kind)
        await stage.meddle(kind, **patch)
        await asyncio.sleep(1)
        after = await stage.get(kind)

        assert after["spec"] == before["spec"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]

    play(test)


def test_a_created_or_changed_secret_is_rolled_out() -> None:
    async def test(stage: OperatorEnv) -> None:
        await stage.create(EVERYTHING)
        await asyncio.sleep(MINUTE)
        degraded = (await stage.conditions())["Degraded"]
        hashes = [await annotation(stage)]
        for text in ("a", "b"):
            await stage.secret("my-cache-sasl", **{"password-file": text})
            await asyncio.sleep(1)
            hashes.append(await annotation(stage))

        assert degraded[2] == "Referenced Secrets not found: my-cache-sasl, my-cache-tls"
        assert (await stage.conditions())["Degraded"][2] == "Referenced Secrets not found: my-cache-tls"
        assert len(set(hashes)) == 3

    async def annotation(stage: OperatorEnv) -> str:
        template = (await stage.get("Deployment"))["spec"]["template"]
        return str(template["metadata"]["annotations"].get("memcached.c5c3.io/secret-hash", ""))

    play(test)


def test_events_in_the_operators_own_words() -> None:
    async def test(stage: OperatorEnv) -> None:
        await stage.create(AUTOSCALED)
        await asyncio.sleep(MINUTE)
        await stage.change(autoscaling=None, image="memcached:1.6.1")
        await asyncio.sleep(MINUTE)
        names = [
            ("Created", "Deployment"),
            ("Created", HPA),
            ("Created", "Service"),
            ("Updated", "Deployment"),
        ]
        reporter = f"memcached.c5c3.io/{NAME}"

        # None for the autoscaler that was deleted.
        assert await stage.events() == [(why, "Reconcile", f"{why} {kind} my-cache", reporter) for why, kind in names]

    play(test)


def test_metrics_are_removed_with_the_cache() -> None:
    async def test(stage: OperatorEnv) -> None:
        await stage.create(PLAIN)
        await asyncio.sleep(MINUTE)
        one: dict[str, Any] = {"name": "my-cache", "namespace": "caches"}
        shown = [
            stage.sample("instance_info", **one, image="memcached:1.6"),
            stage.sample("instance_replicas_desired", **one),
            stage.sample("instance_replicas_ready", **one),
        ]
        passes = stage.sample("reconcile_total", **one, result="success")
        durations = stage.sample("reconcile_duration_seconds_count", **one)
        await stage.change(image="memcached:1.6.1", replicas=2)
        await asyncio.sleep(MINUTE)
        images = [stage.sample("instance_info", **one, image=f"memcached:{tag}") for tag in ("1.6", "1.6.1")]
        await stage.server.delete(stage.owner)
        await asyncio.sleep(MINUTE)
        left = [
            sample
            for family in stage.metrics.registry.collect()
            for sample in family.samples
            if sample.labels.get("name") == "my-cache"
        ]

        assert shown == [1, 3, 3]
        assert passes is not None
        assert passes == durations
        assert images == [None, 1]
        assert left == []
        assert (stage.sample("reconcile_resource_total", resource_kind="Deployment", result="success") or 0) > 0

    play(test)


def test_a_failed_reconcile_is_counted_and_reported() -> None:
    async def test(stage: OperatorEnv) -> None:
        await stage.create(PLAIN)
        await asyncio.sleep(MINUTE)
        bad = {"spec": {"autoscaling": {"enabled": True}}}  # without webhooks the missing upper limit is accepted
        await stage.server.patch(stage.owner, bad, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await asyncio.sleep(MINUTE)

        assert (await stage.conditions())["Degraded"][1] == "Degraded"
        assert (stage.sample("reconcile_resource_total", resource_kind=HPA, result="error") or 0) > 0
        assert (stage.sample("reconcile_total", name="my-cache", namespace="caches", result="error") or 0) > 0
        await stage.change(autoscaling={"enabled": True, "maxReplicas": 4})
        await asyncio.sleep(2 * MINUTE)
        assert (await stage.conditions())["Degraded"][1] == "NotDegraded"

    play(test)


def test_without_the_kind_service_monitor_other_caches_are_reconciled() -> None:
    async def test(stage: OperatorEnv) -> None:
        await stage.create(AUTOSCALED)
        await asyncio.sleep(MINUTE)
        ready = (await stage.conditions())["Ready"][0]
        stage.server.requests.clear()
        await asyncio.sleep(10 * MINUTE)
        writes, others = stage.server.requests.writes, len(list(stage.server.requests))
        await stage.change(monitoring={"enabled": True, "serviceMonitor": {}})
        await asyncio.sleep(MINUTE)
        degraded = (await stage.conditions())["Degraded"]
        await stage.server.create(monitor.DEFINITION, field_manager="user")
        await asyncio.sleep(10 * MINUTE)

        assert (ready, writes) == ("True", 0)
        assert others < 100
        assert degraded[1] == "Degraded"
        assert "monitoring.coreos.com/v1/ServiceMonitor" in degraded[2]
        assert (await stage.conditions())["Degraded"][1] == "NotDegraded"
        assert await stage.exists("ServiceMonitor")

    play(test, monitors=False)


def test_all_objects_of_a_deleted_cache_are_deleted() -> None:
    async def test(stage: OperatorEnv) -> None:
        await stage.create(EVERYTHING)
        await asyncio.sleep(MINUTE)
        await stage.server.delete(stage.owner)
        await asyncio.sleep(MINUTE)

        with pytest.raises(NotFoundError):
            await stage.get("Memcached")
        kinds = ("Deployment", HPA, "Service", "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy")
        assert not any([await stage.exists(kind) for kind in kinds])

    play(test)
