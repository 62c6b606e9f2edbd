"""Workloads that are rolled out when the content of what they use changes, and at no other time.

Publicly reported of other operators, and tried here: pods that are replaced because the operator starts, or another
replica leads (https://github.com/stakater/Reloader/issues/1089, https://github.com/stakater/Reloader/issues/166); a
Secret that is deleted and made again with other content (https://github.com/stakater/Reloader/issues/334); some of many
workloads that are left out (https://github.com/stakater/Reloader/issues/701); projected volumes and init containers
(https://github.com/stakater/Reloader/issues/140, https://github.com/stakater/Reloader/issues/139).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import Cluster
from ocf.component import Component, ReconcileContext
from ocf.errors import NotFoundError
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.operator import Operator
from ocf.testing import OwnerEnv, VirtualClock, crash_at_each_write
from ocf_server import EmbeddedCluster
from tests.operators.reloader.operator import Reloader, references
from tests.operators.world import Scenario, World, in_virtual_time, with_rights

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.testing.plugin import Envtest

DOMAIN: Final = "rolls.example.com"
CONTENT: Final = f"{DOMAIN}/content"
OPEN: Final = {"word": "b3Blbg=="}
SHUT: Final = {"word": "c2h1dA=="}
AUTO: Final = {f"{DOMAIN}/auto": "true"}
DEPLOYMENTS: Final = Reloader(name="roller", kind="Deployment")
EVERY: Final = [
    DEPLOYMENTS.operator,
    Reloader(name="set-roller", kind="StatefulSet").operator,
    Reloader(name="daemon-roller", kind="DaemonSet").operator,
]
USES_LOGIN: Final[dict[str, Any]] = {"envFrom": [{"secretRef": {"name": "login"}}]}
HELD: Final = {"finalizers": ["example.com/hold"]}


def secret(namespace: str, name: str = "login", kind: str = "Secret") -> ObjectKey:
    return ObjectKey("v1", kind, name, namespace)


def workload(namespace: str, name: str = "web", kind: str = "Deployment") -> ObjectKey:
    return ObjectKey("apps/v1", kind, name, namespace)


def template(pod: Manifest | None = None, **container: Any) -> Manifest:
    labels = {"app": "web"}
    spec = {"containers": [{"name": "web", "image": "web:1", **container}], **(pod or {})}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}


async def deploy(
    world: World, key: ObjectKey, annotations: Manifest | None = None, spec: Manifest | None = None
) -> None:
    spec = spec or template(**USES_LOGIN)
    more = {"serviceName": "web"} if key.kind == "StatefulSet" else {}
    await world.create(key, AUTO if annotations is None else annotations, spec={**spec, **more})


def content_of(live: Manifest) -> str | None:
    annotations = live["spec"]["template"]["metadata"].get("annotations") or {}
    found: str | None = annotations.get(CONTENT)
    return found


@dataclass
class Rollouts:
    """Counts the changes of a pod template that are not its user's."""

    world: World
    key: ObjectKey
    seen: int = 0

    async def until(self, count: int) -> Manifest:
        """Wait until there were as many changes since the last call, and check that there are no more."""
        self.seen += count
        return await self.world.until(self.key, lambda live: self._generation(live) == self.seen + 1)

    async def none_until(self, other: Rollouts, count: int = 1) -> None:
        """Wait until another workload has changed, and check that this one has not."""
        await other.until(count)
        await self.until(0)

    async def unfollow(self) -> None:
        """Take the annotation off, which is a generation of a Deployment by itself."""
        await self.world.annotate(self.key, {f"{DOMAIN}/auto": None})
        self.seen += 1

    def _generation(self, live: Manifest) -> int:
        generation: int = live["metadata"]["generation"]
        assert generation <= self.seen + 1, f"{self.key} was changed too often"
        return generation


async def started(world: World, namespace: str, kind: str = "Deployment", name: str = "web") -> Rollouts:
    """Return the rollouts of a workload that uses the Secret `login`, after the first value."""
    key = workload(namespace, name, kind)
    await deploy(world, key)
    rollouts = Rollouts(world, key)
    live = await rollouts.until(1)
    assert content_of(live)
    return rollouts


async def rolled(world: World) -> None:
    """Another content rolls the workloads of each kind out, once; other metadata does not; the value is no secret."""
    town = await world.namespace("town")
    await world.create(secret(town), data=OPEN)
    async with world.operating(*EVERY):
        every = [await started(world, town, kind) for kind in ("Deployment", "StatefulSet", "DaemonSet")]
        await world.edit(secret(town), {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})
        await world.edit(secret(town), {"data": SHUT})
        for one in every:
            live = await one.until(1)
            assert list(live["spec"]["template"]["metadata"]["annotations"]) == [CONTENT]
            assert "c2h1dA" not in str(content_of(live))
            assert "finalizers" not in live["metadata"]


async def restarted(world: World) -> None:
    """A restart changes nothing by itself, and finds what was changed while no process ran."""
    town = await world.namespace("town")
    await world.create(secret(town), data=OPEN)
    await world.create(secret(town, "other"), data=OPEN)
    async with world.operating(DEPLOYMENTS.operator):
        web = await started(world, town)
        await deploy(world, workload(town, "other"), spec=template(envFrom=[{"secretRef": {"name": "other"}}]))
        other = Rollouts(world, workload(town, "other"))
        await other.until(1)
    await world.edit(secret(town, "other"), {"data": SHUT})
    async with world.operating(DEPLOYMENTS.operator):
        await web.none_until(other)


async def named(world: World) -> None:
    """By name, in addition to the references or without them; what the workload does not name rolls nothing out."""
    town = await world.namespace("town")
    keys = [secret(town), secret(town, "a"), secret(town, "b"), secret(town, "settings", "ConfigMap")]
    for key in keys:
        await world.create(key, data=OPEN)
    async with world.operating(DEPLOYMENTS.operator):
        annotations = {f"{DOMAIN}/secrets": "a, b,", f"{DOMAIN}/configmaps": "settings"}
        await deploy(world, workload(town), annotations)
        await deploy(world, workload(town, "auto"), annotations | AUTO)
        web, auto = (Rollouts(world, workload(town, name)) for name in ("web", "auto"))
        for one in (web, auto):
            await one.until(1)
        for key in keys[1:]:
            await world.edit(key, {"data": SHUT})
            await web.until(1)
            await auto.until(1)
        await world.edit(keys[0], {"data": SHUT})
        await web.none_until(auto)


async def ignored(world: World) -> None:
    """Its annotation keeps a Secret from rolling anything out, from when it is set until it is taken off."""
    town = await world.namespace("town")
    await world.create(secret(town), {f"{DOMAIN}/ignore": "true"}, data=OPEN)
    await world.create(secret(town, "other"), data=OPEN)
    sources = [{"secretRef": {"name": name}} for name in ("login", "other")]
    async with world.operating(DEPLOYMENTS.operator):
        await deploy(world, workload(town), spec=template(envFrom=sources))
        web = Rollouts(world, workload(town))
        await web.until(1)
        await world.edit(secret(town), {"data": SHUT})
        await world.edit(secret(town, "other"), {"data": SHUT})
        await web.until(1)
        await world.annotate(secret(town), {f"{DOMAIN}/ignore": None})
        await web.until(1)
        await world.annotate(secret(town), {f"{DOMAIN}/ignore": "true"})
        await world.edit(secret(town), {"data": OPEN})
        await world.edit(secret(town, "other"), {"data": OPEN})
        await web.until(1)


async def missing(world: World) -> None:
    """What does not exist is no failure, its end rolls nothing out, and neither does its return with its content."""
    town = await world.namespace("town")
    await world.create(secret(town, "marks", "ConfigMap"), data={"mark": "1"})
    sources = [{"secretRef": {"name": "login", "optional": True}}, {"configMapRef": {"name": "marks"}}]
    async with world.operating(DEPLOYMENTS.operator):
        await deploy(world, workload(town), spec=template(envFrom=sources))
        web = Rollouts(world, workload(town))
        await web.until(1)
        await world.create(secret(town), data=OPEN)
        await web.until(1)
        await world.cluster.delete(secret(town))
        await world.create(secret(town), data=OPEN)
        await world.cluster.delete(secret(town))
        await world.edit(secret(town, "marks", "ConfigMap"), {"data": {"mark": "2"}})
        await web.until(1)
        await world.create(secret(town), data=SHUT)
        await web.until(1)
        assert [one for one in await world.events(web.key) if one[0] != "UpdatedDeployment"] == []


async def released(world: World) -> None:
    """Without its annotation, a workload is as its user has made it; also if no process ran when that was taken off."""
    town = await world.namespace("town")
    await world.create(secret(town), data=OPEN)
    async with world.operating(DEPLOYMENTS.operator):
        web = await started(world, town)
        other = await started(world, town, name="other")
        await web.unfollow()
        live = await web.until(1)
        assert content_of(live) is None
        assert not [one for one in live["metadata"]["managedFields"] if one["manager"].startswith("roller/")]
    await other.unfollow()
    async with world.operating(DEPLOYMENTS.operator):
        assert content_of(await other.until(1)) is None
        await world.edit(secret(town), {"data": SHUT})
        third = await started(world, town, name="third")
        await web.none_until(third, 0)
        await other.until(0)


async def left_alone(world: World) -> None:
    """A paused workload is rolled out when its pause ends, and one that is being deleted is not written at all."""
    town = await world.namespace("town")
    await world.create(secret(town), data=OPEN)
    async with world.operating(DEPLOYMENTS.operator):
        paused, ending = await started(world, town), await started(world, town, name="ending")
        third = await started(world, town, name="third")
        await world.edit(paused.key, {"spec": {"paused": True}})
        await world.edit(ending.key, {"metadata": HELD})
        await world.cluster.delete(ending.key)
        before = await world.found(ending.key)
        await world.edit(secret(town), {"data": SHUT})
        await third.until(1)
        paused.seen += 1
        await paused.until(0)
        assert await world.found(ending.key) == before
        await world.edit(paused.key, {"spec": {"paused": None}})
        paused.seen += 1
        await paused.until(1)
        await world.edit(ending.key, {"metadata": {"finalizers": None}})
        await world.until_gone(ending.key)


async def twice(world: World) -> None:
    """Two instances that follow the same workloads: one rollout for each change, and both have to release the field."""
    town = await world.namespace("town")
    await world.create(secret(town), data=OPEN)
    second = Reloader(name="roller-2", kind="Deployment")
    async with world.operating(DEPLOYMENTS.operator), world.operating(second.operator):
        web = await started(world, town)
        for data in (SHUT, OPEN, SHUT):
            await world.edit(secret(town), {"data": data})
            await web.until(1)
        await web.unfollow()
        assert content_of(await web.until(1)) is None


async def side_by_side(world: World) -> None:
    """Two instances with annotations of their own for one workload each have their own field."""
    town = await world.namespace("town")
    await world.create(secret(town), data=OPEN)
    await world.create(secret(town, "other"), data=OPEN)
    second = Reloader(name="roller-2", kind="Deployment", domain="more.example.com")
    async with world.operating(DEPLOYMENTS.operator), world.operating(second.operator):
        web = Rollouts(world, workload(town))
        await deploy(world, web.key, AUTO | {"more.example.com/secrets": "other"})
        live = await web.until(2)
        assert set(live["spec"]["template"]["metadata"]["annotations"]) == {CONTENT, "more.example.com/content"}
        await world.edit(secret(town, "other"), {"data": SHUT})
        await web.until(1)
        await web.unfollow()
        live = await web.until(1)
        assert set(live["spec"]["template"]["metadata"]["annotations"]) == {"more.example.com/content"}


async def other_writers(world: World) -> None:
    """An apply of the workload by its user, which does not know the field, does not remove it."""
    town = await world.namespace("town")
    await world.create(secret(town), data=OPEN)
    async with world.operating(DEPLOYMENTS.operator):
        web = Rollouts(world, workload(town))
        metadata = {"name": "web", "namespace": town, "annotations": AUTO}
        manifest: Manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
        for image in ("web:1", "web:2"):
            spec = template(**USES_LOGIN, image=image)
            await world.cluster.apply({**manifest, "spec": spec}, field_manager="gitops", force=True)
            await web.until(1)
        await world.edit(secret(town), {"data": SHUT})
        await web.until(1)


SCENARIOS: Final = [
    rolled,
    restarted,
    named,
    ignored,
    missing,
    released,
    left_alone,
    twice,
    side_by_side,
    other_writers,
]
SCENARIO: Final = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)


@SCENARIO
def test_in_virtual_time(scenario: Scenario) -> None:
    """Also that nothing is written afterwards: not at rest, and not after a restart."""

    async def quiet_afterwards(world: World) -> None:
        await scenario(world)
        for _ in range(2):
            world.forget()
            async with world.operating(*EVERY):
                await world.settle()
            assert not world.writes()

    in_virtual_time(quiet_afterwards)


@SCENARIO
async def test_on_an_api_server(scenario: Scenario, envtest: Envtest, envtest_cluster: ApiServerCluster) -> None:
    await scenario(World(envtest_cluster, prefix=f"{envtest.namespace}-"))


@pytest.mark.parametrize("scenario", [restarted, released], ids=lambda scenario: scenario.__name__)
async def test_rights(
    scenario: Scenario, envtest: Envtest, envtest_cluster: ApiServerCluster, caplog: pytest.LogCaptureFixture
) -> None:
    example: Manifest = {"metadata": {"name": "any", "namespace": "any"}}
    rules = DEPLOYMENTS.operator.policy_rules([DEPLOYMENTS.component(example, "Secret/any=0")])
    assert not [one for one in rules if one.verb in {"create", "delete"} and one.resource != "events"]
    async with with_rights(envtest, envtest_cluster, rules) as world:
        await scenario(world)
    assert "forbidden" not in caplog.text.lower()


ENV: Final = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a"}}}
PLACES: Final = [
    pytest.param(template(env=[ENV]), {("Secret", "s")}, id="one key of a Secret"),
    pytest.param(
        template(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "a", "optional": True}}}]),
        {("ConfigMap", "c")},
        id="one key of a ConfigMap",
    ),
    pytest.param(
        template(env=[{"name": "A", "value": "a"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec"}}}]),
        set(),
        id="other values",
    ),
    pytest.param(template(envFrom=[{"configMapRef": {"name": "c"}}]), {("ConfigMap", "c")}, id="all keys"),
    pytest.param(
        template({"initContainers": [{"name": "i", "image": "i", "env": [ENV]}]}),
        {("Secret", "s")},
        id="init container",
    ),
    pytest.param(
        template({"volumes": [{"name": "v", "secret": {"secretName": "s"}}, {"name": "w", "emptyDir": {}}]}),
        {("Secret", "s")},
        id="volume of a Secret",
    ),
    pytest.param(
        template({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}),
        {("ConfigMap", "c")},
        id="volume of a ConfigMap",
    ),
    pytest.param(
        template(
            {
                "volumes": [
                    {
                        "name": "v",
                        "projected": {
                            "sources": [
                                {"secret": {"name": "s"}},
                                {"configMap": {"name": "c"}},
                                {"serviceAccountToken": {"path": "token"}},
                            ]
                        },
                    }
                ]
            }
        ),
        {("Secret", "s"), ("ConfigMap", "c")},
        id="projected volume",
    ),
    pytest.param(template({"imagePullSecrets": [{"name": "s"}]}), set(), id="no content of a pod"),
    pytest.param(template({"volumes": None, "initContainers": None}, env=None, envFrom=None), set(), id="nulls"),
]


@pytest.mark.parametrize(("spec", "expected"), PLACES)
def test_references_are_found_in_every_place(spec: Manifest, expected: set[tuple[str, str]]) -> None:
    assert references(spec["template"]) == expected


@pytest.mark.parametrize("text", ["", "nonsense", "=", "Secret/login", ",,=,", "Secret/login=other"])
def test_a_recorded_value_that_a_user_has_changed_is_replaced(text: str) -> None:
    async def scenario(world: World) -> None:
        await world.create(secret("town"), data=OPEN)
        async with world.operating(DEPLOYMENTS.operator):
            web = await started(world, "town")
            given = content_of(await world.found(web.key))
            await world.edit(web.key, {"spec": {"template": {"metadata": {"annotations": {CONTENT: text}}}}})
            assert content_of(await web.until(2)) == given

    in_virtual_time(scenario, "town")


@pytest.mark.parametrize("count", [50])
def test_many_workloads_and_many_secrets(count: int) -> None:
    """A Secret of many workloads changes: one write and two reconciles each. 2 000 that none uses: nothing."""
    reconciled: list[str] = []

    async def components(live: Manifest, context: ReconcileContext) -> Component:
        reconciled.append(live["metadata"]["name"])
        return await DEPLOYMENTS.components(live, context)

    operator: Operator[Manifest] = replace(DEPLOYMENTS.operator, components=components, event_formatter=lambda _: None)

    async def scenario(world: World) -> None:
        for number in range(2_000):
            await world.create(secret("town", f"other-{number}"), data=OPEN)
        await world.create(secret("town"), data=OPEN)
        for number in range(count):
            await deploy(world, workload("town", f"web-{number}"))
            await deploy(world, workload("town", f"not-{number}"), {})
        async with world.operating(operator):
            await world.settle()
            # The second one finds what the first has written into its owner.
            assert len(reconciled) == 2 * count
            reconciled.clear()
            await world.edit(secret("town", "other-7"), {"data": SHUT})
            await world.edit(secret("town"), {"data": SHUT})
            await asyncio.sleep(60)
            assert world.writes() == {"apply": count}
            assert len(world.written) == count
            assert len(reconciled) == 2 * count

    in_virtual_time(scenario, "town")


WEB: Final = workload("town")


async def _used(world: World) -> None:
    await world.create(secret("town"), data=OPEN)
    await deploy(world, WEB)


STEPS: Final[dict[str, Callable[[World], Awaitable[object]]]] = {
    "first": _used,
    "changed": lambda world: world.edit(secret("town"), {"data": SHUT}),
    "released": lambda world: world.annotate(WEB, {f"{DOMAIN}/auto": None}),
}


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_write_leaves_the_same(step: str) -> None:
    clock = VirtualClock()

    async def reconcile(cluster: Cluster) -> timedelta | None:
        try:
            return await OwnerEnv(DEPLOYMENTS.operator, WEB, cluster, clock).reconcile()
        except NotFoundError:
            return None

    async def make_cluster() -> EmbeddedCluster:
        cluster = EmbeddedCluster(namespaces=["town"], now=clock.now)
        world = World(cluster)
        if step != "first":
            await _used(world)
            await OwnerEnv(DEPLOYMENTS.operator, WEB, cluster, clock).settle(rollouts=False)
        await STEPS[step](world)
        return cluster

    asyncio.run(crash_at_each_write(make_cluster, reconcile, clock=clock)).assert_same()
