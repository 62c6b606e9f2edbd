"""Writers that insist on different values of one object, ours and others: what is a fight, and what is not.

Two owners, two operators and two processes of ours each write whenever the other one has written, without a delay.
Elsewhere:
https://github.com/fluxcd/kustomize-controller/issues/732 (two owners render one Deployment, which is rolled out again),
https://github.com/openshift/library-go/pull/297 (two writers of one object can fight, one cannot),
https://github.com/kubernetes/kubernetes/issues/24433 (two controllers that fight bring the API server down),
https://github.com/openshift/cluster-version-operator/pull/725 (two operators write one Service without end),
https://github.com/argoproj/argo-cd/issues/20172 (a repair that is undone each time needs a growing delay).

Edits of different fields are not a fight, and must not wait as if they were one. Elsewhere:
https://github.com/argoproj/argo-cd/issues/21599 (an earlier fight delays what has nothing to do with it),
https://github.com/argoproj/argo-cd/pull/25579 (a count that begins anew too early ends the delay of a fight),
https://github.com/kubernetes-sigs/cluster-api/issues/6007 (owner references that are lost have to be restored),
https://github.com/kubernetes/kubernetes/issues/109748 (an object without its owner is never deleted).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.component import Component, Finalizer, Result
from ocf.component.status.results import Action
from ocf.objects import ObjectKey, copy_json
from ocf.primitives import configmap, deployment
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


def _value(**data: str | None) -> Manifest:
    return {"data": data}


def _label(key: str, value: str | None = "other") -> Manifest:
    return {"metadata": {"labels": {key: value}}}


_NO_REFERENCE: Final[Manifest] = {"metadata": {"ownerReferences": None}}
_NO_LABELS: Final[Manifest] = {"metadata": {"labels": None}}
_NO_DATA: Final[Manifest] = {"data": None}
_NO_OWNERSHIP: Final[Manifest] = {"metadata": {"managedFields": [{}]}}
_NAME: Final = "app.kubernetes.io/name"


@pytest.fixture
def settings() -> Component:
    """A ConfigMap with values, labels and an owner reference."""
    metadata = {"name": "shared", "namespace": "shop", "labels": {"team": "shop", "app": "shop", _NAME: "shop"}}
    data = {"a": "1", "b": "2", "c": "3"}
    base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    return of("web", configmap.Builder(base).build())


async def _applied(env: Env) -> tuple[Any, ...]:
    """Return what the component declares, as it is stored."""
    live = await env.cluster.get(SHARED)
    return live.get("data"), live["metadata"].get("labels"), live["metadata"].get("ownerReferences")


@pytest.mark.promise("edits-apart", runs="three edits of different fields within two minutes, on both servers")
@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([_value(a="9"), _label("team"), _NO_REFERENCE], id="a value, a label, the owner reference"),
        pytest.param([_NO_REFERENCE, _label("team", None), _value(b=None)], id="the owner reference first"),
        pytest.param([_value(a="9"), _value(b="9"), _value(c="9")], id="three values of a map"),
        pytest.param(
            [_label("app"), _label("app", None) | _value(a="9"), _label(_NAME)], id="keys with a common start"
        ),
        pytest.param([_label("team"), _NO_LABELS, _NO_DATA], id="a label, all labels, all values"),
        pytest.param([_value(a="9"), None, _NO_REFERENCE], id="a value, the object, the owner reference"),
        pytest.param(
            [_NO_OWNERSHIP, _NO_OWNERSHIP, _NO_OWNERSHIP | _NO_REFERENCE], id="the ownership, with the reference"
        ),
    ],
)
async def test_different_edits_are_reverted_at_once(
    env: Env, settings: Component, edits: list[Manifest | None]
) -> None:
    """Three clients within two minutes, each with a reason of its own."""
    ours = Writer(env.process("shops"), settings)
    await ours.reconcile()
    applied = await _applied(env)
    for number, edit in enumerate(edits):
        if edit is None:
            await env.cluster.delete(SHARED)
        else:
            await env.merge_patch(SHARED, edit, by=f"client-{number}")
        env.clock.advance(EVERY)
        await ours.reconcile()
        assert (await _applied(env), ours.message) == (applied, HEALTHY)


@pytest.mark.promise("edits-apart", runs="an edit beside a fight over another field, on both servers")
@pytest.mark.parametrize(
    "edit", [_NO_REFERENCE, _value(b="9"), None], ids=["the owner reference", "a value", "deleted"]
)
async def test_an_edit_beside_a_fight_is_reverted_at_once(env: Env, settings: Component, edit: Manifest | None) -> None:
    ours = Writer(env.process("shops"), settings)
    await ours.reconcile()
    applied = await _applied(env)
    for _ in range(4):
        await env.merge_patch(SHARED, _value(a="9"), by="another")
        env.clock.advance(EVERY)
        await ours.reconcile()
    assert "reverted repeatedly" in ours.message
    assert await _applied(env) != applied
    if edit is None:
        await env.cluster.delete(SHARED)
    else:
        await env.merge_patch(SHARED, edit, by="user")
    await ours.reconcile()
    assert await _applied(env) == applied


@pytest.mark.promise("edits-apart", runs="an owner reference that is removed while a takeover waits, on both servers")
async def test_an_owner_reference_is_restored_while_a_takeover_waits(
    env: Env, config_map: Callable[..., StaticKind]
) -> None:
    old = Writer(env.process("shops"), of("web", config_map("shared", by="1").build()))
    new = Writer(env.process("shops"), of("web2", config_map("shared", by="1").build()))
    for _ in range(6):
        await old.reconcile()
        await new.reconcile()
        env.clock.advance(EVERY)
    (waiting,) = (writer for writer in (old, new) if HEALTHY not in writer.message)
    await env.merge_patch(SHARED, _NO_REFERENCE, by="user")
    await waiting.reconcile()
    assert await env.owners(SHARED) == ["demo"]


@pytest.mark.promise("write-war", runs="an hour of a controller that reverts one or several fields, on both servers")
@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([_value(a="9")], id="one value"),
        pytest.param([_value(a=str(number)) for number in range(2, 9)], id="another value each time"),
        pytest.param([_value(a="9"), _value(a=None)], id="changed and removed in turn"),
        pytest.param([_value(a="9"), _value(b="9")], id="two fields in turn"),
        pytest.param([_value(a="9"), _value(b="9"), _value(c="9")], id="three fields in turn"),
        pytest.param([_value(a="9", b="9"), _value(a="8", c="9")], id="overlapping fields in turn"),
        pytest.param([_NO_LABELS, _label("team")], id="all labels and one of them in turn"),
        pytest.param([None], id="the object"),
        pytest.param([None, _value(a="9")], id="the object and a value in turn"),
        pytest.param([_NO_OWNERSHIP], id="the ownership"),
    ],
)
async def test_another_controller_that_reverts_the_same_fields(
    env: Env, settings: Component, edits: list[Manifest | None]
) -> None:
    ours = Writer(env.process("shops"), settings)
    assert 3 < await _fight_against(env, ours, edits) <= MOST
    assert "repeatedly" in ours.message


@pytest.mark.promise("write-war", runs="two hours of a controller that reverts many fields in turn, or seldom")
@pytest.mark.parametrize(
    ("edits", "every"),
    [
        pytest.param([_value(**{f"more{n}": "9"}) for n in range(20)], 10, id="twenty fields in turn"),
        pytest.param([_value(a=str(n)) for n in range(2, 9)], 130, id="one field, each time after the window"),
        pytest.param([None], 70, id="deletes, each time after the window"),
        pytest.param([_NO_REFERENCE], 10, id="the owner reference"),
        pytest.param([_NO_REFERENCE], 130, id="the owner reference, each time after the window"),
    ],
)
async def test_a_budget_bounds_any_pattern(env: Env, edits: list[Manifest | None], every: int) -> None:
    """Ten writes at once, and one each six minutes: a pattern that no count of one field notices."""
    base = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared", "namespace": "shop"}}
    data = {"a": "1", **{f"more{number}": "1" for number in range(20)}}
    ours = Writer(env.process("shops"), of("web", configmap.Builder({**base, "data": data}).build()))
    pause = timedelta(seconds=every)
    assert 10 < await _fight_against(env, ours, edits, pause) <= 2 * MOST
    assert await _fight_against(env, ours, edits, pause) <= MOST + 1
    assert "repeatedly" in ours.message


@pytest.mark.promise("write-war", runs="an hour of a controller that reverts the owner reference and a value in turn")
async def test_the_owner_reference_has_a_delay_of_its_own(env: Env, settings: Component) -> None:
    ours = Writer(env.process("shops"), settings)
    assert 3 < await _fight_against(env, ours, [_NO_REFERENCE, _value(a="9")]) <= 2 * MOST
    assert "repeatedly" in ours.message


@pytest.mark.promise("write-war", runs="an hour of a controller that replaces the owner reference by its own")
async def test_a_stolen_controller_reference_blocks_without_a_request(env: Env, settings: Component) -> None:
    """The API server accepts one controller, and rejects an apply that adds another one.

    Elsewhere: https://github.com/kubernetes-sigs/controller-runtime/pull/99 (who sets a controller reference beside
    another one gets an error), https://github.com/openshift/cluster-version-operator/pull/1445 (an update with a second
    controller is rejected without end).
    """
    ours = Writer(env.process("shops"), settings)
    await ours.reconcile()
    applied = await _applied(env)
    foreign = await env.other_owner()
    for _ in range(3):
        await env.merge_patch(SHARED, {"metadata": {"ownerReferences": [foreign]}, "data": {"a": "9"}}, by="another")
        before = ours.process.writes
        for _ in range(HOUR // EVERY):
            await ours.reconcile()
            env.clock.advance(EVERY)
        assert (ours.process.writes - before, ours.message) == (0, "ConfigMap shared: controlled by Shop other")
        await env.merge_patch(SHARED, _NO_REFERENCE, by="another")
        await ours.reconcile()
        assert (await _applied(env), ours.message) == (applied, HEALTHY)


@pytest.mark.promise("write-war", runs="an hour of a controller that resumes what is suspended, on both servers")
async def test_another_controller_that_resumes_what_is_suspended(env: Env, web_base: Manifest) -> None:
    """The condition names it, although no pod runs yet."""
    builder = component.Builder("web", condition_type="WebReady").with_resource(deployment.Builder(web_base).build())
    ours = Writer(env.process("shops"), builder.suspend().build())
    await ours.reconcile()
    before = ours.process.writes
    for _ in range(HOUR // EVERY):
        await env.merge_patch(env.web, {"spec": {"replicas": 3}}, by="another")
        env.clock.advance(EVERY)
        await ours.reconcile()
    assert 3 < ours.process.writes - before <= MOST
    assert ours.message == f'{env.web}: what was applied is reverted repeatedly, last changed by "another"'
    assert (await env.condition())["reason"] == "Suspending"


async def _fight_against(env: Env, ours: Writer, edits: list[Manifest | None], every: timedelta = EVERY) -> int:
    """Let another controller revert each write by the next of these edits, for an hour; return the number of writes."""
    await ours.reconcile()
    before, reverted, turns = ours.process.writes, 0, cycle(edits)
    for _ in range(HOUR // every):
        if ours.process.writes > reverted:
            reverted = ours.process.writes
            edit = next(turns)
            if edit is not None:
                await env.merge_patch(SHARED, edit, by="another")
            elif await env.exists(SHARED):
                await env.cluster.delete(SHARED)
        env.clock.advance(every)
        await ours.reconcile()
    return ours.process.writes - before


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
@pytest.mark.parametrize("replicas", [3, None], ids=["declared", "saved and handed over"])
async def test_suspending_against_resuming(env: Env, web_base: Manifest, replicas: int | None) -> None:
    if replicas is not None:
        web_base["spec"]["replicas"] = replicas
    resource = deployment.Builder(web_base).build()

    def web(*, suspended: bool) -> Component:
        builder = component.Builder("web", condition_type="WebReady").unpublished()
        return builder.with_resource(resource).suspend(suspended).build()

    for name in ("shops", "malls"):
        running = Writer(env.process("shops"), web(suspended=False))
        stopped = Writer(env.process(name), web(suspended=True))
        resumed, suspended = await fight(env, running, stopped)
        # To resume is two requests where the value is handed over.
        assert (resumed <= MOST * (1 if replicas else 2), suspended <= MOST) == (True, True)
        env.clock.advance(2 * HOUR)


@pytest.mark.promise("write-war", runs="a handover while the apply waits, on both servers")
async def test_nothing_is_handed_over_while_the_apply_waits(env: Env, web_base: Manifest) -> None:
    """A process that begins anew each time suspends again what is resumed."""
    resource = deployment.Builder(web_base).build()
    suspending = component.Builder("web", condition_type="WebReady").unpublished().with_resource(resource).suspend()
    running, actions = env.process("shops"), []
    await running.reconcile(of("web", resource))
    for _ in range(3):
        await env.process("shops").reconcile(suspending.build())
        before = running.writes
        (result,) = await running.reconcile(of("web", resource))
        assert isinstance(result, Result)
        actions.append((result.outcomes[0].action, running.writes - before))
        env.clock.advance(EVERY)
    # To resume is two requests: one for the value, and one for all that is declared.
    assert actions == [(Action.UPDATED, 2), (Action.UPDATED, 2), (Action.HELD_BACK, 0)]


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
