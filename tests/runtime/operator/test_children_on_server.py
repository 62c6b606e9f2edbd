"""Children of an owner on a real API server: what changes them starts a reconcile, and a restart is counted once.

Elsewhere: https://github.com/kubernetes-sigs/jobset/pull/1283 (a counter that a crash between the act and the write of
the status leaves behind), https://github.com/kubernetes-sigs/kubebuilder/issues/1722 (a child that was deleted is still
listed), https://github.com/vmware-labs/reconciler-runtime/issues/488 (children without a reference are made twice).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.primitives import configmap
from tests.support import eventually

from .test_running_on_server import GROUP, Town, town

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext
    from ocf.objects import Manifest

    from .conftest import Shop

__all__ = ["town"]

ATTEMPT: Final = "attempt"


def ticket(town: Town, owner: Manifest, name: str, **labels: str) -> Manifest:
    reference = {"apiVersion": f"{GROUP}/v1", "kind": "Shop", "name": "corner", "uid": owner["metadata"]["uid"]}
    made = town.manifest("ConfigMap", name, labels)
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    return made


async def names(context: ReconcileContext) -> list[str]:
    found = await context.children.list("v1", "ConfigMap")
    return sorted(one["metadata"]["name"] for one in found)


@pytest.mark.promise("woken", runs="a child that appears, is given away and is deleted, on a real API server")
async def test_each_change_of_the_children_is_seen(town: Town) -> None:
    """Also that of one which appears between the list and a read by name of the first reconcile."""
    late: ObjectKey = town.key("ConfigMap", "late")

    async def components(_: Shop, context: ReconcileContext) -> Component:
        listed = await names(context)
        if not town.decisions:
            await town.create(ticket(town, context.owner, late.name))
        try:
            await context.cluster.get(late)
        except NotFoundError:
            listed.append("no late one")
        town.decisions.append(listed)
        return component.Builder("web", condition_type="WebReady").build()

    async def sees(*expected: str) -> None:
        await eventually(lambda: _last(town), lambda found: found == [*expected])

    await town.open_shop()
    async with town.operating(town.operator(components=components)):
        await sees("late")
        owner = await town.admin.get(town.owner)
        await town.create(ticket(town, owner, "second"))
        await sees("late", "second")
        await town.edit(late, {"metadata": {"ownerReferences": None}})
        await sees("second")
        await town.admin.delete(town.key("ConfigMap", "second"))
        await sees()
        # Nothing but these changes starts one.
        reconciles = len(town.decisions)
        await town.create(town.manifest("ConfigMap", "foreign"))
        await town.create(ticket(town, owner, "last"))
        await sees("last")
        assert len(town.decisions) == reconciles + 1


async def _last(town: Town) -> Any:
    return town.decisions[-1] if town.decisions else None


@pytest.mark.promise(
    "intent", runs="a restart that is counted before what it replaces is deleted, on a real API server"
)
async def test_a_restart_is_counted_once_and_goes_on_at_once(town: Town) -> None:
    """The counter is stored first; the deletion, and not the write of the counter, starts the next reconcile."""

    def attempt(number: int) -> Component:
        base = town.manifest("ConfigMap", f"run-{number}", {ATTEMPT: str(number)})
        return (
            component.Builder("web", condition_type="WebReady").with_resource(configmap.Builder(base).build()).build()
        )

    async def components(_: Shop, context: ReconcileContext) -> Component:
        children = await context.children.list("v1", "ConfigMap")
        count = int(context.status.get("visits", 0))
        town.decisions.append(count)
        if any(one["metadata"]["labels"].get("failed") and _attempt(one) == count for one in children):
            count += 1
            context.status["visits"] = count
            await context.write_status()
        for one in children:
            if _attempt(one) < count:
                await context.children.delete(one, when=lambda live: _attempt(live) < count)
        return attempt(count)

    async def is_at(number: int) -> bool:
        status = (await town.admin.get(town.owner)).get("status", {})
        run = await town.admin.get(town.key("ConfigMap", f"run-{number}"))
        return int(status.get("visits", 0)) == number and not run["metadata"].get("deletionTimestamp")

    await town.open_shop()
    async with town.operating(town.operator(components=components)):
        for number in range(3):
            await eventually(lambda number=number: is_at(number), ignore=(NotFoundError,))  # type: ignore[misc]
            await town.edit(town.key("ConfigMap", f"run-{number}"), {"metadata": {"labels": {"failed": "yes"}}})
        await eventually(lambda: is_at(3), ignore=(NotFoundError,))
        for number in range(3):
            with pytest.raises(NotFoundError):
                await town.admin.get(town.key("ConfigMap", f"run-{number}"))
        await eventually(lambda: _last(town), lambda last: last == 3)
    assert sorted(set(town.decisions)) == [0, 1, 2, 3]


def _attempt(manifest: Manifest) -> int:
    return int(manifest["metadata"]["labels"][ATTEMPT])
