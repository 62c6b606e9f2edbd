"""Relations, and the pace of the reconciles that they trigger, on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ocf import component
from ocf.runtime.operator import Relation
from tests.support import eventually

from .test_running_on_server import GROUP, Town, town

if TYPE_CHECKING:
    from ocf.component import Component, ReconcileContext

    from .conftest import Shop

__all__ = ["town"]

GOODS: Final = Relation((f"{GROUP}/v1", "Shop"), ("v1", "ConfigMap"), "spec.motto")


def relating(town: Town) -> Any:
    async def components(_: Shop, context: ReconcileContext) -> Component:
        town.decisions.append([one["metadata"]["name"] for one in await GOODS.selected(context)])
        return component.Builder("web", condition_type="WebReady").build()

    return town.operator(components=components, watches=[GOODS])


async def _last(town: Town) -> Any:
    return town.decisions[-1] if town.decisions else None


async def test_both_a_change_of_the_labels_and_one_of_the_selector_are_seen(town: Town) -> None:
    async def sees(*expected: str) -> None:
        await eventually(lambda: _last(town), lambda found: found == [*expected])

    await town.open_shop(motto="part=north")
    async with town.operating(relating(town)):
        await sees()
        await town.create(town.manifest("ConfigMap", "map", {"part": "north"}))
        await sees("map")
        await town.create(town.manifest("ConfigMap", "globe", {"part": "south"}))
        await town.edit(town.owner, {"spec": {"motto": "part in (north,south)"}})
        await sees("globe", "map")
        await town.edit(town.key("ConfigMap", "map"), {"metadata": {"labels": {"part": "east"}}})
        await sees("globe")
        await town.admin.delete(town.key("ConfigMap", "globe"))
        await sees()
        # What is selected neither before nor after a change starts no reconcile.
        reconciles = len(town.decisions)
        await town.edit(town.key("ConfigMap", "map"), {"data": {"scale": "1"}})
        await town.create(town.manifest("ConfigMap", "last", {"part": "south"}))
        await sees("last")
        assert len(town.decisions) == reconciles + 1


async def test_a_burst_of_changes_of_what_is_selected_takes_few_reconciles_and_the_last_one_is_seen(town: Town) -> None:
    names = [f"map-{at:02}" for at in range(40)]
    await town.open_shop(motto="part=north")
    async with town.operating(relating(town)):
        await eventually(lambda: _last(town), lambda found: found == [])
        for name in names:
            await town.create(town.manifest("ConfigMap", name, {"part": "north"}))
        await eventually(lambda: _last(town), lambda found: found == names)
        assert len(town.decisions) <= 12
