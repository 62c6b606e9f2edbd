"""The count belongs to the autoscaler: whenever it writes, whatever we do meanwhile, asleep or awake."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import ApplyCache, Verb
from ocf.component import reconciling
from ocf.objects import get_field
from ocf.testing import FaultyCluster, InterceptingCluster, assert_quiet, faults
from ocf.testing.snapshots import differences

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster, Request
    from ocf.embedded import EmbeddedCluster
    from ocf.objects import Manifest
    from tests.faults.conftest import Operator

CHOICES: Final = 10_000


class Watched(InterceptingCluster):
    """A cluster that notes which counts we send, and which are live after each of our writes."""

    def __init__(self, cluster: Cluster, operator: Operator, *, apply_cache: ApplyCache | None = None) -> None:
        super().__init__(cluster, apply_cache=apply_cache)
        self._web = operator.web
        self.sent: list[int] = []
        self.live: list[int] = []

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        answer = await send()
        if not request.verb.is_read:
            self.live.append((await self._inner.get(self._web))["spec"]["replicas"])
        return answer

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        if manifest["kind"] == self._web.kind:
            self.sent += [get_field(manifest, ("spec", "replicas"))] * ("replicas" in manifest.get("spec", {}))
        return await super().apply(manifest, **options)


class Interleaved(InterceptingCluster):
    """A cluster on which somebody else may have his turn before each of our requests for an object."""

    def __init__(self, cluster: Cluster, turn: Callable[[], Awaitable[object]]) -> None:
        super().__init__(cluster)
        self._turn = turn

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.kind != "Shop":
            await self._turn()
        return await send()


class TestInterleavings:
    @pytest.mark.promise("count-left", runs="10 000 random choices of what others do between two of our requests")
    async def test_no_pass_ever_sets_the_count_of_the_autoscaler(self, operator: Operator) -> None:
        """Whatever autoscaler, user, upgrade or restart do meanwhile: no count that we send or leave is ours."""
        chance = random.Random(9)  # noqa: S311 (a schedule, no secret; always the same)
        cluster = await operator.new_cluster()
        components = [operator.scaled_web(version) for version in ("1.4.0", "2.0.0")]
        owner = await cluster.get(operator.owner)
        chosen, apply_cache, count = components[0], ApplyCache(), operator.busy
        made = 0

        async def autoscale() -> None:
            nonlocal count
            count = chance.randint(2, 10)
            await operator.scale(cluster, count)

        async def touch() -> None:
            await operator.change(cluster, operator.web, metadata={"annotations": {"a": str(chance.random())}})

        async def interfere() -> None:
            await operator.change(cluster, operator.scaler, spec={"maxReplicas": chance.randint(10, 20)})

        async def upgrade() -> None:
            nonlocal chosen
            chosen = chance.choice(components)

        async def restart() -> None:
            nonlocal apply_cache
            apply_cache = ApplyCache()

        async def nothing() -> None:
            pass

        what = [autoscale] * 4 + [nothing] * 12 + [touch, interfere, upgrade, restart]

        async def turn() -> None:
            nonlocal made
            made += 1
            await chance.choice(what)()

        async with reconciling(owner, cluster, clock=operator.clock) as context:
            await chosen.reconcile(context)
        await operator.scale(cluster, count)
        while made < CHOICES:
            watched = Watched(cluster, operator, apply_cache=apply_cache)
            async with reconciling(owner, Interleaved(watched, turn), clock=operator.clock) as context:
                await chosen.reconcile(context)
            assert not watched.sent
            assert (await cluster.get(operator.web))["spec"]["replicas"] == count


class TestSleep:
    """The spec changes its mind while a pass is on its way: before each of its writes, in both directions."""

    # The writes of a pass that suspends, and of one that resumes: resources first, the status last.
    STEPS: Final = {"suspend": 3, "resume": 4}

    @pytest.mark.promise("suspend-resume", runs="before each of 7 writes, in both directions")
    @pytest.mark.parametrize(
        ("step", "number"), [(step, number) for step, writes in STEPS.items() for number in range(1, writes + 1)]
    )
    async def test_turning_back_at_any_step_brings_count_and_autoscaler_back(
        self, operator: Operator, step: str, number: int
    ) -> None:
        cluster = await operator.at_rest()
        awake = await content(operator, cluster)
        if step == "resume":
            await self._turn(operator, cluster, suspended=True)
            await operator.settle(cluster)
        there, back = (True, False) if step == "suspend" else (False, True)
        await self._turn(operator, cluster, suspended=there)
        watched = Watched(cluster, operator)

        async def turn_back() -> None:
            await self._turn(operator, cluster, suspended=back)

        writes = [verb for verb in Verb if not verb.is_read]
        faulty = FaultyCluster(watched, [faults.meanwhile(turn_back, verbs=writes, first=number)])
        await operator.settle(cluster, faulty)
        faulty.assert_all_injected()
        if back:
            assert (await operator.condition(cluster))["reason"] == "Suspended"
            await self._turn(operator, cluster, suspended=False)
            await operator.settle(cluster, faulty)

        found = await content(operator, cluster)
        assert not differences(awake, found, before_name="before", after_name="after")
        assert (await cluster.get(operator.web))["spec"]["replicas"] == operator.busy
        assert await operator.read(cluster, operator.scaler) is not None
        # No third count in between, and none that comes back: the count flips once per change of mind.
        assert set(watched.live) <= {0, operator.busy}
        flips = sum(before != after for before, after in zip(watched.live, watched.live[1:], strict=False))
        assert flips <= 3
        await assert_quiet(cluster, operator.reconcile)

    async def _turn(self, operator: Operator, cluster: EmbeddedCluster, *, suspended: bool) -> None:
        await operator.change(cluster, spec={"suspended": suspended})


async def content(operator: Operator, cluster: EmbeddedCluster) -> dict[str, Manifest]:
    """Return everything but what counts changes, and by which of our two managers a field was left."""
    found = await operator.state(cluster)
    for manifest in found.values():
        for path in ("generation", "managedFields"):
            manifest["metadata"].pop(path, None)
        for counted in (manifest.get("status", {}), *manifest.get("status", {}).get("conditions", [])):
            counted.pop("observedGeneration", None)
    return found
