"""Owners whose definition is not made for this operator: where their status is written, and what it has to contain.

Elsewhere: https://github.com/metacontroller/metacontroller/issues/68 and
https://github.com/kubernetes/kubernetes/issues/60845 (no subresource: each write of a status is answered with 404),
https://github.com/DataDog/chaos-controller/issues/511 and
https://github.com/syself/cluster-api-provider-hetzner/pull/2048 (a status in the object itself: each write is a new
generation, which is a reason for the next write), https://github.com/elewa-git/opencrane/pull/72 (the schema drops
`observedGeneration`, and each reconcile writes it), https://github.com/actions/actions-runner-controller/issues/400
(required fields of the status: a failure cannot be stored).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

import pytest

from ocf import component
from ocf.cluster import ApplyCache, Cluster, InterceptingCluster, PatchOptions, PatchType, Request, Subresource
from ocf.cluster.interceptor import is_write
from ocf.component import Component, ReconcileContext, depends_on
from ocf.concepts import Event
from ocf.concepts.backoff import ExponentialBackoff
from ocf.concepts.recorder import NullRecorder
from ocf.errors import NotFoundError, OcfError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import deployment
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.testing import RecordingCluster, VirtualClock
from ocf_server import EmbeddedCluster
from tests.component.conftest import Server
from tests.support import definition_of, eventually

TEXT: Final[Manifest] = {"type": "string"}
FIELDS: Final = {
    **dict.fromkeys(("type", "status", "reason", "message", "lastTransitionTime"), TEXT),
    "observedGeneration": {"type": "integer"},
}
SPEC: Final[Manifest] = {"type": "object", "properties": {"size": {"type": "integer"}}}
LIMIT: Final = timedelta(hours=6)

Report: TypeAlias = Callable[[ReconcileContext], object]
Step: TypeAlias = Callable[[], Awaitable[None]]


def item(*required: str, **more: Manifest) -> Manifest:
    """Return the schema of a condition with more fields."""
    return {"type": "object", "properties": {**FIELDS, **more}, "required": [*required]}


def listed(condition: Manifest) -> Manifest:
    return {"conditions": {"type": "array", "items": condition}}


def definition(plural: str, status: Manifest | None, *required: str, subresource: bool = True) -> Manifest:
    schema: Manifest = {"type": "object", "properties": {"spec": SPEC}}
    if status is not None:
        schema["properties"]["status"] = {"type": "object", "properties": status, "required": [*required]}
    without: Manifest = {} if subresource else {"subresources": {}}
    return definition_of(plural[:-1].capitalize(), "places.example.com", schema, **without)


HEARTBEAT: Final = {"lastUpdateTime": TEXT, "lastHeartbeatTime": TEXT}
DEFINITIONS: Final = {
    "a complete definition": definition("alphas", listed(item())),
    "no subresource": definition("betas", {**listed(item()), "size": {"type": "integer"}}, subresource=False),
    "neither subresource nor status": definition("gammas", None, subresource=False),
    "no conditions": definition("deltas", {"size": {"type": "integer"}}),
    "other times that are required": definition("epsilons", listed(item(*HEARTBEAT, **HEARTBEAT))),
    "other times without the subresource": definition(
        "zetas", listed(item("lastUpdateTime", lastUpdateTime=TEXT)), subresource=False
    ),
    "a default in each condition": definition("etas", listed(item(severity={"type": "string", "default": "Info"}))),
    "a required field of conditions": definition("thetas", listed(item("severity", severity=TEXT))),
    "a required field of the status": definition(
        "iotas", {**listed(item()), "size": {"type": "integer"}, "phase": TEXT}, "size", "phase"
    ),
    "conditions as a map": definition("kappas", {"conditions": {"type": "object", "additionalProperties": TEXT}}),
    "conditions as texts": definition("lambdas", {"conditions": {"type": "array", "items": TEXT}}),
}
TOLD: Final = {
    "neither subresource nor status": "does not store status.conditions of Gamma of places.example.com/v1",
    "no conditions": "does not store status.conditions of Delta of places.example.com/v1",
    "a required field of conditions": "Theta of places.example.com/v1 requires status.conditions[*].severity",
    "a required field of the status": "Iota of places.example.com/v1 requires status.phase, status.size, which is not",
    "conditions as a map": "does not store status.conditions of Kappa",
    "conditions as texts": "does not store status.conditions of Lambda",
    "a Secret": "Secret of v1 has no status",
}
CASES: Final = (*DEFINITIONS, "a Secret", "a ConfigMap")


class Owner(NullRecorder):
    """An owner, its operator in one process, and the events."""

    def __init__(self, cluster: Cluster, key: ObjectKey, name: str = "shops") -> None:
        self.cluster = RecordingCluster(cluster, apply_cache=ApplyCache())
        self.key = key
        self.name = name
        self.clock = VirtualClock()
        self.notes: list[tuple[str, str]] = []
        self.observed_conditions: list[Manifest] = []
        self.components: list[Component] = [component.Builder("web", condition_type="WebReady").build()]
        self.failure_condition: str | None = ""

    def happened(self, event: Event) -> None:
        self.notes.append((event.reason, event.note))

    def observed(self, owner: ObjectKey, conditions: Sequence[Manifest]) -> None:
        assert owner.unversioned == self.key.unversioned
        self.observed_conditions = [*conditions]

    async def reconcile(self, change: Report = lambda _: None) -> timedelta | str | None:
        """Reconcile; return the delay until the next time, or the error."""

        def report(context: ReconcileContext, _owner: Manifest, _outcome: ReconcileOutcome) -> None:
            change(context)

        owner = OwnerType[Manifest](self.key.api_version, self.key.kind)
        operator = Operator(
            name=self.name,
            owner=owner,
            components=lambda _: self.components,
            report=report,
            failure_condition=self.failure_condition,
        )
        live = await self.cluster.get(self.key)
        try:
            return await reconcile_owner(operator, live, self.cluster, clock=self.clock, recorder=self)
        except OcfError as error:
            return str(error)

    async def reconcile_for(self, period: timedelta, change: Report = lambda _: None) -> int:
        """Reconcile as a controller does, with its backoff, for a period of virtual time; return how often."""
        delays, failures, times, end = ExponentialBackoff(), 0, 0, self.clock.now() + period
        while self.clock.now() < end:
            answer = await self.reconcile(change)
            times += 1
            failures = failures + 1 if isinstance(answer, str) else 0
            pause = delays.after(failures) if failures else answer
            self.clock.advance(pause if isinstance(pause, timedelta) else timedelta(minutes=30))
        return times

    def sent(self) -> list[str]:
        """Return the writes of the owner since the last call."""
        found = [
            f"{one.verb} {one.subresource or ''}".strip()
            for one in self.cluster.writes
            if (one.kind, one.name) == (self.key.kind, self.key.name)
        ]
        self.cluster.requests.clear()
        return found

    async def live(self) -> Manifest:
        return await self.cluster.get(self.key)

    async def change(self, **patch: Any) -> Manifest:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        return await self.cluster.patch(self.key, patch, options)

    async def conditions(self) -> dict[str, Manifest]:
        found = (await self.live()).get("status", {}).get("conditions", [])
        return {one["type"]: one for one in found}


async def made(server: Server, case: str) -> Owner:
    """Define the kind, and create an owner."""
    cluster, namespace = server
    body: Manifest = {"apiVersion": "v1", "kind": case.removeprefix("a ")}
    if case in DEFINITIONS:
        await cluster.apply(DEFINITIONS[case], field_manager="admin", force=True)
        kind = DEFINITIONS[case]["spec"]["names"]["kind"]
        body = {"apiVersion": "places.example.com/v1", "kind": kind, "spec": {"size": 1}}
    body["metadata"] = {"name": "corner", "namespace": namespace}
    created = await eventually(lambda: cluster.create(body, field_manager="admin"), ignore=(NotFoundError,))
    return Owner(cluster, ObjectKey.of(created))


def failing(_: ReconcileContext) -> None:
    raise OcfError("the registry cannot be reached")


@pytest.mark.promise("quiet-owner", runs="six hours of one failure, 13 kinds of definitions, on a real API server, too")
@pytest.mark.promise(
    "failure-shown", runs="six hours of one failure, 13 kinds of definitions, on a real API server, too"
)
@pytest.mark.parametrize("case", CASES)
async def test_a_failure_of_six_hours_is_one_event_and_few_writes(server: Server, case: str) -> None:
    owner = await made(server, case)
    reconciles = await owner.reconcile_for(LIMIT, failing)
    assert reconciles > 20
    told = [note for reason, note in owner.notes if reason == "StatusNotStored"]
    assert [TOLD.get(case, "") in note for note in told] == [True] * (case in TOLD or case == "a ConfigMap")
    failures = [note for reason, note in owner.notes if reason == "ReconcileFailed"]
    assert failures == ["the report failed: the registry cannot be reached"]
    seen = {one["type"]: one["status"] for one in owner.observed_conditions}
    assert seen == {"WebReady": "True", "shops/Reconciled": "False"}, "the metrics have them in any case"
    assert len(owner.sent()) <= 3

    await owner.reconcile()
    assert {one["type"] for one in owner.observed_conditions} == {"WebReady"}
    assert len(owner.sent()) <= 2
    for _ in range(3):
        owner.clock.advance(timedelta(hours=1))
        await owner.reconcile()
    assert owner.sent() == [], "at rest"
    assert len(owner.notes) == len(told) + 1


@pytest.mark.parametrize("case", [one for one in CASES if one not in TOLD and one != "a ConfigMap"])
async def test_conditions_are_stored_where_the_definition_holds_them(server: Server, case: str) -> None:
    owner = await made(server, case)
    await owner.reconcile(failing)
    found = await owner.conditions()
    assert {name: one["status"] for name, one in found.items()} == {"WebReady": "True", "shops/Reconciled": "False"}
    assert "the registry cannot be reached" in found["shops/Reconciled"]["message"]


async def test_required_times_change_with_their_condition(server: Server) -> None:
    owner = await made(server, "other times that are required")
    await owner.reconcile(failing)
    first = (await owner.conditions())["shops/Reconciled"]
    assert {first["lastUpdateTime"], first["lastHeartbeatTime"]} == {first["lastTransitionTime"]}
    owner.clock.advance(timedelta(hours=1))

    def fail(_: ReconcileContext) -> None:
        raise OcfError("the registry is full")

    await owner.reconcile(fail)
    second = (await owner.conditions())["shops/Reconciled"]
    assert second["lastTransitionTime"] == first["lastTransitionTime"]
    assert second["lastUpdateTime"] > first["lastUpdateTime"]
    assert (await owner.conditions())["WebReady"]["lastUpdateTime"] == first["lastUpdateTime"]


@pytest.mark.promise("status-kept", runs="a status without the subresource, beside changes of the spec")
async def test_without_the_subresource_the_status_is_written_in_the_object(server: Server) -> None:
    """Nothing else of the object is written, also if a user changes it meanwhile."""
    owner = await made(server, "no subresource")
    await owner.reconcile()
    first = await owner.live()
    # No generation there says which spec was observed.
    assert first["status"]["conditions"][0].keys() == FIELDS.keys() - {"observedGeneration"}
    for size in (2, 3):
        stale = await owner.live()
        await owner.change(spec={"size": size}, metadata={"labels": {"size": str(size)}})

        async with component.reconciling(
            stale, owner.cluster, operator="shops", clock=owner.clock, recorder=owner
        ) as context:
            context.status["size"] = size
        live = await owner.live()
        assert (live["spec"], live["metadata"]["labels"]) == ({"size": size}, {"size": str(size)})
        assert live["status"] == {**first["status"], "size": size}
    assert owner.notes == []


async def test_an_intent_is_stored_in_the_object_as_well(server: Server) -> None:
    owner = await made(server, "no subresource")
    async with component.reconciling(await owner.live(), owner.cluster, clock=owner.clock) as context:
        context.status["size"] = 4
        await context.write_status()
        assert (await owner.live())["status"] == {"size": 4}


@pytest.mark.promise("quiet-owner", runs="two operators of an owner whose generation counts their status writes")
async def test_two_operators_of_an_object_that_holds_its_status_come_to_rest(server: Server) -> None:
    owner = await made(server, "no subresource")
    other = Owner(server[0], owner.key, "audits")
    other.components = [component.Builder("audit", condition_type="Audited").build()]
    for _ in range(2):
        for one in (owner, other):
            await one.reconcile()
    generation = (await owner.live())["metadata"]["generation"]
    for _ in range(3):
        for one in (owner, other):
            await one.reconcile()
    assert (await owner.live())["metadata"]["generation"] == generation
    assert set(await owner.conditions()) == {"WebReady", "Audited"}


@pytest.mark.promise("status-kept", runs="two operators that set one field of a status without the subresource")
async def test_a_fight_about_a_status_in_the_object_is_slowed_down(server: Server) -> None:
    """Each write is a new generation there, which must not count as a new desired state."""
    owner = await made(server, "no subresource")
    other = Owner(server[0], owner.key, "audits")
    other.components = []
    for _ in range(60):
        for number, one in enumerate((owner, other)):
            await one.reconcile(lambda context, number=number: context.status.update(size=number))  # type: ignore[misc]
            one.clock.advance(timedelta(seconds=10))
    assert len(owner.sent()) < 20
    assert "StatusReverted" in [reason for reason, _ in owner.notes]


async def test_a_definition_may_enable_and_disable_the_subresource_while_the_operator_runs() -> None:
    server = EmbeddedCluster(namespaces=("town",)), "town"  # it uses a definition at once
    owner = await made(server, "no subresource")
    enabled = definition("betas", {**listed(item()), "size": {"type": "integer"}})
    for number, (schema, sent) in enumerate(
        (
            (DEFINITIONS["no subresource"], "patch"),
            (enabled, "update status"),
            (enabled, "update status"),
            (DEFINITIONS["no subresource"], "patch"),
        )
    ):
        await server[0].apply(schema, field_manager="admin", force=True)
        await owner.reconcile(lambda context, number=number: context.status.update(size=number))  # type: ignore[misc]
        assert (await owner.live())["status"]["size"] == number
        assert owner.sent()[-1] == sent
        for _ in range(2):
            owner.sent()
            # With the subresource, the next reconcile adds the generation that it has observed.
            await owner.reconcile(lambda context, number=number: context.status.update(size=number))  # type: ignore[misc]
        assert owner.sent() == []
    assert owner.notes == []


class Between(InterceptingCluster):
    """A cluster on which something happens before or after the writes of the status of one object."""

    def __init__(self, cluster: Cluster, name: str, *, before: Step | None = None, after: Step | None = None) -> None:
        super().__init__(cluster)
        self.name, self.before, self.after = name, before, after

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        is_meant = is_write(request) and request.name == self.name
        if is_meant and self.before:
            await self.before()
        answer = await send()
        if is_meant and self.after:
            await self.after()
        return answer


async def beside(owner: Owner, cluster: Cluster) -> Owner:
    """Create another owner of the kind, of the same operator in the same process."""
    body = await owner.live()
    body = {**body, "metadata": {"name": "beside", "namespace": owner.key.namespace}}
    other = Owner(cluster, ObjectKey.of(await cluster.create(body, field_manager="admin")))
    other.cluster = owner.cluster
    return other


async def test_an_owner_that_is_deleted_meanwhile_says_nothing_about_its_definition(server: Server) -> None:
    """The API server answers 404 in both cases: without the subresource, and without the owner."""
    made_first = await made(server, "a complete definition")

    async def delete() -> None:
        await server[0].delete(made_first.key)

    owner = Owner(Between(server[0], "corner", before=delete), made_first.key)
    other = await beside(owner, server[0])
    assert await owner.reconcile() is None
    await other.reconcile()
    assert other.sent() == ["update status"]
    assert set(await other.conditions()) == {"WebReady"}


async def test_an_answer_is_read_for_the_place_that_was_written() -> None:
    """Another reconcile may find out meanwhile that the definition has the subresource now."""
    server = EmbeddedCluster(namespaces=("town",)), "town"
    first = await made(server, "no subresource")
    is_answered, other_is_done = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        is_answered.set()
        await other_is_done.wait()

    owner = Owner(Between(server[0], "corner", after=wait), first.key)
    other = await beside(owner, server[0])
    other_is_done.set()
    await owner.reconcile()
    await other.reconcile()
    is_answered.clear()
    other_is_done.clear()
    await server[0].apply(
        definition("betas", {**listed(item()), "size": {"type": "integer"}}), field_manager="admin", force=True
    )
    waiting = asyncio.create_task(owner.reconcile(lambda context: context.status.update(size=1)))
    await is_answered.wait()
    await other.reconcile(lambda context: context.status.update(size=2))
    other_is_done.set()
    assert await waiting is None
    assert (owner.notes, other.notes) == ([], [])
    assert [(await one.live())["status"]["size"] for one in (owner, other)] == [1, 2]


async def test_required_fields_that_the_author_sets_are_stored_with_the_conditions(server: Server) -> None:
    """Once they are set; until then nothing of the status is stored, which is said."""
    owner = await made(server, "a required field of the status")
    assert await owner.reconcile(lambda context: context.status.update(phase="Open")) is None
    [(reason, note)] = owner.notes
    assert reason == "StatusNotStored"
    assert "requires status.size, which is not set, so that no status is stored" in note
    assert 'set `context.status["size"]` in `report`' in note
    assert "status" not in await owner.live()
    await owner.reconcile(lambda context: context.status.update(phase="Open", size=1))
    assert (await owner.live())["status"]["size"] == 1
    assert set(await owner.conditions()) == {"WebReady"}
    await owner.reconcile(failing)
    assert set(await owner.conditions()) == {"WebReady", "shops/Reconciled"}, "what is stored is kept"


async def test_conditions_of_others_stay_where_ours_cannot_be_stored(server: Server) -> None:
    owner = await made(server, "a required field of conditions")
    foreign = {"type": "Backup", "status": "True", "severity": "Info"}
    live = await owner.live()
    await server[0].update(
        {**live, "status": {"conditions": [foreign]}}, field_manager="other", subresource=Subresource.STATUS
    )
    for _ in range(2):
        await owner.reconcile()
        assert await owner.conditions() == {"Backup": foreign}


def waiting_for_pods(namespace: str) -> deployment.Resource:
    """Return a Deployment whose pods are never ready, because no controller makes them."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    return deployment.Builder(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": namespace},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
    ).build()


@pytest.mark.promise("grace-ends", runs="13 kinds of definitions of the owner, on a real API server, too")
@pytest.mark.parametrize("case", CASES)
async def test_a_grace_period_ends_whatever_the_definition_holds(server: Server, case: str) -> None:
    owner = await made(server, case)
    made_here = component.Builder("web", condition_type="WebReady").with_resource(waiting_for_pods(owner.key.namespace))
    owner.components = [made_here.with_grace_period(timedelta(minutes=5)).build()]

    def now() -> Iterator[tuple[str, str]]:
        for one in owner.observed_conditions:
            yield one["reason"], one["status"]

    assert await owner.reconcile() == timedelta(minutes=5, seconds=1) - timedelta(
        microseconds=owner.clock.now().microsecond
    )
    [(first, _)] = now()
    owner.clock.advance(timedelta(minutes=4))
    await owner.reconcile()
    assert [*now()] == [(first, "False")]
    owner.clock.advance(timedelta(minutes=2))
    await owner.reconcile()
    assert [*now()] == [("Down", "False")]


async def test_components_wait_for_a_condition_that_is_nowhere_stored(server: Server) -> None:
    """That of a kind without a status, and that of an unpublished component."""
    for case, published in (("a Secret", True), ("a complete definition", False)):
        owner = await made(server, case)
        first = component.Builder("web", condition_type="WebReady")
        later = component.Builder("api", condition_type="ApiReady").with_prerequisite(depends_on("WebReady"))
        owner.components = [(first if published else first.unpublished()).build(), later.build()]
        await owner.reconcile()
        assert {one["type"]: one["status"] for one in owner.observed_conditions}["ApiReady"] == "True"
        await server[0].delete(owner.key)


@pytest.mark.parametrize("case", ["a complete definition", "no subresource", "a Secret"])
async def test_without_a_failure_condition_a_failure_is_an_event(server: Server, case: str) -> None:
    owner = await made(server, case)
    owner.failure_condition = None
    await owner.reconcile_for(LIMIT, failing)
    assert "shops/Reconciled" not in await owner.conditions()
    failures = [note for reason, note in owner.notes if reason == "ReconcileFailed"]
    assert failures == ["the report failed: the registry cannot be reached"]
    assert "shops/Reconciled" in {one["type"] for one in owner.observed_conditions}, "in the metrics"
    assert len(owner.sent()) <= 2
    assert await owner.reconcile() is None
    assert "shops/Reconciled" not in {one["type"] for one in owner.observed_conditions}
    await owner.reconcile(failing)
    assert [reason for reason, _ in owner.notes].count("ReconcileFailed") == 2, "a new failure"


async def test_a_failure_condition_that_is_switched_off_is_removed(server: Server) -> None:
    owner = await made(server, "a complete definition")
    await owner.reconcile(failing)
    assert "shops/Reconciled" in await owner.conditions()
    owner.failure_condition = None
    await owner.reconcile(failing)
    assert "shops/Reconciled" not in await owner.conditions()


async def test_an_owner_without_a_spec_is_reconciled_and_patched(server: Server) -> None:
    """Its content is beside the metadata, as in a ConfigMap, and no generation counts its changes."""
    owner = await made(server, "a ConfigMap")
    await owner.change(data={"size": "1"})
    async with component.reconciling(await owner.live(), owner.cluster, clock=owner.clock) as context:
        assert await context.patch_owner({"data": {"size": "2"}})
        assert not await context.patch_owner({"data": {"size": "2"}})
    assert (await owner.live())["data"] == {"size": "2"}
