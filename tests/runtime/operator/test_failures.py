"""Failures of a reconcile: visible in every condition of the owner, and in one event per new failure."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final

import pytest
from pydantic import BaseModel, ConfigDict

from ocf import component
from ocf.cluster import Cluster, Verb
from ocf.component import FINALIZER, Component, ReconcileContext
from ocf.concepts import Event, NullRecorder
from ocf.embedded import EmbeddedCluster
from ocf.errors import BuildError, NotFoundError, ServerError
from ocf.feature import VersionGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, unstructured
from ocf.runtime.crds import CRDVersion, ListMap, crd
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome, reconcile_owner
from ocf.testing import FaultyCluster, LoopClock, RecordingCluster, faults, run_in_virtual_time
from tests import support

from .conftest import SECOND

NAMESPACE: Final = "town"


class Condition(BaseModel):
    type: str
    status: str
    reason: str = ""
    message: str = ""
    observedGeneration: int = 0  # noqa: N815 (the API's name)
    lastTransitionTime: str = ""  # noqa: N815


class KeyedStatus(BaseModel):
    conditions: Annotated[list[Condition], ListMap("type")] = []


class UnkeyedStatus(BaseModel):
    model_config = ConfigDict(extra="allow")


class ShopSpec(BaseModel):
    version: str = "1.0.0"


class Keyed(BaseModel):
    metadata: dict[str, Any] = {}
    spec: ShopSpec = ShopSpec()
    status: KeyedStatus | None = None


class Unkeyed(BaseModel):
    metadata: dict[str, Any] = {}
    spec: ShopSpec = ShopSpec()
    status: UnkeyedStatus | None = None


class Strict(Keyed):
    size: int


Keyed.__name__ = Unkeyed.__name__ = "Shop"
SHOP: Final = ObjectKey("example.com/v1", "Shop", "corner", NAMESPACE)
Shop = Keyed


def web(shop: Shop, *, cluster_scoped: bool = False) -> Component:
    settings = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": NAMESPACE},
        "data": {"version": shop.spec.version},
    }
    gate = VersionGate(shop.spec.version, ">= 1.0.0")
    builder = component.Builder("web", condition_type="WebReady")
    builder.with_resource(configmap.Builder(settings).build(), gated_by=gate)
    if cluster_scoped:
        role = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "web"}, "value": 1}
        builder.with_resource(unstructured.static.Builder(role, cluster_scoped=True).build())
    return builder.build()


def data(_: Shop) -> Component:
    return component.Builder("data", condition_type="DataReady").build()


def both(shop: Shop) -> list[Component]:
    return [web(shop), data(shop)]


def report(context: ReconcileContext, _: Shop, outcome: ReconcileOutcome) -> None:
    if outcome.error is None:
        context.set_condition("Ready", status="True", reason="EverythingIsThere", message="")


OPERATOR: Final = Operator(
    name="shops",
    owner=OwnerType("example.com/v1", "Shop", Keyed),
    components=both,
    report=report,
)


# In a list without keys nothing shows who wrote a condition, so its type is declared.
DECLARED: Final = replace(OPERATOR, published_conditions=["WebReady", "DataReady", "Ready"])


class Events(NullRecorder):
    """A recorder that keeps events about failures."""

    def __init__(self) -> None:
        self.failures: list[Event] = []

    def happened(self, event: Event) -> None:
        if event.type == "Warning":
            self.failures.append(event)


@dataclass
class Env(support.Env[EmbeddedCluster, LoopClock]):
    """A shop, and reconciles of it, each as in a new process."""

    cluster: EmbeddedCluster
    clock: LoopClock
    operator: Operator[Any]
    events: Events = field(default_factory=Events)

    async def reconcile(self, operator: Operator[Any], cluster: Cluster | None = None) -> BaseException | None:
        """Reconcile the shop; return the error that this raised."""
        owner = await self.cluster.get(SHOP)
        try:
            await reconcile_owner(operator, owner, cluster or self.cluster, clock=self.clock, recorder=self.events)
        except Exception as error:  # noqa: BLE001 (the tests look at it)
            return error
        return None

    async def shown(self) -> dict[str, tuple[str, str, int]]:
        """Return status, reason and generation of each condition, in the order of the status."""
        conditions = (await self.read_status(SHOP)).get("conditions") or []
        return {one["type"]: (one["status"], one["reason"], one["observedGeneration"]) for one in conditions}

    async def messages(self) -> set[str]:
        return {one["message"] for one in (await self.read_conditions(SHOP)).values()}


Run = Callable[[Callable[[Env], Coroutine[Any, Any, None]]], None]


@pytest.fixture(params=[Keyed, Unkeyed], ids=["conditions keyed by type", "conditions in an atomic list"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a test with a shop, on the embedded cluster, in virtual time."""

    def run(test: Callable[[Env], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            clock = LoopClock()
            cluster = EmbeddedCluster(namespaces=[NAMESPACE], now=clock.now)
            await cluster.apply(crd("example.com", CRDVersion("v1", request.param)), field_manager="setup")
            metadata = {"name": SHOP.name, "namespace": NAMESPACE}
            owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata, "spec": {}}
            await cluster.create(owner, field_manager="kubectl")
            await test(Env(cluster, clock, OPERATOR if request.param is Keyed else DECLARED))

        run_in_virtual_time(main())

    return run


def fail(*_: object) -> Any:
    raise KeyError("hunter2")


def refuse(*_: object) -> Any:
    raise NotFoundError('secrets "guide" not found')


async def hang(*_: object) -> Any:
    await asyncio.sleep(3600)


READING: Final = "reading the owner failed: example.com/v1/Shop/town/corner: Strict.size: "
COMPONENTS: Final = "the function that returns the components failed: "
FAILURES: Final = [
    pytest.param({"owner": OwnerType("example.com/v1", "Shop", Strict)}, READING, id="the model cannot read it"),
    pytest.param({"components": refuse}, f'{COMPONENTS}secrets "guide" not found', id="components raises"),
    pytest.param({"components": fail}, f"{COMPONENTS}unexpected KeyError", id="components raises unexpectedly"),
    pytest.param({"components": lambda _: 1}, f"{COMPONENTS}.* must return components", id="components returns 1"),
    pytest.param(
        {"components": hang, "reconcile_timeout": SECOND}, f"{COMPONENTS}.* timeout of 0:00:01", id="components hangs"
    ),
]


@pytest.mark.promise("failure-shown", runs="5 failures, of conditions in a keyed and in an atomic list")
@pytest.mark.parametrize(("broken", "message"), FAILURES)
def test_every_condition_becomes_error_in_the_reconcile_that_fails(
    run: Run, broken: dict[str, Any], message: str
) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(env.operator) is None
        healthy = await env.shown()
        assert set(healthy) == {"WebReady", "DataReady", "Ready"}
        await env.merge_patch(SHOP, {"spec": {"version": "1.1.0"}}, by="kubectl")
        assert await env.reconcile(replace(env.operator, **broken)) is not None
        assert await env.shown() == dict.fromkeys([*healthy, "Reconciled"], ("False", "Error", 2))
        (shown,) = await env.messages()
        assert re.match(message, shown)
        assert [event.note for event in env.events.failures] == [shown]
        assert await env.reconcile(env.operator) is None
        assert await env.shown() == {name: (status, reason, 2) for name, (status, reason, _) in healthy.items()}

    run(test)


@pytest.mark.promise("failure-shown", runs="a version that is not a version, behind a gate of a resource")
def test_a_gate_of_a_resource_that_cannot_answer_is_in_every_condition(run: Run) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(env.operator) is None
        await env.merge_patch(SHOP, {"spec": {"version": "latest"}}, by="kubectl")
        assert isinstance(await env.reconcile(env.operator), BuildError)
        assert set((await env.shown()).values()) == {("False", "Error", 2)}
        (shown,) = await env.messages()
        assert 'resource "v1/ConfigMap/town/settings" in component "web"' in shown
        assert "latest" in shown

    run(test)


@pytest.mark.parametrize(("broken", "message"), FAILURES)
def test_a_first_reconcile_that_fails_is_shown_in_the_declared_conditions(
    run: Run, broken: dict[str, Any], message: str
) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(replace(OPERATOR, **broken)) is not None
        assert await env.shown() == {"Reconciled": ("False", "Error", 1)}
        declared = replace(
            OPERATOR, published_conditions=["Ready"], abnormal_conditions=["Degraded"], failure_condition="Synced"
        )
        assert await env.reconcile(replace(declared, **broken)) is not None
        shown = await env.shown()
        assert (shown["Ready"], shown["Synced"]) == (("False", "Error", 1), ("False", "Error", 1))
        assert shown["Degraded"] == ("True", "Error", 1)
        assert re.match(message, (await env.read_conditions(SHOP))["Ready"]["message"])

    run(test)


def test_a_retry_writes_nothing_and_sends_no_event(run: Run) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(OPERATOR) is None
        for problem in ("first", "first", "second"):

            def broken(_: Shop, problem: str = problem) -> Any:
                raise NotFoundError(problem)

            await asyncio.sleep(60)
            recording = RecordingCluster(env.cluster)
            before = len(env.events.failures)
            assert await env.reconcile(replace(OPERATOR, components=broken), recording) is not None
            seen.append((problem, len(recording.writes), len(env.events.failures) - before))
        assert seen == [("first", 1, 1), ("first", 0, 0), ("second", 1, 1)]

    seen: list[tuple[str, int, int]] = []
    run(test)


def test_a_condition_that_the_report_sets_in_spite_of_a_failure_has_no_transition(run: Run) -> None:
    """The failure is staged first, so that what the report aggregates includes it; only the result is a transition."""

    def insist(context: ReconcileContext, _: Shop, __: ReconcileOutcome) -> None:
        context.set_condition("Licensed", status="True", reason="KeyFound", message="")

    async def test(env: Env) -> None:
        operator = replace(OPERATOR, report=insist, published_conditions=["Licensed"])
        assert await env.reconcile(operator) is None
        licensed = (await env.read_conditions(SHOP))["Licensed"]
        await asyncio.sleep(60)
        assert await env.reconcile(replace(operator, components=refuse)) is not None
        assert (await env.read_conditions(SHOP))["Licensed"] == licensed

    run(test)


def test_a_failed_report_is_shown_in_what_nothing_has_set(run: Run) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(env.operator) is None
        assert isinstance(await env.reconcile(replace(env.operator, report=fail)), KeyError)
        shown = await env.read_conditions(SHOP)
        assert {name: one["status"] for name, one in shown.items()} == {
            "WebReady": "True",
            "DataReady": "True",
            "Ready": "False",
            "Reconciled": "False",
        }
        assert shown["Reconciled"]["message"] == "the report failed: unexpected KeyError"
        assert await env.reconcile(replace(env.operator, report=None)) is None
        assert {name: one["status"] for name, one in (await env.read_conditions(SHOP)).items()} == {
            "WebReady": "True",
            "DataReady": "True",
        }

    run(test)


def test_a_report_that_hangs_ends_and_is_shown(run: Run) -> None:
    async def test(env: Env) -> None:
        error = await env.reconcile(replace(OPERATOR, report=hang, reconcile_timeout=SECOND))
        assert "the reconcile exceeded its timeout of 0:00:01" in str(error)
        assert (await env.shown())["Reconciled"] == ("False", "Error", 1)

    run(test)


def test_conditions_of_other_controllers_stay(run: Run) -> None:
    async def test(env: Env) -> None:
        foreign: Manifest = {"type": "Backup", "status": "True", "reason": "Done", "observedGeneration": 1}
        await env.patch_status(SHOP, {"conditions": [foreign]}, by="backup")
        foreign = (await env.read_conditions(SHOP))["Backup"]
        for operator in (OPERATOR, replace(OPERATOR, components=refuse), OPERATOR):
            await env.reconcile(operator)
            assert (await env.read_conditions(SHOP))["Backup"] == foreign

    run(test)


@pytest.mark.parametrize("shows", [True, False])
def test_an_error_of_an_unpublished_component_is_in_the_report_or_in_the_failure_condition(
    run: Run, *, shows: bool
) -> None:
    def hidden(_: Shop) -> Component:
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "nowhere"}}
        builder = component.Builder("web", condition_type="WebReady").unpublished()
        return builder.with_resource(configmap.Builder(settings).build()).build()

    def record(context: ReconcileContext, _: Shop, outcome: ReconcileOutcome) -> None:
        message = str(outcome.error) if shows else "something is wrong"
        context.set_condition("Ready", status="False", reason="Broken", message=message)

    async def test(env: Env) -> None:
        for _ in range(2):
            assert await env.reconcile(replace(OPERATOR, components=hidden, report=record)) is not None
        assert list(await env.shown()) == (["Ready"] if shows else ["Ready", "Reconciled"])
        assert any("nowhere" in message for message in await env.messages())
        assert len(env.events.failures) == 1

    run(test)


def test_a_failed_finalizer_write_reorders_no_conditions(run: Run) -> None:
    def ready_first(context: ReconcileContext, _: Shop, __: ReconcileOutcome) -> None:
        context.set_condition("Ready", status="False", reason="NotYet", message="")

    async def test(env: Env) -> None:
        operator = replace(OPERATOR, components=lambda shop: web(shop, cluster_scoped=True), report=ready_first)
        broken = FaultyCluster(env.cluster, [faults.server_error(verbs=[Verb.PATCH], kind="Shop")])
        assert isinstance(await env.reconcile(operator, broken), ServerError)
        shown = await env.shown()
        assert shown["WebReady"] == shown["Reconciled"] == ("False", "Error", 1)
        assert (await env.read_conditions(SHOP))["WebReady"]["message"].startswith("the finalizer failed: ")
        assert await env.reconcile(operator) is None
        assert list(await env.shown()) == ["WebReady", "Ready"]
        assert (await env.cluster.get(SHOP))["metadata"]["finalizers"] == [FINALIZER]

    run(test)


@pytest.mark.parametrize(
    "given",
    [{"published_conditions": ["web ready"]}, {"abnormal_conditions": ["web ready"]}, {"failure_condition": ""}],
    ids=lambda given: next(iter(given)),
)
def test_a_type_that_the_api_rejects_is_rejected_when_it_is_declared(given: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="a condition type must match"):
        replace(OPERATOR, **given)
