"""A status that the API server refuses: what it names is withdrawn and shown, and everything else is written.

Elsewhere one wrong value loses the whole status: https://github.com/apecloud/kubeblocks/issues/10324 and
https://github.com/apache/apisix-ingress-controller/pull/2816 (a message of a condition that is too long),
https://github.com/operator-framework/operator-lifecycle-manager/pull/830 (a condition without a transition time).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pytest

from ocf import component
from ocf.cluster import Cluster, InterceptingCluster, Subresource
from ocf.component import Component, ReconcileContext, reconciling
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ApiError, BadRequestError, ForbiddenError, InvalidError, NotFoundError, OcfError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import LONGEST_MESSAGE
from ocf.runtime.operator import Operator, OwnerType
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.testing import VirtualClock
from tests.component.conftest import Server
from tests.support import definition_of, eventually

if TYPE_CHECKING:
    from collections.abc import Callable

REASON: Final = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
# The schema of `metav1.Condition`, as controller-gen writes it; one more rule forbids a type.
CONDITION: Final[Manifest] = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "type": {"type": "string", "maxLength": 316},
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string", "minLength": 1, "maxLength": 1024, "pattern": REASON},
        "message": {"type": "string", "maxLength": LONGEST_MESSAGE},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
    },
    "x-kubernetes-validations": [{"rule": "self.type != 'Forbidden'", "message": "the type is reserved"}],
}
STATUS: Final[Manifest] = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array",
            "items": CONDITION,
            "maxItems": 20,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "phase": {"type": "string", "enum": ["Open", "Closed"]},
        "size": {"type": "integer"},
        "limits": {"type": "object", "properties": {"cpu": {"type": "string", "pattern": "^[0-9]+m$"}}},
        "shards": {"type": "array", "maxItems": 9, "items": {"type": "string", "maxLength": 5}},
    },
    "x-kubernetes-validations": [{"rule": "!has(self.size) || self.size < 10", "message": "too large"}],
}
DEFINITION: Final = definition_of("Tent", "refused.example.com", {"type": "object", "properties": {"status": STATUS}})
FAILED: Final = "tents/Reconciled"

Change: TypeAlias = "Callable[[ReconcileContext], object]"


class Writes(InterceptingCluster):
    """A cluster that keeps the results of writes of a status, and can refuse them."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.codes: list[int] = []
        self.refuses: Callable[[Manifest], ApiError | None] = lambda _: None

    async def update(
        self, manifest: Manifest, *, field_manager: str, subresource: Subresource | None = None, dry_run: bool = False
    ) -> Manifest:
        to = subresource
        try:
            if error := self.refuses(manifest):
                raise error
            stored = await super().update(manifest, field_manager=field_manager, subresource=to, dry_run=dry_run)
        except ApiError as error:
            self.codes.append(error.code)
            raise
        self.codes.append(200)
        return stored


class Tent(NullRecorder):
    """An owner, its operator in one process, and the events."""

    def __init__(self, cluster: Cluster, key: ObjectKey) -> None:
        self.cluster = Writes(cluster)
        self.key = key
        self.clock = VirtualClock()
        self.notes: list[tuple[str, str]] = []

    def happened(self, event: Event) -> None:
        self.notes.append((event.reason, event.note))

    async def reconcile(self, change: Change = lambda _: None, *, condition: str = "WebReady") -> str:
        """Reconcile, an hour after the last time, and return the error."""

        def components(_: Manifest) -> list[Component]:
            return [component.Builder("web", condition_type=condition).build()]

        def report(context: ReconcileContext, *_: object) -> None:
            context.status["shards"] = ["a"]
            change(context)

        self.clock.advance(timedelta(hours=1))
        owner = OwnerType[Manifest](self.key.api_version, self.key.kind)
        operator = Operator(name="tents", owner=owner, components=components, report=report)
        live = await self.cluster.get(self.key)
        try:
            await reconcile_owner(operator, live, self.cluster, clock=self.clock, recorder=self)
        except OcfError as error:
            return str(error)
        return ""

    async def status(self) -> Manifest:
        found: Manifest = (await self.cluster.get(self.key)).get("status") or {}
        return found

    async def conditions(self) -> dict[str, Manifest]:
        return {one["type"]: one for one in (await self.status()).get("conditions", [])}


async def pitched(server: Server) -> Tent:
    """Define the kind, and create an owner."""
    cluster, namespace = server
    await cluster.apply(DEFINITION, field_manager="admin", force=True)
    metadata = {"name": "corner", "namespace": namespace}
    owner = {"apiVersion": "refused.example.com/v1", "kind": "Tent", "metadata": metadata}
    created = await eventually(lambda: cluster.create(owner, field_manager="admin"), ignore=(NotFoundError,))
    return Tent(cluster, ObjectKey.of(created))


def sets(**fields: Any) -> Change:
    return lambda context: context.status.update(fields)


def adds(**fields: Any) -> Change:
    condition = {"type": "Extra", "status": "True", "reason": "Seen", **fields}

    def add(context: ReconcileContext) -> None:
        others = [one for one in context.status.get("conditions", []) if one["type"] != condition["type"]]
        context.status["conditions"] = [*others, condition]

    return add


COMPLETED: Final = {
    "neither time nor message": (adds(), ""),
    "no time": (adds(message="m"), "m"),
    "a message that is too long": (adds(message="é" * 40_000), "é" * 20 + "… (7255 characters cut)"),
}


@pytest.mark.promise("status-kept", runs="conditions that lack what the schema requires, on a real API server, too")
@pytest.mark.parametrize(("change", "end"), COMPLETED.values(), ids=COMPLETED)
async def test_an_assigned_condition_is_completed(server: Server, change: Change, end: str) -> None:
    """And not written again, however often it is assigned; its time moves with its status only."""
    tent = await pitched(server)
    assert await tent.reconcile(change) == ""
    first = (await tent.conditions())["Extra"]
    assert first["message"].endswith(end)
    assert await tent.reconcile(change) == ""
    assert (await tent.conditions())["Extra"] == first
    assert (tent.cluster.codes, tent.notes) == ([200], [])
    assert await tent.reconcile(adds(message="n")) == ""
    assert (await tent.conditions())["Extra"]["lastTransitionTime"] == first["lastTransitionTime"]
    assert await tent.reconcile(adds(status="False")) == ""
    assert (await tent.conditions())["Extra"]["lastTransitionTime"] > first["lastTransitionTime"]


async def test_a_transition_time_of_the_author_is_kept(server: Server) -> None:
    tent = await pitched(server)
    assert await tent.reconcile(adds(lastTransitionTime="2020-01-01T00:00:00Z")) == ""
    assert (await tent.conditions())["Extra"]["lastTransitionTime"] == "2020-01-01T00:00:00Z"


REFUSED: Final = {
    "a value that the schema does not list": (sets(phase="Ajar"), "status.phase: Unsupported value", {"phase"}),
    "a field inside of a map": (sets(limits={"cpu": "1"}), "status.limits.cpu: Invalid value", {"limits"}),
    "an item of a list": (sets(shards=["a", "hunter2"]), "status.shards[1]: Too long", {"shards"}),
    "two fields": (
        sets(phase="Ajar", limits={"cpu": "1"}),
        "status.limits.cpu: Invalid value; status.phase",
        {"phase"},
    ),
    "a value of another type": (sets(size="many"), "status.size: Invalid value", {"size"}),
    "a rule of a condition": (adds(type="Forbidden"), "status.conditions[1]: Invalid value", set()),
    "a rule of the whole status": (sets(size=10, phase="Open"), "status: Invalid value", {"size", "phase", "shards"}),
}


@pytest.mark.promise("status-kept", runs="7 kinds of values that a schema rejects, on a real API server, too")
@pytest.mark.parametrize(("change", "problem", "lost"), REFUSED.values(), ids=REFUSED)
async def test_what_the_api_server_refuses_is_withdrawn_and_shown(
    server: Server, change: Change, problem: str, lost: set[str]
) -> None:
    """Once, and for as long as it is refused; where no field is named, all that was assigned is withdrawn."""
    tent = await pitched(server)
    for _ in range(3):
        error = await tent.reconcile(change)
        assert problem in error
        found = await tent.conditions()
        assert set(found) == {"WebReady", FAILED}
        assert (found["WebReady"]["status"], found[FAILED]["status"]) == ("True", "False")
        assert "the API server refused the status: " in found[FAILED]["message"]
        assert problem in found[FAILED]["message"]
        status = await tent.status()
        assert lost.isdisjoint(status)
        assert ("shards" in status) is ("shards" not in lost)
    assert [reason for reason, _ in tent.notes] == ["StatusNotStored"]
    assert "hunter2" not in str(tent.notes) + str(await tent.status())
    assert tent.cluster.codes.count(200) == 1

    assert await tent.reconcile(sets(phase="Open")) == ""
    assert set(await tent.conditions()) == {"WebReady"}
    status = await tent.status()
    assert (status["phase"], status["shards"]) == ("Open", ["a"])


async def test_a_refused_value_keeps_what_is_stored(server: Server) -> None:
    tent = await pitched(server)
    await tent.reconcile(sets(phase="Open"))
    assert "status.phase" in await tent.reconcile(sets(phase="Ajar", size=3))
    status = await tent.status()
    assert (status["phase"], status["size"]) == ("Open", 3)


async def test_a_condition_of_a_component_that_is_refused_loses_nothing_else(server: Server) -> None:
    tent = await pitched(server)
    assert "status.conditions[0]" in await tent.reconcile(condition="Forbidden")
    assert set(await tent.conditions()) == {FAILED}
    assert (await tent.status())["shards"] == ["a"]


async def test_a_status_that_is_too_large_is_withdrawn(server: Server) -> None:
    tent = await pitched(server)
    too_large = BadRequestError("Request entity too large", code=413, reason="RequestEntityTooLarge")
    tent.cluster.refuses = lambda body: too_large if "x" * 100 in str(body["status"]) else None
    assert "RequestEntityTooLarge" in await tent.reconcile(sets(limits={"cpu": "x" * 100}))
    assert set(await tent.conditions()) == {"WebReady", FAILED}


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ForbiddenError("cannot update tents/status", code=403, reason="Forbidden"), id="by RBAC"),
        pytest.param(InvalidError("no reason", code=422, reason="Invalid"), id="whatever it is"),
    ],
)
async def test_a_status_that_is_always_refused_sends_one_event(server: Server, error: ApiError) -> None:
    tent = await pitched(server)
    tent.cluster.refuses = lambda _: error
    for _ in range(4):
        assert await tent.reconcile(sets(phase="Open"))
    assert [reason for reason, _ in tent.notes if reason == "StatusNotStored"] == ["StatusNotStored"]
    assert len(tent.cluster.codes) <= 4 * (1 if isinstance(error, ForbiddenError) else 3)

    tent.cluster.refuses = lambda _: None
    assert await tent.reconcile(sets(phase="Open")) == ""
    tent.cluster.refuses = lambda _: error
    assert await tent.reconcile(sets(phase="Closed"))
    assert [reason for reason, _ in tent.notes if reason == "StatusNotStored"] == ["StatusNotStored"] * 2


@pytest.mark.parametrize("fails", [False, True], ids=["alone", "after an error"])
async def test_a_block_writes_the_rest_and_raises(server: Server, *, fails: bool) -> None:
    """Without an operator, there is no failure condition; the error of the block is raised, with a note."""
    tent = await pitched(server)
    failure = OcfError("the registry cannot be reached")

    async def reconcile() -> None:
        async with reconciling(await tent.cluster.get(tent.key), tent.cluster, recorder=tent) as context:
            await component.Builder("web", condition_type="WebReady").build().reconcile(context)
            context.status["phase"] = "Ajar"
            if fails:
                raise failure

    with pytest.raises(OcfError) as caught:
        await reconcile()
    assert (caught.value is failure) is fails
    shown = f"{caught.value} {getattr(caught.value, '__notes__', '')}"
    assert "status.phase: Unsupported value" in shown
    assert "Ajar" not in shown + str(tent.notes)
    assert set(await tent.conditions()) == {"WebReady"}
