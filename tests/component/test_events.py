"""Events about the state of an owner are posted once that state is stored; on both servers.

Public reports: https://github.com/RafPe/pod-certificate-signer/pull/81 (an event before the write that it is about),
https://github.com/openshift/origin/pull/8652 (an event for each conflict),
https://github.com/Azure/WALinuxAgent/issues/807 (one event for each try).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.component import ReconcileContext, reconciling
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ApiError, ConfigError, OcfError, api_error
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, InterceptingCluster, faults

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster, Request
    from ocf.testing import Fault
    from tests.component.conftest import Env

PAUSE: Final = "ocf.ocf.dev/paused"


class Events(NullRecorder):
    """A recorder that keeps events."""

    def __init__(self) -> None:
        self.all: list[Event] = []

    def happened(self, event: Event) -> None:
        self.all.append(event)

    @property
    def reasons(self) -> list[str]:
        return [event.reason for event in self.all]


def failed(context: ReconcileContext) -> None:
    context.fail(["WebReady"], "the registry cannot be reached")


def moved(context: ReconcileContext) -> None:
    if context.status.get("phase") != "Moved":
        context.status["phase"] = "Moved"
        context.event("Moved", "the shop has moved")


def paused(context: ReconcileContext) -> None:
    assert context.pause is not None


ABOUT: Final = {
    "a failure": (failed, "ReconcileFailed"),
    "what the author reports": (moved, "Moved"),
    "a pause": (paused, "ReconciliationPaused"),
}


async def reconcile(
    env: Env, through: Cluster, change: Callable[[ReconcileContext], object], recorder: Events
) -> OcfError | None:
    try:
        async with reconciling(await env.owner_manifest(), through, clock=env.clock, recorder=recorder) as context:
            change(context)
    except OcfError as error:
        return error
    return None


@pytest.mark.promise("events-stored", runs="a failure, an event of the author's and a pause, with 5 ways to fail")
@pytest.mark.parametrize(
    ("fault", "tries"),
    [
        pytest.param(None, [1], id="the status is stored"),
        pytest.param(faults.server_error(503, subresource="status", times=1), [0, 1], id="503"),
        pytest.param(faults.conflict(subresource="status", times=32), [0, 1], id="a conflict each time"),
        pytest.param(faults.lost_reply(subresource="status", times=1), [1, 1], id="stored, and the answer is lost"),
        pytest.param(faults.timeout(subresource="status", times=1), [1, 2], id="not stored, and the answer is lost"),
    ],
)
@pytest.mark.parametrize("about", ABOUT)
async def test_an_event_comes_once_what_it_is_about_is_stored(
    env: Env, about: str, fault: Fault | None, tries: list[int]
) -> None:
    """If it is not known whether it is stored, a second event is better than none: equal ones are counted as one."""
    change, reason = ABOUT[about]
    if about == "a pause":
        await env.change(env.owner, metadata={"annotations": {PAUSE: "true"}})
    events = Events()
    faulty = FaultyCluster(env.cluster, [fault] if fault is not None else [])
    for expected in tries:
        await reconcile(env, faulty, change, events)
        assert events.reasons == [reason] * expected
    assert (await env.read_status(env.owner)) != {}
    assert await reconcile(env, faulty, change, events) is None
    assert events.reasons == [reason] * tries[-1]


async def test_events_follow_the_write_of_the_status(env: Env) -> None:
    order: list[str] = []

    class Ordered(NullRecorder):
        def happened(self, event: Event) -> None:
            order.append(event.reason)

    class Writes(InterceptingCluster):
        async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
            answer = await send()
            if not request.verb.is_read:
                order.append(f"{request.verb} {request.subresource}")
            return answer

    async with reconciling(await env.owner_manifest(), Writes(env.cluster), recorder=Ordered()) as context:
        context.status["phase"] = "Moving"
        context.event("MoveBegun", "the shop moves")
        assert order == []
        await context.write_status()
        assert order == ["update status", "MoveBegun"]
        context.event("MoveEnded", "the shop has moved")
        failed(context)
    assert order == ["update status", "MoveBegun", "update status", "MoveEnded", "ReconcileFailed"]


async def test_an_event_of_an_intent_that_is_not_stored_is_not_posted(env: Env) -> None:
    events = Events()
    faulty = FaultyCluster(env.cluster, [faults.server_error(503, subresource="status", times=1)])

    async def move() -> None:
        async with reconciling(await env.owner_manifest(), faulty, clock=env.clock, recorder=events) as context:
            context.event("MoveBegun", "the shop moves")
            context.status["phase"] = "Moving"
            await context.write_status()

    with pytest.raises(ApiError):
        await move()
    assert events.all == []


async def test_a_refused_status_hides_no_failure(env: Env) -> None:
    """Nothing can be stored that shows it, and the retries repeat neither event."""
    events = Events()
    forbidden = api_error("forbidden", code=403, reason="Forbidden")
    faulty = FaultyCluster(env.cluster, [faults.rejected(forbidden, subresource="status", times=None)])
    for _ in range(3):
        error = await reconcile(env, faulty, failed, events)
        assert error is not None
        assert events.reasons == ["StatusNotStored", "ReconcileFailed"]


async def test_an_event_of_the_author_has_what_it_was_given(env: Env) -> None:
    events = Events()
    related = ObjectKey("v1", "ConfigMap", "map", "shop")
    async with reconciling(await env.owner_manifest(), env.cluster, recorder=events) as context:
        context.event("PrimaryTimedOut", "db-0 does not stop", warning=True, related=related, action="FailOver")
        context.event("Seen", "a visitor")
    first, second = events.all
    assert (first.owner, first.resource, first.type, first.action) == (env.owner, related, "Warning", "FailOver")
    assert (second.owner, second.resource, second.type, second.action) == (env.owner, env.owner, "Normal", "Reconcile")


@pytest.mark.embedded_only("what is given is checked without a server")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param({"reason": "moved out"}, r"the reason must begin with .*got 'moved out'", id="two words"),
        pytest.param({"reason": ""}, r"the reason must begin with", id="no reason"),
        pytest.param({"reason": "M" * 129}, "the reason has at most 128 characters, got 129", id="a long reason"),
        pytest.param({"action": "M" * 129}, "the action has at most 128 characters, got 129", id="a long action"),
        pytest.param({"note": ""}, "the note must not be empty", id="no note"),
        pytest.param({"note": None}, "the note must be a text, got an object of type NoneType", id="None"),
    ],
)
async def test_what_the_api_server_would_reject_is_named(env: Env, given: dict[str, Any], problem: str) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster) as context:
        with pytest.raises(ConfigError, match=problem):
            context.event(**{"reason": "Moved", "note": "the shop has moved", **given})


class TestRemovedCondition:
    @pytest.mark.parametrize("stored", [True, False], ids=["stored", "not stored"])
    @pytest.mark.parametrize("again", [True, False], ids=["set again before", "not set before"])
    @pytest.mark.parametrize("others", [True, False], ids=["with another writer", "alone"])
    async def test_it_is_gone_with_the_write_of_the_status(
        self, env: Env, *, stored: bool, again: bool, others: bool
    ) -> None:
        def set_both(context: ReconcileContext) -> None:
            if stored:
                context.set_condition("Failover", status="True", reason="Waiting", message="")
            context.set_condition("Kept", status="True", reason="Waiting", message="")

        await reconcile(env, env.cluster, set_both, Events())
        async with reconciling(await env.owner_manifest(), env.cluster) as context:
            if others:
                await env.patch_status(env.owner, {"phase": "Open"}, by="another")
            if again:
                context.set_condition("Failover", status="False", reason="Over", message="")
            context.remove_condition("Failover")
        status: Manifest = await env.read_status(env.owner)
        assert [one["type"] for one in status["conditions"]] == ["Kept"]

    async def test_one_that_is_set_after_it_stays(self, env: Env) -> None:
        async with reconciling(await env.owner_manifest(), env.cluster) as context:
            context.remove_condition("Failover")
            context.set_condition("Failover", status="True", reason="Waiting", message="")
        assert [one["type"] for one in (await env.read_status(env.owner))["conditions"]] == ["Failover"]
