"""One source with many targets: each change costs one write per target, one event, and bounded requests at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Component
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import secret
from ocf.runtime.events.recorders import EventFormatter, FoldedEvents
from ocf.runtime.operator import Operator, OwnerType, running

from .conftest import NAMESPACE, Env, RunTest

if TYPE_CHECKING:
    from ocf.cluster import Request

TARGETS = 120
OWNER = ObjectKey("v1", "Secret", "login", NAMESPACE)


def event(at: int = 0, verb: str = "Updated", **changed: Any) -> Event:
    resource = ObjectKey("v1", "Secret", f"copy-{at}", NAMESPACE)
    given = {"owner": OWNER, "owner_uid": "1", "resource": resource, "reason": f"{verb}Secret", "action": verb[:-1]}
    return Event(**{**given, "note": f"{verb} Secret 'copy-{at}'", **changed})


class Kept(NullRecorder):
    """Keeps what it gets."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def happened(self, event: Event) -> None:
        self.events.append(event)


def of_reconcile(events: list[Event], formatter: EventFormatter | None = None) -> list[Event]:
    """Return the events that are posted for a reconcile in which these happened."""
    kept = Kept()
    folding = FoldedEvents(kept, formatter)
    with folding.reconciling(OWNER):
        for one in events:
            folding.happened(one)
        assert kept.events == []
    return kept.events


TWO = [event(0, "Created"), event(1, "Created")]
TEXT = "Created 2 objects: Secret 'copy-0', Secret 'copy-1'"
GONE = {"reason": "ResourceDeleted", "action": "Delete"}
NAMED = ", ".join(f"Secret 'copy-{at}'" for at in range(10))


@pytest.mark.parametrize(
    ("events", "posted"),
    [
        pytest.param([event(3)], [("UpdatedSecret", "Update", "Updated Secret 'copy-3'")], id="one stays"),
        pytest.param(TWO, [("CreatedSecret", "Create", TEXT)], id="of one reason"),
        pytest.param(
            [TWO[0], event(1, "Created", reason="CreatedGuide")], [("Created", "Create", TEXT)], id="of several kinds"
        ),
        pytest.param(
            [event(7), *TWO, event(8, note="gone", **GONE)],
            [("Reconciled", "Reconcile", f"{TEXT}; Updated Secret 'copy-7'; gone")],
            id="of several actions",
        ),
        pytest.param(
            [event(at, note=f"{at} is gone", **GONE) for at in range(5)],
            [("ResourceDeleted", "Delete", "0 is gone; 1 is gone; 2 is gone; and 2 more")],
            id="deletes have their causes",
        ),
        pytest.param(
            [event(at) for at in range(500)],
            [("UpdatedSecret", "Update", f"Updated 500 objects: {NAMED}, and 490 more")],
            id="hundreds",
        ),
        pytest.param(
            [event(at, type="Warning", note="no") for at in range(2)],
            [("UpdatedSecret", "Update", "no")] * 2,
            id="warnings stay",
        ),
        pytest.param(
            [event(at, resource=OWNER, note="yes") for at in range(2)],
            [("UpdatedSecret", "Update", "yes")] * 2,
            id="those about the owner itself stay",
        ),
        pytest.param(
            [event(at, reason="FieldsTakenOver", action="TakeOver", note="x") for at in range(2)],
            [("FieldsTakenOver", "TakeOver", "x")] * 2,
            id="those about other writers stay",
        ),
        pytest.param(
            [event(note="first", resource=OWNER), TWO[0], event(note="between", resource=OWNER), TWO[1]],
            [
                ("UpdatedSecret", "Update", "first"),
                ("CreatedSecret", "Create", TEXT),
                ("UpdatedSecret", "Update", "between"),
            ],
            id="the order stays",
        ),
        pytest.param(
            [event(at, owner_uid=str(at)) for at in range(2)],
            [("UpdatedSecret", "Update", f"Updated Secret 'copy-{at}'") for at in range(2)],
            id="those of another owner are others",
        ),
    ],
)
def test_which_events_become_one(events: list[Event], posted: list[tuple[str, str, str]]) -> None:
    assert [(one.reason, one.action, one.note) for one in of_reconcile(events)] == posted


def test_events_are_rewritten_before_they_become_one() -> None:
    """The words, the reason and the action of the author stay; what the formatter drops is not named."""

    def words(one: Event) -> Event | None:
        if one.resource.name == "copy-1":
            return None
        return replace(one, reason="Copied", action="Copy", note=f"copied to {one.resource.name}")

    found = of_reconcile([event(at, "Created") for at in range(3)], words)
    assert [(one.reason, one.action, one.note) for one in found] == [
        ("Copied", "Copy", "copied to copy-0; copied to copy-2")
    ]


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
