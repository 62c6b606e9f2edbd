"""A status that the API server does not store as it is sent: shown once, and not written again and again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf import component
from ocf.cluster import ApplyCache, Cluster, InterceptingCluster, PatchOptions, PatchType, Request
from ocf.component import reconciling
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import RecordingCluster, VirtualClock
from ocf_server import EmbeddedCluster
from tests.component.conftest import Server
from tests.support import definition_of, eventually

STRING: Final[Manifest] = {"type": "string"}
CONDITION: Final[Manifest] = {
    "type": "object",
    "properties": dict.fromkeys(("type", "status", "reason", "message", "lastTransitionTime"), STRING),
}
FULL: Final[Manifest] = {
    **CONDITION,
    "properties": {**CONDITION["properties"], "observedGeneration": {"type": "integer"}},
}
PHASE: Final[Manifest] = {"type": "string", "enum": ["Open", "Closed"]}


def definition(plural: str, status: Manifest | None, *, subresource: bool = True) -> Manifest:
    """Return a definition whose status has some fields; without any, the schema has no status."""
    kind = plural[:-1].capitalize()
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema: Manifest = {"type": "object", "properties": {"spec": spec}}
    if status is not None:
        schema["properties"]["status"] = {"type": "object", "properties": status}
    without: Manifest = {} if subresource else {"subresources": {}}
    return definition_of(kind, "unstored.example.com", schema, **without)


def conditions(item: Manifest) -> Manifest:
    return {"type": "array", "items": item}


DEFINITIONS: Final = {
    "no subresource": definition("booths", {"conditions": conditions(FULL)}, subresource=False),
    "no status in the schema": definition("huts", None),
    "no conditions in the schema": definition("kiosks", {"phase": PHASE}),
    "no observed generation in the schema": definition("stands", {"conditions": conditions(CONDITION), "phase": PHASE}),
}
WORKLOAD: Final[Manifest] = {
    "selector": {"matchLabels": {"app": "web"}},
    "template": {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    },
}
OWNERS: Final[dict[str, Manifest]] = {
    **{
        name: {"apiVersion": "unstored.example.com/v1", "kind": one["spec"]["names"]["kind"], "spec": {"size": 1}}
        for name, one in DEFINITIONS.items()
    },
    "a Secret": {"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "hunter2"}},
    "a Deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": WORKLOAD},
}
UNSTORED: Final = {
    "no subresource": "no subresource `status` for Booth of unstored.example.com/v1",
    "no status in the schema": "does not store status.conditions, status.phase of Hut",
    "no conditions in the schema": "does not store status.conditions of Kiosk",
    "no observed generation in the schema": "does not store status.conditions[*].observedGeneration of Stand",
    "a Secret": "no subresource `status` for Secret of v1",
    "a Deployment": "does not store status.conditions[*].observedGeneration, status.phase of Deployment",
}

CLOCK: Final = VirtualClock()


class Writes(InterceptingCluster):
    """A cluster that counts writes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.count = 0

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        self.count += not request.verb.is_read
        return await send()


class Events(NullRecorder):
    """A recorder that keeps the notes of events, by reason."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []

    def happened(self, event: Event) -> None:
        self.notes.append((event.reason, event.note))


async def made(server: Server, case: str) -> ObjectKey:
    """Define the kind, and create an owner."""
    cluster, namespace = server
    if case in DEFINITIONS:
        await cluster.apply(DEFINITIONS[case], field_manager="admin", force=True)
    owner = {**OWNERS[case], "metadata": {"name": "corner", "namespace": namespace}}
    created = await eventually(lambda: cluster.create(owner, field_manager="admin"), ignore=(NotFoundError,))
    return ObjectKey.of(created)


async def reconcile(
    cluster: Cluster,
    key: ObjectKey,
    *,
    phase: str = "Open",
    events: Events | None = None,
    operator: str = "shops",
    field: str = "",
    minutes: int = 60,
) -> Events:
    """Reconcile an owner, an hour after the last time; a new condition has another time then."""
    events = events or Events()
    CLOCK.advance(timedelta(minutes=minutes))
    web = component.Builder("web", condition_type=f"{operator.capitalize()}Ready").build()
    async with reconciling(await cluster.get(key), cluster, clock=CLOCK, recorder=events, operator=operator) as context:
        await web.reconcile(context)
        context.status["phase"] = phase
        if field:
            context.status[field] = "reconciled"
    return events


@pytest.mark.promise("status-kept", runs="six kinds that store a part of the status or none, on a real API server, too")
@pytest.mark.parametrize("case", OWNERS)
async def test_what_is_not_stored_is_shown_once_and_not_written_again(
    server: Server, case: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Such losses in other projects.

    * https://github.com/kubernetes-sigs/controller-runtime/issues/661 (no subresource)
    * https://github.com/nolar/kopf/pull/527 (fields that the schema lacks)
    * https://github.com/opensandbox-group/OpenSandbox/issues/1423 (a write in each reconcile, without end)
    """
    key = await made(server, case)
    cluster = Writes(server[0])
    with caplog.at_level(logging.WARNING, "ocf.component"):
        events = await reconcile(cluster, key)
    [(reason, note)] = events.notes
    assert reason == "StatusNotStored"
    assert UNSTORED[case] in note
    assert [record.getMessage() for record in caplog.records] == [f"{key}: {note}"]
    assert cluster.count == 1
    assert "hunter2" not in note

    for _ in range(3):
        assert (await reconcile(cluster, key)).notes == []
    assert cluster.count == 1


@pytest.mark.parametrize("case", OWNERS)
async def test_the_status_is_written_again_if_it_or_the_owner_changes(server: Server, case: str) -> None:
    key = await made(server, case)
    cluster = Writes(server[0])
    await reconcile(cluster, key)
    label = {"metadata": {"labels": {"a": "b"}}}
    await server[0].patch(key, label, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
    cluster.count = 0
    for _ in range(2):
        assert (await reconcile(cluster, key)).notes == [], "it was shown before"
    assert cluster.count == 1
    kept = "phase" in str(DEFINITIONS.get(case))
    await reconcile(cluster, key, phase="Closed")
    assert cluster.count == (2 if kept else 1)
    if kept:
        assert (await server[0].get(key))["status"]["phase"] == "Closed"


async def test_a_definition_that_is_completed_stores_the_status(server: Server) -> None:
    """At the next change of the owner."""
    key = await made(server, "no conditions in the schema")
    cluster = Writes(server[0])
    await reconcile(cluster, key)
    full = definition("kiosks", {"conditions": conditions(FULL), "phase": PHASE})
    await server[0].apply(full, field_manager="admin", force=True)
    counter = iter(range(1000))

    async def stored() -> Any:
        # The real API server uses the schema a moment after it is stored.
        change = {"metadata": {"labels": {"count": str(next(counter))}}}
        await server[0].patch(key, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await reconcile(cluster, key)
        return (await server[0].get(key))["status"].get("conditions")

    [condition] = await eventually(stored)
    assert (condition["type"], condition["status"], condition["observedGeneration"]) == ("ShopsReady", "True", 1)
    cluster.count = 0
    await reconcile(cluster, key, phase="Closed")
    assert cluster.count == 1
    await reconcile(cluster, key, phase="Closed")
    assert cluster.count == 1


@pytest.mark.parametrize("case", DEFINITIONS)
async def test_two_operators_of_an_owner_come_to_rest(server: Server, case: str) -> None:
    """They share the memory of a process, and each has a field of its own that is not stored."""
    key = await made(server, case)
    cluster = Writes(server[0])
    for _ in range(3):
        for operator in ("shops", "audits"):
            await reconcile(cluster, key, operator=operator, field=operator)
    cluster.count = 0
    for operator in ("shops", "audits"):
        await reconcile(cluster, key, operator=operator, field=operator)
    assert cluster.count == 0


@pytest.mark.promise("status-kept", runs="a fight of two processes about a status of which fields are dropped")
@pytest.mark.parametrize("steady", [True, False], ids=["in each reconcile", "in every third one"])
@pytest.mark.parametrize("case", ["no conditions in the schema", "no observed generation in the schema"])
async def test_each_process_of_a_fight_shows_a_dropped_field_once(server: Server, case: str, *, steady: bool) -> None:
    """Each writes another phase, and a field that is dropped, and the backoff sends some of the writes only."""
    key = await made(server, case)
    processes = [RecordingCluster(server[0], apply_cache=ApplyCache()) for _ in range(2)]
    events = [Events(), Events()]
    for turn in range(30):
        for number, phase in enumerate(("Open", "Closed")):
            field = "extra" if steady or turn % 3 == 0 else ""
            await reconcile(processes[number], key, phase=phase, field=field, events=events[number], minutes=turn % 4)
    for one in events:
        shown = [note for reason, note in one.notes if reason == "StatusNotStored"]
        assert len(shown) == 1
        assert "status.extra" in shown[0]


async def test_a_field_that_is_stored_meanwhile_is_shown_again() -> None:
    """A definition that is completed, and loses the field again, is another cause."""
    server = EmbeddedCluster(namespaces=("town",)), "town"  # it uses a schema at once
    key = await made(server, "no conditions in the schema")
    full = definition("kiosks", {"conditions": conditions(FULL), "phase": PHASE})
    events = Events()
    for number, schema in enumerate((DEFINITIONS["no conditions in the schema"], full) * 2):
        await server[0].apply(schema, field_manager="admin", force=True)
        await reconcile(server[0], key, phase="Closed" if number % 2 else "Open", events=events)
    assert [reason for reason, _ in events.notes] == ["StatusNotStored"] * 2


async def test_a_deleted_owner_is_not_taken_for_one_without_a_status(server: Server) -> None:
    key = await made(server, "no conditions in the schema")
    events = Events()
    async with reconciling(await server[0].get(key), server[0], recorder=events) as context:
        context.status["phase"] = "Open"
        await server[0].delete(key)
    assert (events.notes, context.is_gone) == ([], True)


@pytest.mark.promise("status-kept", runs="a message of a Node that is empty at first, on a real API server, too")
async def test_a_value_that_was_empty_is_written_once_it_is_not(server: Server) -> None:
    """The API server leaves out an empty message of a Node, which does not mean that it stores none."""
    inner, namespace = server
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-of-{namespace}"}}
    key = ObjectKey.of(await inner.create(node, field_manager="admin"))
    cluster, found = Writes(inner), []
    for message in ("", "", "broken", "worse", "worse", ""):
        live = await cluster.get(key)
        async with reconciling(live, cluster, clock=CLOCK, recorder=Events(), operator="shops") as context:
            context.set_condition("Checked", status="True", reason="Seen", message=message)
        found += [each.get("message", "") for each in (await inner.get(key))["status"]["conditions"]]
    assert found == ["", "", "broken", "worse", "worse", ""]
    assert cluster.count == len({"", "broken", "worse"}) + 1
