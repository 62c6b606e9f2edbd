"""Crash matrix: each write is disturbed once in each way, and each different end state is reported with its write."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from ocf import component
from ocf.cluster import Cluster, ListOptions, PatchOptions, PatchType, Subresource, Verb
from ocf.component import Component
from ocf.errors import ApiError, ConfigError, NotFoundError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.timestamps import format_time, parse_time
from ocf.primitives import deployment, hpa
from ocf.testing import VirtualClock, crash_at_each_write
from ocf.testing.simulated_process import Disturbance, SimulatedCluster, SimulatedCrash, SimulatedProcess
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.testing.conftest import Operator

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
WEB = ObjectKey("apps/v1", "Deployment", "web", "shop")
PORTS: Manifest = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "ports", "namespace": "shop"},
    "spec": {"ports": [{"port": 80}]},
}
SCALER = ObjectKey("autoscaling/v2", "HorizontalPodAutoscaler", "web", "shop")


@pytest.fixture
def new_cluster(operator: Operator) -> Callable[[], Awaitable[Cluster]]:
    return operator.new_cluster


async def exists(cluster: Cluster, manifest: Manifest) -> bool:
    try:
        await cluster.get(ObjectKey.of(manifest))
    except NotFoundError:
        return False
    return True


async def controllers(cluster: Cluster) -> None:
    """Report a healthy status, as the controllers of Deployment and autoscaler do."""
    try:
        live = await cluster.get(WEB)
        counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), live["spec"]["replicas"])
        await report(cluster, WEB, {"observedGeneration": live["metadata"]["generation"], **counts})
        await report(cluster, SCALER, {"conditions": [{"type": "ScalingActive", "status": "True"}]})
    except NotFoundError:
        return


async def report(cluster: Cluster, key: ObjectKey, status: Manifest) -> None:
    await cluster.patch(
        key,
        {"status": status},
        PatchOptions(patch_type=PatchType.MERGE, field_manager="controller", subresource=Subresource.STATUS),
    )


class TestComponents:
    @pytest.mark.promise("refused-write", runs="every write of a creation, each in 4 ways")
    @pytest.mark.promise("crash")
    async def test_reach_the_same_state_after_every_disturbance(
        self, operator: Operator, new_cluster: Callable[[], Awaitable[Cluster]]
    ) -> None:
        report = await crash_at_each_write(new_cluster, operator.reconcile, others=controllers)
        assert [(write.verb, write.kind) for write in report.writes] == [
            (Verb.APPLY, "Deployment"),
            (Verb.APPLY, "HorizontalPodAutoscaler"),
            (Verb.UPDATE, "Shop"),
            (Verb.UPDATE, "Shop"),
        ]
        assert len(report.rows) == 16
        report.assert_same()

    @pytest.mark.parametrize("step", ["hand over", "suspend", "resume"])
    async def test_lose_no_count(self, operator: Operator, web_base: Manifest, hpa_base: Manifest, step: str) -> None:
        fixed = copy_json(web_base)
        fixed["spec"]["replicas"] = 4
        web, scaler = deployment.Builder(fixed).build(), hpa.Builder(hpa_base).build()

        def build(*, scaled: bool = True, suspended: bool = False) -> Component:
            builder = component.Builder("web", condition_type="WebReady").with_resource(web)
            return (builder.with_resource(scaler) if scaled else builder).suspend(suspended).build()

        async def new_cluster() -> Cluster:
            cluster = await operator.new_cluster()
            for subject in {
                "hand over": [build(scaled=False)],
                "suspend": [build()],
                "resume": [build(), build(suspended=True)],
            }[step]:
                operator.subject = subject
                await operator.reconcile(cluster)
                await controllers(cluster)
            operator.subject = build(suspended=step == "suspend")
            return cluster

        report = await crash_at_each_write(new_cluster, operator.reconcile, others=controllers)
        report.assert_same()
        assert len(report.writes) > 2


class TestFindings:
    async def test_an_object_that_is_created_twice(self, new_cluster: Callable[[], Awaitable[Cluster]]) -> None:
        """Only the operator's memory knows that the object was created."""
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-", "namespace": "shop"}}

        async def forgetful(cluster: Cluster) -> None:
            found = await cluster.list("v1", "ConfigMap", ListOptions(namespace="shop", label_selector="done=yes"))
            if found.items:
                return
            made = await cluster.create(manifest, field_manager="me")
            patch = {"metadata": {"labels": {"done": "yes"}}}
            await cluster.patch(ObjectKey.of(made), patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="me"))

        report = await crash_at_each_write(new_cluster, forgetful)
        assert {(row.number, row.disturbance) for row in report.different} == {
            (1, Disturbance.CRASH_AFTER),
            (1, Disturbance.LOST_REPLY),
            (2, Disturbance.CRASH_BEFORE),
            (2, Disturbance.REJECTED),
        }
        with pytest.raises(AssertionError) as failed:
            report.assert_same()
        text = str(failed.value)
        assert text.startswith("4 of 8 disturbed runs ended differently from the undisturbed one:\n\n")
        assert "crash after write 1, create v1/ConfigMap/shop/run- by me: differs\n--- v1/ConfigMap/shop/run-" in text
        assert "was created 1 times, undisturbed 0 times" in text

    async def test_a_step_that_is_never_repeated(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        """The operator takes the last step as proof of the first."""

        async def careless(cluster: Cluster) -> None:
            if not await exists(cluster, settings("marker")):
                await cluster.create(settings("marker"), field_manager="me")
                await cluster.create(settings("work"), field_manager="me")

        report = await crash_at_each_write(new_cluster, careless, disturbances=[Disturbance.CRASH_AFTER])
        (row,) = report.different
        assert row.number == 1
        assert "-  name: work" in row.problems[0].splitlines()
        assert row.problems[1:] == ("v1/ConfigMap/shop/work was created 0 times, undisturbed 1 times",)

    async def test_an_object_that_is_deleted_and_recreated(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        """The final state is the same, but an object was deleted on the way; only the counts show it."""

        async def nervous(cluster: Cluster) -> None:
            if not await exists(cluster, settings("a")):
                await cluster.create(settings("a"), field_manager="me")
            elif not await exists(cluster, settings("b")):
                await cluster.delete(ObjectKey.of(settings("a")))
                await cluster.create(settings("a"), field_manager="me")
            if not await exists(cluster, settings("b")):
                await cluster.create(settings("b"), field_manager="me")

        report = await crash_at_each_write(new_cluster, nervous, disturbances=[Disturbance.CRASH_AFTER])
        (row,) = report.different
        assert row.problems == (
            "v1/ConfigMap/shop/a was created 2 times, undisturbed 1 times",
            "v1/ConfigMap/shop/a was deleted 1 times, undisturbed 0 times",
        )

    async def test_an_operator_that_never_recovers(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        async def stuck(cluster: Cluster) -> None:
            if not await exists(cluster, settings("b")):
                await cluster.create(settings("a"), field_manager="me")
                await cluster.create(settings("b"), field_manager="me")

        report = await crash_at_each_write(new_cluster, stuck, disturbances=[Disturbance.CRASH_AFTER], max_reconciles=3)
        (row,) = report.different
        (problem,) = row.problems
        assert problem.startswith(
            "still not in sync after 3 reconciles, the last of which failed with AlreadyExistsError: "
        )

    async def test_an_operator_that_writes_differently_in_each_run(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        names = iter("abcdefgh")

        async def moody(cluster: Cluster) -> None:
            if not (await cluster.list("v1", "ConfigMap")).items:
                await cluster.create(settings(next(names)), field_manager="me")

        report = await crash_at_each_write(new_cluster, moody, disturbances=[Disturbance.REJECTED])
        assert "if the operator writes the same in each" in report.different[0].problems[0]


class TestRuns:
    async def test_each_starts_in_a_new_cluster(self, operator: Operator, settings: Callable[..., Manifest]) -> None:
        made: list[EmbeddedCluster] = []

        async def new_cluster() -> Cluster:
            made.append(await operator.new_cluster())
            return made[-1]

        async def once(cluster: Cluster) -> None:
            if not await exists(cluster, settings()):
                await cluster.create(settings(), field_manager="me")

        report = await crash_at_each_write(new_cluster, once)
        assert len(made) == 1 + len(report.rows) == 5

    async def test_continue_until_the_other_actors_had_their_turn(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        """An operator that waits for another actor writes nothing at first."""

        async def others(cluster: Cluster) -> None:
            await cluster.apply(settings("go"), field_manager="other")

        async def patient(cluster: Cluster) -> None:
            if await exists(cluster, settings("go")) and not await exists(cluster, settings("a")):
                await cluster.create(settings("a"), field_manager="me")

        report = await crash_at_each_write(new_cluster, patient, others=others)
        assert [write.name for write in report.writes] == ["a"]
        report.assert_same()

    @pytest.mark.parametrize("delay", [timedelta(0), -SECOND, timedelta(hours=1)], ids=str)
    async def test_continue_after_the_delay_that_a_reconcile_returns(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest], delay: timedelta
    ) -> None:
        """A step that was decided without a write is followed by the next one."""
        decided: set[Cluster] = set()

        async def stepping(cluster: Cluster) -> timedelta | None:
            if cluster not in decided:
                decided.add(cluster)
                return delay
            if not await exists(cluster, settings()):
                await cluster.create(settings(), field_manager="me")
            return None

        report = await crash_at_each_write(new_cluster, stepping)
        assert [write.name for write in report.writes] == ["settings"]
        report.assert_same()

    @pytest.mark.parametrize(
        ("survives", "verdict"),
        [pytest.param(True, [], id="a stored time"), pytest.param(False, ["crash after write 1"], id="one in memory")],
    )
    async def test_let_the_clock_advance_to_a_deadline(
        self,
        new_cluster: Callable[[], Awaitable[Cluster]],
        settings: Callable[..., Manifest],
        *,
        survives: bool,
        verdict: list[str],
    ) -> None:
        clock = VirtualClock()
        began: dict[Cluster, datetime] = {}

        async def waiting(cluster: Cluster) -> tuple[timedelta | None]:
            phase = settings("phase")
            if not await exists(cluster, phase):
                began[cluster] = clock.now()
                await cluster.create({**phase, "data": {"since": format_time(clock.now())}}, field_manager="me")
            live = await cluster.get(ObjectKey.of(phase))
            if "since" not in live["data"]:
                return (None,)
            since = parse_time(live["data"]["since"]) if survives else began.get(cluster)
            if since is None:
                return (None,)
            left = since + MINUTE - clock.now()
            if left <= timedelta(0):
                await cluster.update({**live, "data": {"reason": "TimedOut"}}, field_manager="me")
                return (None,)
            return (left,)

        report = await crash_at_each_write(
            new_cluster, waiting, clock=clock, disturbances=[Disturbance.CRASH_AFTER], max_reconciles=6
        )
        assert [str(write.verb) for write in report.writes] == ["create", "update"]
        assert [f"{row.disturbance} write {row.number}" for row in report.different] == verdict

    async def test_of_an_operator_that_polls_end_in_sync(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        polls = 0

        async def polling(cluster: Cluster) -> list[timedelta]:
            nonlocal polls
            polls += 1
            if not await exists(cluster, settings()):
                await cluster.create(settings(), field_manager="me")
            return [MINUTE, SECOND]

        clock = VirtualClock()
        before = clock.now()
        report = await crash_at_each_write(new_cluster, polling, clock=clock, max_reconciles=5)
        report.assert_same()
        assert polls == 5 * (1 + len(report.rows))
        # What writes nothing waits, but for the last one of each run; after a failed write there is one fewer.
        assert clock.now() - before == sum([3, 2, 3, 3, 2]) * SECOND

    async def test_without_writes_are_rejected(self, new_cluster: Callable[[], Awaitable[Cluster]]) -> None:
        async def idle(cluster: Cluster) -> None:
            await cluster.list("v1", "ConfigMap")

        with pytest.raises(ConfigError, match="sent no write"):
            await crash_at_each_write(new_cluster, idle)

    async def test_that_never_get_in_sync_are_rejected(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        async def restless(cluster: Cluster) -> None:
            await cluster.apply(settings(), field_manager="me")

        problem = "still not in sync after 4 reconciles, the last of which wrote apply v1/ConfigMap/shop/settings by me"
        with pytest.raises(ConfigError, match=problem):
            await crash_at_each_write(new_cluster, restless, max_reconciles=4)

    async def test_an_error_of_the_undisturbed_run_is_raised(
        self, new_cluster: Callable[[], Awaitable[Cluster]]
    ) -> None:
        async def broken(_cluster: Cluster) -> None:
            raise LookupError("oops")

        with pytest.raises(LookupError, match="oops"):
            await crash_at_each_write(new_cluster, broken)

    async def test_a_cancellation_ends_the_run(
        self, new_cluster: Callable[[], Awaitable[Cluster]], settings: Callable[..., Manifest]
    ) -> None:
        """A cancellation of the test takes effect even during a disturbed run."""
        calls, waiting = 0, asyncio.Event()

        async def slow(cluster: Cluster) -> None:
            nonlocal calls
            calls += 1
            if calls == 4:
                waiting.set()
                await asyncio.Event().wait()
            if not await exists(cluster, settings()):
                await cluster.create(settings(), field_manager="me")

        task = asyncio.create_task(crash_at_each_write(new_cluster, slow))
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


class TestProcess:
    @pytest.fixture
    def simulation(self, cluster: EmbeddedCluster) -> SimulatedCluster:
        return SimulatedCluster(cluster)

    async def test_a_crashed_process_sends_no_more_requests(
        self, simulation: SimulatedCluster, settings: Callable[..., Manifest]
    ) -> None:
        """Requests of error handlers and cleanup code do not reach the cluster."""
        process = SimulatedProcess(simulation, Disturbance.CRASH_BEFORE, 1)

        async def tidy() -> None:
            try:
                await process.create(settings("a"), field_manager="me")
            except Exception:  # noqa: BLE001 (that is what must not happen)
                await process.create(settings("b"), field_manager="me")
            finally:
                await process.create(settings("c"), field_manager="me")

        with pytest.raises(SimulatedCrash):
            await tidy()
        with pytest.raises(SimulatedCrash):
            await process.get(WEB)
        assert (await simulation.cluster.list("v1", "ConfigMap")).items == ()

    async def test_a_crash_in_a_group_of_tasks_is_a_crash(
        self, operator: Operator, settings: Callable[..., Manifest]
    ) -> None:
        async def parallel(cluster: Cluster) -> None:
            async with asyncio.TaskGroup() as group:
                for name in "ab":
                    manifest = settings(name)
                    if not await exists(cluster, manifest):
                        group.create_task(cluster.create(manifest, field_manager="me"))

        report = await crash_at_each_write(operator.new_cluster, parallel)
        report.assert_same()

    @pytest.mark.parametrize(
        ("disturbance", "code", "done"),
        [
            (Disturbance.LOST_REPLY, 0, True),
            (Disturbance.REJECTED, 503, False),
            (Disturbance.CONFLICT, 409, False),
        ],
    )
    async def test_a_process_that_does_not_crash_gets_an_error(
        self,
        simulation: SimulatedCluster,
        settings: Callable[..., Manifest],
        disturbance: Disturbance,
        code: int,
        done: bool,
    ) -> None:
        process = SimulatedProcess(simulation, disturbance, 2)
        await process.create(settings("a"), field_manager="me")
        with pytest.raises(ApiError) as failed:
            await process.create(settings("b"), field_manager="me")
        assert failed.value.code == code
        assert await exists(process, settings("b")) is done

    async def test_a_cancelled_write_is_done_and_the_process_lives_on(
        self, simulation: SimulatedCluster, settings: Callable[..., Manifest]
    ) -> None:
        process = SimulatedProcess(simulation, Disturbance.CANCELLED, 1)
        with pytest.raises(asyncio.CancelledError):
            await process.create(settings("a"), field_manager="me")
        assert await exists(process, settings("a"))
        await process.create(settings("b"), field_manager="me")
        assert not process.dead

    async def test_every_process_has_its_own_apply_cache(self, simulation: SimulatedCluster) -> None:
        assert SimulatedProcess(simulation).apply_cache is not SimulatedProcess(simulation).apply_cache

    async def test_creates_and_deletes_are_counted_once(
        self, simulation: SimulatedCluster, settings: Callable[..., Manifest]
    ) -> None:
        process = SimulatedProcess(simulation)
        held = settings("a")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        for _ in range(2):
            await process.apply(held, field_manager="me")
            await process.apply(settings("b"), field_manager="me", dry_run=True)
        for _ in range(2):
            await process.delete(ObjectKey.of(held))
        with pytest.raises(NotFoundError):
            await process.delete(ObjectKey.of(settings("b")))
        assert dict(simulation.creates) == {"v1/ConfigMap/shop/a": 1}
        assert dict(simulation.deletes) == {"v1/ConfigMap/shop/a": 1}

    @pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
    @pytest.mark.parametrize(
        "write",
        [
            pytest.param(lambda cluster: cluster.create(PORTS, field_manager="me"), id="create"),
            pytest.param(lambda cluster: cluster.apply(PORTS, field_manager="me", force=True), id="apply"),
            pytest.param(lambda cluster: cluster.update(PORTS, field_manager="me"), id="update"),
            pytest.param(
                lambda cluster: cluster.update(PORTS, field_manager="me", subresource=Subresource.STATUS),
                id="update of the status",
            ),
            pytest.param(
                lambda cluster: cluster.patch(
                    ObjectKey.of(PORTS),
                    {"spec": {"externalName": "web"}},
                    PatchOptions(patch_type=PatchType.MERGE, field_manager="me"),
                ),
                id="patch",
            ),
            pytest.param(lambda cluster: report(cluster, ObjectKey.of(PORTS), {}), id="patch of the status"),
            pytest.param(lambda cluster: cluster.delete(ObjectKey.of(PORTS)), id="delete"),
        ],
    )
    async def test_a_write_is_counted_exactly_if_an_object_comes_or_goes(
        self, simulation: SimulatedCluster, write: Callable[[Cluster], Awaitable[object]], *, present: bool
    ) -> None:
        """An update creates a Service, too."""
        process = SimulatedProcess(simulation)
        if present:
            await simulation.cluster.create(PORTS, field_manager="other")
        with suppress(ApiError):
            await write(process)
        exists_now = await exists(simulation.cluster, PORTS)

        assert simulation.creates.total() == (exists_now and not present)
        assert simulation.deletes.total() == (present and not exists_now)

    async def test_a_create_with_a_generated_name_is_counted(
        self, simulation: SimulatedCluster, settings: Callable[..., Manifest]
    ) -> None:
        manifest = settings("a")
        manifest["metadata"] = {"generateName": "a-", "namespace": "shop"}
        created = await SimulatedProcess(simulation).create(manifest, field_manager="me")

        assert dict(simulation.creates) == {str(ObjectKey.of(created)): 1}

    async def test_a_write_that_the_server_rejects_is_disturbed_like_any_other(
        self, simulation: SimulatedCluster, settings: Callable[..., Manifest]
    ) -> None:
        process = SimulatedProcess(simulation, Disturbance.CRASH_AFTER, 1)
        with pytest.raises(SimulatedCrash):
            await process.delete(ObjectKey.of(settings()))
