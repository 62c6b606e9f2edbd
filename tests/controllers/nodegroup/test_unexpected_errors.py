"""An unexpected error of one node or group ends no other step, and is shown where it happened."""

from __future__ import annotations

from typing import Any

import pytest

from ocf.controllers.nodegroup.options import NodeGroupControllerOptions
from ocf.controllers.nodegroup.plan import make_plan
from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.nodegroups import Blocked, Machine, MachineRequest, Removal, SafetyRule
from ocf.objects import ObjectKey
from tests.controllers.nodegroup.conftest import API, GROUP, LARGE, SMALL, Env, run

OTHER = ObjectKey(API, "NodeGroup", "other", "default")
SECRET = "a secret"


class Broken(SimulatedProvider):
    """Fails with an error that no provider may raise, for machines of one type."""

    broken = ""

    async def create(self, request: MachineRequest) -> Machine:
        self._break("create", request.instance_type)
        return await super().create(request)

    async def delete(self, machine: Machine) -> None:
        self._break("delete", machine.instance_type)
        await super().delete(machine)

    def _break(self, call: str, instance_type: str) -> None:
        if (call, instance_type) == (self.broken, "small"):
            raise OverflowError(SECRET)


async def assert_shown(env: Env, caplog: pytest.LogCaptureFixture) -> None:
    error = (await env.read_conditions(GROUP))["Error"]
    assert (error["status"], error["reason"]) == ("True", "ReconcileFailed")
    assert "unexpected OverflowError" in error["message"]
    (event,) = [each for each in env.events.all if each.reason == "ReconcileFailed"]
    assert (event.owner, event.type) == (GROUP, "Warning")
    assert SECRET not in error["message"] + event.note
    assert "Traceback" in caplog.text
    assert (await env.read_conditions(OTHER))["Error"]["status"] == "False"


@pytest.mark.promise("node-groups-errors")
@pytest.mark.parametrize("call", ["create", "delete"])
def test_an_error_of_one_machine_stops_no_other_one(caplog: pytest.LogCaptureFixture, call: str) -> None:
    env = Env((SMALL, LARGE), cloud=Broken)
    cloud = env.provider
    assert isinstance(cloud, Broken)

    async def scenario() -> None:
        if call == "create":
            cloud.broken = call
        await env.set_up(offeringIDs=["small"], minNodes=1)
        await env.add_group("other", offeringIDs=["large"])
        await env.tick(5)
        cloud.broken = call
        await env.add_pod("large-0", cpu="7")
        await env.tick(4)
        if call == "delete":
            for each in await env.objects("VPSieNode"):
                await env.cluster.delete(ObjectKey.of(each))
            await env.tick(6)
            assert [each.instance_type for each in cloud.machines()].count("small") == 2
        else:
            assert {each.instance_type for each in cloud.machines()} == {"large"}
        await assert_shown(env, caplog)
        cloud.broken = ""
        await env.tick(6)
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"
        assert await env.waiting() == []

    run(scenario())


@pytest.mark.promise("node-groups-errors")
def test_a_group_about_which_no_decision_can_be_made_stops_no_other_one(
    env: Env, caplog: pytest.LogCaptureFixture
) -> None:
    """A rule of the user fails for the nodes of one group."""

    def check(removal: Removal) -> Blocked | None:
        if "workers" in removal.group.name:
            raise OverflowError(SECRET)
        return None

    async def scenario() -> None:
        policy = {"underutilizedFor": "1m"}
        await env.set_up(offeringIDs=["small"], scaleDownCooldown="0s", scaleDownPolicy=policy)
        await env.add_pod("small-0", cpu="1500m")
        await env.tick(5)
        await env.add_group("other", offeringIDs=["large"], scaleDownCooldown="0s", scaleDownPolicy=policy)
        await env.add_pod("large-0", cpu="7")
        await env.tick(5)
        env.restart(options=NodeGroupControllerOptions(rules=[SafetyRule("mine", check)]))
        await env.remove_pods()
        await env.tick(12)
        assert [each.instance_type for each in env.provider.machines()] == ["small"]
        await assert_shown(env, caplog)
        await env.add_pod("large-1", cpu="7")
        await env.tick(5)
        assert await env.waiting() == []
        env.restart()
        await env.tick(2)
        assert (await env.read_conditions(GROUP))["Error"]["status"] == "False"

    run(scenario())


def test_groups_about_which_no_decision_can_be_made_together_show_it(
    env: Env, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        await env.set_up(offeringIDs=["small"])
        await env.add_group("other", offeringIDs=["large"])
        await env.tick()

        def fails(*args: Any, **named: Any) -> Any:
            if named["only"] is None or len(named["only"]) > 1 or "default/workers" in named["only"]:
                raise OverflowError(SECRET)
            return make_plan(*args, **named)

        monkeypatch.setattr("ocf.controllers.nodegroup.reconciler.make_plan", fails)
        await env.tick(3)
        await assert_shown(env, caplog)

    run(scenario())
