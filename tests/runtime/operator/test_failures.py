"""Failures of a reconcile: visible in one condition of the owner and in one event per new failure; no other changes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, Final

import pytest
import pytest_asyncio
from pydantic import BaseModel, ConfigDict

from ocf import component
from ocf.cluster import Cluster, Verb
from ocf.component import Component, ReconcileContext, reconciling
from ocf.component.owner_deletion import cleanup_finalizer
from ocf.concepts import Event
from ocf.concepts.recorder import NullRecorder
from ocf.errors import BuildError, ManifestError, NotFoundError, ServerError
from ocf.feature import VersionGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, unstructured
from ocf.runtime.crds import CRDVersion, ListMap, crd
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome
from ocf.runtime.operator.reconciler import reconcile_owner
from ocf.testing import FaultyCluster, LoopClock, RecordingCluster, faults, run_in_virtual_time
from ocf_server import CustomKind, EmbeddedCluster
from tests import support

from .conftest import SECOND

NAMESPACE: Final = "town"


class ShopPhase(StrEnum):
    OPEN = "Open"


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
        builder.with_resource(unstructured.StaticBuilder(role, cluster_scoped=True).build())
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
            await test(Env(cluster, clock, OPERATOR))

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
@pytest.mark.promise("failure-alone", runs="5 failures, of conditions in a keyed and in an atomic list")
@pytest.mark.parametrize(("broken", "message"), FAILURES)
def test_a_failure_is_shown_in_the_failure_condition_alone(run: Run, broken: dict[str, Any], message: str) -> None:
    """https://github.com/redhat-cop/operator-utils/issues/26: a failure ended conditions that the author had set."""

    async def test(env: Env) -> None:
        assert await env.reconcile(env.operator) is None
        healthy = await env.read_conditions(SHOP)
        assert set(healthy) == {"WebReady", "DataReady", "Ready"}
        await asyncio.sleep(60)
        await env.merge_patch(SHOP, {"spec": {"version": "1.1.0"}}, by="kubectl")
        assert await env.reconcile(replace(env.operator, **broken)) is not None
        shown = await env.read_conditions(SHOP)
        failure = shown.pop("shops/Reconciled")
        assert shown == healthy
        assert (failure["status"], failure["reason"], failure["observedGeneration"]) == ("False", "Error", 2)
        assert re.match(message, failure["message"])
        assert [event.note for event in env.events.failures] == [failure["message"]]
        assert await env.reconcile(env.operator) is None
        assert await env.read_conditions(SHOP) == {
            name: one | {"observedGeneration": 2} for name, one in healthy.items()
        }

    run(test)


@pytest.mark.promise("failure-shown", runs="a version that is not a version, behind a gate of a resource")
def test_a_gate_of_a_resource_that_cannot_answer_is_shown_in_the_failure_condition(run: Run) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(env.operator) is None
        healthy = await env.read_conditions(SHOP)
        await env.merge_patch(SHOP, {"spec": {"version": "latest"}}, by="kubectl")
        assert isinstance(await env.reconcile(env.operator), BuildError)
        shown = await env.read_conditions(SHOP)
        failure = shown.pop("shops/Reconciled")
        assert shown == healthy
        assert 'resource "v1/ConfigMap/town/settings" in component "web"' in failure["message"]
        assert "latest" in failure["message"]

    run(test)


@pytest.mark.parametrize(("broken", "message"), FAILURES)
def test_a_first_reconcile_that_fails_says_nothing_about_other_conditions(
    run: Run, broken: dict[str, Any], message: str
) -> None:
    async def test(env: Env) -> None:
        declared = replace(
            OPERATOR, published_conditions=["Ready"], abnormal_conditions=["Degraded"], failure_condition="Synced"
        )
        assert await env.reconcile(replace(declared, **broken)) is not None
        assert await env.shown() == {"Synced": ("False", "Error", 1)}
        assert re.match(message, (await env.read_conditions(SHOP))["Synced"]["message"])

    run(test)


def finished(context: ReconcileContext, _: Shop, outcome: ReconcileOutcome) -> None:
    """Report as the controller of a batch kind does: once that it has finished, and never that it has failed."""
    if outcome.error is None:
        context.set_condition("Completed", status="True", reason="AllDone", message="")
        context.set_condition("Failed", status="False", reason="NothingFailed", message="")


BROKEN_REQUESTS: Final = [
    pytest.param(faults.server_error(kind="ConfigMap"), {"WebReady"}, id="a 500 for an object of a component"),
    pytest.param(faults.server_error(kind="Secret"), {"shops/Reconciled"}, id="a 500 for what components reads"),
    pytest.param(
        faults.server_error(verbs=[Verb.PATCH], kind="Shop"), {"shops/Reconciled"}, id="a 500 for the finalizer"
    ),
]


@pytest.mark.promise("failure-alone", runs="a finished owner, and requests that fail with 500")
@pytest.mark.parametrize(("fault", "failed"), BROKEN_REQUESTS)
def test_what_the_author_has_set_survives_a_request_that_fails(run: Run, fault: Any, failed: set[str]) -> None:
    """https://github.com/gravitee-io/gravitee-kubernetes-operator/pull/1725: an owner was treated as new afterwards."""

    async def reading(shop: Shop, context: ReconcileContext) -> list[Component]:
        with suppress(NotFoundError):
            await context.cluster.get(ObjectKey("v1", "Secret", "guide", NAMESPACE))
        return [web(shop, cluster_scoped=True), data(shop)]

    async def test(env: Env) -> None:
        operator = replace(
            OPERATOR,
            components=reading,
            report=finished,
            published_conditions=["Completed", "Failed"],
            abnormal_conditions=["Failed"],
        )
        assert await env.reconcile(replace(operator, components=both)) is None
        before = await env.read_conditions(SHOP)
        await asyncio.sleep(60)
        assert await env.reconcile(operator, FaultyCluster(env.cluster, [fault])) is not None
        after = await env.read_conditions(SHOP)
        assert {name: one for name, one in after.items() if name not in failed} == {
            name: one for name, one in before.items() if name not in failed
        }
        assert {name for name, one in after.items() if one["reason"] == "Error"} == failed
        assert await env.reconcile(operator) is None
        settled = await env.read_conditions(SHOP)
        assert {name: settled[name] for name in ("Completed", "Failed")} == {
            name: before[name] for name in ("Completed", "Failed")
        }
        assert "shops/Reconciled" not in settled

    run(test)


@pytest.mark.promise("failure-alone", runs="a component that hangs, beside one that is reconciled")
def test_a_timeout_names_the_components_that_were_not_reconciled(run: Run) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(OPERATOR) is None
        healthy = await env.read_conditions(SHOP)
        await env.merge_patch(SHOP, {"spec": {"version": "1.1.0"}}, by="kubectl")
        slow = FaultyCluster(env.cluster, [faults.meanwhile(hang, kind="ConfigMap")])
        assert await env.reconcile(replace(OPERATOR, reconcile_timeout=SECOND), slow) is not None
        shown = await env.read_conditions(SHOP)
        assert shown["WebReady"] == healthy["WebReady"]
        assert shown["DataReady"] == healthy["DataReady"] | {"observedGeneration": 2}
        text = "the reconcile exceeded its timeout of 0:00:01 before these components were reconciled: web"
        assert shown["shops/Reconciled"]["message"] == text

    run(test)


@pytest.mark.promise(
    "failure-alone", runs="an aggregated condition, before the components are known and while one hangs"
)
@pytest.mark.parametrize("published", [True, False], ids=["published components", "unpublished components"])
def test_an_aggregated_condition_claims_no_more_than_the_components_observed(run: Run, *, published: bool) -> None:
    def one(shop: Shop) -> Component:
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": NAMESPACE}}
        builder = component.Builder("web", condition_type="WebReady")
        builder.with_resource(configmap.Builder(settings | {"data": {"version": shop.spec.version}}).build())
        return (builder if published else builder.unpublished()).build()

    def aggregated(context: ReconcileContext, _: Shop, outcome: ReconcileOutcome) -> None:
        context.aggregate("Ready", *outcome.components)

    async def test(env: Env) -> None:
        operator = replace(OPERATOR, components=one, report=aggregated)
        assert await env.reconcile(operator) is None
        ready = (await env.read_conditions(SHOP))["Ready"]
        await asyncio.sleep(60)
        await env.merge_patch(SHOP, {"spec": {"version": "1.1.0"}}, by="kubectl")
        slow = FaultyCluster(env.cluster, [faults.meanwhile(hang, kind="ConfigMap")])
        assert await env.reconcile(replace(operator, reconcile_timeout=SECOND), slow) is not None
        assert (await env.read_conditions(SHOP))["Ready"] == ready
        assert await env.reconcile(replace(operator, components=refuse)) is not None
        assert (await env.read_conditions(SHOP))["Ready"] == ready
        assert await env.reconcile(operator) is None
        assert (await env.read_conditions(SHOP))["Ready"] == ready | {"observedGeneration": 2}

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
    def insist(context: ReconcileContext, _: Shop, __: ReconcileOutcome) -> None:
        context.set_condition("Licensed", status="True", reason="KeyFound", message="")

    async def test(env: Env) -> None:
        operator = replace(OPERATOR, report=insist)
        assert await env.reconcile(operator) is None
        licensed = (await env.read_conditions(SHOP))["Licensed"]
        await asyncio.sleep(60)
        assert await env.reconcile(replace(operator, components=refuse)) is not None
        assert (await env.read_conditions(SHOP))["Licensed"] == licensed

    run(test)


def test_a_failed_report_is_shown_in_the_failure_condition_alone(run: Run) -> None:
    async def test(env: Env) -> None:
        assert await env.reconcile(env.operator) is None
        assert isinstance(await env.reconcile(replace(env.operator, report=fail)), KeyError)
        shown = await env.read_conditions(SHOP)
        assert {name: one["status"] for name, one in shown.items()} == {
            "WebReady": "True",
            "DataReady": "True",
            "Ready": "True",
            "shops/Reconciled": "False",
        }
        assert shown["shops/Reconciled"]["message"] == "the report failed: unexpected KeyError"
        assert await env.reconcile(env.operator) is None
        assert "shops/Reconciled" not in await env.shown()

    run(test)


def test_a_report_that_hangs_ends_and_is_shown(run: Run) -> None:
    async def test(env: Env) -> None:
        error = await env.reconcile(replace(OPERATOR, report=hang, reconcile_timeout=SECOND))
        assert "the reconcile exceeded its timeout of 0:00:01" in str(error)
        assert (await env.shown())["shops/Reconciled"] == ("False", "Error", 1)

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
        assert list(await env.shown()) == (["Ready"] if shows else ["Ready", "shops/Reconciled"])
        assert any("nowhere" in message for message in await env.messages())
        assert len(env.events.failures) == 1

    run(test)


def test_a_failed_report_and_an_unpublished_component_that_fails_are_both_shown(run: Run) -> None:
    def hidden(_: Shop) -> Component:
        settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "nowhere"}}
        builder = component.Builder("web", condition_type="WebReady").unpublished()
        return builder.with_resource(configmap.Builder(settings).build()).build()

    async def test(env: Env) -> None:
        for _ in range(2):
            assert await env.reconcile(replace(OPERATOR, components=hidden, report=fail)) is not None
        (message,) = await env.messages()
        assert message.startswith("the report failed: unexpected KeyError; failed to ")
        assert "nowhere" in message
        assert len(env.events.failures) == 2

    run(test)


def test_a_failed_finalizer_write_reorders_no_conditions(run: Run) -> None:
    def ready_first(context: ReconcileContext, _: Shop, __: ReconcileOutcome) -> None:
        context.set_condition("Ready", status="False", reason="NotYet", message="")

    async def test(env: Env) -> None:
        operator = replace(OPERATOR, components=lambda shop: web(shop, cluster_scoped=True), report=ready_first)
        broken = FaultyCluster(env.cluster, [faults.server_error(verbs=[Verb.PATCH], kind="Shop")])
        assert isinstance(await env.reconcile(operator, broken), ServerError)
        shown = await env.shown()
        assert shown == {"Ready": ("False", "NotYet", 1), "shops/Reconciled": ("False", "Error", 1)}
        assert (await env.read_conditions(SHOP))["shops/Reconciled"]["message"].startswith("the finalizer failed: ")
        assert await env.reconcile(operator) is None
        assert list(await env.shown()) == ["Ready", "WebReady"]
        assert (await env.cluster.get(SHOP))["metadata"]["finalizers"] == [cleanup_finalizer("shops")]

    run(test)


@pytest.mark.parametrize(
    "given",
    [
        {"published_conditions": ["web ready"]},
        {"abnormal_conditions": ["web ready"]},
        {"failure_condition": "web ready"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_type_that_the_api_rejects_is_rejected_when_it_is_declared(given: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match="a condition type must match"):
        replace(OPERATOR, **given)


def test_a_status_that_json_does_not_have_is_a_failure_and_the_rest_is_written(run: Run) -> None:
    def with_time(context: ReconcileContext, shop: Shop, outcome: ReconcileOutcome) -> None:
        report(context, shop, outcome)
        context.status.update(size=(1, 2), now=context.now)

    async def test(env: Env) -> None:
        operator = replace(env.operator, report=with_time)
        error = await env.reconcile(operator)
        assert isinstance(error, ManifestError)
        status = await env.read_status(SHOP)
        assert status.get("size") in ([1, 2], None), "a schema without the field drops it"
        assert "now" not in status
        shown = await env.read_conditions(SHOP)
        assert [shown[name]["status"] for name in ("WebReady", "DataReady", "Ready", "shops/Reconciled")] == [
            *["True"] * 3,
            "False",
        ]
        message = shown["shops/Reconciled"]["message"]
        assert message.startswith("writing the status failed: Shop town/corner: status.now: a datetime is not a JSON")
        assert [one.note for one in env.events.failures if one.reason == "ReconcileFailed"] == [message]
        before = await env.cluster.get(SHOP)
        assert isinstance(await env.reconcile(operator), ManifestError)
        assert await env.cluster.get(SHOP) == before
        assert await env.reconcile(env.operator) is None
        assert "shops/Reconciled" not in await env.read_conditions(SHOP)

    run(test)


async def test_a_status_that_only_json_makes_plain_is_written_once(fed: EmbeddedCluster) -> None:
    for writes in (1, 0):
        fed.requests.clear()
        async with reconciling(await fed.get(SHOP), fed) as context:
            context.status.update(sizes=(1, 2), phase=ShopPhase.OPEN, floors={ShopPhase.OPEN: 1})
        assert fed.requests.writes == writes
    assert (await fed.get(SHOP))["status"] == {"sizes": [1, 2], "phase": "Open", "floors": {"Open": 1}}


async def test_outside_of_an_operator_the_block_raises_after_the_rest_is_written(fed: EmbeddedCluster) -> None:
    events = Events()
    with pytest.raises(ManifestError, match=r"^Shop town/corner: status\.now: a datetime is not a JSON value"):
        async with reconciling(await fed.get(SHOP), fed, recorder=events) as context:
            context.status.update(now=context.now, size=1)
    assert (await fed.get(SHOP))["status"] == {"size": 1}
    assert [event.reason for event in events.failures] == ["ReconcileFailed"]


async def test_another_error_of_the_block_is_raised_with_a_note(fed: EmbeddedCluster) -> None:
    async def reconcile() -> None:
        async with reconciling(await fed.get(SHOP), fed) as context:
            context.status["now"] = context.now
            raise KeyError

    with pytest.raises(KeyError) as caught:
        await reconcile()
    assert "could not be written either: Shop town/corner: status.now: a datetime is not" in caught.value.__notes__[0]


@pytest_asyncio.fixture
async def fed() -> EmbeddedCluster:
    """Return a cluster with a shop that keeps every field of its status."""
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=[NAMESPACE])
    metadata = {"name": SHOP.name, "namespace": NAMESPACE}
    await cluster.create(
        {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata}, field_manager="kubectl"
    )
    return cluster
