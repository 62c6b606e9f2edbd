"""Faults: the autoscaler writes the replica count at any time; the operator never overwrites it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import ApplyCache, Verb
from ocf.component import reconciling
from ocf.objects.paths import get_field
from ocf.testing import FaultyCluster, InterceptingCluster, assert_quiet, faults
from ocf.testing.snapshots import differences

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster, Request
    from ocf.objects import Manifest
    from ocf_server import EmbeddedCluster
    from tests.faults.conftest import Operator
    from tests.requirements import Sampled

CHOICES: Final = 10_000


class Watched(InterceptingCluster):
    """A cluster that records the replica counts that are sent, and the live count after each write."""

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
    """A cluster on which another actor may change something before each request of the operator for an object."""

    def __init__(self, cluster: Cluster, turn: Callable[[], Awaitable[object]]) -> None:
        super().__init__(cluster)
        self._turn = turn

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        if request.kind != "Shop":
            await self._turn()
        return await send()


class TestInterleavings:
    @pytest.mark.promise(
        "count-left", runs="10 000 random changes by other actors between two requests (in `make test` one in ten)"
    )
    @pytest.mark.matrix
    async def test_no_reconcile_sets_the_count_of_the_autoscaler(self, operator: Operator, sampled: Sampled) -> None:
        """Autoscaler, user, upgrades and restarts interleave: the operator sends no count, and the live one is kept."""
        rng = random.Random(9)  # noqa: S311 (a deterministic schedule, not a secret)
        cluster = await operator.new_cluster()
        components = [operator.scaled_web(version) for version in ("1.4.0", "2.0.0")]
        owner = await cluster.get(operator.owner)
        chosen, apply_cache, count = components[0], ApplyCache(), operator.busy
        made = 0

        async def autoscale() -> None:
            nonlocal count
            count = rng.randint(2, 10)
            await operator.scale(cluster, count)

        async def touch() -> None:
            await operator.change(cluster, operator.web, metadata={"annotations": {"a": str(rng.random())}})

        async def interfere() -> None:
            await operator.change(cluster, operator.scaler, spec={"maxReplicas": rng.randint(10, 20)})

        async def upgrade() -> None:
            nonlocal chosen
            chosen = rng.choice(components)

        async def restart() -> None:
            nonlocal apply_cache
            apply_cache = ApplyCache()

        async def nothing() -> None:
            pass

        what = [autoscale] * 4 + [nothing] * 12 + [touch, interfere, upgrade, restart]

        async def turn() -> None:
            nonlocal made
            made += 1
            await rng.choice(what)()

        async with reconciling(owner, cluster, clock=operator.clock) as context:
            await chosen.reconcile(context)
        await operator.scale(cluster, count)
        choices = len(sampled(range(CHOICES)))
        while made < choices:
            watched = Watched(cluster, operator, apply_cache=apply_cache)
            async with reconciling(owner, Interleaved(watched, turn), clock=operator.clock) as context:
                await chosen.reconcile(context)
            assert not watched.sent
            assert (await cluster.get(operator.web))["spec"]["replicas"] == count


class TestSuspension:
    """The user reverts a suspension or resumption before each write of the reconcile."""

    # Number of writes of a reconcile that suspends, and of one that resumes: resources first, the status last.
    STEPS: Final = {"suspend": 3, "resume": 4}

    @pytest.mark.promise("suspend-resume", runs="before each of 7 writes, in both directions")
    @pytest.mark.parametrize(
        ("step", "number"), [(step, number) for step, writes in STEPS.items() for number in range(1, writes + 1)]
    )
    async def test_reverting_at_any_write_restores_count_and_autoscaler(
        self, operator: Operator, step: str, number: int
    ) -> None:
        cluster = await operator.at_rest()
        running = await content(operator, cluster)
        if step == "resume":
            await self._turn(operator, cluster, suspended=True)
            await operator.settle(cluster)
        there, back = (True, False) if step == "suspend" else (False, True)
        await self._turn(operator, cluster, suspended=there)
        watched = Watched(cluster, operator)

        async def revert() -> None:
            await self._turn(operator, cluster, suspended=back)

        writes = [verb for verb in Verb if not verb.is_read]
        faulty = FaultyCluster(watched, [faults.meanwhile(revert, verbs=writes, first=number)])
        await operator.settle(cluster, faulty)
        faulty.assert_all_injected()
        if back:
            assert (await operator.condition(cluster))["reason"] == "Suspended"
            await self._turn(operator, cluster, suspended=False)
            await operator.settle(cluster, faulty)

        found = await content(operator, cluster)
        assert not differences(running, found, before_name="before", after_name="after")
        assert (await cluster.get(operator.web))["spec"]["replicas"] == operator.busy
        assert await operator.read(cluster, operator.scaler) is not None
        # No other count in between, and the count changes only once for each change of the spec.
        assert set(watched.live) <= {0, operator.busy}
        flips = sum(before != after for before, after in zip(watched.live, watched.live[1:], strict=False))
        assert flips <= 3
        await assert_quiet(cluster, operator.reconcile)

    async def _turn(self, operator: Operator, cluster: EmbeddedCluster, *, suspended: bool) -> None:
        await operator.change(cluster, spec={"suspended": suspended})


async def content(operator: Operator, cluster: EmbeddedCluster) -> dict[str, Manifest]:
    """Return the state without generations and managed fields."""
    found = await operator.state(cluster)
    for manifest in found.values():
        for path in ("generation", "managedFields"):
            manifest["metadata"].pop(path, None)
        for counted in (manifest.get("status", {}), *manifest.get("status", {}).get("conditions", [])):
            counted.pop("observedGeneration", None)
    return found
