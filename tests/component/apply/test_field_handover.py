"""Field handover: the replicas that an autoscaler sets are never set by us, not even at creation or after a crash."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ocf import component
from ocf.cluster import (
    DEFAULT_DELETE_OPTIONS,
    Cluster,
    DeleteOptions,
    ListOptions,
    PatchOptions,
    PatchType,
    Verb,
    WatchOptions,
)
from ocf.component import BEFORE_SUSPENSION, Component, Drift, Result, reconciling
from ocf.concepts import Why
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
        world: The cluster.
        times: How many applies are hit; None for all.
    """

    def __init__(self, world: Env, *, times: int | None) -> None:
        self._world = world
        self.changes = 0
        hit = faults.meanwhile(self._change, kind="Deployment", verbs=[Verb.APPLY], times=times)
        self.cluster = FaultyCluster(world.cluster, [hit])

    async def _change(self) -> None:
        self.changes += 1
        await self._world.change(self._world.web, metadata={"annotations": {"change": str(self.changes)}})


async def one_reconcile(world: Env, cluster: Any, subject: Component) -> Result:
    typed: Cluster = cluster
    async with reconciling(await world.owner_manifest(), typed, clock=world.clock) as context:
        return await subject.reconcile(context)


def with_hpa(web: deployment.Resource, web_hpa: hpa.Resource, *, suspended: bool = False) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_resource(web).with_resource(web_hpa)
    return builder.suspend(suspended).build()


def without_hpa(web: deployment.Resource, *, suspended: bool = False) -> Component:
    return component.Builder("web", condition_type="WebReady").with_resource(web).suspend(suspended).build()


class TestAutoscaled:
    async def test_the_replicas_are_never_sent_not_even_at_creation(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Also where the baseline declares one."""
        writes = Writes(world.cluster)
        for _ in range(3):
            await one_reconcile(world, writes, with_hpa(fixed_web, web_hpa))
            await world.scale(6)
        assert [body for body in writes.applied if "replicas" in body["spec"]] == []
        assert await world.replicas() == 6

    async def test_the_order_of_registration_makes_no_difference(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        builder = component.Builder("web", condition_type="WebReady").with_resource(web_hpa).with_resource(fixed_web)
        writes = Writes(world.cluster)
        await one_reconcile(world, writes, builder.build())
        assert "replicas" not in writes.applied[1]["spec"]

    @pytest.mark.promise("hand-over")
    async def test_fixed_replicas_are_handed_over_without_a_jump(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Dropping a field that only we own would reset it to 1."""
        await world.reconcile(without_hpa(fixed_web))
        version = (await world.cluster.list("apps/v1", "Deployment", ListOptions(namespace="shop"))).resource_version
        await world.reconcile(with_hpa(fixed_web, web_hpa))
        assert await world.replicas() == 4
        watch = world.cluster.watch("apps/v1", "Deployment", WatchOptions(resource_version=version, namespace="shop"))
        counts = []
        async for event in watch:
            counts.append(event.object["spec"]["replicas"])
            if (
                event.object["metadata"]["resourceVersion"]
                == (await world.cluster.get(world.web))["metadata"]["resourceVersion"]
            ):
                break
        await watch.aclose()
        assert set(counts) == {4}
        await world.scale(7)
        assert (await world.reconcile(with_hpa(fixed_web, web_hpa))).writes == 0
        assert await world.replicas() == 7

    async def test_a_handover_is_retried_after_a_conflict(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Another writer changes the object between our read and the first handover."""
        await world.reconcile(without_hpa(fixed_web))
        writer = Interfering(world, times=1)
        outcome = (await one_reconcile(world, writer.cluster, with_hpa(fixed_web, web_hpa))).outcomes[0]
        assert outcome.reasons[0] == Drift("spec.replicas", Why.HANDED_OVER)
        assert (writer.changes, await world.replicas()) == (1, 4)

    async def test_a_handover_ends_when_the_autoscaler_sets_the_count_meanwhile(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await world.reconcile(without_hpa(fixed_web))
        scales = faults.meanwhile(lambda: world.scale(7), kind="Deployment", verbs=[Verb.APPLY])
        outcome = (
            await one_reconcile(world, FaultyCluster(world.cluster, [scales]), with_hpa(fixed_web, web_hpa))
        ).outcomes[0]
        assert Why.HANDED_OVER not in [drift.why for drift in outcome.reasons]
        assert await world.replicas() == 7

    async def test_a_handover_that_always_conflicts_fails_the_reconcile_and_keeps_the_field(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        """Dropping the field without the handover would reset the count to 1."""
        await world.reconcile(without_hpa(fixed_web))
        writer = Interfering(world, times=None)
        with pytest.raises(ReconcileError, match="failed to apply resource apps/v1/Deployment/shop/web"):
            await one_reconcile(world, writer.cluster, with_hpa(fixed_web, web_hpa))
        assert (writer.changes, await world.replicas()) == (5, 4)

    @pytest.mark.promise("hand-over")
    async def test_the_replicas_are_taken_back_without_the_autoscaler(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await world.reconcile(with_hpa(fixed_web, web_hpa))
        await world.scale(7)
        await world.reconcile(without_hpa(fixed_web))
        assert await world.replicas() == 4

    async def test_replicas_set_to_zero_survive(
        self, world: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await world.reconcile(with_hpa(web, web_hpa))
        await world.scale(0)
        await world.reconcile(with_hpa(web, web_hpa, suspended=True))
        await world.reconcile(with_hpa(web, web_hpa))
        assert await world.replicas() == 0

    @pytest.mark.parametrize("suspended_first", [True, False], ids=["while suspended", "on resume"])
    async def test_replicas_forced_before_the_autoscaler_existed_come_from_the_baseline(
        self, world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource, *, suspended_first: bool
    ) -> None:
        """An autoscaler does not scale a target at zero, so a zero that is handed over would stay forever."""
        await world.reconcile(without_hpa(fixed_web))
        before = await world.replicas()
        await world.reconcile(without_hpa(fixed_web, suspended=True))
        if suspended_first:
            await world.reconcile(with_hpa(fixed_web, web_hpa, suspended=True))
        suspended = await world.replicas()
        await world.reconcile(with_hpa(fixed_web, web_hpa))
        assert (suspended, await world.replicas()) == (0, before)
        assert (await world.reconcile(with_hpa(fixed_web, web_hpa))).writes == 0


class TestDeclared:
    async def test_a_declared_ignored_field_is_not_sent(self, world: Env, fixed_web: deployment.Resource) -> None:
        builder = component.Builder("web", condition_type="WebReady")
        subject = builder.with_resource(fixed_web, ignore_fields=["spec.replicas"]).build()
        await world.reconcile(subject)
        await world.scale(9)
        assert (await world.reconcile(subject)).writes == 0
        assert await world.replicas() == 9


class TestSavedValues:
    async def test_the_replicas_are_saved_in_the_write_that_forces_them(
        self, world: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await world.reconcile(with_hpa(web, web_hpa))
        await world.scale(5)
        writes = Writes(world.cluster)
        await one_reconcile(world, writes, with_hpa(web, web_hpa, suspended=True))
        (body,) = writes.applied
        assert body["spec"]["replicas"] == 0
        assert body["metadata"]["annotations"] == {BEFORE_SUSPENSION: '{"spec.replicas":5}'}

    async def test_an_invalid_annotation_is_not_an_error(
        self, world: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await world.reconcile(with_hpa(web, web_hpa))
        await world.reconcile(with_hpa(web, web_hpa, suspended=True))
        spoilt = {"metadata": {"annotations": {BEFORE_SUSPENSION: "{nonsense"}}}
        await world.cluster.patch(world.web, spoilt, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await world.reconcile(with_hpa(web, web_hpa))
        assert (await world.condition())["reason"] != "Error"


@pytest.mark.parametrize("done", [False, True], ids=["before the write", "after the write"])
@pytest.mark.parametrize("crash_at", range(4))
@pytest.mark.parametrize("step", ["hand over", "suspend", "resume"])
async def test_a_crash_does_not_lose_the_replicas(
    world: Env, fixed_web: deployment.Resource, web_hpa: hpa.Resource, step: str, crash_at: int, *, done: bool
) -> None:
    """Whichever write of a step fails, the next reconciles end in the state of an undisturbed run."""
    await world.reconcile(without_hpa(fixed_web))
    if step != "hand over":
        await world.reconcile(with_hpa(fixed_web, web_hpa))
        await world.scale(6)
    if step == "resume":
        await world.reconcile(with_hpa(fixed_web, web_hpa, suspended=True))
    subject = with_hpa(fixed_web, web_hpa, suspended=step == "suspend")
    crashing = Writes(world.cluster, fail_at=crash_at, done=done)
    try:
        await one_reconcile(world, crashing, subject)
    except Exception:  # noqa: BLE001 (every error of the reconcile is the crash)
        assert crashing.count > crash_at
    for _ in range(2):
        await world.reconcile(subject)
    world.cluster.requests.clear()
    await world.reconcile(subject)
    assert world.cluster.requests.writes == 0
    if step == "suspend":
        assert (await world.replicas(), await world.exists(world.hpa)) == (0, False)
        await world.reconcile(with_hpa(fixed_web, web_hpa))
    assert await world.replicas() == (4 if step == "hand over" else 6)
    assert await world.exists(world.hpa)


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
    new_world: Callable[[], Awaitable[Env]], scaled: Callable[..., Component], steps: list[str]
) -> None:
    """Unless suspended, the replicas are those last set from outside; after convergence nothing is written.

    Hours pass between the steps: otherwise scaling a suspended workload again and again would start the write backoff.
    """
    asyncio.run(_interleave(new_world, scaled, steps))


async def _interleave(
    new_world: Callable[[], Awaitable[Env]], scaled: Callable[..., Component], steps: list[str]
) -> None:
    world = await new_world()
    suspended, expected = False, 1
    await world.reconcile(scaled())
    for step in steps:
        world.clock.advance(timedelta(hours=12))
        if step.startswith("scale"):
            expected = int(step.split()[1])
            await world.scale(expected)
            continue
        suspended = {"suspend": True, "resume": False}.get(step, suspended)
        await world.reconcile(scaled(suspended=suspended))
        assert await world.replicas() == (0 if suspended else expected)
    await world.reconcile(scaled(suspended=suspended))
    world.cluster.requests.clear()
    await world.reconcile(scaled(suspended=suspended))
    assert world.cluster.requests.writes == 0
