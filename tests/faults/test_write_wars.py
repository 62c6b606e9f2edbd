"""Somebody insists on another value: a webhook that rewrites what is sent, a controller that changes it back."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Cluster, Verb
from ocf.concepts import Why
from ocf.testing import MutatingCluster, RecordingCluster, assert_quiet

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.objects import Manifest
    from tests.faults.conftest import Operator

HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)
RESYNC: Final = timedelta(seconds=30)
SETTLED: Final = 5


@pytest.fixture
def hour(operator: Operator) -> Callable[..., Awaitable[list[Any]]]:
    """Let an hour pass, with a pass every minute, each followed by what somebody does."""

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
            # They have nothing more to say once all is rolled out, and again after the end of a war.
            if number < SETTLED or number % SETTLED == 0:
                await operator.controllers(raw)
            operator.clock.advance(every)
        return results

    return run


REWRITES: Final[dict[str, Callable[[Manifest, int], object]]] = {
    "an image is replaced": lambda web, _: web["spec"]["template"]["spec"]["containers"][0].update(image="mirror/web"),
    "a field is taken away": lambda web, _: web["spec"]["template"]["spec"]["containers"][0].pop("ports", None),
    "a label is added": lambda web, _: web["metadata"].setdefault("labels", {}).update(seen="yes"),
    "another value each time": lambda web, number: web["spec"]["template"]["spec"]["containers"][0].update(
        image=f"mirror/web:{number}"
    ),
    "a field added to each list": lambda web, number: (
        web["spec"]["template"]["spec"]["containers"][0].setdefault("env", []).append({"name": f"SEEN_{number}"})
    ),
}


class TestWebhooks:
    @pytest.mark.promise("webhook", runs="5 webhooks, an hour with a pass every minute each")
    @pytest.mark.parametrize("rewrite", REWRITES)
    async def test_what_a_webhook_rewrites_is_learnt_and_not_fought(
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
    @pytest.mark.promise("write-war", runs="an hour with a pass every 30 seconds, each of them undone")
    async def test_what_is_undone_three_times_is_told_and_waits(
        self, operator: Operator, hour: Callable[..., Awaitable[list[Any]]]
    ) -> None:
        cluster = await operator.at_rest()

        async def undo() -> None:
            await operator.change(cluster, operator.settings, data={"greeting": "go away"})

        operator.clock.advance(HOUR)
        await undo()
        results = await hour(cluster, cluster, undo, RESYNC)
        ours = [request for request in cluster.requests.of(Verb.APPLY) if request.changed]
        status = [request for request in cluster.requests.of(Verb.UPDATE) if request.kind == "Shop"]
        assert len(ours) + len(status) <= 10
        assert {request.kind for request in ours} == {"ConfigMap"}
        # What is undone for the third time waits, and longer each time.
        outcomes = [result.outcomes[0] for result in results]
        assert [outcome.writes for outcome in outcomes[:3]] == [1, 1, 0]
        assert {outcome.why for outcome in outcomes if not outcome.writes} == {Why.BACKING_OFF}
        at = [number for number, outcome in enumerate(outcomes) if outcome.writes]
        assert [(later - earlier) * RESYNC for earlier, later in itertools.pairwise(at)] == [
            timedelta(seconds=30),
            *(timedelta(minutes=2**doubled) for doubled in range(5)),
        ]
        # Told at once, and as what it is; once the grace period is over, as an outage.
        assert [str(result.condition.reason) for result in results[1:3]] == ["Healthy", "Blocked"]
        condition = await operator.condition(cluster)
        assert (condition["status"], condition["reason"]) == ("False", "Down")
        for said in (results[2].condition.message, condition["message"]):
            assert f'{operator.settings}: what was applied is reverted repeatedly, last changed by "kubectl"' in said

    @pytest.mark.promise("write-war-ends", runs="a war of an hour, then peace")
    async def test_once_nobody_undoes_it_any_more_it_is_repaired_and_healthy(
        self, operator: Operator, hour: Callable[..., Awaitable[list[Any]]]
    ) -> None:
        cluster = await operator.at_rest()
        before = await operator.state(cluster)

        async def undo() -> None:
            await operator.change(cluster, operator.settings, data={"greeting": "go away"})

        await undo()
        await hour(cluster, cluster, undo)
        await hour(cluster, cluster)
        assert (await operator.condition(cluster))["reason"] == "Healthy"
        after = await operator.state(cluster)
        assert after[str(operator.settings)]["data"] == before[str(operator.settings)]["data"]
        await assert_quiet(cluster, operator.reconcile)
