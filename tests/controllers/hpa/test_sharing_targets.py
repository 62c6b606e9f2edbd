"""No target has two controllers: our own kind beside the built-in one, in its place, and in a dry run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest

from ocf.autoscaling import FeatureGates
from ocf.autoscaling.algorithm import History, Settings
from ocf.cluster import Subresource, Verb
from ocf.controllers.hpa import Mode
from ocf.controllers.hpa.modes import BUILT_IN
from ocf.controllers.hpa.take_over import RETRY, RIVAL_LEASE
from ocf.errors import ForbiddenError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import faults
from ocf.testing.fault_cluster import FaultyCluster
from tests.controllers.hpa.conftest import NAMESPACE, PERIOD, Env, Process, RunScenario, periods

REFUSED = ("False", "TargetClaimed")
DEPLOYMENT = ObjectKey("apps/v1", "Deployment", "web", NAMESPACE)


class TestOwnKind:
    @pytest.mark.promise("one-controller")
    def test_a_target_of_a_built_in_autoscaler_is_rejected_until_that_one_is_deleted(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            ours = await env.autoscale("ours", target={"name": "web"})
            theirs = await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with env.running() as process:
                await periods(3)
                assert await env.conditions(ours) == {"AbleToScale": REFUSED, "ScalingActive": REFUSED}
                assert await env.message(ours, "AbleToScale") == (
                    "Deployment shop/web is scaled by HorizontalPodAutoscaler shop/theirs;"
                    " delete that one, or name another target here"
                )
                assert (await env.replicas(), process.states()) == (3, {"refused": 1})
                assert [reason for _, reason, _ in await env.events()] == ["TargetClaimed"]
                assert await env.conditions(theirs) == {}
                await env.cluster.delete(theirs)
                await periods(1)
                assert (await env.replicas(), process.states()) == (5, {"running": 1})
                assert (await env.conditions(ours))["ScalingActive"] == ("True", "ValidMetricFound")

        run_scenario(scenario)

    def test_an_autoscaler_stops_when_a_built_in_one_is_created(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            ours = await env.autoscale("ours", target={"name": "web"})
            async with env.running() as process:
                await periods(1)
                assert await env.replicas() == 5
                await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
                env.queue(80)
                await periods(4)
                assert await env.replicas() == 5
                assert (await env.conditions(ours))["ScalingActive"] == REFUSED
                assert_state_dropped(process)

        run_scenario(scenario)

    def test_an_immediate_first_reconcile_knows_the_targets_of_others(self, run_scenario: RunScenario) -> None:
        """With the gates of 1.37 the first reconcile runs at once; the targets of others are known by then."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            await env.autoscale("ours", target={"name": "web"})
            await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with env.running(settings=Settings(features=FeatureGates.for_release("1.37"))) as process:
                await asyncio.sleep(1)
                assert (await env.replicas(), process.states()) == (3, {"refused": 1})

        run_scenario(scenario)

    def test_a_rejection_is_written_once(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale("ours", target={"name": "web"})
            await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with env.running():
                await periods(3)  # the second event makes a series, the third is only counted
                env.cluster.requests.clear()
                await periods(5)
                assert env.writes == []

        run_scenario(scenario)

    def test_the_older_of_two_runs_and_the_other_one_after_its_deletion(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            first = await env.autoscale("zz-first", target={"name": "web"})
            await asyncio.sleep(2)
            second = await env.autoscale("aa-second", target={"name": "web"}, minReplicas=9)
            async with env.running():
                await periods(2)
                assert await env.replicas() == 5
                assert (await env.conditions(second))["AbleToScale"] == REFUSED
                assert (await env.conditions(first))["ScalingActive"] == ("True", "ValidMetricFound")
                await env.cluster.delete(first)
                await periods(1)
                assert await env.replicas() == 9

        run_scenario(scenario)

    def test_an_invalid_autoscaler_claims_nothing(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            wrong: Any = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 4000}}}
            invalid = await env.autoscale("invalid", target={"name": "web"}, **wrong)
            await asyncio.sleep(2)
            valid = await env.autoscale("valid", target={"name": "web"})
            async with env.running() as process:
                await periods(2)
                assert (await env.replicas(), process.states()) == (5, {"invalid": 1, "running": 1})
                assert (await env.conditions(valid))["ScalingActive"] == ("True", "ValidMetricFound")
                await env.change(invalid, {"spec": {"behavior": None}})
                env.queue(70)
                await periods(2)
                assert (await env.conditions(valid))["ScalingActive"] == REFUSED  # the older one is valid now
                assert await env.replicas() == 7
                await env.change(invalid, {"spec": wrong})
                await periods(2)
                assert (await env.conditions(invalid))["ScalingActive"] == ("False", "InvalidSpec")
                assert (await env.conditions(valid))["ScalingActive"] == ("True", "ValidMetricFound")

        run_scenario(scenario)

    @pytest.mark.parametrize(
        "change",
        [
            pytest.param(None, id="it is deleted"),
            pytest.param({"spec": {"scaleTargetRef": {"name": "other"}}}, id="it names another target"),
        ],
    )
    def test_a_target_that_the_built_in_autoscaler_gives_up_is_scaled_at_once(
        self, run_scenario: RunScenario, change: dict[str, Any] | None
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            await env.autoscale("ours", target={"name": "web"})
            theirs = await env.autoscale("theirs", of=BUILT_IN, target={"name": "web"})
            async with env.running():
                await periods(2)
                assert await env.replicas() == 3
                if change is None:
                    await env.cluster.delete(theirs)
                else:
                    await env.change(theirs, change)
                await asyncio.sleep(1)
                assert await env.replicas() == 5

        run_scenario(scenario)

    def test_two_targets_with_the_same_pods_are_ambiguous_as_for_the_built_in_controller(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.cluster.create(
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "metadata": {"name": "twin", "namespace": NAMESPACE},
                    "spec": {
                        "replicas": 3,
                        "selector": {"matchLabels": {"app": "web"}},
                        "template": {
                            "metadata": {"labels": {"app": "web"}},
                            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
                        },
                    },
                },
                field_manager="user",
            )
            env.queue(50)
            one = await env.autoscale("one", target={"name": "web"})
            other = await env.autoscale("other", target={"kind": "ReplicaSet", "name": "twin"})
            async with env.running():
                await periods(3)
                ambiguous = ("False", "AmbiguousSelector")
                assert [(await env.conditions(key))["ScalingActive"] for key in (one, other)] == [ambiguous] * 2
                message = await env.message(one, "ScalingActive")
                assert message == "pods by selector app=web are controlled by multiple HPAs: [shop/one shop/other]"
                await env.cluster.delete(other)
                await periods(2)
                assert (await env.conditions(one))["ScalingActive"] == ("True", "ValidMetricFound")

        run_scenario(scenario)


async def writes_status(env: Env, key: ObjectKey, desired: int = 3) -> None:
    """Write the status as the built-in controller does at the end of a reconcile."""
    able = {"type": "AbleToScale", "status": "True", "reason": "ReadyForNewScale", "message": "recommended size"}
    conditions = [{**able, "lastTransitionTime": "2026-01-01T12:00:00Z"}]
    status = {"status": {"currentReplicas": 3, "desiredReplicas": desired, "conditions": conditions}}
    await env.change(key, status, by="kube-controller-manager", status=True)


class TestReplace:
    @pytest.mark.promise("one-controller")
    def test_what_another_controller_ran_is_left_alone(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            for name in ("web", "free"):
                await env.deploy(name, replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await env.autoscale("free", of=BUILT_IN)
            await writes_status(env, key)
            env.cluster.requests.clear()
            async with env.running(Mode.REPLACE) as process:
                await periods(3)
                assert (await env.replicas(), await env.replicas("free")) == (3, 5)
                assert process.states() == {"left_alone": 1, "running": 1}
                assert not [one for one in env.writes if one.name == "web"]

        run_scenario(scenario)

    def test_an_autoscaler_is_taken_over_with_the_flag_and_kept_without_it(self, run_scenario: RunScenario) -> None:
        """Its replicas are right, so a sync has nothing to write; the claim shows the new owner all the same."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(30)
            key = await env.autoscale(of=BUILT_IN)
            async with env.running(Mode.REPLACE):  # the status is that of an algorithm that has nothing to change
                await periods(2)
            await env.change(key, {"status": None}, status=True)
            status = (await env.cluster.get(key)).get("status")
            await env.change(key, {"status": status}, by="kube-controller-manager", status=True)
            async with env.running(Mode.REPLACE, take_over=True, take_over_delay=30) as process:
                await periods(1)
                assert (await env.conditions(key))["AbleToScale"] == ("Unknown", "TakingOver")
                assert process.states() == {"taking_over": 1}
                env.queue(50)
                await periods(1)
                assert await env.replicas() == 3
                await periods(1)
                assert (await env.replicas(), process.states()) == (5, {"running": 1})
            async with env.running(Mode.REPLACE, take_over_delay=30):  # its status is ours now
                env.queue(70)
                await periods(1)
            assert await env.replicas() == 7

        run_scenario(scenario)

    def test_a_claim_of_a_process_that_died_is_not_run_earlier(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await writes_status(env, key)
            async with env.running(Mode.REPLACE, take_over=True, take_over_delay=30):
                await periods(2)
            async with env.running(Mode.REPLACE, take_over_delay=30):
                await periods(2)
                assert await env.replicas() == 3
                await periods(1)
                assert await env.replicas() == 5

        run_scenario(scenario)

    @pytest.mark.promise("one-controller")
    @pytest.mark.parametrize(
        ("take_over", "is_new"),
        [
            pytest.param(True, False, id="with the flag"),
            pytest.param(False, False, id="without it"),
            pytest.param(False, True, id="a new autoscaler"),
        ],
    )
    def test_beside_the_built_in_controller_it_yields_before_it_scales(
        self, run_scenario: RunScenario, *, take_over: bool, is_new: bool
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            if not is_new:
                await BuiltIn(env, key, wanted=3).sync()
            env.cluster.requests.clear()
            ours = env.running(Mode.REPLACE, take_over=take_over, take_over_delay=30)
            async with BuiltIn(env, key, wanted=3).running(), ours as process:
                await periods(20)
                assert process.states() == {"left_alone": 1}
                assert_state_dropped(process)
                [reason] = [note for _, _, note in await env.events("LeftAlone")]
            scales = [one for one in env.writes if one.subresource is Subresource.SCALE]
            assert (await env.replicas(), scales) == (3, [])
            assert reason.startswith("kube-controller-manager wrote its status")

        run_scenario(scenario)

    @pytest.mark.parametrize("name", ["web", "other"])
    def test_an_autoscaler_is_run_within_a_minute_of_silence_of_the_other_controller(
        self, run_scenario: RunScenario, name: str
    ) -> None:
        async def scenario(env: Env) -> None:
            for each in ("web", "other"):
                await env.deploy(each, replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await BuiltIn(env, key, wanted=3).sync()
            other = await env.autoscale("other", of=BUILT_IN)
            await BuiltIn(env, other, wanted=3, name="other").sync()
            async with env.running(Mode.REPLACE, take_over=True, take_over_delay=30) as process:
                both = BuiltIn(env, key, wanted=3, is_busy=True), BuiltIn(env, other, wanted=3, name="other")
                async with both[0].running(), both[1].running():
                    await periods(40)
                    assert process.states() == {"left_alone": 2}
                await asyncio.sleep(75)
                assert await env.replicas(name) == 5

        run_scenario(scenario)

    def test_a_controller_that_runs_and_has_nothing_to_write_is_disturbed_ever_more_rarely(
        self, run_scenario: RunScenario
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await BuiltIn(env, key, wanted=3).sync()
            async with env.running(Mode.REPLACE, take_over=True, take_over_delay=30):
                async with BuiltIn(env, key, wanted=3).running():
                    env.cluster.requests.clear()
                    await periods(4 * 60)
                    claims = [one for one in env.writes if one.subresource is Subresource.STATUS]
                    assert len(claims) < 2 * 12  # with the writes of the other controller
                    assert await env.replicas() == 3
                await asyncio.sleep(RETRY.total_seconds() + 60)
                assert await env.replicas() == 5
            assert len(await env.events("LeftAlone")) == 1

        run_scenario(scenario)

    @pytest.mark.parametrize(
        "end",
        [
            pytest.param({"holderIdentity": "b", "acquireTime": "2026-01-31T13:00:00.000000Z"}, id="another leader"),
            pytest.param({"acquireTime": "2026-01-31T13:00:00.000000Z"}, id="the same leader once more"),
            pytest.param({"holderIdentity": ""}, id="released"),
            pytest.param(None, id="not renewed"),
            pytest.param("deleted", id="deleted"),
        ],
    )
    def test_an_autoscaler_is_run_within_a_minute_of_the_end_of_the_other_controllers_lease(
        self, run_scenario: RunScenario, end: Manifest | str | None
    ) -> None:
        """The other controller has nothing to write, so its silence shows nothing."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            lease = BuiltInLease(env)
            await lease.create()
            await BuiltIn(env, key, wanted=3).sync()
            async with env.running(Mode.REPLACE, take_over=True, take_over_delay=30) as process:
                async with BuiltIn(env, key, wanted=3).running(), lease.renewed():
                    await periods(4 * 90)
                    assert await env.replicas() == 3
                if end == "deleted":
                    await env.cluster.delete(RIVAL_LEASE)
                elif isinstance(end, dict):
                    await env.change(RIVAL_LEASE, {"spec": end}, by="kube-controller-manager")
                else:
                    await asyncio.sleep(15)
                await asyncio.sleep(60)
                assert (await env.replicas(), process.states()) == (5, {"running": 1})

        run_scenario(scenario)

    def test_a_lease_that_cannot_be_read_shows_nothing(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await BuiltInLease(env).create()
            await BuiltIn(env, key, wanted=3).sync()
            refused = faults.rejected(ForbiddenError("no"), name=RIVAL_LEASE.name, times=None)
            faulty = FaultyCluster(env.cluster, [refused])
            async with env.running(Mode.REPLACE, cluster=faulty, take_over=True, take_over_delay=30) as process:
                async with BuiltIn(env, key, wanted=3).running():
                    await periods(5)
                    assert await env.replicas() == 3
                await asyncio.sleep(RETRY.total_seconds() + 60)
                assert (await env.replicas(), process.states()) == (5, {"running": 1})

        run_scenario(scenario)

    @pytest.mark.parametrize(
        ("queue", "meanwhile", "afterwards"),
        [
            pytest.param(70, 7, 7, id="up at once"),
            pytest.param(50, 5, 5, id="nothing to do"),
            pytest.param(30, 5, 3, id="down after the claim"),
        ],
    )
    def test_a_status_that_a_user_writes_delays_no_scale_up(
        self, run_scenario: RunScenario, queue: int, meanwhile: int, afterwards: int
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            behavior = {"scaleDown": {"stabilizationWindowSeconds": 0}}
            key = await env.autoscale(of=BUILT_IN, behavior=behavior)
            async with env.running(Mode.REPLACE, take_over_delay=30) as process:
                await periods(4)
                assert await env.replicas() == 5
                await asyncio.sleep(1)
                await env.change(key, {"status": {"desiredReplicas": 9}}, by="kubectl-edit", status=True)
                env.queue(queue)
                await periods(1)
                assert (await env.replicas(), process.states()) == (meanwhile, {"taking_over": 1})
                assert (await env.conditions(key))["AbleToScale"] == ("Unknown", "TakingOver")
                await periods(2)
                assert (await env.replicas(), process.states()) == (afterwards, {"running": 1})
            sizes = [note for _, _, note in await env.events("SuccessfulRescale")]
            assert len(sizes) == sum(one != next_ for one, next_ in pairwise((3, 5, meanwhile, afterwards)))

        run_scenario(scenario)

    def test_a_scale_up_during_a_claim_that_fails_is_reported(
        self, run_scenario: RunScenario, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            second = faults.server_error(name="web", subresource="scale", first=2)
            faulty = FaultyCluster(env.cluster, [second])
            async with env.running(Mode.REPLACE, cluster=faulty, take_over_delay=30):
                await periods(4)
                await env.change(key, {"status": {"desiredReplicas": 9}}, by="kubectl-edit", status=True)
                env.queue(70)
                await periods(1)
                assert await env.replicas() == 5
                await periods(1)
                assert await env.replicas() == 7

        run_scenario(scenario)
        assert any("currently unable" in each.getMessage() for each in caplog.records)

    def test_a_new_autoscaler_is_run_at_once_where_another_claim_has_lasted(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            for name in ("web", "late"):
                await env.deploy(name, replicas=3)
            env.queue(50)
            await env.autoscale(of=BUILT_IN)
            async with env.running(Mode.REPLACE, take_over_delay=30):
                await periods(4)
                assert await env.replicas() == 5
                await env.autoscale("late", of=BUILT_IN)
                await periods(1)
                assert await env.replicas("late") == 5

        run_scenario(scenario)

    def test_a_rejected_claim_is_written_in_the_next_period(
        self, run_scenario: RunScenario, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            env.queue(50)
            key = await env.autoscale(of=BUILT_IN)
            await writes_status(env, key)
            faulty = FaultyCluster(env.cluster, [faults.server_error(name="web", subresource="status", times=1)])
            async with env.running(Mode.REPLACE, cluster=faulty, take_over=True, take_over_delay=30):
                await periods(3)
                assert await env.replicas() == 3
                await periods(1)
                assert await env.replicas() == 5

        run_scenario(scenario)
        assert [each.getMessage() for each in caplog.records if "claimed" in each.getMessage()] == [
            "shop/web: it could not be claimed: the server is currently unable to handle the request"
        ]

    def test_the_reason_is_reported_once(self, run_scenario: RunScenario, caplog: pytest.LogCaptureFixture) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale(of=BUILT_IN)
            await writes_status(env, key)
            async with env.running(Mode.REPLACE) as process:
                for number in range(3):
                    await periods(1)
                    await writes_status(env, key, desired=4 + number)
                await periods(1)
                labels = {"namespace": NAMESPACE, "hpa_name": "web", "state": "left_alone"}
                assert process.monitor.registry.get_sample_value("ocf_hpa_controller_autoscaler_state", labels) == 1
            assert await env.events() == [("web", "LeftAlone", LEFT_ALONE)]

        run_scenario(scenario)
        messages = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
        assert messages == [f"shop/web: {LEFT_ALONE}"]


LEFT_ALONE = (
    "kube-controller-manager wrote its status last; if that controller is switched off, run it with --take-over"
)


class BuiltIn:
    """The built-in controller: it scales to a fixed number, and writes the status where it differs.

    Args:
        is_busy: Whether its metrics change, so that it writes the status in each sync.
    """

    def __init__(self, env: Env, key: ObjectKey, *, wanted: int, name: str = "web", is_busy: bool = False) -> None:
        self._env = env
        self._key = key
        self._wanted = wanted
        self._target = DEPLOYMENT._replace(name=name)
        self._is_busy = is_busy
        self._syncs = 0

    async def sync(self) -> None:
        self._syncs += 1
        if await self._env.replicas(self._target.name) != self._wanted:
            await self._env.set_scale(self._target, self._wanted, by="kube-controller-manager")
        able = (await self._env.conditions(self._key)).get("AbleToScale")
        if self._is_busy or able != ("True", "ReadyForNewScale"):
            await writes_status(self._env, self._key, desired=self._wanted + self._syncs % 2 * self._is_busy)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with repeated(PERIOD, self.sync):
            yield


class BuiltInLease:
    """The Lease of the program that contains the built-in controller."""

    def __init__(self, env: Env) -> None:
        self._env = env

    async def create(self) -> None:
        now = "2026-01-31T12:00:00.000000Z"
        spec = {"holderIdentity": "a", "acquireTime": now, "renewTime": now, "leaseDurationSeconds": 15}
        metadata = {"name": RIVAL_LEASE.name, "namespace": RIVAL_LEASE.namespace}
        lease = {"apiVersion": RIVAL_LEASE.api_version, "kind": RIVAL_LEASE.kind, "metadata": metadata, "spec": spec}
        await self._env.cluster.create(lease, field_manager="kube-controller-manager")

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        async def renew() -> None:
            now = self._env.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
            await self._env.change(RIVAL_LEASE, {"spec": {"renewTime": now}}, by="kube-controller-manager")

        async with repeated(2, renew):
            yield


@asynccontextmanager
async def repeated(seconds: float, act: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Do something again and again while the block runs."""

    async def run() -> None:
        while True:
            await asyncio.sleep(seconds)
            await act()

    task = asyncio.create_task(run())
    yield
    task.cancel()
    await asyncio.wait([task])


def assert_state_dropped(process: Process) -> None:
    """Assert that no history and no selector is kept of an autoscaler that is not run."""
    assert process.controller is not None
    reconciler = process.controller.reconciler
    assert reconciler is not None
    assert ([one.history for one in reconciler.states], len(reconciler.selectors)) == ([History()], 0)


class TestDryRun:
    @pytest.mark.promise("dry-run", runs="120 reconciles of 6 autoscalers")
    def test_it_writes_nothing_at_all(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            for number in range(5):
                await env.deploy(f"web-{number}", replicas=3)
                await env.autoscale(f"web-{number}", of=BUILT_IN)
            await env.autoscale("lost", of=BUILT_IN)
            env.queue(50)
            env.cluster.requests.clear()
            async with env.running(Mode.DRY_RUN) as process:
                await periods(20)
                assert process.value("num_horizontal_pod_autoscalers") == 6
            assert env.cluster.requests.writes == 0
            assert env.cluster.requests.reads > 0
            assert {one.verb for one in env.cluster.requests} <= {Verb.GET, Verb.LIST, Verb.WATCH}

        run_scenario(scenario)

    def test_it_reports_each_change_next_to_what_happened_once(self, run_scenario: RunScenario) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            key = await env.autoscale(of=BUILT_IN)
            env.queue(50)
            await writes_status(env, key)
            async with env.running(Mode.DRY_RUN) as process:
                await periods(3)
                await env.change(DEPLOYMENT, {"spec": {"replicas": 5}})
                status = {"desiredReplicas": 5, "lastScaleTime": "2026-01-01T12:00:46Z"}
                await env.change(key, {"status": status}, by="kube-controller-manager", status=True)
                await env.sync_pods()
                await periods(3)
            first, second = map(str, process.reports)
            assert first == (
                "2026-01-01T12:00:15Z shop/web: would scale from 3 to 5 (total divided by target);"
                " its controller wanted 3, differs"
            )
            assert second == (
                "2026-01-01T12:01:00Z shop/web: would keep 5 (within tolerance); its controller wanted 5, agrees"
            )
            assert process.reports[0].as_json()["agrees"] is False

        run_scenario(scenario)

    def test_its_log_does_not_claim_a_write(self, run_scenario: RunScenario, caplog: pytest.LogCaptureFixture) -> None:
        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            await env.autoscale(of=BUILT_IN)
            env.queue(50)
            async with env.running(Mode.DRY_RUN) as process:
                await periods(2)
            [result] = process.reports
            assert str(result) == (
                "2026-01-01T12:00:15Z shop/web: would scale from 3 to 5 (total divided by target);"
                " no controller has reconciled it yet"
            )

        caplog.set_level(logging.INFO)
        run_scenario(scenario)
        assert not [each for each in caplog.records if "scaled" in each.getMessage()]

    def test_changes_of_the_other_controller_count_for_the_policies_of_a_behavior(
        self, run_scenario: RunScenario
    ) -> None:
        """Two pods per ten minutes are allowed, and the other controller has added them."""

        async def scenario(env: Env) -> None:
            await env.deploy(replicas=3)
            up = {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 600}]}
            key = await env.autoscale(of=BUILT_IN, behavior={"scaleUp": up})
            env.queue(200)
            async with env.running(Mode.DRY_RUN, settings=Settings()) as process:
                await periods(2)
                await env.change(DEPLOYMENT, {"spec": {"replicas": 5}})
                status = {"desiredReplicas": 5, "lastScaleTime": "2026-01-01T12:00:31Z"}
                await env.change(key, {"status": status}, by="kube-controller-manager", status=True)
                await periods(4)
            assert [(one.current, one.wanted) for one in process.reports] == [(3, 5), (5, 5)]

        run_scenario(scenario)
