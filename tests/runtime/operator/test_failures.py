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
from ocf.cluster import Cluster
from ocf.component import Component, ReconcileContext
from ocf.concepts import Event, NullRecorder
from ocf.embedded import EmbeddedCluster
from ocf.errors import NotFoundError
from ocf.feature import VersionGate
from ocf.objects import ObjectKey
from ocf.primitives import configmap, unstructured
from ocf.runtime.crds import CRDVersion, ListMap, crd
from ocf.runtime.operator import Operator, OwnerType, ReconcileOutcome, reconcile_owner
from ocf.testing import LoopClock, run_in_virtual_time
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
    name="shops", owner=OwnerType("example.com/v1", "Shop", Keyed), components=both, report=report
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
            await test(Env(cluster, clock))

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


@pytest.mark.promise("failure-shown")
@pytest.mark.parametrize(("broken", "message"), FAILURES)
def test_every_condition_becomes_error_in_the_reconcile_that_fails(
    run: Run, broken: dict[str, Any], message: str
) -> None:
    async def test(env: Env) -> None:
        # In a list without keys, nothing shows who wrote a condition with a reason of the operator's own.
        operator = replace(OPERATOR, published_conditions=["WebReady", "DataReady", "Ready"])
        assert await env.reconcile(operator) is None
        healthy = await env.shown()
        await env.merge_patch(SHOP, {"spec": {"version": "1.1.0"}}, by="kubectl")
        assert await env.reconcile(replace(operator, **broken)) is not None
        assert await env.shown() == dict.fromkeys([*healthy, "Reconciled"], ("False", "Error", 2))
        (shown,) = await env.messages()
        assert re.match(message, shown)

    run(test)
