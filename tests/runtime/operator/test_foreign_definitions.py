"""Running operators of owners whose definition is not made for them."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ApplyCache, ListOptions, PatchOptions, PatchType
from ocf.errors import OcfError
from ocf.objects import ObjectKey
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from ocf.testing import LoopClock, RecordingCluster, run_in_virtual_time
from ocf_server import EmbeddedCluster
from tests.support import definition_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.component import Component
    from ocf.objects import Manifest

TEXT: Final = {"type": "string"}
CONDITION: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
CONDITIONS: Final = {"conditions": {"type": "array", "items": CONDITION}}


def definition(status: Manifest, *required: str, **without: Any) -> Manifest:
    properties = {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": status, "required": [*required]},
    }
    return definition_of("Ledger", "books.example.com", {"type": "object", "properties": properties}, **without)


DEFINITIONS: Final = {
    "no subresource": definition(CONDITIONS, subresources={}),
    "no conditions": definition({"phase": TEXT}),
    "neither": definition({"phase": TEXT}, subresources={}),
    "required fields": definition({**CONDITIONS, "phase": TEXT}, "phase"),
    "a Secret": None,
}


def operator_of(name: str, case: str, reconciles: Counter[str], components: Callable[[], Component]) -> Operator[Any]:
    def found(_: Manifest) -> Component:
        reconciles[name] += 1
        return components()

    built_in = DEFINITIONS[case] is None
    owner = OwnerType[Any]("v1", "Secret") if built_in else OwnerType[Any]("books.example.com/v1", "Ledger")
    return Operator(name=name, owner=owner, components=found)


def failing() -> Component:
    raise OcfError("the registry cannot be reached")


def healthy(name: str) -> Component:
    return component.Builder(name, condition_type=f"{name.title()}Ready").build()


@pytest.mark.promise(
    "quiet-owner", runs="two running operators of one owner, six hours in virtual time, one of them fails"
)
@pytest.mark.parametrize("case", DEFINITIONS)
def test_two_operators_of_one_owner_come_to_rest(case: str) -> None:
    """Their status writes trigger no reconcile without end, and a failure that goes on is one event."""

    async def run() -> None:
        cluster = EmbeddedCluster(namespaces=["town"])
        if (made := DEFINITIONS[case]) is not None:
            await cluster.apply(made, field_manager="admin")
        kind = {"apiVersion": "v1", "kind": "Secret"} if made is None else {"apiVersion": "books.example.com/v1"}
        owner: Manifest = {"kind": "Ledger", **kind, "metadata": {"name": "corner", "namespace": "town"}}
        key = ObjectKey.of(await cluster.create(owner, field_manager="user"))
        reconciles: Counter[str] = Counter()
        first = operator_of("first", case, reconciles, lambda: healthy("web"))
        second = operator_of("second", case, reconciles, failing)
        options = ManagerOptions(listen=None, clock=LoopClock())
        seen = [RecordingCluster(cluster, apply_cache=ApplyCache()) for _ in range(2)]
        async with running(seen[0], first, options=options), running(seen[1], second, options=options):
            await asyncio.sleep(60)
            if made is not None:
                patch = {"spec": {"size": 2}}
                await cluster.patch(key, patch, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
            await asyncio.sleep(timedelta(hours=6).total_seconds())
        assert reconciles["first"] <= 6
        for one in seen:
            writes = [each for each in one.writes if (each.kind, each.name) == (key.kind, key.name)]
            assert len(writes) <= 5
        events = (await cluster.list("events.k8s.io/v1", "Event", ListOptions(namespace="town"))).items
        found = [each for each in events if each["reason"] == "ReconcileFailed"]
        assert [(each["reportingController"].split("/")[-1], each.get("series")) for each in found] == [
            ("second", None)
        ]

    run_in_virtual_time(run())
