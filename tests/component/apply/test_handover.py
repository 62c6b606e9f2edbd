"""Field handover: the replicas that an autoscaler sets are never set by us, not even at creation or after a crash."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ocf import component
from ocf.cluster import Cluster, DeleteOptions, ListOptions, PatchOptions, PatchType, Verb, WatchOptions
from ocf.cluster.protocol import DEFAULT_DELETE_OPTIONS
from ocf.component import BEFORE_SUSPENSION, Component, Result, reconciling
from ocf.component.status.results import Drift
from ocf.concepts.recorder import Why
from ocf.errors import ReconcileError, ServerError
from ocf.objects import ObjectKey
from ocf.primitives import deployment, hpa
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from tests.component.conftest import Env


class Writes:
    """A cluster that records every applied body, and fails a chosen write before or after it is done."""

    def __init__(self, cluster: Cluster, *, fail_at: int = -1, done: bool = False) -> None:
        self._cluster = cluster
        self._fail_at = fail_at
        self._done = done
        self.applied: list[Manifest] = []
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        self.applied.append(manifest)
        answer: Manifest = await self._attempt(lambda: self._cluster.apply(manifest, **options))
        return answer

    async def delete(self, key: ObjectKey, options: DeleteOptions = DEFAULT_DELETE_OPTIONS) -> None:
        await self._attempt(lambda: self._cluster.delete(key, options))

    async def update(self, manifest: Manifest, **options: Any) -> Manifest:
        answer: Manifest = await self._attempt(lambda: self._cluster.update(manifest, **options))
        return answer

    async def _attempt(self, write: Callable[[], Awaitable[Any]]) -> Any:
        self.count += 1
        failing = self.count - 1 == self._fail_at
        if failing and not self._done:
            raise ServerError("crashed before the write")
        result = await write()
        if failing:
            raise ServerError("crashed after the write")
        return result


class Interfering:
    """Another writer, which changes the Deployment while an apply is on its way; the count stays as it is.

    Args:
        env: The environment.
        times: How many applies are hit; None for all.
    """

    def __init__(self, env: Env, *, times: int | None) -> None:
        self._world = env
        self.changes = 0
        hit = faults.meanwhile(self._change, kind="Deployment", verbs=[Verb.APPLY], times=times)
        self.cluster = FaultyCluster(env.cluster, [hit])

    async def _change(self) -> None:
        self.changes += 1
        await self._world.change(self._world.web, metadata={"annotations": {"change": str(self.changes)}})


async def one_reconcile(env: Env, cluster: Any, subject: Component) -> Result:
    typed: Cluster = cluster
    async with reconciling(await env.owner_manifest(), typed, clock=env.clock) as context:
        return await subject.reconcile(context)


def with_hpa(web: deployment.Resource, web_hpa: hpa.Resource, *, suspended: bool = False) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web).with_resource(web_hpa)
    return builder.suspend(suspended).build()


def without_hpa(web: deployment.Resource, *, suspended: bool = False) -> Component:
    return component.Builder("web", condition_type="WebReady").with_resource(web).suspend(suspended).build()


class TestAutoscaled:
    async def test_the_replicas_are_never_sent_not_even_at_creation(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Also where the baseline declares one."""
        writes = Writes(env.cluster)
        for _ in range(3):
            await one_reconcile(env, writes, with_hpa(fixed_web, web_hpa))
            await env.scale(6)
        assert [body for body in writes.applied if "replicas" in body["spec"]] == []
        assert await env.replicas() == 6

    async def test_the_order_of_registration_makes_no_difference(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        builder = component.Builder("web", condition_type="WebReady").with_resource(web_hpa).with_resource(fixed_web)
        writes = Writes(env.cluster)
        await one_reconcile(env, writes, builder.build())
        assert "replicas" not in writes.applied[1]["spec"]

    @pytest.mark.promise("hand-over")
    async def test_fixed_replicas_are_handed_over_without_a_jump(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Dropping a field that only we own would reset it to 1."""
        await env.reconcile(without_hpa(fixed_web))
        version = (await env.cluster.list("apps/v1", "Deployment", ListOptions(namespace="shop"))).resource_version
        await env.reconcile(with_hpa(fixed_web, web_hpa))
        assert await env.replicas() == 4
        watch = env.cluster.watch("apps/v1", "Deployment", WatchOptions(resource_version=version, namespace="shop"))
        counts = []
        async for event in watch:
            counts.append(event.object["spec"]["replicas"])
            if (
                event.object["metadata"]["resourceVersion"]
                == (await env.cluster.get(env.web))["metadata"]["resourceVersion"]
            ):
                break
        await watch.aclose()
        assert set(counts) == {4}
        await env.scale(7)
        assert (await env.reconcile(with_hpa(fixed_web, web_hpa))).writes == 0
        assert await env.replicas() == 7

    async def test_a_handover_is_retried_after_a_conflict(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Another writer changes the object between our read and the first handover."""
        await env.reconcile(without_hpa(fixed_web))
        writer = Interfering(env, times=1)
        outcome = (await one_reconcile(env, writer.cluster, with_hpa(fixed_web, web_hpa))).outcomes[0]
        assert outcome.reasons[0] == Drift("spec.replicas", Why.HANDED_OVER)
        assert (writer.changes, await env.replicas()) == (1, 4)

    async def test_a_handover_ends_when_the_autoscaler_sets_the_count_meanwhile(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await env.reconcile(without_hpa(fixed_web))
        scales = faults.meanwhile(lambda: env.scale(7), kind="Deployment", verbs=[Verb.APPLY])
        outcome = (
            await one_reconcile(env, FaultyCluster(env.cluster, [scales]), with_hpa(fixed_web, web_hpa))
        ).outcomes[0]
        assert Why.HANDED_OVER not in [drift.why for drift in outcome.reasons]
        assert await env.replicas() == 7

    async def test_a_handover_that_always_conflicts_fails_the_reconcile_and_keeps_the_field(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Dropping the field without the handover would reset the count to 1."""
        await env.reconcile(without_hpa(fixed_web))
        writer = Interfering(env, times=None)
        with pytest.raises(ReconcileError, match="failed to apply resource apps/v1/Deployment/shop/web"):
            await one_reconcile(env, writer.cluster, with_hpa(fixed_web, web_hpa))
        assert (writer.changes, await env.replicas()) == (5, 4)

    @pytest.mark.promise("hand-over")
    async def test_the_replicas_are_taken_back_without_the_autoscaler(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await env.reconcile(with_hpa(fixed_web, web_hpa))
        await env.scale(7)
        await env.reconcile(without_hpa(fixed_web))
        assert await env.replicas() == 4

    async def test_replicas_set_to_zero_survive(
        self, env: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await env.reconcile(with_hpa(web, web_hpa))
        await env.scale(0)
        await env.reconcile(with_hpa(web, web_hpa, suspended=True))
        await env.reconcile(with_hpa(web, web_hpa))
        assert await env.replicas() == 0

    @pytest.mark.parametrize("suspended_first", [True, False], ids=["while suspended", "on resume"])
    async def test_replicas_forced_before_the_autoscaler_existed_come_from_the_baseline(
        self, env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource, *, suspended_first: bool
    ) -> None:
        """An autoscaler does not scale a target at zero, so a zero that is handed over would stay forever."""
        await env.reconcile(without_hpa(fixed_web))
        before = await env.replicas()
        await env.reconcile(without_hpa(fixed_web, suspended=True))
        if suspended_first:
            await env.reconcile(with_hpa(fixed_web, web_hpa, suspended=True))
        suspended = await env.replicas()
        await env.reconcile(with_hpa(fixed_web, web_hpa))
        assert (suspended, await env.replicas()) == (0, before)
        assert (await env.reconcile(with_hpa(fixed_web, web_hpa))).writes == 0


class TestDeclared:
    async def test_a_declared_ignored_field_is_not_sent(self, env: Env, fixed_web: deployment.Resource) -> None:
        builder = component.Builder("web", condition_type="WebReady")
        subject = builder.with_resource(fixed_web, ignore_fields=["spec.replicas"]).build()
        await env.reconcile(subject)
        await env.scale(9)
        assert (await env.reconcile(subject)).writes == 0
        assert await env.replicas() == 9


class TestSavedValues:
    async def test_the_replicas_are_saved_in_the_write_that_forces_them(
        self, env: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await env.reconcile(with_hpa(web, web_hpa))
        await env.scale(5)
        writes = Writes(env.cluster)
        await one_reconcile(env, writes, with_hpa(web, web_hpa, suspended=True))
        (body,) = writes.applied
        assert body["spec"]["replicas"] == 0
        assert body["metadata"]["annotations"] == {BEFORE_SUSPENSION: '{"spec.replicas":5}'}

    async def test_an_invalid_annotation_is_not_an_error(
        self, env: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await env.reconcile(with_hpa(web, web_hpa))
        await env.reconcile(with_hpa(web, web_hpa, suspended=True))
        spoilt = {"metadata": {"annotations": {BEFORE_SUSPENSION: "{nonsense"}}}
        await env.cluster.patch(env.web, spoilt, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await env.reconcile(with_hpa(web, web_hpa))
        assert (await env.condition())["reason"] != "Error"


@pytest.mark.parametrize("done", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("crash_at", range(4))
@pytest.mark.parametrize("step", ["hand over", "suspend", "resume"])
async def test_a_crash_does_not_lose_the_replicas(
    env: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource, step: str, crash_at: int, *, done: bool
) -> None:
    """Whichever write of a step fails, the next reconciles end in the state of an undisturbed run."""
    await env.reconcile(without_hpa(fixed_web))
    if step != "hand over":
        await env.reconcile(with_hpa(fixed_web, web_hpa))
        await env.scale(6)
    if step == "resume":
        await env.reconcile(with_hpa(fixed_web, web_hpa, suspended=True))
    subject = with_hpa(fixed_web, web_hpa, suspended=step == "suspend")
    crashing = Writes(env.cluster, fail_at=crash_at, done=done)
    try:
        await one_reconcile(env, crashing, subject)
    except Exception:  # noqa: BLE001 (every error of the reconcile is the crash)
        assert crashing.count > crash_at
    for _ in range(2):
        await env.reconcile(subject)
    env.cluster.requests.clear()
    await env.reconcile(subject)
    assert env.cluster.requests.writes == 0
    if step == "suspend":
        assert (await env.replicas(), await env.exists(env.hpa)) == (0, False)
        await env.reconcile(with_hpa(fixed_web, web_hpa))
    assert await env.replicas() == (4 if step == "hand over" else 6)
    assert await env.exists(env.hpa)


STEPS = st.lists(
    st.one_of(
        st.sampled_from(["reconcile", "suspend", "resume"]),
        st.integers(1, 10).map(lambda count: f"scale {count}"),
    ),
    max_size=12,
)


@pytest.mark.embedded_only("many reconciles in separate event loops; its cases run on both above")
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
@example(steps=["suspend", *["scale 1", "reconcile"] * 4])
def test_no_interleaving_resets_the_replicas(
    new_env: Callable[[], Awaitable[Env]], scaled: Callable[..., Component], steps: list[str]
) -> None:
    """Unless suspended, the replicas are those last set from outside; after convergence nothing is written.

    Hours pass between the steps: otherwise scaling a suspended workload again and again would start the write backoff.
    """
    asyncio.run(_interleave(new_env, scaled, steps))


async def _interleave(
    new_env: Callable[[], Awaitable[Env]], scaled: Callable[..., Component], steps: list[str]
) -> None:
    env = await new_env()
    suspended, expected = False, 1
    await env.reconcile(scaled())
    for step in steps:
        env.clock.advance(timedelta(hours=12))
        if step.startswith("scale"):
            expected = int(step.split()[1])
            await env.scale(expected)
            continue
        suspended = {"suspend": True, "resume": False}.get(step, suspended)
        await env.reconcile(scaled(suspended=suspended))
        assert await env.replicas() == (0 if suspended else expected)
    await env.reconcile(scaled(suspended=suspended))
    env.cluster.requests.clear()
    await env.reconcile(scaled(suspended=suspended))
    assert env.cluster.requests.writes == 0
