"""Writers of our own that insist on different values of one object: two owners, two operators, two processes.

Without a delay, each of these writes whenever the other one has written. Elsewhere:
https://github.com/fluxcd/kustomize-controller/issues/732 (two owners render one Deployment, which is rolled out again),
https://github.com/openshift/library-go/pull/297 (two writers of one object can fight, one cannot).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.component import Component, Finalizer, Result
from ocf.objects import ObjectKey, copy_json
from ocf.primitives import deployment
from tests.component.conftest import SHOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from tests.component.conftest import Env, Process, StaticKind

SHARED: Final = ObjectKey("v1", "ConfigMap", "shared", "shop")
OTHER: Final = ObjectKey("example.com/v1", "Shop", "other", "shop")
HOUR: Final = timedelta(hours=1)
EVERY: Final = timedelta(seconds=10)
# The limit of the promise "write-war", for each writer.
MOST: Final = 10
HEALTHY: Final = "Component is healthy."


def of(name: str, *resources: Any, **options: Any) -> Component:
    builder = component.Builder(name, condition_type=f"{name.title()}Ready").unpublished()
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


@dataclass
class Writer:
    """A process with what it wants for one owner."""

    process: Process
    wanted: Component
    owner: ObjectKey | None = None
    finalizer: Finalizer | None = None
    message: str = ""

    async def reconcile(self) -> None:
        for result in await self.process.reconcile(self.wanted, finalizer=self.finalizer, owner=self.owner):
            if isinstance(result, Result):
                self.message = result.condition.message


async def fight(env: Env, *writers: Writer) -> list[int]:
    """Let writers reconcile in turn for an hour; return the number of writes of each."""
    before = [writer.process.writes for writer in writers]
    for _ in range(HOUR // EVERY):
        for writer in writers:
            await writer.reconcile()
        env.clock.advance(EVERY)
    return [writer.process.writes - old for writer, old in zip(writers, before, strict=True)]


@pytest.mark.promise("write-war", runs="an hour of two and three owners over one object, on both servers")
@pytest.mark.parametrize("owners", [2, 3])
async def test_owners_that_share_an_object(env: Env, config_map: Callable[..., StaticKind], owners: int) -> None:
    """The object has no owner reference, so only the managers show that another owner applies it."""
    keys = [env.owner, *(OTHER._replace(name=f"other-{number}") for number in range(1, owners))]
    for key in keys[1:]:
        await env.create(key, spec=copy_json(SHOP["spec"]))
    process = env.process("shops")
    writers = [Writer(process, of("web", config_map("shared", by=key.name).build(), unowned=True), key) for key in keys]
    assert (await fight(env, *writers))[0] <= owners * MOST
    uids = [(await env.cluster.get(key))["metadata"]["uid"] for key in keys]
    names = [f'"shops/Shop/web/{uid}" for Shop shop/{key.name}' for uid, key in zip(uids, keys, strict=True)]
    # The one that wins has what it wants; every other one names itself and another one.
    losers = [(name, writer) for name, writer in zip(names, writers, strict=True) if HEALTHY not in writer.message]
    assert len(losers) >= owners - 1
    for name, writer in losers:
        assert f"and not by {name}" in writer.message
        assert sum(each in writer.message for each in names) == 2


@pytest.mark.promise("write-war", runs="an hour of two operators over one object, on both servers")
@pytest.mark.parametrize("names", [("web", "web"), ("web", "web2")], ids=["same component", "two components"])
async def test_operators_that_share_an_object(
    env: Env, config_map: Callable[..., StaticKind], names: tuple[str, str]
) -> None:
    shops = Writer(env.process("shops"), of(names[0], config_map("shared", by="shops").build()))
    malls = Writer(env.process("malls"), of(names[1], config_map("shared", by="malls").build()))
    assert max(await fight(env, shops, malls)) <= MOST
    uid = (await env.owner_manifest())["metadata"]["uid"]
    said = [writer.message for writer in (shops, malls) if HEALTHY not in writer.message]
    assert said
    for message in said:
        assert f'"shops/Shop/{names[0]}/{uid}"' in message
        assert f'"malls/Shop/{names[1]}/{uid}"' in message


@pytest.mark.promise("write-war", runs="an hour of two versions of one operator over one object, on both servers")
@pytest.mark.parametrize("names", [("web", "web"), ("web", "web2")], ids=["same component", "moved to another one"])
@pytest.mark.parametrize("values", [("1", "2"), ("1", "1")], ids=["two values", "the same value"])
async def test_versions_of_one_operator_that_run_at_once(
    env: Env, config_map: Callable[..., StaticKind], names: tuple[str, str], values: tuple[str, str]
) -> None:
    """A component that was renamed takes the object over, and the former one takes it back."""
    old = Writer(env.process("shops"), of(names[0], config_map("shared", by=values[0]).build()))
    new = Writer(env.process("shops"), of(names[1], config_map("shared", by=values[1]).build()))
    # A takeover is two requests: one for the ownership, and one for the values.
    assert max(await fight(env, old, new)) <= MOST * len(set(names))
    if values[0] != values[1]:
        uid = (await env.owner_manifest())["metadata"]["uid"]
        managers = {f'"shops/Shop/{name}/{uid}"' for name in names}
        said = [writer.message for writer in (old, new) if HEALTHY not in writer.message]
        assert said
        assert all(manager in message for manager in managers for message in said)
    last = new.process.writes
    for _ in range(3):
        env.clock.advance(HOUR)
        await new.reconcile()
    assert new.process.writes <= last + 2
    assert (await env.cluster.get(SHARED))["data"] == {"by": values[1]}


@pytest.mark.promise("write-war", runs="an hour of creates against deletes, on both servers")
@pytest.mark.parametrize("operators", [("shops", "malls"), ("shops", "shops")], ids=["two operators", "two versions"])
async def test_creates_against_deletes(
    env: Env, config_map: Callable[..., StaticKind], operators: tuple[str, str]
) -> None:
    shared = config_map("shared").build()
    maker = Writer(env.process(operators[0]), of("web", shared, unowned=True))
    await maker.reconcile()
    user = env.process("user")

    async def delete() -> None:
        if await env.exists(SHARED):
            await user.cluster.delete(SHARED)

    remover = Writer(env.process(operators[1]), of("web", shared, delete_when=True))
    if operators[0] == operators[1]:
        made, removed = await fight(env, maker, remover)
        assert (made <= MOST, removed <= MOST) == (True, True)
        assert max(made, removed) > 3
        return
    made = maker.process.writes
    for _ in range(HOUR // EVERY):
        await maker.reconcile()
        await delete()
        env.clock.advance(EVERY)
    assert 3 < maker.process.writes - made <= MOST
    assert maker.message == f"{SHARED} is deleted repeatedly by another client, and is created again later"
    env.clock.advance(HOUR)
    await maker.reconcile()
    assert await env.exists(SHARED)


@pytest.mark.promise("write-war", runs="an hour of a suspended against a running version, on both servers")
async def test_suspending_against_resuming(env: Env, web_base: Manifest) -> None:
    web_base["spec"]["replicas"] = 3
    resource = deployment.Builder(web_base).build()

    def web(*, suspended: bool) -> Component:
        builder = component.Builder("web", condition_type="WebReady").unpublished()
        return builder.with_resource(resource).suspend(suspended).build()

    for name in ("shops", "malls"):
        running = Writer(env.process("shops"), web(suspended=False))
        stopped = Writer(env.process(name), web(suspended=True))
        assert max(await fight(env, running, stopped)) <= MOST
        env.clock.advance(2 * HOUR)


async def test_one_that_takes_nothing_fails_and_the_other_one_is_quiet(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    taking = Writer(env.process("shops"), of("web", config_map("shared", by="shops").build()))
    failing = Writer(env.process("malls"), of("web", config_map("shared", by="malls").build(), on_conflict="fail"))
    await taking.reconcile()
    assert (await fight(env, taking, failing))[0] == 0
    assert (await env.cluster.get(SHARED))["data"] == {"by": "shops"}


async def test_what_an_operator_changes_itself_is_not_delayed(env: Env, config_map: Callable[..., StaticKind]) -> None:
    shops, malls = env.process("shops"), env.process("malls")
    await fight(
        env,
        Writer(shops, of("web", config_map("shared", by="shops").build())),
        Writer(malls, of("web", config_map("shared", by="malls").build())),
    )
    await shops.reconcile(of("web", config_map("shared", by="a new release").build()))
    assert (await env.cluster.get(SHARED))["data"] == {"by": "a new release"}
