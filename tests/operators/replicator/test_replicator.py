"""Copies in other namespaces: what gets one, what follows, and what goes.

Publicly reported of other operators, and tried here: copies that stay when the annotation is taken off
(https://github.com/mittwald/kubernetes-replicator/issues/241), and when the process ends while it deletes them
(https://github.com/mittwald/kubernetes-replicator/issues/357); keys that stay
(https://github.com/mittwald/kubernetes-replicator/issues/42); a copy onto the source itself, without an end
(https://github.com/mittwald/kubernetes-replicator/pull/422); namespaces that are labelled later
(https://github.com/mittwald/kubernetes-replicator/issues/93); patterns that match a part of a name
(https://github.com/mittwald/kubernetes-replicator/issues/48); an object in the place of a copy that is overwritten
(https://github.com/mittwald/kubernetes-replicator/issues/312), or whose end is not noticed
(https://github.com/mittwald/kubernetes-replicator/issues/356); two sources of one name that overwrite each other
(https://github.com/config-syncer/config-syncer/issues/354); a namespace that ends and stops all others
(https://github.com/educates/educates-training-platform/issues/323).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest

from ocf.cluster import Cluster
from ocf.component import Component, ReconcileContext
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Operator
from ocf.testing import OwnerEnv, VirtualClock, crash_at_each_write
from ocf_server import EmbeddedCluster
from tests.operators.replicator.operator import Replicator
from tests.operators.world import Scenario, World, in_virtual_time, with_rights

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

DOMAIN: Final = "copies.example.com"
OPEN: Final = {"word": "b3Blbg=="}
SHUT: Final = {"word": "c2h1dA=="}
KINDS: Final = pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
SECRETS: Final = Replicator(name="copier", kind="Secret")
CONFIG_MAPS: Final = Replicator(name="config-copier", kind="ConfigMap")


def asking(**annotations: str | None) -> Manifest:
    """Return annotations by their last part: `to_matching` is `copies.example.com/to-matching`."""
    return {f"{DOMAIN}/{name.strip('_').replace('_', '-')}": value for name, value in annotations.items()}


def key(namespace: str, name: str = "login", kind: str = "Secret") -> ObjectKey:
    return ObjectKey("v1", kind, name, namespace)


async def pushing(world: World) -> None:
    """By name, by pattern and by label; nothing in the namespace of the source, nor by a part of a name."""
    home, east, west = [await world.namespace(name) for name in ("home", "east", "west")]
    await world.namespace("western")
    await world.namespace("web", tier="web")
    source = key(home)
    async with world.operating(SECRETS.operator):
        await world.create(source, asking(to=f"{world.prefix}eas?, {west},{home}", to_matching="tier=web"), data=OPEN)
        for name in (east, west, f"{world.prefix}web"):
            await world.until_data(key(name), OPEN)
        # Namespaces that are made, and labelled, later.
        await world.namespace("late", tier="web")
        await world.until_data(key(f"{world.prefix}late"), OPEN)
        await world.edit(
            ObjectKey("v1", "Namespace", f"{world.prefix}western"), {"metadata": {"labels": {"tier": "web"}}}
        )
        await world.until_data(key(f"{world.prefix}western"), OPEN)
        await world.edit(ObjectKey("v1", "Namespace", f"{world.prefix}web"), {"metadata": {"labels": {"tier": None}}})
        await world.until_gone(key(f"{world.prefix}web"))
        assert (await world.found(source))["data"] == OPEN
        assert f"{DOMAIN}/copied-from" not in (await world.found(source))["metadata"]["annotations"]


async def following(world: World) -> None:
    """Values, keys and labels of the source are those of its copies, also after an edit of a copy."""
    home, east = await world.namespace("home"), await world.namespace("east")
    source, copy = key(home), key(east)
    labels = {"app": "shop", "argocd.argoproj.io/instance": "shop"}
    async with world.operating(SECRETS.operator):
        given = asking(to=east)
        await world.create(
            source,
            given,
            type="kubernetes.io/basic-auth",
            data={**OPEN, "username": "YQ=="},
            metadata={"labels": labels},
        )
        live = await world.until_data(copy, {**OPEN, "username": "YQ=="})
        assert live["type"] == "kubernetes.io/basic-auth"
        assert live["metadata"]["annotations"] == {f"{DOMAIN}/copied-from": f"{home}/login"}
        assert {name: live["metadata"]["labels"].get(name) for name in labels} == labels
        await world.edit(source, {"data": {"word": None, "more": "Yg=="}})
        await world.until_data(copy, {"username": "YQ==", "more": "Yg=="})
        await world.edit(copy, {"data": {"username": "Yg=="}})
        await world.until_data(copy, {"username": "YQ==", "more": "Yg=="})
        await world.annotate(source, asking(strip_labels="true"))
        await world.until(copy, lambda live: not labels.keys() & live["metadata"]["labels"].keys())
        await world.cluster.delete(copy)
        await world.until_data(copy, {"username": "YQ==", "more": "Yg=="})


async def leaving(world: World) -> None:
    """What is not wanted any more goes, one by one and all; the source is not held longer."""
    home, east, west = [await world.namespace(name) for name in ("home", "east", "west")]
    source = key(home)
    async with world.operating(SECRETS.operator):
        await world.create(source, asking(to=f"{east},{west}"), data=OPEN)
        await world.until_data(key(east), OPEN)
        await world.until_data(key(west), OPEN)
        assert (await world.found(source))["metadata"]["finalizers"] == ["copier.ocf.dev/cleanup"]
        await world.annotate(source, asking(to=west))
        await world.until_gone(key(east))
        assert await world.found(key(west))
    await world.annotate(source, asking(to=None))
    async with world.operating(SECRETS.operator):
        await world.until_gone(key(west))
        await world.until(source, lambda live: not live["metadata"].get("finalizers"))
        await world.annotate(source, asking(to="nowhere-*"))
        await world.annotate(source, asking(to=east))
        await world.until_data(key(east), OPEN)
    await world.cluster.delete(source)
    async with world.operating(SECRETS.operator):
        await world.until_gone(source)
        assert not await world.found(key(east))


async def occupied(world: World) -> None:
    """An object of another client stays as it is, and its end makes room."""
    home, east, west = [await world.namespace(name) for name in ("home", "east", "west")]
    source = key(home)
    theirs = await world.create(key(east), data=SHUT)
    async with world.operating(SECRETS.operator):
        await world.create(source, asking(to=f"{east},{west}"), data=OPEN)
        await world.until_data(key(west), OPEN)
        await world.until_event(source, "ComponentBlocked", f"{east}/login exists")
        assert await world.found(key(east)) == theirs
        # What is not wanted any more goes in spite of it.
        await world.annotate(source, asking(to=east))
        await world.until_gone(key(west))
        await world.cluster.delete(key(east))
        await world.until_data(key(east), OPEN)
        await world.cluster.delete(source)
        await world.until_gone(key(east))


async def taking(world: World) -> None:
    """Content is taken as long as the source allows it; keys of the target's own stay."""
    home, east = await world.namespace("home"), await world.namespace("east")
    source, target = key(home, "vault"), key(east)
    own = {"own": "YQ=="}
    async with world.operating(SECRETS.operator):
        await world.create(target, asking(from_=f"{home}/vault"), data=own)
        await world.until_event(target, "ComponentBlocked", f"{home}/vault does not exist")
        await world.create(source, data={**OPEN, "more": "Yg=="})
        await world.until_event(target, "ComponentBlocked", "does not allow it")
        assert (await world.found(target))["data"] == own
        await world.annotate(source, asking(allow=f"{world.prefix}ea*"))
        live = await world.until_data(target, {**own, **OPEN, "more": "Yg=="})
        assert "finalizers" not in live["metadata"]
        assert "finalizers" not in (await world.found(source))["metadata"]
        await world.edit(source, {"data": {**SHUT, "more": None}})
        await world.until_data(target, {**own, **SHUT})
        await world.annotate(source, asking(allow="other"))
        await world.until_data(target, own)
        await world.annotate(source, asking(allow="*"))
        await world.until_data(target, {**own, **SHUT})
    await world.annotate(target, asking(from_=None))
    async with world.operating(SECRETS.operator):
        live = await world.until_data(target, own)
        assert f"{DOMAIN}/taken" not in (live["metadata"].get("annotations") or {})


async def ending(world: World) -> None:
    """A namespace that ends gets nothing, and what is in it is left to Kubernetes."""
    home, east, west, late = [await world.namespace(name) for name in ("home", "east", "west", "late")]
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await world.create(key(west, "holds"), **held)
    await world.create(key(late, "holds"), **held)
    source = key(home)
    async with world.operating(SECRETS.operator):
        await world.create(source, asking(to=f"{west},{east}"), data=OPEN)
        await world.until_data(key(west), OPEN)
        for name in (west, late):
            await world.cluster.delete(ObjectKey("v1", "Namespace", name))
        await world.annotate(source, asking(to=f"{world.prefix}*t,{late}"))
        await world.edit(source, {"data": SHUT})
        await world.until_data(key(east), SHUT)
        assert not await world.found(key(late))
        failures = [one for one in await world.events(source) if "Failed" in one[0] or "Blocked" in one[0]]
        assert failures == []
    for name in (west, late):
        await world.edit(key(name, "holds"), {"metadata": {"finalizers": None}})


async def replaced(world: World) -> None:
    """An immutable source is replaced by a new one, and so is its copy, also if the copy alone is immutable."""
    home, east = await world.namespace("home"), await world.namespace("east")
    source, copy = key(home), key(east)
    async with world.operating(SECRETS.operator):
        await world.create(source, asking(to=east), data=OPEN, immutable=True)
        first = await world.until_data(copy, OPEN)
        assert first["immutable"] is True
        await world.cluster.delete(source)
        await world.until_gone(source)
        await world.create(source, asking(to=east), data=SHUT, type="example.com/word")
        second = await world.until_data(copy, SHUT)
        assert (second["type"], second.get("immutable")) == ("example.com/word", None)
        await world.edit(copy, {"immutable": True})
        await world.edit(source, {"data": OPEN})
        await world.until_data(copy, OPEN)


async def of_config_maps(world: World) -> None:
    """The other kind has text and bytes."""
    home, east = await world.namespace("home"), await world.namespace("east")
    source, copy, target = (
        key(namespace, name, "ConfigMap") for namespace, name in ((home, "a"), (east, "a"), (east, "b"))
    )
    async with world.operating(CONFIG_MAPS.operator):
        await world.create(source, asking(to=east, allow=east), data={"a": "b"}, binaryData=OPEN)
        await world.create(target, asking(from_=f"{home}/a"))
        for taken in (copy, target):
            assert (await world.until_data(taken, {"a": "b"}))["binaryData"] == OPEN
        await world.edit(source, {"data": None})
        for taken in (copy, target):
            assert (await world.until_data(taken, {}))["binaryData"] == OPEN


async def same_name(world: World) -> None:
    """Of two sources of one name the first has the copy, and the other one gets it afterwards."""
    home, other, east = [await world.namespace(name) for name in ("home", "other", "east")]
    async with world.operating(SECRETS.operator):
        await world.create(key(home), asking(to=east), data=OPEN)
        await world.until_data(key(east), OPEN)
        await world.create(key(other), asking(to=east), data=SHUT)
        await world.until_event(key(other), "ComponentBlocked", f"{east}/login exists")
        assert (await world.found(key(east)))["data"] == OPEN
        await world.annotate(key(home), asking(to=None))
        await world.until_data(key(east), SHUT)


async def not_taken(world: World) -> None:
    """What takes its own content gives none, so that no two objects feed each other; a wrong name is reported."""
    home = await world.namespace("home")
    a, b, wrong = (key(home, name) for name in ("a", "b", "wrong"))
    async with world.operating(SECRETS.operator):
        await world.create(a, asking(from_=f"{home}/b", allow="*"), data=OPEN)
        await world.create(b, asking(from_=f"{home}/a", allow="*"), data=SHUT)
        await world.create(wrong, asking(from_="a/b/c"), data=OPEN)
        for one, data in ((a, OPEN), (b, SHUT)):
            await world.until_event(one, "ComponentBlocked", "name that one")
            assert (await world.found(one))["data"] == data
        await world.until_event(wrong, "ReconcileFailed", "has to be namespace/name")


async def twice(world: World) -> None:
    """Two instances read the same annotations: one of them makes a copy, and both agree about what is taken."""
    home, east = await world.namespace("home"), await world.namespace("east")
    source, target = key(home), key(east, "target")
    both = [Replicator(name=name, kind="Secret").operator for name in ("copier", "copier-2")]
    async with world.operating(both[0]), world.operating(both[1]):
        await world.create(target, asking(from_=f"{home}/login"), data={"own": "YQ=="})
        await world.create(source, asking(to=east, allow="*"), data=OPEN)
        for data in (OPEN, SHUT, OPEN):
            await world.edit(source, {"data": data})
            await world.until_data(key(east), data)
            await world.until_data(target, {"own": "YQ==", **data})
        await world.annotate(target, asking(from_=None))
        await world.until_data(target, {"own": "YQ=="})
        await world.cluster.delete(source)
        await world.until_gone(key(east))
        await world.until_gone(source)


async def side_by_side(world: World) -> None:
    """Two instances with annotations of their own, for one source: each has its copies."""
    home, east, west = [await world.namespace(name) for name in ("home", "east", "west")]
    other = Replicator(name="copier-2", kind="Secret", domain="more.example.com")
    async with world.operating(SECRETS.operator), world.operating(other.operator):
        annotations = {**asking(to=east), "more.example.com/to": west}
        await world.create(key(home), annotations, data=OPEN)
        for data in (OPEN, SHUT):
            await world.edit(key(home), {"data": data})
            await world.until_data(key(east), data)
            await world.until_data(key(west), data)
        await world.annotate(key(home), asking(to=None))
        await world.until_gone(key(east))
        assert (await world.found(key(west)))["data"] == SHUT


SCENARIOS: Final = [
    pushing,
    following,
    leaving,
    occupied,
    taking,
    ending,
    replaced,
    of_config_maps,
    same_name,
    not_taken,
    twice,
    side_by_side,
]
SCENARIO: Final = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
EVERY: Final = [
    SECRETS.operator,
    CONFIG_MAPS.operator,
    Replicator(name="copier-2", kind="Secret", domain="more.example.com").operator,
]


@SCENARIO
def test_in_virtual_time(scenario: Scenario) -> None:
    """Also that nothing is written afterwards: not at rest, and not after a restart."""

    async def quiet_afterwards(world: World) -> None:
        await scenario(world)
        for _ in range(2):
            async with world.operating(*EVERY):
                await world.settle()
            world.forget()
        async with world.operating(*EVERY):
            await asyncio.sleep(60)
            assert not world.writes()

    in_virtual_time(quiet_afterwards)


@SCENARIO
async def test_on_an_api_server(scenario: Scenario, envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    await scenario(World(envtest_cluster, prefix=f"{envtest.namespace}-"))


@pytest.mark.parametrize("scenario", [leaving, occupied, taking], ids=lambda scenario: scenario.__name__)
async def test_rights(
    scenario: Scenario, envtest: Envtest, envtest_cluster: ApiServerCluster, caplog: pytest.LogCaptureFixture
) -> None:
    every_state = []
    for asked in (asking(to="any"), asking(from_="any/any")):
        metadata = {"name": "any", "namespace": "any", "annotations": asked}
        source: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        every_state.append(SECRETS.component(source, ["other"], {"data": OPEN}))
    async with with_rights(envtest, envtest_cluster, SECRETS.operator.policy_rules(every_state)) as world:
        await scenario(world)
    assert "forbidden" not in caplog.text.lower()


class Counting:
    """A replicator whose reconciles are counted."""

    def __init__(self) -> None:
        self.reconciles = 0

    async def components(self, source: Manifest, context: ReconcileContext) -> Component:
        self.reconciles += 1
        return await SECRETS.components(source, context)

    @property
    def operator(self) -> Operator[Manifest]:
        return replace(SECRETS.operator, components=self.components)


@pytest.mark.parametrize("count", [200])
def test_a_change_is_one_write_for_each_copy(count: int) -> None:
    """And one reconcile; the start, a restart and rest cost nothing beside what is missing."""
    counting = Counting()

    async def scenario(world: World) -> None:
        for number in range(count):
            await world.namespace(f"team-{number}")
        await world.create(key("home"), asking(to="team-*"), data=OPEN)
        async with world.operating(counting.operator):
            await world.settle()
            assert counting.reconciles == 1
            await world.edit(key("home"), {"data": SHUT})
            await asyncio.sleep(60)
            assert world.writes() == {"apply": count}
            assert len(world.written) == count
            assert counting.reconciles == 2
            world.forget()
            await world.namespace("team-more")
            await asyncio.sleep(60)
            assert world.writes() == {"create": 1, "patch": 1}
        world.forget()
        async with world.operating(counting.operator):
            await asyncio.sleep(60)
            assert not world.written
            assert world.reads == 0
            assert counting.reconciles == 4
            assert {one["data"]["word"] for one in (await world.cluster.list("v1", "Secret")).items} == {SHUT["word"]}

    in_virtual_time(scenario, "home")


@pytest.mark.parametrize("count", [2_000])
def test_other_secrets_cost_nothing(count: int) -> None:
    """They get no write, no reconcile, and no request of their own."""
    counting = Counting()

    async def scenario(world: World) -> None:
        for number in range(count):
            await world.create(key("home", f"other-{number}"), data=OPEN)
        await world.create(key("home"), asking(to="east"), data=OPEN)
        async with world.operating(counting.operator):
            await asyncio.sleep(60)
            assert world.reads == 0
            await world.edit(key("home", "other-7"), {"data": SHUT})
            await world.cluster.delete(key("home", "other-8"))
            await world.settle()
            assert counting.reconciles == 1

    in_virtual_time(scenario, "home", "east")


SOURCE: Final = key("home")
TARGET: Final = key("east", "target")


@dataclass(frozen=True)
class Step:
    """What a user does before the writes that are disturbed; the operator has settled before, unless it is the first.

    Args:
        owner: The object that is reconciled.
        act: What the user does.
    """

    owner: ObjectKey
    act: Callable[[World], Awaitable[object]]
    is_first: bool = False


async def _make(world: World) -> None:
    await world.create(SOURCE, asking(to="east,west", allow="*"), data=OPEN)
    await world.create(TARGET, asking(from_="home/login"), data={"own": "YQ=="})


STEPS: Final = {
    "made": Step(SOURCE, _make, is_first=True),
    "changed": Step(SOURCE, lambda world: world.edit(SOURCE, {"data": SHUT})),
    "fewer": Step(SOURCE, lambda world: world.annotate(SOURCE, asking(to="west"))),
    "none": Step(SOURCE, lambda world: world.annotate(SOURCE, asking(to=None))),
    "deleted": Step(SOURCE, lambda world: world.cluster.delete(SOURCE)),
    "recreated copy": Step(SOURCE, lambda world: world.edit(key("west"), {"immutable": True, "data": SHUT})),
    "taken": Step(TARGET, _make, is_first=True),
    "not allowed": Step(TARGET, lambda world: world.annotate(SOURCE, asking(allow="elsewhere"))),
    "not wanted": Step(TARGET, lambda world: world.annotate(TARGET, asking(from_=None))),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_crash_at_any_write_leaves_the_same(step: Step) -> None:
    clock = VirtualClock()

    async def reconcile(cluster: Cluster) -> timedelta | None:
        try:
            return await OwnerEnv(SECRETS.operator, step.owner, cluster, clock).reconcile()
        except NotFoundError:
            return None

    async def make_cluster() -> EmbeddedCluster:
        cluster = EmbeddedCluster(namespaces=["home", "east", "west"], now=clock.now)
        world = World(cluster)
        if not step.is_first:
            await _make(world)
            for one in (SOURCE, TARGET):
                await OwnerEnv(SECRETS.operator, one, cluster, clock).settle()
        await step.act(world)
        return cluster

    asyncio.run(crash_at_each_write(make_cluster, reconcile, clock=clock)).assert_same()
