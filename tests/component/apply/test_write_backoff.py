"""Write backoff: another writer that reverts our writes is detected and named, and the next writes are delayed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf import component
from ocf.cluster.apply_cache import ApplyCache, LastWrite, Reverts
from ocf.component import Reason, reconciling
from ocf.component.model.write_backoff import (
    OWNER_REFERENCE,
    is_fighting,
    next_write,
    record_revert,
    revert_message,
    wait,
    written,
)
from ocf.component.status.results import Action
from ocf.concepts.recorder import Why
from ocf.objects import ObjectKey
from ocf.primitives import deployment
from ocf.testing import FaultyCluster, faults

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ocf.component import Component
    from ocf.objects import Manifest
    from tests.component.conftest import Env

DESIRED = b"desired"
HOUR = timedelta(hours=1)
REPLICAS, LABEL = "spec.replicas", "metadata.labels.team"


def last_write(desired: bytes = DESIRED, *, reverts: int = 0) -> LastWrite:
    return LastWrite(desired, HOUR, reverts={REPLICAS: Reverts(reverts, HOUR)} if reverts else {})


@pytest.fixture
def labelled(web_base: Manifest) -> Component:
    web_base["metadata"]["labels"] = {"team": "shop"}
    return (
        component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(web_base).build()).build()
    )


async def undo(env: Env) -> None:
    """Set the label as a writer does that insists on another value."""
    live = await env.cluster.get(env.web)
    if live["metadata"]["labels"] != {"team": "platform"}:
        await env.change(env.web, metadata={"labels": {"team": "platform"}})


class TestRule:
    @pytest.mark.parametrize(
        ("reverts", "minutes"),
        [(0, 0), (2, 0), (3, 1), (4, 2), (5, 4), (8, 32), (9, 60), (10_000, 60)],
    )
    def test_the_delay_doubles_up_to_an_hour(self, reverts: int, minutes: int) -> None:
        assert next_write(last_write(reverts=reverts), REPLICAS) - HOUR == timedelta(minutes=minutes)

    def test_another_desired_state_starts_again(self) -> None:
        assert record_revert(last_write(b"old", reverts=9), DESIRED, HOUR, [REPLICAS]) is None
        assert not written(last_write(b"old", reverts=9), DESIRED, HOUR).reverts

    def test_a_revert_counts_once(self) -> None:
        once = record_revert(last_write(), DESIRED, HOUR, [REPLICAS])
        assert once is not None
        assert record_revert(once, DESIRED, HOUR + timedelta(seconds=5), [REPLICAS]) == once

    def test_a_late_change_is_not_a_revert(self) -> None:
        late = record_revert(last_write(reverts=3), DESIRED, 2 * HOUR, [REPLICAS])
        assert late is not None
        assert (late.reverts[REPLICAS].times, is_fighting(late, [REPLICAS])) == (1, False)

    def test_a_field_counts_from_the_write_that_restored_it(self) -> None:
        """Writes for another field do not make changes in long intervals follow each other closely."""
        last, elapsed = written(None, DESIRED, HOUR), HOUR
        for _ in range(5):
            for name, pause in ((REPLICAS, 100), (LABEL, 100)):
                elapsed += timedelta(seconds=pause)
                last = record_revert(last, DESIRED, elapsed, [name]) or last
                assert wait(last, DESIRED, elapsed, [name]) is None
                last = written(last, DESIRED, elapsed)

    @pytest.mark.parametrize(
        ("pause", "delay"),
        [
            pytest.param(timedelta(seconds=20), timedelta(minutes=1), id="soon: a minute"),
            pytest.param(timedelta(minutes=20), timedelta(0), id="later: at once"),
        ],
    )
    def test_a_second_edit_does_not_wait_as_long_as_a_fight_over_another_field(
        self, pause: timedelta, delay: timedelta
    ) -> None:
        fight = record_revert(last_write(reverts=8), DESIRED, HOUR, [REPLICAS])
        first = record_revert(fight, DESIRED, HOUR, [REPLICAS, LABEL])
        assert wait(first, DESIRED, HOUR, [REPLICAS, LABEL]) is None
        repaired = written(first, DESIRED, HOUR)
        second = record_revert(repaired, DESIRED, HOUR + pause, [REPLICAS, LABEL])
        assert second is not None
        assert next_write(second, LABEL) - HOUR == delay
        assert next_write(second, REPLICAS) - HOUR == HOUR

    @given(st.lists(st.tuples(st.integers(0, 7200), st.sets(st.sampled_from("abc"), min_size=1)), max_size=200))
    def test_a_write_is_never_delayed_by_more_than_an_hour(self, reverts: list[tuple[int, set[str]]]) -> None:
        """Whatever the interval of the reverts, and whatever they revert."""
        elapsed, last = HOUR, written(None, DESIRED, HOUR)
        for pause, names in reverts:
            elapsed += timedelta(seconds=pause)
            last = record_revert(last, DESIRED, elapsed, names) or last
            rest = wait(last, DESIRED, elapsed, names)
            assert rest is None or elapsed + rest - last.at <= HOUR
            if rest is None:
                last = written(last, DESIRED, elapsed)

    @given(st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=360, max_size=360))
    def test_whoever_reverts_every_write_is_delayed(self, reverts: list[set[str]]) -> None:
        """An hour of reverts, each ten seconds after the write, in any order of three fields."""
        elapsed, last, stale, writes = HOUR, written(None, DESIRED, HOUR), set[str](), 0
        for names in reverts:
            elapsed += timedelta(seconds=10)
            stale |= names
            last = record_revert(last, DESIRED, elapsed, stale) or last
            if wait(last, DESIRED, elapsed, stale) is None:
                last, stale, writes = written(last, DESIRED, elapsed), set(), writes + 1
        # The first revert of each field and one more; a minute for each; then 2, 4, 8 and 16 minutes.
        assert writes <= 4 + 3 + 4

    @given(
        st.lists(
            st.tuples(st.integers(1, 600), st.sets(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), min_size=1)),
            min_size=40,
            max_size=200,
        )
    )
    def test_no_pattern_of_reverts_costs_more_than_the_budget(self, reverts: list[tuple[int, set[str]]]) -> None:
        """In any hour: ten writes that are saved up, and one each six minutes."""
        written_at = _writes_against(reverts)
        for number, first in enumerate(written_at):
            assert sum(at - first < HOUR for at in written_at[number:]) <= 20

    @given(st.integers(1, 600), st.integers(1, 40))
    def test_an_owner_reference_waits_six_minutes_at_most(self, pause: int, number: int) -> None:
        """Whatever else is reverted with it, and however often."""
        last, elapsed = written(None, DESIRED, HOUR), HOUR
        for _ in range(number):
            elapsed += timedelta(seconds=pause)
            last = record_revert(last, DESIRED, elapsed, [REPLICAS, OWNER_REFERENCE]) or last
            elapsed += wait(last, DESIRED, elapsed, [REPLICAS, OWNER_REFERENCE]) or timedelta(0)
            assert elapsed - last.at <= max(timedelta(minutes=6), timedelta(seconds=pause))
            last = written(last, DESIRED, elapsed)

    def test_a_budget_recovers(self) -> None:
        """An hour without a revert, and ten writes are sent at once again."""
        last, elapsed = written(None, DESIRED, HOUR), HOUR
        for _ in range(2):
            for number in range(10):
                last = record_revert(last, DESIRED, elapsed, [f"spec.{number}"]) or last
                assert wait(last, DESIRED, elapsed, [f"spec.{number}"]) is None
                last = written(last, DESIRED, elapsed)
            last = record_revert(last, DESIRED, elapsed, ["spec.more"]) or last
            assert wait(last, DESIRED, elapsed, ["spec.more"]) == timedelta(minutes=6)
            assert wait(last, DESIRED, elapsed, [OWNER_REFERENCE]) is None
            elapsed += 2 * HOUR


def _writes_against(reverts: Iterable[tuple[int, set[str]]]) -> list[timedelta]:
    """Return when writes are sent, if another writer reverts fields in these intervals, in seconds."""
    elapsed, last, stale, writes = HOUR, written(None, DESIRED, HOUR), set[str](), list[timedelta]()
    for pause, names in reverts:
        elapsed += timedelta(seconds=pause)
        stale |= names
        last = record_revert(last, DESIRED, elapsed, stale) or last
        if wait(last, DESIRED, elapsed, stale) is None:
            last, stale = written(last, DESIRED, elapsed), set()
            writes.append(elapsed)
    return writes


class TestFight:
    async def test_three_reverted_writes_delay_the_next_one(self, env: Env, labelled: Component) -> None:
        for _ in range(3):
            assert (await env.reconcile(labelled)).writes == 1
            await undo(env)
        held = await env.reconcile(labelled)
        outcome = held.outcomes[0]
        assert (held.writes, outcome.action, outcome.why) == (0, Action.HELD_BACK, Why.BACKING_OFF)
        assert outcome.reason_texts == ("metadata.labels: not owned",)
        assert (outcome.retry_after, held.condition.reason) == (timedelta(minutes=1), Reason.BLOCKED)
        assert held.condition.message == (
            'apps/v1/Deployment/shop/web: what was applied is reverted repeatedly, last changed by "kubectl-edit"'
        )

    async def test_an_hour_of_it_costs_at_most_ten_writes(self, env: Env, labelled: Component) -> None:
        writes = 0
        for _ in range(360):
            writes += (await env.reconcile(labelled)).writes
            await undo(env)
            env.clock.advance(timedelta(seconds=10))
        assert 4 <= writes <= 10

    async def test_it_ends_when_the_other_writer_stops(self, env: Env, labelled: Component) -> None:
        for _ in range(3):
            await env.reconcile(labelled)
            await undo(env)
        await env.reconcile(labelled)
        env.clock.advance(timedelta(minutes=1))
        assert (await env.reconcile(labelled)).condition.reason == Reason.BLOCKED
        after = await env.reconcile(labelled)
        assert (after.writes, after.condition.reason) == (0, Reason.UPDATING)

    async def test_setting_the_wall_clock_does_not_end_a_delay(self, env: Env, labelled: Component) -> None:
        for _ in range(3):
            await env.reconcile(labelled)
            await undo(env)
        env.clock.jump(env.clock.now() + timedelta(hours=1))
        assert (await env.reconcile(labelled)).writes == 0

    async def test_manual_edits_are_repaired_at_once(self, env: Env, labelled: Component) -> None:
        """Occasional manual edits are not a fight."""
        await env.reconcile(labelled)
        for _ in range(10):
            env.clock.advance(timedelta(minutes=3))
            await undo(env)
            assert (await env.reconcile(labelled)).writes == 1

    async def test_stale_reads_are_not_reverts(self, env: Env, web_base: Manifest) -> None:
        """Without our own cache, a read may be older than our last write."""
        lagging = FaultyCluster(env.cluster, [faults.stale(kind="Deployment", first=3, times=None)])
        for team in ("old", *["new"] * 8):
            web_base["metadata"]["labels"] = {"team": team}
            builder = component.Builder("web", condition_type="WebReady")
            subject = builder.with_resource(deployment.Builder(web_base).build()).build()
            async with reconciling(await env.owner_manifest(), lagging, clock=env.clock) as context:
                result = await subject.reconcile(context)
            assert result.condition.reason is not Reason.BLOCKED

    async def test_a_deleted_object_is_created_again_at_once(self, env: Env, labelled: Component) -> None:
        """Unless it is deleted again and again."""
        for _ in range(3):
            assert (await env.reconcile(labelled)).outcomes[0].action is Action.CREATED
            await env.cluster.delete(env.web)
        held = await env.reconcile(labelled)
        assert (held.writes, held.condition.reason) == (0, Reason.BLOCKED)
        assert held.requeue_after is not None
        assert held.condition.message == (
            f"{env.web} is deleted repeatedly by another client, and is created again later"
        )
        env.clock.advance(timedelta(minutes=1))
        assert (await env.reconcile(labelled)).outcomes[0].action is Action.CREATED

    async def test_an_object_that_is_deleted_now_and_then_is_created_at_once(
        self, env: Env, labelled: Component
    ) -> None:
        for _ in range(6):
            assert (await env.reconcile(labelled)).outcomes[0].action is Action.CREATED
            await env.cluster.delete(env.web)
            env.clock.advance(timedelta(seconds=61))

    async def test_our_own_delete_is_not_a_revert(self, env: Env, web_base: Manifest) -> None:
        def web(*, wanted: bool) -> Component:
            resource = deployment.Builder(web_base).build()
            return (
                component.Builder("web", condition_type="WebReady")
                .with_resource(resource, delete_when=not wanted)
                .build()
            )

        for _ in range(6):
            assert (await env.reconcile(web(wanted=True))).outcomes[0].action is Action.CREATED
            assert (await env.reconcile(web(wanted=False))).outcomes[0].action is Action.DELETED


@pytest.mark.parametrize(
    ("theirs", "names"),
    [
        pytest.param(
            ObjectKey("other.example.com/v1", "Shop", "demo", "shop"),
            ("Shop.other.example.com shop/demo", "Shop.example.com shop/demo"),
            id="of another group",
        ),
        pytest.param(
            ObjectKey("v1", "Shop", "demo", "shop"), ("Shop shop/demo", "Shop.example.com shop/demo"), id="core"
        ),
        pytest.param(
            ObjectKey("example.com/v2", "Shop", "demo", "shop"), ("Shop shop/demo",) * 2, id="in another version"
        ),
        pytest.param(
            ObjectKey("other.example.com/v1", "Mall", "demo", "shop"),
            ("Mall shop/demo", "Shop shop/demo"),
            id="of another kind",
        ),
    ],
)
def test_owners_of_one_kind_and_name_are_told_apart_by_their_groups(theirs: ObjectKey, names: tuple[str, str]) -> None:
    cache, mine, other = ApplyCache(), "shops/Shop/web/1", "malls/Shop/web/2"
    entries = [{"manager": each, "operation": "Apply", "fieldsV1": {}} for each in (mine, other)]
    live = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared", "managedFields": entries}}
    cache.note_write(ObjectKey.of(live), other, written(None, b"", timedelta(0), owner=theirs))
    message = revert_message(live, mine, ObjectKey("example.com/v1", "Shop", "demo", "shop"), cache)
    assert message.endswith(f'last changed by "{other}" for {names[0]}, and not by "{mine}" for {names[1]}')
