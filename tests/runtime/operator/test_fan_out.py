"""One source with many targets: each change costs one write per target, one event, and bounded requests at once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Component
from ocf.concepts import Event
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import secret
from ocf.runtime.events.recorders import folded
from ocf.runtime.operator import Operator, OwnerType, running

from .conftest import NAMESPACE, Env, RunTest

if TYPE_CHECKING:
    from ocf.cluster import Request

TARGETS = 120
OWNER = ObjectKey("v1", "Secret", "login", NAMESPACE)


def event(at: int = 0, reason: str = "UpdatedSecret", **changed: Any) -> Event:
    resource = ObjectKey("v1", "Secret", f"copy-{at}", NAMESPACE)
    given = {"owner": OWNER, "owner_uid": "1", "resource": resource, "reason": reason, "action": "Update"}
    return Event(**{**given, "note": f"Updated {at}", **changed})


@pytest.mark.parametrize(
    ("events", "notes"),
    [
        pytest.param([event(at) for at in range(10)], [f"Updated {at}" for at in range(10)], id="ten stay"),
        pytest.param(
            [event(at) for at in range(11)], ["Updated 0; Updated 1; Updated 2; and 8 more"], id="eleven are one"
        ),
        pytest.param(
            [event(at, type="Warning") for at in range(11)], [f"Updated {at}" for at in range(11)], id="warnings stay"
        ),
        pytest.param(
            [event(at, resource=OWNER) for at in range(11)],
            [f"Updated {at}" for at in range(11)],
            id="those about the owner itself stay",
        ),
        pytest.param(
            [event(note="first", resource=OWNER), *(event(at) for at in range(12)), event(note="last", reason="Other")],
            ["first", "Updated 0; Updated 1; Updated 2; and 9 more", "last"],
            id="the order stays",
        ),
        pytest.param(
            [event(at, owner_uid=str(at)) for at in range(11)],
            [f"Updated {at}" for at in range(11)],
            id="those of another owner are others",
        ),
        pytest.param([event()] * 12, ["Updated 0; Updated 0; Updated 0; and 9 more"], id="equal ones"),
    ],
)
def test_which_events_become_one(events: list[Event], notes: list[str]) -> None:
    assert [one.note for one in folded(events)] == notes


@pytest.mark.promise("fan-out", runs="a Secret that is copied to 120 namespaces, and changes")
def test_a_change_of_one_source_costs_one_write_per_target_and_one_event(run_test: RunTest) -> None:
    """https://github.com/home-operations/kopiur/pull/287: unbounded reconciles, and one event for each of them."""

    def copies(source: Manifest) -> Component:
        builder = component.Builder("copies", owner=ObjectKey.of(source)).unpublished()
        for number in range(TARGETS):
            copy = {"metadata": {"name": "login", "namespace": f"n{number}"}, "data": source.get("data")}
            builder.with_resource(secret.Builder(copy), unowned=True, delete_with_owner=True, independent=True)
        return builder.build()

    async def test(env: Env) -> None:
        for number in range(TARGETS):
            await env.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{number}"}})
        at_once = most = 0

        async def begin(request: Request) -> None:
            nonlocal at_once, most
            if request.verb is Verb.APPLY:
                at_once += 1
                most = max(most, at_once)
                await asyncio.sleep(0.1)

        async def end(request: Request) -> None:
            nonlocal at_once
            at_once -= request.verb is Verb.APPLY

        env.gateway.meddle, env.gateway.after = begin, end
        operator: Operator[Manifest] = Operator(
            name="copies", owner=OwnerType("v1", "Secret"), components=copies, select="copy=yes", resync=None
        )
        metadata = {"name": "login", "namespace": NAMESPACE, "labels": {"copy": "yes"}}
        async with running(env.gateway, operator, options=env.options()):
            await env.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": "MQ=="}})
            await asyncio.sleep(60)
            env.forget()
            await env.edit(OWNER, {"data": {"a": "Mg=="}})
            await asyncio.sleep(60)
            copied = [await env.cluster.get(ObjectKey("v1", "Secret", "login", f"n{at}")) for at in range(TARGETS)]
            assert {one["data"]["a"] for one in copied} == {"Mg=="}
            assert env.gateway.writes.count((Verb.APPLY, "Secret")) == TARGETS
            assert len(env.gateway.writes) <= TARGETS + 1
            assert 10 < most <= 25

    run_test(test)
