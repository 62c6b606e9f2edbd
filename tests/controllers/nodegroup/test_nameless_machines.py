"""Providers that keep no names: each machine belongs to one request, whatever answers are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import MachineNotFoundError, ProviderRefusedError, ProviderUnavailableError
from ocf.nodegroups import InstanceType, Machine, MachineRequest
from ocf.testing import VirtualClock
from tests.controllers.nodegroup.conftest import GROUP, Env, run

DELAY = timedelta(seconds=45)


class Nameless:
    """A cloud that makes up its own names, answers without them, and lists a machine only after a while.

    Attributes:
        inner: The machines, as their kubelets know them.
        lost: How many answers are lost.
        late: After how long the machine of a lost answer is listed.
        refuses: Whether requests are refused.
        overlapping: How many requests were sent while a machine was not listed yet.
    """

    def __init__(self, inner: SimulatedProvider, clock: VirtualClock) -> None:
        self.inner = inner
        self.lost = 0
        self.late = DELAY
        self.refuses = False
        self.overlapping = 0
        self._clock = clock
        self._sent = 0
        self._unanswered: set[str] = set()

    @property
    def keeps_names(self) -> bool:
        return False

    async def instance_types(self) -> Sequence[InstanceType]:
        return await self.inner.instance_types()

    async def create(self, request: MachineRequest) -> Machine:
        if self.refuses:
            raise ProviderRefusedError("the quota is used up")
        self._sent += 1
        self.overlapping += len(await self.list()) < len(await self.inner.list())
        made = await self.inner.create(replace(request, name=f"vm-{self._sent}"))
        if self.lost:
            self.lost -= 1
            self._unanswered.add(made.name)
            raise ProviderUnavailableError("timeout")
        return replace(made, id="", name="", node_name="", provider_id="")

    async def get(self, request: MachineRequest) -> Machine:
        wanted = request.machine_id
        found = [each for each in await self.list() if each.id not in request.excluded and wanted in ("", each.id)]
        if not found:
            raise MachineNotFoundError("not listed")
        return found[0]

    async def list(self) -> Sequence[Machine]:
        return [replace(each, name="") for each in await self.inner.list() if self._is_listed(each)]

    def _is_listed(self, machine: Machine) -> bool:
        delay = self.late if machine.name in self._unanswered else DELAY
        return machine.created_at is not None and self._clock.now() >= machine.created_at + delay

    async def delete(self, machine: Machine) -> None:
        await self.inner.delete(machine)


def nameless(env: Env) -> Nameless:
    cloud = Nameless(env.provider, env.clock)
    env.restart(provider=cloud)
    return cloud


@pytest.mark.parametrize("lost", [pytest.param(0, id="all answers arrive"), pytest.param(2, id="two answers are lost")])
@pytest.mark.parametrize("restarts", [False, True], ids=["one process", "a new process each time"])
def test_each_request_gets_one_machine_of_its_own(env: Env, lost: int, *, restarts: bool) -> None:
    async def scenario() -> None:
        cloud = nameless(env)
        await env.set_up(minNodes=3, offeringIDs=["small"])
        await cloud.create(MachineRequest("existing", "", "small", "fra"))
        env.clock.advance(timedelta(minutes=1))
        cloud.lost = lost
        for _ in range(40):
            if restarts:
                env.restart(provider=cloud)
            await env.controller.reconcile()
            await env.others()
            env.clock.advance(timedelta(seconds=15))
        nodes = await env.objects("VPSieNode")
        ids = {node["status"]["machineId"] for node in nodes}
        assert (len(nodes), len(ids), len(await env.provider.list())) == (3, 3, 4)
        assert await env.phases() == ["Ready"] * 3
        assert "vm-1" not in ids
        assert cloud.overlapping == 0

    run(scenario())


def test_a_refusal_keeps_no_other_request_waiting(env: Env) -> None:
    async def scenario() -> None:
        cloud = nameless(env)
        await env.set_up(minNodes=2, offeringIDs=["small"])
        cloud.refuses = True
        await env.tick(4)
        assert await env.objects("VPSieNode") == ()
        (backoff,) = (await env.status())["backoffs"]
        assert (backoff["failures"], backoff["message"]) == (1, "the quota is used up")

    run(scenario())


# https://github.com/kubernetes/autoscaler/issues/2980, https://github.com/cloudpilot-ai/karpenter-provider-gcp/issues/242
@pytest.mark.promise("node-groups-nameless", runs="machines that are listed up to 28 minutes late")
@pytest.mark.parametrize("seconds", [100, 170, 190, 600, 1700])
@pytest.mark.parametrize("most", [1, 3])
def test_a_machine_that_is_listed_late_belongs_to_a_request(env: Env, seconds: int, most: int) -> None:
    async def scenario() -> None:
        cloud = nameless(env)
        cloud.late, cloud.lost = timedelta(seconds=seconds), 1
        await env.set_up(maxNodes=most, offeringIDs=["small"])
        await env.add_pod()
        for _ in range(80):
            await env.tick()
            assert await env.machines() <= most
        assert await env.waiting() == []
        owned = {each["status"]["machineId"]: each["status"]["phase"] for each in await env.objects("VPSieNode")}
        assert owned.keys() == {each.id for each in env.provider.machines()}
        await env.tick(40)
        # What is not needed leaves by the rules of scale-down.
        assert (await env.phases(), await env.machines(), await env.waiting()) == (["Ready"], 1, [])

    run(scenario())


@pytest.mark.parametrize("wait", [None, 0, 30.0])
@pytest.mark.parametrize(
    ("created", "had_no_effect"),
    [
        pytest.param(True, False, id="a gateway answers for a request that goes on"),
        pytest.param(False, True, id="too many requests"),
        pytest.param(False, False, id="a gateway answers for a request that is lost"),
    ],
)
def test_no_machine_is_left_behind_by_an_answer_with_a_wait(
    env: Env, monkeypatch: pytest.MonkeyPatch, wait: float | None, *, created: bool, had_no_effect: bool
) -> None:
    async def scenario() -> None:
        cloud = nameless(env)
        cloud.late = timedelta(minutes=2)
        send, sent = cloud.create, 0

        async def answer_first(request: MachineRequest) -> Machine:
            nonlocal sent
            sent += 1
            if sent > 1:
                return await send(request)
            if created:
                cloud.lost = 1
                with pytest.raises(ProviderUnavailableError):
                    await send(request)
            raise ProviderUnavailableError("503", retry_after=wait, had_no_effect=had_no_effect)

        monkeypatch.setattr(cloud, "create", answer_first)
        await env.set_up(offeringIDs=["small"])
        await env.add_pod(cpu="1500m")
        await env.tick(3)
        # Sent anew at once, but only where no machine can come of the first request.
        assert sent == (2 if had_no_effect else 1)
        await env.tick(40)
        assert (await env.waiting(), await env.machines()) == ([], 1)
        await env.remove_pods()
        await env.tick(60)
        assert (await env.machines(), await env.objects("VPSieNode")) == (0, ())

    run(scenario())


# https://github.com/paperclipinc/karpenter-provider-hetzner/pull/53
def test_a_group_that_is_deleted_takes_machines_with_it_that_are_listed_late(env: Env) -> None:
    async def scenario() -> None:
        cloud = nameless(env)
        cloud.late, cloud.lost = timedelta(minutes=10), 1
        await env.set_up(minNodes=1, offeringIDs=["small"])
        await env.tick(2)
        await env.cluster.delete(GROUP)
        await env.tick(30)
        assert (await env.machines(), await env.gone(GROUP)) == (0, True)

    run(scenario())


def test_a_worker_that_a_user_adds_much_later_is_not_taken_for_a_late_one(env: Env) -> None:
    async def scenario() -> None:
        cloud = nameless(env)
        cloud.late, cloud.lost = timedelta(days=1), 1
        await env.set_up(minNodes=1, maxNodes=1, offeringIDs=["small"])
        await env.tick(2)
        await env.cluster.delete(GROUP)
        env.clock.advance(timedelta(minutes=20))
        await cloud.create(MachineRequest("theirs", "", "small", "fra"))
        await env.tick(40)
        assert len(await cloud.list()) == 1

    run(scenario())
