"""The process that leads loses its lease, again and again, while there is always something to write."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from examples.memcached.operator import memcached_operator
from examples.memcached.samples import AUTOSCALED
from ocf.cluster import Cluster, InterceptingCluster, Request
from ocf.errors import ServerError
from ocf.objects import ObjectKey
from ocf.runtime.operator import Lease, run
from ocf.testing import LoopClock, run_in_virtual_time
from tests.examples.memcached.faults.env import NAMESPACE, SECOND, Ended, cache_timing, new_env, now
from tests.requirements import Sampled

HANDOVERS: Final = 200
LEASE: Final = ObjectKey("coordination.k8s.io/v1", "Lease", "memcached-operator", NAMESPACE)
SKEWS: Final = (-5, 0, 5)
LAST: Final = "memcached:1.6.999"


class Link(InterceptingCluster):
    """The connection of one process to the cluster: slow, and sometimes cut, for all requests or for the lease only.

    Attributes:
        cut: The requests that fail: "" for none, "all", or "the lease".
        writes: The number of writes that arrived.
        strays: Writes that arrived while another process held the lease.
    """

    def __init__(self, cluster: Cluster, identity: str, rng: random.Random) -> None:
        super().__init__(cluster)
        self._identity = identity
        self._rng = rng
        self.cut = ""
        self.writes = 0
        self.strays: list[str] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        await asyncio.sleep(self._rng.uniform(0, 0.5))
        if self.cut == "all" or (self.cut and request.kind == "Lease"):
            raise ServerError("no answer")
        if request.kind not in ("Lease", "Event") and not request.verb.is_read:
            holder = await leader(self._inner)
            self.writes += 1
            self.strays += [f"{request} at {now()}, {holder} leads"] if holder != self._identity else []
        return await send()


async def leader(cluster: Cluster) -> str:
    return str((await cluster.get(LEASE))["spec"]["holderIdentity"])


async def led(handovers: int) -> tuple[Ended, list[Link]]:
    """Run three processes with different clocks that lead in turn, while the cache is changed all the time."""
    rng = random.Random(17)  # noqa: S311 (the same choices in every run)
    env, stop = await new_env(), asyncio.Event()
    links = {f"process {skew:+}": Link(env.gateway, f"process {skew:+}", rng) for skew in SKEWS}
    async with env.neighbours(), asyncio.TaskGroup() as tasks:
        for skew, (identity, link) in zip(SKEWS, links.items(), strict=True):
            lease = Lease(LEASE.name, LEASE.namespace, identity)
            clock = LoopClock(skew=skew * SECOND)
            options = replace(
                env.options(cache_timing=cache_timing(idle_timeout=1e9)), clock=clock, lease=lease, random=rng.random
            )
            tasks.create_task(run(link, replace(memcached_operator, resync=None), options=options, stop=stop))
        await asyncio.sleep(30)
        await env.create(AUTOSCALED)
        for turn in range(handovers):
            await asyncio.sleep(rng.uniform(1, 10))
            holder = await leader(env.server)
            links[holder].cut = rng.choice(("all", "the lease"))
            while await leader(env.server) == holder:
                await env.change(image=f"memcached:1.6.{turn % 10}")
                await asyncio.sleep(rng.uniform(1, 8))
            links[holder].cut = ""
        await env.change(image=LAST)
        await asyncio.sleep(60)
        end = await env.ended()
        stop.set()
    assert not env.wrong
    return end, [*links.values()]


@pytest.mark.promise(
    "one-leader",
    runs="200 hand-overs of the Memcached operator, which always has something to write (in `make test` one in ten)",
)
@pytest.mark.matrix
def test_a_process_without_the_lease_does_not_write(sampled: Sampled) -> None:
    """Handovers among three processes whose clocks differ by ten seconds: only the leader writes.

    The old leader is cut off, or cannot renew its lease only; then only its own check of the lease prevents writes.
    """
    handovers = len(sampled(range(HANDOVERS)))
    found, links = run_in_virtual_time(led(handovers))
    wanted, _ = run_in_virtual_time(led(0))
    assert sum(link.writes for link in links) >= handovers
    assert all(link.writes for link in links)
    assert [stray for link in links for stray in link.strays] == []
    found.assert_as(wanted, generations=False, events=False)
