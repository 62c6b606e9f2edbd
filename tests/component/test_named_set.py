"""Names of a set whose size changes: chosen once, stored before anything is done, on both servers.

Public reports: https://github.com/Altinity/clickhouse-operator/issues/1943 (a step of a scale-down fails and is never
repeated), https://github.com/apache/solr-operator/issues/707 (an error while a member is chosen ends the scale-down),
https://github.com/emqx/emqx-operator/issues/1105 (the number of members is computed anew from what is there meanwhile),
https://github.com/CrunchyData/postgres-operator/issues/1339 (a former primary cannot leave).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf import component
from ocf.component import ReconcileContext, reconciling
from ocf.concepts import SystemClock
from ocf.errors import ConfigError, ReconcileError
from ocf.testing import run_in_virtual_time
from ocf_server import CustomKind, EmbeddedCluster

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from tests.component.conftest import Env


class Chooser:
    """Chooses who leaves, never the same twice, and counts how often it is asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, ...]] = []

    async def __call__(self, names: Sequence[str]) -> str:
        self.asked.append(tuple(names))
        if not self.answers:
            raise ConnectionError("nobody answers")
        return self.answers.pop(0)


async def names_of(env: Env, count: int, *, through: Cluster | None = None, **options: Any) -> tuple[str, ...]:
    async with reconciling(await env.owner_manifest(), through or env.cluster, clock=env.clock) as context:
        return await component.stored_names(context, "members", count=count, name="db-{}".format, **options)


async def stored(env: Env) -> Any:
    return (await env.read_status(env.owner)).get("members")


async def test_a_set_grows_by_the_first_free_names_and_shrinks_by_choice(env: Env) -> None:
    assert await names_of(env, 3) == ("db-0", "db-1", "db-2")
    assert await names_of(env, 2, remove=Chooser("db-1")) == ("db-0", "db-2")
    assert await names_of(env, 4) == ("db-0", "db-2", "db-1", "db-3")
    assert await names_of(env, 2) == ("db-0", "db-2")
    assert await names_of(env, 0) == ()
    assert await stored(env) == []
    assert await names_of(env, 1) == ("db-0",)


@pytest.mark.promise("named-set")
async def test_a_choice_is_stored_before_it_is_returned_and_not_asked_for_again(env: Env) -> None:
    await names_of(env, 3)
    chooser = Chooser("db-1")
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        await component.stored_names(context, "members", count=2, name="db-{}".format, remove=chooser)
        assert await stored(env) == ["db-0", "db-2"]
        env.cluster.requests.clear()
        for _ in range(2):
            await component.stored_names(context, "members", count=2, name="db-{}".format, remove=chooser)
    assert await names_of(env, 2, remove=chooser) == ("db-0", "db-2")
    assert (env.cluster.requests.writes, len(chooser.asked)) == (0, 1)


@pytest.mark.promise("named-set", runs="a choice that fails after another one")
@pytest.mark.parametrize(
    ("before", "first", "left"),
    [
        pytest.param(3, [], ["db-0", "db-1", "db-2"], id="the first question"),
        pytest.param(4, ["db-1"], ["db-0", "db-2", "db-3"], id="the second"),
        pytest.param(5, ["db-4", "db-0"], ["db-1", "db-2", "db-3"], id="the third"),
    ],
)
async def test_a_choice_that_fails_keeps_those_before_it(
    env: Env, before: int, first: list[str], left: list[str]
) -> None:
    await names_of(env, before)
    failing, again = Chooser(*first), Chooser("db-2")
    with pytest.raises(ConnectionError):
        await names_of(env, 2, remove=failing)
    assert (len(failing.asked), await stored(env)) == (len(first) + 1, left)
    assert {*await names_of(env, 2, remove=again)} == {*left} - {"db-2"}
    assert again.asked == [tuple(left)]


async def test_an_answer_that_is_no_member_keeps_those_before_it(env: Env) -> None:
    await names_of(env, 3)
    with pytest.raises(ConfigError, match='"db-2" cannot leave the set'):
        await names_of(env, 1, remove=Chooser("db-2", "db-2"))
    assert await stored(env) == ["db-0", "db-1"]


async def test_each_choice_among_names_in_use_is_stored_too(env: Env) -> None:
    with pytest.raises(ConnectionError):
        await names_of(env, 1, existing=["db-0", "db-1", "db-2"], remove=Chooser("db-0"))
    assert await stored(env) == ["db-1", "db-2"]


async def test_each_that_leaves_is_chosen_among_those_that_are_left(env: Env) -> None:
    await names_of(env, 3)
    chooser = Chooser("db-2", "db-0")
    assert await names_of(env, 1, remove=chooser) == ("db-1",)
    assert chooser.asked == [("db-0", "db-1", "db-2"), ("db-0", "db-1")]


@pytest.mark.promise("named-set", runs="an owner whose status was lost")
async def test_names_in_use_are_kept_where_none_are_stored(env: Env) -> None:
    assert await names_of(env, 3, existing=["db-4", "db-1"]) == ("db-4", "db-1", "db-0")
    assert await names_of(env, 3, existing=["other"]) == ("db-4", "db-1", "db-0")


async def test_an_owner_that_is_being_deleted_keeps_its_names(env: Env) -> None:
    await names_of(env, 3)
    await env.change(env.owner, metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(env.owner)
    assert await names_of(env, 1, remove=Chooser()) == ("db-0", "db-1", "db-2")


async def test_names_that_cannot_be_stored_are_not_returned(env: Env) -> None:
    await env.change(env.owner, metadata={"annotations": {"ocf.ocf.dev/paused": "true"}})
    with pytest.raises(ReconcileError, match="is paused by"):
        await names_of(env, 3)


@pytest.mark.parametrize(
    ("value", "options", "problem"),
    [
        pytest.param(None, {"count": -1}, "cannot have -1 names: its count is zero or more", id="negative"),
        pytest.param(None, {"count": None}, "cannot have None names: its count is zero or more", id="no count"),
        pytest.param(None, {"name": int}, r"texts, and not empty: `name` gives \[0", id="names that are numbers"),
        pytest.param(None, {"name": lambda _: ""}, r"texts, and not empty: `name` gives \[''", id="empty names"),
        pytest.param(None, {"existing": "db"}, "must be texts, and not empty: `existing` gives 'db'", id="one text"),
        pytest.param(None, {"existing": [None]}, r"must be texts, and not empty: `existing` gives \[None\]", id="None"),
        pytest.param("db-0", {}, "status.members must be a list of names, got str", id="a text"),
        pytest.param([1], {}, "status.members must be a list of names, got list", id="numbers"),
        pytest.param(["db-0", "db-1"], {"remove": Chooser("db-7")}, '"db-7" cannot leave the set in', id="a stranger"),
        pytest.param(None, {"name": lambda _: "db", "count": 2}, "needs 2 names: `name` returns the same", id="equal"),
    ],
)
async def test_what_is_wrong_is_an_error_and_is_not_stored(value: Any, options: dict[str, Any], problem: str) -> None:
    cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")])
    shop: Manifest = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "a", "namespace": "default"}}
    owner = await cluster.create(shop, field_manager="user")
    context = ReconcileContext(owner, cluster, SystemClock())
    if value is not None:
        context.status["members"] = value
    cluster.requests.clear()
    given = {"count": 1, "name": "db-{}".format, **options}
    with pytest.raises(ConfigError, match=problem):
        await component.stored_names(context, "members", **given)
    assert cluster.requests.writes == 0


@given(counts=st.lists(st.integers(0, 6), max_size=8), data=st.data())
def test_no_name_changes_but_those_that_leave_and_join(counts: list[int], data: st.DataObject) -> None:
    async def choose(names: Sequence[str]) -> str:
        return str(data.draw(st.sampled_from(list(names))))

    async def work() -> None:
        cluster = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")])
        shop: Manifest = {
            "apiVersion": "example.com/v1",
            "kind": "Shop",
            "metadata": {"name": "a", "namespace": "default"},
        }
        async with reconciling(await cluster.create(shop, field_manager="user"), cluster) as context:
            before: tuple[str, ...] = ()
            for count in counts:
                after = await component.stored_names(
                    context, "members", count=count, name="db-{}".format, remove=choose
                )
                assert len(after) == len({*after}) == count
                assert len({*before} & {*after}) == min(len(before), count)
                assert [one for one in after if one in before] == [one for one in before if one in after]
                before = after

    run_in_virtual_time(work())
