"""What would be done outside of the cluster: previews call nothing, and a diff only reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from ocf import component
from ocf.component import describe, diff
from ocf.component.diff import DiffVerb
from ocf.concepts.recorder import Why
from tests.component.external.conftest import OWNER, Bucket, Shop
from tests.component.external.test_one_target import run

if TYPE_CHECKING:
    from ocf.component import ComponentDiff


@pytest.mark.promise("external-preview")
def test_rendering_shows_what_is_desired_and_calls_nothing() -> None:
    async def check(shop: Shop) -> None:
        made = shop.component(Bucket(size=3, password=SecretStr("hunter2")))
        assert made.render() == []
        assert made.preview() == []
        assert made.explain() == ()
        (shown,) = made.render_external()
        assert (shown["kind"], shown["metadata"], shown["spec"]["size"]) == ("Bucket", {"name": "town-corner"}, 3)
        assert "hunter2" not in str(shown)
        assert not shop.system.calls

    run(check)


async def planned(shop: Shop) -> ComponentDiff:
    (found,) = await diff([shop.declare()], await shop.cluster.get(OWNER), shop.cluster, clock=shop.clock)
    return found


def test_a_diff_reads_and_neither_calls_nor_records_anything_else() -> None:
    async def check(shop: Shop) -> None:
        version = shop.cluster.resource_version
        found = await planned(shop)
        (created,) = found.objects
        assert (created.resource, created.verb, created.before) == (
            "external/Bucket/town-corner",
            DiffVerb.CREATE,
            None,
        )
        assert created.after is not None
        assert created.after["spec"] == {"size": 1}
        assert (shop.system.calls, shop.cluster.resource_version) == (["read"], version)
        await shop.reconcile()
        assert (await planned(shop)).is_empty
        shop.declare = lambda: shop.component(Bucket(size=4))
        (changed,) = (await planned(shop)).objects
        assert [(one.path, one.before, one.after) for one in changed.fields] == [("spec.size", 1, 4)]
        shop.declare = lambda: component.Builder("web", owner=OWNER).with_prune(external=[shop.client]).build()
        (deleted,) = (await planned(shop)).objects
        assert (deleted.verb, deleted.after) == (DiffVerb.DELETE, None)
        assert shop.system.writes == ["apply"]
        assert await shop.records()

    run(check)


def test_a_diff_shows_a_change_that_depends_on_data_and_hides_secrets() -> None:
    async def check(shop: Shop) -> None:
        shop.declare = lambda: shop.component(Bucket(password=SecretStr("hunter2")))
        found = await planned(shop)
        assert found.objects
        assert "hunter2" not in str(found)

    run(check)


def test_a_description_names_the_resource() -> None:
    async def check(shop: Shop) -> None:
        made = shop.component()
        text = describe(made, await shop.result())
        assert "external/Bucket/town-corner: Created" in text
        again = describe(made, await shop.result())
        assert "external/Bucket/town-corner: Unchanged, nothing to do" in again
        shop.system.faults["read", ""] = TimeoutError()
        shop.restart()
        failing = describe(made, await shop.result())
        assert "external/Bucket/town-corner: Unchanged, the call of its system failed" in failing

    run(check)


@pytest.mark.parametrize("deleted", [False, True], ids=["registered", "to be deleted"])
def test_a_diff_does_not_call_what_it_cannot_read_unchanged(deleted: bool) -> None:
    async def check(shop: Shop) -> None:
        await shop.reconcile()
        shop.system.faults["read", ""] = TimeoutError()
        shop.restart()
        shop.declare = lambda: shop.component(delete_when=deleted)
        found = await planned(shop)
        assert found.result is not None
        assert [one.why for one in found.result.outcomes] == [Why.FAILED]

    run(check)
