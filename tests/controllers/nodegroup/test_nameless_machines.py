"""Providers that keep no names: each machine belongs to one request, whatever answers are lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from ocf.controllers.nodegroup.providers.simulated import SimulatedProvider
from ocf.errors import MachineNotFoundError, ProviderRefusedError, ProviderUnavailableError
from ocf.nodegroups import InstanceType, Machine, MachineRequest
from ocf.testing import VirtualClock
from tests.controllers.nodegroup.conftest import Env, run

DELAY = timedelta(seconds=45)


class Nameless:
    """A cloud that makes up its own names, answers without them, and lists a machine only after a while.

    Attributes:
        inner: The machines, as their kubelets know them.
        lost: How many answers are lost.
        refuses: Whether requests are refused.
        overlapping: How many requests were sent while a machine was not listed yet.
    """

    def __init__(self, inner: SimulatedProvider, clock: VirtualClock) -> None:
        self.inner = inner
        self.lost = 0
        self.refuses = False
        self.overlapping = 0
        self._clock = clock
        self._sent = 0

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
            raise ProviderUnavailableError("timeout")
        return replace(made, id="", name="", node_name="", provider_id="")

    async def get(self, request: MachineRequest) -> Machine:
        wanted = request.machine_id
        found = [each for each in await self.list() if each.id not in request.excluded and wanted in ("", each.id)]
        if not found:
            raise MachineNotFoundError("not listed")
        return found[0]

    async def list(self) -> Sequence[Machine]:
        return [replace(each, name="") for each in await self.inner.list() if self._is_listed(each.created_at)]

    def _is_listed(self, created: datetime | None) -> bool:
        return created is not None and self._clock.now() >= created + DELAY

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
