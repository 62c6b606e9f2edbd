"""A status that the API server does not store as it is sent: shown once, and not written again and again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import pytest

from ocf import component
from ocf.cluster import ApplyCache, Cluster, InterceptingCluster, PatchOptions, PatchType, Request
from ocf.component import Adoption, reconciling
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import InvalidError, NotFoundError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap
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
    "neither subresource nor status": definition("barns", None, subresource=False),
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
TASK: Final[Manifest] = {"containers": [{"name": "task", "image": "task"}], "restartPolicy": "Never"}
CLAIM: Final[Manifest] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
OWNERS: Final[dict[str, Manifest]] = {
    **{
        name: {"apiVersion": "unstored.example.com/v1", "kind": one["spec"]["names"]["kind"], "spec": {"size": 1}}
        for name, one in DEFINITIONS.items()
    },
    "a Secret": {"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "hunter2"}},
    "a Service account": {"apiVersion": "v1", "kind": "ServiceAccount"},
    "a Deployment": {"apiVersion": "apps/v1", "kind": "Deployment", "spec": WORKLOAD},
    "a Job": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": TASK}}},
    "a Pod": {"apiVersion": "v1", "kind": "Pod", "spec": TASK},
    "a claim": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": CLAIM},
    "a Node": {"apiVersion": "v1", "kind": "Node"},
    "a Namespace": {"apiVersion": "v1", "kind": "Namespace"},
}
CLUSTER_SCOPED: Final = frozenset({"a Node", "a Namespace"})
NO_STATUS: Final = frozenset({"a Secret", "a Service account"})
KEEPS_PHASE: Final = frozenset({"no conditions in the schema", "no observed generation in the schema"})
UNSTORED: Final = {
    "no subresource": "does not store status.phase of Booth",
    "neither subresource nor status": "does not store status.conditions, status.phase of Barn",
    "no status in the schema": "does not store status.conditions, status.phase of Hut",
    "no conditions in the schema": "does not store status.conditions of Kiosk",
    "no observed generation in the schema": "does not store status.conditions[*].observedGeneration of Stand",
    "a Secret": "Secret of v1 has no status",
    "a Service account": "ServiceAccount of v1 has no status",
    "a Deployment": "does not store status.conditions[*].observedGeneration, status.phase of Deployment",
    "a Job": "does not store status.conditions[*].observedGeneration, status.phase of Job",
    "a Pod": "",  # its conditions have an observedGeneration, and it has a phase
    "a claim": "",  # it has a phase, and no generation
    "a Node": "",
    "a Namespace": "",
}

CLOCK: Final = VirtualClock()


class Writes(InterceptingCluster):
    """The cluster of one process, which counts writes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, apply_cache=ApplyCache())
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
    metadata = (
        {"name": f"corner-of-{namespace}"} if case in CLUSTER_SCOPED else {"name": "corner", "namespace": namespace}
    )
    owner = {**OWNERS[case], "metadata": metadata}
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
    value: str = "reconciled",
    minutes: int = 60,
) -> Events:
    """Reconcile an owner, an hour after the last time; a new condition has another time then."""
    events = events or Events()
    CLOCK.advance(timedelta(minutes=minutes))
    web = component.Builder("web", condition_type=f"{operator.capitalize()}Ready").build()
    async with reconciling(await cluster.get(key), cluster, clock=CLOCK, recorder=events, operator=operator) as context:
        await web.reconcile(context)
        # A Namespace may have no other phase.
        context.status["phase"] = "Active" if key.kind == "Namespace" else phase
        if field:
            context.status[field] = value
    return events


@pytest.mark.promise("quiet-owner", runs="14 kinds that store a part of the status or none, on a real API server, too")
@pytest.mark.promise("status-kept", runs="14 kinds that store a part of the status or none, on a real API server, too")
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
    assert [reason for reason, _ in events.notes] == (["StatusNotStored"] if UNSTORED[case] else [])
    assert [UNSTORED[case] in note for _, note in events.notes] == [True] * len(events.notes)
    # The client logs that the API server warns of unknown fields, too.
    logged = [record.getMessage() for record in caplog.records if record.name == "ocf.component"]
    assert logged == [f"{key}: {note}" for _, note in events.notes]
    assert cluster.count <= (0 if case in NO_STATUS else 2 if "subresource" in case else 1)
    assert "hunter2" not in str(events.notes)

    cluster.count = 0
    for _ in range(3):
        assert (await reconcile(cluster, key)).notes == []
    assert cluster.count == 0


async def test_what_one_owner_shows_is_not_shown_for_another_one_of_its_kind(server: Server) -> None:
    """It is a fact of the definition; and thousands of Secrets would be as many events after each restart."""
    cluster, namespace = Writes(server[0]), server[1]
    await reconcile(cluster, await made(server, "a Secret"))
    other = {**OWNERS["a Secret"], "metadata": {"name": "other", "namespace": namespace}}
    created = await server[0].create(other, field_manager="admin")
    assert (await reconcile(cluster, ObjectKey.of(created))).notes == []


STORES: Final = "no observed generation in the schema"
FOREIGN: Final = {"apiVersion": "v1", "kind": "ConfigMap"}


async def blocked(cluster: Cluster, key: ObjectKey, publish: str, *names: str) -> list[str]:
    """Reconcile components, one for each ConfigMap that may be in the way; return the notes about blocked ones."""
    events = Events()
    CLOCK.advance(timedelta(minutes=1))
    async with reconciling(await cluster.get(key), cluster, clock=CLOCK, recorder=events, operator="shops") as context:
        made = []
        for name in names:
            builder = component.Builder(name, condition_type=f"{name.capitalize()}Ready")
            copy = configmap.Builder({"metadata": {"name": name, "namespace": key.namespace}})
            builder.with_resource(copy, adopt=Adoption.NEVER)
            made.append((builder if publish == "published" else builder.unpublished()).build())
        results = [await one.reconcile(context) for one in made]
        if publish == "aggregated":
            context.aggregate("Ready", *made)
        if publish == "reported":
            message = "; ".join(one.condition.message for one in results)
            context.set_condition("Ready", status="False", reason="Waits", message=message)
    return [note for reason, note in events.notes if reason == "ComponentBlocked"]


@pytest.mark.promise("failure-shown", runs="blocked components whose conditions are not stored, on a real API server")
@pytest.mark.parametrize(
    ("case", "publish", "is_told"),
    [
        *(("a Secret", publish, True) for publish in ("published", "unpublished", "aggregated", "reported")),
        ("no conditions in the schema", "published", True),
        ("neither subresource nor status", "aggregated", True),
        (STORES, "published", False),
        (STORES, "unpublished", True),
        (STORES, "aggregated", False),
        (STORES, "reported", False),
    ],
)
async def test_what_blocks_a_component_is_told_once_where_no_condition_is_stored(
    server: Server, case: str, publish: str, caplog: pytest.LogCaptureFixture, *, is_told: bool
) -> None:
    key, cluster = await made(server, case), Writes(server[0])
    one, two = ({**FOREIGN, "metadata": {"name": name, "namespace": server[1]}} for name in ("one", "two"))

    async def told(*names: str) -> list[str]:
        """Reconcile three times; return the components that are said to be blocked."""
        caplog.clear()
        notes = [note for _ in range(3) for note in await blocked(cluster, key, publish, *names)]
        logged = [record.getMessage() for record in caplog.records]
        assert [text for text in logged if "is blocked" in text] == [f"{key}: {note}" for note in notes]
        for note in notes:
            assert "exists, and was not created for" in note
        return [note.split('"')[1] for note in notes]

    await server[0].create(one, field_manager="other")
    assert await told("one") == ["one"] * is_told
    await server[0].create(two, field_manager="other")
    assert await told("one", "two") == ["two"] * is_told, "another cause"
    await server[0].delete(ObjectKey.of(one))
    assert await told("one", "two") == [], "one cause less"
    await server[0].delete(ObjectKey.of(one))
    await server[0].create(one, field_manager="other")
    assert await told("one", "two") == ["one"] * is_told, "blocked again"
    cluster = Writes(server[0])
    assert await told("one", "two") == ["one", "two"] * is_told, "another process"


@pytest.mark.parametrize("hidden", [False, True], ids=["stored", "hidden"])
async def test_a_failure_that_is_told_anyway_does_not_tell_that_the_kind_has_no_status(
    server: Server, *, hidden: bool
) -> None:
    """An operator that would write nothing else into the status loses nothing."""
    key, cluster, events = await made(server, "a Secret"), Writes(server[0]), Events()
    live = await cluster.get(key)
    for _ in range(2):
        async with reconciling(live, cluster, clock=CLOCK, recorder=events, operator="shops") as context:
            context.failure_types = ("shops/Reconciled",)
            context.hidden_types = context.failure_types if hidden else ()
            await component.Builder("web").unpublished().build().reconcile(context)
            context.fail(["shops/Reconciled", "shops/CleanedUp"], "the registry cannot be reached")
    assert [reason for reason, _ in events.notes] == ["ReconcileFailed"]


@pytest.mark.parametrize("case", DEFINITIONS)
async def test_the_status_is_written_again_if_it_changes(server: Server, case: str) -> None:
    """By a new generation, too, and not by any other change of the owner, nor of a field that is dropped."""
    key = await made(server, case)
    cluster = Writes(server[0])
    await reconcile(cluster, key)
    cluster.count = 0
    for patch, writes in (
        ({"metadata": {"labels": {"a": "b"}}}, 0),
        ({"spec": {"size": 2}}, "subresource" not in case),
    ):
        await server[0].patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        for number in range(2):
            again = await reconcile(cluster, key, field="seen" if number else "")
            assert [note for _, note in again.notes if "status.seen" not in note] == [], "it was shown before"
        assert cluster.count <= writes + (2 if "subresource" in case else 1)
        cluster.count = 0
        for number in range(2):
            await reconcile(cluster, key, field="seen", value=f"{number}")
        assert cluster.count == 0
    await reconcile(cluster, key, phase="Closed")
    if case in KEEPS_PHASE:
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
        change = {"spec": {"size": next(counter)}}
        await server[0].patch(key, change, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await reconcile(cluster, key)
        return (await server[0].get(key))["status"].get("conditions")

    [condition] = await eventually(stored)
    generation = (await server[0].get(key))["metadata"]["generation"]
    assert (condition["type"], condition["status"]) == ("ShopsReady", "True")
    assert condition["observedGeneration"] == generation
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


@pytest.mark.promise("intent", runs="kinds that store no part of it, on a real API server, too")
@pytest.mark.parametrize("case", OWNERS)
async def test_an_intent_that_is_not_stored_is_an_error_each_time(server: Server, case: str) -> None:
    """It is reported as stored at https://github.com/nolar/kopf/issues/574, and the next step is taken."""
    key = await made(server, case)
    cluster = Writes(server[0])
    for _ in range(2):
        async with reconciling(await cluster.get(key), cluster, clock=CLOCK) as context:
            context.status["moves"] = {"web-1": "node-2"}
            with pytest.raises(ReconcileError, match=r"the API server does not store status\.moves of .*/corner"):
                await context.write_status()
            assert "moves" not in context.status
    assert cluster.count <= (2 if "subresource" in case else 1)


async def test_an_intent_that_the_schema_refuses_is_an_error(server: Server) -> None:
    key = await made(server, "no conditions in the schema")
    async with reconciling(await server[0].get(key), server[0], clock=CLOCK) as context:
        context.status["phase"] = "Ajar"
        with pytest.raises(InvalidError):
            await context.write_status()
    assert "status" not in await server[0].get(key)


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
    cluster: Writes = Writes(inner)
    found: list[str] = []
    for message in ("", "", "broken", "worse", "worse", ""):
        live = await cluster.get(key)
        async with reconciling(live, cluster, clock=CLOCK, recorder=Events(), operator="shops") as context:
            context.set_condition("Checked", status="True", reason="Seen", message=message)
        found += [each.get("message", "") for each in (await inner.get(key))["status"]["conditions"]]
    assert found == ["", "", "broken", "worse", "worse", ""]
    assert cluster.count == len({"", "broken", "worse"}) + 1
