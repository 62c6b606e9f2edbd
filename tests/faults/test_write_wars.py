"""Faults: a webhook rewrites applied objects, or another controller reverts them."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Cluster, Verb
from ocf.concepts.recorder import Why
from ocf.testing import MutatingCluster, RecordingCluster, assert_quiet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.objects import Manifest
    from tests.faults.conftest import Operator

HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
RESYNC: Final = timedelta(seconds=30)
EVERY: Final = 5


@pytest.fixture
def hour(operator: Operator) -> Callable[..., Awaitable[list[Any]]]:
    """Return a function that reconciles every minute for an hour, each time followed by another actor's change."""

    async def run(
        seen: Cluster,
        raw: Cluster,
        after: Callable[[], Awaitable[object]] | None = None,
        every: timedelta = MINUTE,
    ) -> list[Any]:
        results = []
        for number in range(HOUR // every):
            results.append(await operator.reconcile(seen))
            if after is not None:
                await after()
            # The controllers rarely have anything to write after the rollout, so they run only now and then.
            if number < EVERY or number % EVERY == 0:
                await operator.controllers(raw)
            operator.clock.advance(every)
        return results

    return run


REWRITES: Final[dict[str, Callable[[Manifest, int], object]]] = {
    "an image is replaced": lambda web, _: web["spec"]["template"]["spec"]["containers"][0].update(image="mirror/web"),
    "a field is removed": lambda web, _: web["spec"]["template"]["spec"]["containers"][0].pop("ports", None),
    "a label is added": lambda web, _: web["metadata"].setdefault("labels", {}).update(seen="yes"),
    "another value each time": lambda web, number: web["spec"]["template"]["spec"]["containers"][0].update(
        image=f"mirror/web:{number}"
    ),
    "a field added to each list": lambda web, number: (
        web["spec"]["template"]["spec"]["containers"][0].setdefault("env", []).append({"name": f"SEEN_{number}"})
    ),
}


class TestWebhooks:
    @pytest.mark.promise("webhook", runs="5 webhooks, an hour with a reconcile every minute each")
    @pytest.mark.parametrize("rewrite", REWRITES)
    async def test_a_value_rewritten_by_a_webhook_is_not_written_again(
        self, operator: Operator, hour: Callable[..., Awaitable[list[Any]]], rewrite: str
    ) -> None:
        cluster = await operator.new_cluster()
        numbers = itertools.count()

        def rewritten(manifest: Manifest) -> None:
            if manifest["kind"] == operator.web.kind:
                REWRITES[rewrite](manifest, next(numbers))

        webhook = MutatingCluster(cluster, rewritten)
        seen = RecordingCluster(webhook)
        await hour(seen, cluster)
        writes = [request for request in seen.writes if request.kind == operator.web.kind]
        assert len(writes) <= 2
        assert len(seen.writes) <= 10
        assert (await operator.condition(cluster))["reason"] == "Healthy"
        await assert_quiet(webhook, operator.reconcile)


class TestControllers:
    @pytest.mark.promise("write-war", runs="an hour with a reconcile every 30 seconds, each of them reverted")
    async def test_a_write_reverted_three_times_is_reported_and_backs_off(
        self, operator: Operator, hour: Callable[..., Awaitable[list[Any]]]
    ) -> None:
        cluster = await operator.at_rest()

        async def revert() -> None:
            await operator.change(cluster, operator.settings, data={"greeting": "go away"})

        operator.clock.advance(HOUR)
        await revert()
        results = await hour(cluster, cluster, revert, RESYNC)
        ours = [request for request in cluster.requests.of(Verb.APPLY) if request.changed]
        status = [request for request in cluster.requests.of(Verb.UPDATE) if request.kind == "Shop"]
        assert len(ours) + len(status) <= 10
        assert {request.kind for request in ours} == {"ConfigMap"}
        # The third revert starts a backoff, which doubles each time.
        outcomes = [result.outcomes[0] for result in results]
        assert [outcome.writes for outcome in outcomes[:3]] == [1, 1, 0]
        assert {outcome.why for outcome in outcomes if not outcome.writes} == {Why.BACKING_OFF}
        at = [number for number, outcome in enumerate(outcomes) if outcome.writes]
        assert [(later - earlier) * RESYNC for earlier, later in itertools.pairwise(at)] == [
            timedelta(seconds=30),
            *(timedelta(minutes=2**doubled) for doubled in range(5)),
        ]
        # Reported at once as Blocked, and as Down after the grace period.
        assert [str(result.condition.reason) for result in results[1:3]] == ["Healthy", "Blocked"]
        condition = await operator.condition(cluster)
        assert (condition["status"], condition["reason"]) == ("False", "Down")
        for said in (results[2].condition.message, condition["message"]):
            assert f'{operator.settings}: what was applied is reverted repeatedly, last changed by "kubectl"' in said

    @pytest.mark.promise("write-war-ends", runs="an hour of reverts, then an hour without")
    async def test_a_write_is_repeated_once_the_reverts_end(
        self, operator: Operator, hour: Callable[..., Awaitable[list[Any]]]
    ) -> None:
        cluster = await operator.at_rest()
        before = await operator.state(cluster)

        async def revert() -> None:
            await operator.change(cluster, operator.settings, data={"greeting": "go away"})

        await revert()
        await hour(cluster, cluster, revert)
        await hour(cluster, cluster)
        assert (await operator.condition(cluster))["reason"] == "Healthy"
        after = await operator.state(cluster)
        assert after[str(operator.settings)]["data"] == before[str(operator.settings)]["data"]
        await assert_quiet(cluster, operator.reconcile)
