"""Writers that insist on different values in the status of one owner.

Elsewhere: https://github.com/openstack-k8s-operators/openstack-operator/pull/768 (statuses that trigger each other),
https://github.com/openshift/cluster-authentication-operator/pull/269 (conditions that flap between two),
https://github.com/kubernetes/enhancements/pull/5068 (a status without the observed generation that was written).
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Cluster, InterceptingCluster
from ocf.component import ReconcileContext, reconciling
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.objects import Manifest, ObjectKey
from ocf.testing.envtest import ControlPlane
from ocf_server import EmbeddedCluster
from tests.component.conftest import Env

if TYPE_CHECKING:
    from tests.component.conftest import Process

HOUR: Final = timedelta(hours=1)
EVERY: Final = timedelta(seconds=30)
MOST: Final = 10

Report = Callable[[ReconcileContext], object]


class Notes(NullRecorder):
    """The notes of events about reverted values."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def happened(self, event: Event) -> None:
        if event.reason == "StatusReverted":
            self.found.append(event.note)


@dataclass
class Writer:
    """A process with what it reports."""

    env: Env
    process: Process
    report: Report
    notes: Notes = field(default_factory=Notes)
    retry_after: timedelta | None = None

    async def reconcile(self) -> int:
        """Report; return the number of writes."""
        before = self.process.writes
        live, clock = await self.env.owner_manifest(), self.env.clock
        async with reconciling(
            live, self.process.cluster, operator=self.process.operator, clock=clock, recorder=self.notes
        ) as context:
            self.report(context)
        self.retry_after = context.delay
        return self.process.writes - before


def ready(status: str, message: str = "") -> Report:
    return lambda context: context.set_condition("Ready", status=status, reason="Observed", message=message)


def sets(**fields: Any) -> Report:
    return lambda context: context.status.update(fields)


def unset(context: ReconcileContext) -> None:
    context.status.pop("phase", None)


async def fight(env: Env, *writers: Writer) -> list[int]:
    """Let writers reconcile in turn for an hour; return the number of writes of each."""
    written = [0] * len(writers)
    for _ in range(HOUR // EVERY):
        for number, writer in enumerate(writers):
            written[number] += await writer.reconcile()
        env.clock.advance(EVERY)
    return written


async def waiting_one(*writers: Writer) -> Writer:
    """Return the writer whose value is held back."""
    for writer in writers:
        await writer.reconcile()
    (found,) = [writer for writer in writers if writer.retry_after is not None]
    return found


@pytest.mark.promise("write-war", runs="an hour of two operators, and of two versions, over the owner's status")
@pytest.mark.parametrize("operators", [("shops", "malls"), ("shops", "shops")], ids=["two operators", "two versions"])
@pytest.mark.parametrize(
    "reports",
    [
        pytest.param((ready("True"), ready("False")), id="the status of a condition"),
        pytest.param((ready("True", "of 1"), ready("True", "of 2")), id="the message of a condition"),
        pytest.param((sets(phase="Open"), sets(phase="Closed")), id="a field"),
        pytest.param((sets(phase="Open"), unset), id="a field is removed"),
    ],
)
async def test_two_writers_of_one_status_back_off_and_name_each_other(
    env: Env, operators: tuple[str, str], reports: tuple[Report, Report]
) -> None:
    writers = [Writer(env, env.process(name), report) for name, report in zip(operators, reports, strict=True)]
    assert max(await fight(env, *writers)) <= MOST
    uid = (await env.owner_manifest())["metadata"]["uid"]
    notes = [note for writer in writers for note in writer.notes.found]
    assert notes
    # A writer that only removes a value owns nothing by which it could be named.
    named = operators[:1] if reports[1] is unset else operators
    assert all(f'"{name}/Shop/status/{uid}"' in note for note in notes for name in named)
    assert len(notes) <= 2 * MOST


async def test_keys_of_one_map_are_fought_over_one_by_one(env: Env) -> None:
    """Two writers that each count in a key of their own, beside one that both set."""
    counts = {"shops": 0, "malls": 0}

    def counting(name: str, phase: str) -> Report:
        def report(context: ReconcileContext) -> None:
            counts[name] += 1
            shards = context.status.setdefault("shards", {})
            shards[name] = counts[name]
            shards["phase"] = phase

        return report

    writers = [Writer(env, env.process(name), counting(name, name)) for name in counts]
    await fight(env, *writers)
    shards = (await env.owner_manifest())["status"]["shards"]
    assert {name: shards[name] for name in counts} == counts
    notes = [note for writer in writers for note in writer.notes.found]
    assert notes
    assert all(note.startswith("shards.phase of the status is reverted") for note in notes)


async def test_many_values_are_named_by_the_first_ones(env: Env) -> None:
    first, second = ({"pods": {f"pod-{at}": value for at in range(9)}} for value in ("Up", "Down"))
    writers = [Writer(env, env.process(name), sets(**one)) for name, one in (("shops", first), ("malls", second))]
    await fight(env, *writers)
    notes = [note for writer in writers for note in writer.notes.found]
    start = "pods.pod-0 and pods.pod-1 and pods.pod-2 and 6 more fields of the status are reverted repeatedly"
    assert all(note.startswith(start) for note in notes)
    assert notes


async def test_values_that_always_differ_are_slowed_down_too(env: Env) -> None:
    counts = [0, 0]

    def counting(number: int) -> Report:
        def report(context: ReconcileContext) -> None:
            counts[number] += 1
            context.status["seen"] = f"{number}: {counts[number]}"

        return report

    writers = [Writer(env, env.process(name), counting(number)) for number, name in enumerate(("shops", "malls"))]
    # The one that waits does not trigger the other one. Its first three writes are not delayed.
    assert min(await fight(env, *writers)) <= 3 + HOUR // timedelta(minutes=1)


async def test_a_new_generation_is_written_at_once(env: Env) -> None:
    writers = [Writer(env, env.process("shops"), ready("True")), Writer(env, env.process("malls"), ready("False"))]
    await fight(env, *writers)
    loser = await waiting_one(*writers)
    await env.change(env.owner, spec={"size": 99})
    assert await loser.reconcile() == 1


async def test_a_new_value_is_written_at_once(env: Env) -> None:
    writers = [Writer(env, env.process("shops"), ready("True")), Writer(env, env.process("malls"), ready("False"))]
    await fight(env, *writers)
    loser = await waiting_one(*writers)
    env.clock.advance(timedelta(minutes=1))
    loser.report = ready("Unknown", "a new value")
    assert await loser.reconcile() == 1


async def test_other_values_of_the_same_status_are_not_delayed(env: Env) -> None:
    """Only the condition that is fought over waits."""
    writers = [Writer(env, env.process("shops"), ready("True")), Writer(env, env.process("malls"), ready("False"))]
    await fight(env, *writers)
    loser = await waiting_one(*writers)
    before, old = (await env.condition("Ready"))["status"], loser.report

    def both(context: ReconcileContext) -> None:
        old(context)
        context.set_condition("Stocked", status="True", reason="Observed", message="")

    loser.report = both
    assert await loser.reconcile() == 1
    assert ((await env.condition("Ready"))["status"], (await env.condition("Stocked"))["status"]) == (before, "True")


async def test_it_ends_with_the_fight(env: Env) -> None:
    writers = [Writer(env, env.process("shops"), ready("True")), Writer(env, env.process("malls"), ready("False"))]
    await fight(env, *writers)
    loser = await waiting_one(*writers)
    assert loser.retry_after is not None
    env.clock.advance(loser.retry_after)
    assert [await loser.reconcile(), await loser.reconcile()] == [1, 0]
    assert (await env.condition("Ready"))["status"] == ("True" if loser is writers[0] else "False")


async def test_changes_of_one_writer_are_never_delayed(env: Env) -> None:
    phases = ["Open", "Closed"]
    writer = Writer(env, env.process("shops"), ready("True"))
    for number in range(20):
        writer.report = sets(phase=phases[number % 2])
        assert await writer.reconcile() == 1


class _Storing(InterceptingCluster):
    """Changes each status that is written, as the schema of a definition does."""

    def __init__(self, inner: Cluster, change: Callable[[dict[str, Any]], object]) -> None:
        super().__init__(inner)
        self._change = change

    async def update(self, manifest: Manifest, **options: Any) -> Manifest:
        changed = copy.deepcopy(manifest)
        self._change(changed["status"]["pods"])
        return await super().update(changed, **options)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda pods: pods.update(failed=0), id="a default is added"),
        pytest.param(lambda pods: pods.pop("seen"), id="a field is dropped"),
        pytest.param(lambda pods: pods.update(seen="n"), id="a value is normalized"),
    ],
)
async def test_what_the_api_server_makes_of_a_value_is_not_a_revert(
    env: Env, change: Callable[[dict[str, Any]], object]
) -> None:
    """There is no other writer, and each value is written at once."""
    cluster, notes = _Storing(env.cluster, change), Notes()
    for number in range(9):
        live = await env.owner_manifest()
        async with reconciling(live, cluster, clock=env.clock, recorder=notes) as context:
            context.status["pods"] = {"ready": number, "seen": "often"}
        assert (await env.owner_manifest())["status"]["pods"]["ready"] == number
        env.clock.advance(timedelta(seconds=1))
    assert notes.found == []


_TEXT: Final = {"type": "string"}
_NARROW: Final[dict[str, Any]] = dict.fromkeys(("type", "status", "reason", "message", "lastTransitionTime"), _TEXT)


def _definition(kind: str, condition: dict[str, Any]) -> Manifest:
    """Return the definition of a kind whose conditions have these fields."""
    plural = f"{kind.lower()}s"
    conditions = {"type": "array", "items": {"type": "object", "properties": condition}}
    status = {"type": "object", "properties": {"conditions": conditions}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status": status}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


KIOSK: Final = _definition("Kiosk", _NARROW)
STALL: Final = _definition(
    "Stall", {**_NARROW, "observedGeneration": {"type": "integer"}, "severity": {**_TEXT, "default": "Info"}}
)


@asynccontextmanager
async def owned(
    env: Env, request: pytest.FixtureRequest, kind: str, definition: Manifest | None, **metadata: Any
) -> AsyncIterator[Env]:
    """Create an owner of another kind, and delete it in the end."""
    if definition is not None and isinstance(env.cluster, EmbeddedCluster):
        await env.cluster.create(definition, field_manager="user")
    elif definition is not None:
        plane: ControlPlane = request.getfixturevalue("shop_plane")
        plane.install_crds(definition)
    key = ObjectKey("v1", kind, "demo") if definition is None else ObjectKey("example.com/v1", kind, "demo", "shop")
    await env.create(key, metadata=metadata)
    try:
        yield Env(env.cluster, key, env.clock)
    finally:
        await env.cluster.delete(key)


def seen(status: str) -> Report:
    """Assign a condition with a field that always differs."""
    times = 0

    def report(context: ReconcileContext) -> None:
        nonlocal times
        times += 1
        one = {"type": "Ready", "status": status, "reason": "Observed", "message": "", "seen": str(times)}
        context.status["conditions"] = [one | {"lastTransitionTime": "2026-01-31T12:00:00Z"}]

    return report


@pytest.mark.promise("write-war", runs="an hour over a condition that the API server does not store as it is sent")
@pytest.mark.parametrize(
    ("kind", "definition", "reports"),
    [
        pytest.param("Node", None, (ready("True", "of 1"), ready("True", "of 2")), id="a Node"),
        pytest.param("Kiosk", KIOSK, (ready("True"), ready("False")), id="no observed generation"),
        pytest.param("Kiosk", KIOSK, (seen("True"), seen("False")), id="a dropped field that always differs"),
        pytest.param("Stall", STALL, (ready("True"), ready("False")), id="a default"),
    ],
)
async def test_what_is_stored_differently_is_not_another_value_of_ours(
    env: Env,
    request: pytest.FixtureRequest,
    kind: str,
    definition: Manifest | None,
    reports: tuple[Report, Report],
) -> None:
    async with owned(env, request, kind, definition, labels={"tracked": "true"}) as own:
        names = "shops", "malls"
        writers = [Writer(own, own.process(name), report) for name, report in zip(names, reports, strict=True)]
        assert max(await fight(own, *writers)) <= MOST
        uid = (await own.owner_manifest())["metadata"]["uid"]
        notes = [note for writer in writers for note in writer.notes.found]
        assert notes
        assert all(f'"{name}/{kind}/status/{uid}"' in note for note in notes for name in names)


async def test_a_new_value_is_written_at_once_although_fields_are_dropped(
    env: Env, request: pytest.FixtureRequest
) -> None:
    async with owned(env, request, "Kiosk", KIOSK) as own:
        writers = [Writer(own, own.process("shops"), ready("True")), Writer(own, own.process("malls"), ready("False"))]
        await fight(own, *writers)
        loser = await waiting_one(*writers)
        own.clock.advance(timedelta(minutes=1))
        loser.report = ready("Unknown", "a new value")
        assert await loser.reconcile() == 1


async def test_no_writer_is_named_for_an_owner_without_managed_fields(env: Env, request: pytest.FixtureRequest) -> None:
    """The API server does not track an object that was created without any field."""
    async with owned(env, request, "Kiosk", KIOSK) as own:
        writers = [Writer(own, own.process("shops"), ready("True")), Writer(own, own.process("malls"), ready("False"))]
        await fight(own, *writers)
        assert "managedFields" not in (await own.owner_manifest())["metadata"]
        notes = {note for writer in writers for note in writer.notes.found}
        text = 'condition "Ready" of the status is reverted repeatedly, by a writer that the managedFields of the owner'
        assert notes == {f"{text} do not name"}
