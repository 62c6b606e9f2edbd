"""Clean-up of what Kubernetes does not delete: `on_delete`, and the finalizer that waits for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import (
    CleanupPending,
    Component,
    DeletionOrder,
    FinalizationResult,
    Finalizer,
    ReconcileContext,
    finalize,
    reconcile_all,
    reconciling,
)
from ocf.component.owner_deletion import SKIP_CLEANUP, external_finalizer
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, RecordingCluster, faults

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from tests.component.conftest import Env, StaticKind

ROLE = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "viewer")
CONFIG = ObjectKey("v1", "ConfigMap", "settings", "shop")
HOLD = "example.com/hold"
PENDING = CleanupPending(timedelta(seconds=30), "database demo is being dropped")


class Database:
    """An external database: `on_delete` drops it.

    Attributes:
        results: What the next calls return or raise; then they succeed.
        calls: Number of calls.
        seen: Whether the ConfigMap existed, for each call.
    """

    def __init__(self, *results: CleanupPending | Exception) -> None:
        self.results = [*results]
        self.calls = 0
        self.seen: list[bool] = []

    async def drop(self, context: ReconcileContext) -> CleanupPending | None:
        self.calls += 1
        found = await context.cluster.list("v1", "ConfigMap")
        self.seen.append("settings" in {each["metadata"]["name"] for each in found.items})
        result = self.results.pop(0) if self.results else None
        if isinstance(result, Exception):
            raise result
        return result

    def finalizer(self, **settings: Any) -> Finalizer:
        return Finalizer(on_delete=self.drop, **settings)


class Events(NullRecorder):
    """Recorder of events."""

    def __init__(self) -> None:
        self.found: Counter[tuple[str, str]] = Counter()

    def happened(self, event: Event) -> None:
        self.found[event.type, event.reason] += 1


Run = Callable[..., Awaitable[FinalizationResult | None]]


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def plain(config_map: Callable[..., StaticKind]) -> Component:
    return component.Builder("web", condition_type="WebReady").with_resource(config_map().build()).build()


@pytest.fixture
def subject(cluster_role: StaticKind, config_map: Callable[..., StaticKind]) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_resource(config_map().build())
    return builder.with_resource(cluster_role.build()).build()


@pytest.fixture
def run(env: Env, events: Events) -> Run:
    """Reconcile as an operator does, finalizer first."""

    async def reconcile(
        finalizer: Finalizer | None, *subjects: Component, cluster: Cluster | None = None
    ) -> FinalizationResult | None:
        owner = await env.owner_manifest()
        through = cluster or env.cluster
        async with reconciling(owner, through, clock=env.clock, recorder=events) as context:
            departure = await finalize(context, *subjects, finalizer=finalizer)
            if departure is None:
                await reconcile_all(context, *subjects)
        return departure

    return reconcile


async def finalizers(env: Env) -> list[str]:
    found: list[str] = (await env.owner_manifest())["metadata"].get("finalizers", [])
    return found


async def cleaned_up(env: Env) -> tuple[str, str]:
    found = await env.condition("ocf/CleanedUp")
    return found["status"], found["reason"]


async def test_an_owner_gets_the_finalizer_before_anything_is_made(env: Env, run: Run, plain: Component) -> None:
    broken = FaultyCluster(env.cluster, [faults.server_error(kind="Shop", times=None)])
    with pytest.raises(Exception, match="unable to handle"):
        await run(Database().finalizer(), plain, cluster=broken)
    assert not await env.exists(CONFIG)
    await run(Database().finalizer(), plain)
    assert await finalizers(env) == [external_finalizer("ocf")]
    assert await env.exists(CONFIG)


async def test_it_can_be_held_before_the_components_are_known(env: Env) -> None:
    """Functions that return components may make something, too."""
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        assert await Database().finalizer().begin(context)
        assert await finalizers(env) == [external_finalizer("ocf")]
        assert await Database().finalizer().begin(context)
        assert await finalizers(env) == [external_finalizer("ocf")]


@pytest.mark.parametrize("held", [False, True], ids=["gone", "held by another finalizer"])
async def test_an_owner_deleted_before_it_is_held_may_not_get_anything(env: Env, *, held: bool) -> None:
    """The API server would reject a new finalizer."""
    owner = await env.change(env.owner, metadata={"finalizers": [HOLD] if held else None})
    async with reconciling(owner, env.cluster, clock=env.clock) as context:
        await env.change(env.owner, metadata={"labels": {"a": "b"}})
        await env.cluster.delete(env.owner)
        assert not await Database().finalizer().begin(context)
        assert context.is_gone is not held


async def test_a_quiet_reconcile_sends_nothing(env: Env, run: Run, plain: Component) -> None:
    database = Database()
    for _ in range(2):
        await run(database.finalizer(), plain)
    env.cluster.requests.clear()
    await run(database.finalizer(), plain)
    assert env.cluster.requests.writes == 0
    assert database.calls == 0


@pytest.mark.promise("on-delete")
async def test_the_owner_goes_when_on_delete_has_succeeded(
    env: Env, run: Run, plain: Component, events: Events
) -> None:
    database = Database()
    await run(database.finalizer(), plain)
    await env.cluster.delete(env.owner)
    seen = RecordingCluster(env.cluster)
    assert await run(database.finalizer(), plain, cluster=seen) == FinalizationResult()
    assert database.calls == 1
    assert not await env.exists(env.owner)
    assert [f"{write.verb} {write.kind}" for write in seen.writes] == ["patch Shop"]
    assert events.found["Normal", "CleanedUp"] == 1


async def test_an_owner_waits_for_what_is_pending(env: Env, run: Run, plain: Component) -> None:
    database = Database(PENDING, PENDING)
    await run(database.finalizer(), plain)
    await env.cluster.delete(env.owner)
    for _ in range(2):
        waiting = await run(database.finalizer(), plain)
        assert waiting == FinalizationResult(pending=PENDING, requeue_after=timedelta(seconds=30))
        assert await cleaned_up(env) == ("False", "CleanupPending")
        assert (await env.condition("ocf/CleanedUp"))["message"] == "database demo is being dropped"
    assert await run(database.finalizer(), plain) == FinalizationResult()
    assert database.calls == 3
    assert not await env.exists(env.owner)


async def test_a_pending_clean_up_whose_progress_is_the_same_writes_nothing(
    env: Env, run: Run, plain: Component
) -> None:
    database = Database(PENDING, PENDING)
    await run(database.finalizer(), plain)
    await env.cluster.delete(env.owner)
    await run(database.finalizer(), plain)
    seen = RecordingCluster(env.cluster)
    await run(database.finalizer(), plain, cluster=seen)
    assert not seen.writes


@pytest.mark.promise("on-delete-fails")
@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(ReconcileError("web", "the database has 3 connections"), "3 connections", id="ours"),
        pytest.param(RuntimeError("password: hunter2"), "unexpected RuntimeError", id="unexpected"),
    ],
)
async def test_a_failure_is_raised_and_reported_and_loses_nothing(
    env: Env, run: Run, plain: Component, error: Exception, text: str
) -> None:
    database = Database(error)
    await run(database.finalizer(), plain)
    await env.cluster.delete(env.owner)
    with pytest.raises(type(error)):
        await run(database.finalizer(), plain)
    assert await finalizers(env) == [external_finalizer("ocf")]
    assert await cleaned_up(env) == ("False", "Error")
    message = (await env.condition("ocf/CleanedUp"))["message"]
    assert text in message
    assert SKIP_CLEANUP in message
    assert "hunter2" not in message
    assert await run(database.finalizer(), plain) == FinalizationResult()
    assert not await env.exists(env.owner)


async def test_other_finalizers_stay_and_on_delete_is_called_once(env: Env, run: Run, plain: Component) -> None:
    database = Database()
    await env.change(env.owner, metadata={"finalizers": [HOLD]})
    await run(database.finalizer(), plain)
    assert await finalizers(env) == [HOLD, external_finalizer("ocf")]
    await env.cluster.delete(env.owner)
    for _ in range(3):
        assert await run(database.finalizer(), plain) == FinalizationResult()
        assert await finalizers(env) == [HOLD]
        assert await cleaned_up(env) == ("True", "Completed")
    assert database.calls == 1


class TestSwitching:
    """`on_delete` is declared for existing owners, or not declared any more."""

    async def test_on_adds_the_finalizer_at_the_next_reconcile(self, env: Env, run: Run, plain: Component) -> None:
        await run(None, plain)
        assert await finalizers(env) == []
        await run(Database().finalizer(), plain)
        assert await finalizers(env) == [external_finalizer("ocf")]

    async def test_off_removes_the_finalizer(self, env: Env, run: Run, plain: Component) -> None:
        await env.change(env.owner, metadata={"finalizers": [HOLD]})
        await run(Database().finalizer(), plain)
        await run(None, plain)
        assert await finalizers(env) == [HOLD]

    async def test_off_releases_an_owner_that_is_being_deleted(self, env: Env, run: Run, plain: Component) -> None:
        await run(Database().finalizer(), plain)
        await env.cluster.delete(env.owner)
        assert await run(None, plain) == FinalizationResult()
        assert not await env.exists(env.owner)

    async def test_off_does_not_leave_a_failure_in_the_status(self, env: Env, run: Run, plain: Component) -> None:
        await env.change(env.owner, metadata={"finalizers": [HOLD]})
        failing = Database(RuntimeError("no connection")).finalizer()
        await run(failing, plain)
        await env.cluster.delete(env.owner)
        with pytest.raises(RuntimeError):
            await run(failing, plain)
        await run(None, plain)
        assert await finalizers(env) == [HOLD]
        assert await cleaned_up(env) == ("False", "CleanupSkipped")

    async def test_on_calls_nothing_for_an_owner_that_was_deleted_before(
        self, env: Env, run: Run, plain: Component
    ) -> None:
        database = Database()
        await env.change(env.owner, metadata={"finalizers": [HOLD]})
        await env.cluster.delete(env.owner)
        assert await run(database.finalizer(), plain) == FinalizationResult()
        assert database.calls == 0
        assert await finalizers(env) == [HOLD]


class TestSkipping:
    async def test_the_annotation_releases_the_owner_without_a_clean_up(
        self, env: Env, run: Run, plain: Component, events: Events
    ) -> None:
        database = Database(RuntimeError("the provider does not exist any more"))
        await run(database.finalizer(), plain)
        await env.cluster.delete(env.owner)
        with pytest.raises(RuntimeError):
            await run(database.finalizer(), plain)
        await env.change(env.owner, metadata={"annotations": {SKIP_CLEANUP: "true"}})
        assert await run(database.finalizer(), plain) == FinalizationResult()
        assert database.calls == 1
        assert not await env.exists(env.owner)
        assert events.found["Warning", "CleanupSkipped"] == 1

    async def test_nothing_is_called_although_the_status_was_written_meanwhile(
        self, env: Env, run: Run, plain: Component, events: Events
    ) -> None:
        """The owner as read still has the finalizer that was removed."""
        database = Database()
        await env.change(env.owner, metadata={"finalizers": [HOLD], "annotations": {SKIP_CLEANUP: "true"}})
        await run(database.finalizer(), plain)
        await env.cluster.delete(env.owner)
        as_read = await env.owner_manifest()
        await env.patch_status(env.owner, {"phase": "Leaving"}, by="other")
        async with reconciling(as_read, env.cluster, clock=env.clock, recorder=events) as context:
            assert await finalize(context, plain, finalizer=database.finalizer()) == FinalizationResult()
        assert database.calls == 0
        assert await finalizers(env) == [HOLD]
        assert (await env.read_status(env.owner))["phase"] == "Leaving"

    async def test_objects_are_not_waited_for(self, env: Env, run: Run, subject: Component) -> None:
        await run(None, subject)
        await env.change(ROLE, metadata={"finalizers": [HOLD]})
        await env.change(env.owner, metadata={"annotations": {SKIP_CLEANUP: "true"}})
        assert await run(None, subject) is None
        await env.cluster.delete(env.owner)
        await run(None, subject)
        assert not await env.exists(env.owner)
        assert await env.exists(ROLE)

    async def test_it_is_in_the_condition_while_another_finalizer_holds(
        self, env: Env, run: Run, plain: Component, events: Events
    ) -> None:
        await env.change(env.owner, metadata={"finalizers": [HOLD], "annotations": {SKIP_CLEANUP: "true"}})
        await run(Database().finalizer(), plain)
        await env.cluster.delete(env.owner)
        for _ in range(3):
            await run(Database().finalizer(), plain)
        assert await cleaned_up(env) == ("False", "CleanupSkipped")
        assert events.found["Warning", "CleanupSkipped"] == 1


class TestOrder:
    async def test_external_resources_are_deleted_first_by_default(
        self, env: Env, run: Run, subject: Component
    ) -> None:
        database = Database(PENDING)
        await run(database.finalizer(), subject)
        await env.cluster.delete(env.owner)
        await run(database.finalizer(), subject)
        assert await env.exists(ROLE)
        await run(database.finalizer(), subject)
        assert not await env.exists(ROLE)
        assert database.seen == [True, True]

    async def test_on_delete_is_not_called_again_while_objects_are_waited_for(
        self, env: Env, run: Run, subject: Component
    ) -> None:
        database = Database()
        await run(database.finalizer(), subject)
        await env.change(ROLE, metadata={"finalizers": [HOLD]})
        await env.cluster.delete(env.owner)
        for _ in range(3):
            waiting = await run(database.finalizer(), subject)
            assert waiting == FinalizationResult(remaining=(ROLE,), requeue_after=timedelta(seconds=10))
            assert await cleaned_up(env) == ("False", "ObjectsRemaining")
            assert str(ROLE) in (await env.condition("ocf/CleanedUp"))["message"]
        await env.change(ROLE, metadata={"finalizers": None})
        await run(database.finalizer(), subject)
        assert not await env.exists(env.owner)
        assert database.calls == 1

    @pytest.mark.embedded_only("deleting dependents takes a controller")
    async def test_components_can_be_deleted_first(self, env: Env, run: Run, subject: Component) -> None:
        database = Database(PENDING)
        finalizer = database.finalizer(order=DeletionOrder.COMPONENTS_FIRST)
        await run(finalizer, subject)
        await env.change(CONFIG, metadata={"finalizers": [HOLD]})
        await env.cluster.delete(env.owner)
        waiting = await run(finalizer, subject)
        assert waiting is not None
        assert set(waiting.remaining) == {ROLE, CONFIG}
        waiting = await run(finalizer, subject)
        assert waiting == FinalizationResult(remaining=(CONFIG,), requeue_after=timedelta(seconds=10))
        assert await cleaned_up(env) == ("False", "ObjectsRemaining")
        assert database.calls == 0
        await env.change(CONFIG, metadata={"finalizers": None})
        await run(finalizer, subject)
        assert database.seen == [False]
        await run(finalizer, subject)
        assert not await env.exists(env.owner)

    @pytest.mark.embedded_only("deleting dependents takes a controller")
    async def test_components_first_keeps_objects_of_others(self, env: Env, run: Run, subject: Component) -> None:
        """Those of other owners, those of a user, and those that were orphaned."""
        finalizer = Database().finalizer(order=DeletionOrder.COMPONENTS_FIRST)
        theirs = [ObjectKey(key.api_version, key.kind, "theirs", key.namespace) for key in (ROLE, CONFIG)]
        for key in theirs:
            await env.create(key)
        await run(finalizer, subject)
        await env.change(CONFIG, metadata={"ownerReferences": None})
        await env.cluster.delete(env.owner)
        for _ in range(3):
            if await env.exists(env.owner):
                await run(finalizer, subject)
        assert not await env.exists(env.owner)
        assert not await env.exists(ROLE)
        assert [await env.exists(key) for key in (*theirs, CONFIG)] == [True, True, True]

    async def test_components_first_waits_until_dependents_are_orphaned(
        self, env: Env, run: Run, plain: Component
    ) -> None:
        finalizer = Database().finalizer(order=DeletionOrder.COMPONENTS_FIRST)
        await run(finalizer, plain)
        await env.change(env.owner, metadata={"finalizers": [external_finalizer("ocf"), "orphan"]})
        owner = await env.owner_manifest()
        owner["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
        async with reconciling(owner, env.cluster, clock=env.clock) as context:
            waiting = await finalize(context, plain, finalizer=finalizer)
            assert waiting == FinalizationResult(requeue_after=timedelta(seconds=10))
            assert await env.exists(CONFIG)


async def test_components_are_not_needed_for_a_cluster_scoped_owner(env: Env) -> None:
    """The garbage collector deletes all of their objects, so nothing that they read can hold the owner."""
    mall: Manifest = {
        "apiVersion": "example.com/v1",
        "kind": "Mall",
        "metadata": {
            "name": "demo",
            "uid": "u",
            "finalizers": [external_finalizer("ocf")],
            "deletionTimestamp": "2026-01-31T12:00:00Z",
        },
    }

    async def components() -> tuple[Component, ...]:
        raise AssertionError("not needed")

    database = Database(PENDING)
    context = ReconcileContext(mall, env.cluster, env.clock)
    assert await database.finalizer().run(context, components) is not None
    assert database.calls == 1
