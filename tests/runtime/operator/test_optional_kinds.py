"""An operator whose component has an object of a kind that may be missing: nothing is declared beside the option.

Reports of operators that do not start, or look for such a kind only at the start:
https://github.com/open-telemetry/opentelemetry-operator/issues/2810,
https://github.com/thanos-community/thanos-operator/issues/113,
https://github.com/operator-framework/operator-sdk/issues/789.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import ListOptions
from ocf.concepts.backoff import ExponentialBackoff
from ocf.errors import NotFoundError
from ocf.objects import ObjectKey
from ocf.primitives import configmap, unstructured
from ocf.runtime.operator import ManagerOptions, Operator, OwnerType, running
from tests.support import eventually

from .conftest import NAMESPACE, SECOND, Env, RunTest, Shop, key_of, shop
from .test_followed_kinds import CEILING, HOUR, crd_of, definition_of, thing_of
from .test_owner_scope import World, world

if TYPE_CHECKING:
    from ocf.cluster.client import ApiServerCluster
    from ocf.component import Component, ReconcileContext
    from ocf.objects import Manifest
    from ocf.testing.envtest.fixtures import Envtest

__all__ = ["world"]

LEFT_OUT = "Left out, because the API server does not serve the kind"


def monitored(key: ObjectKey) -> Component:
    """Return a component of an object of an optional kind, and of a ConfigMap after it."""

    def manifest(api_version: str, kind: str, **content: Any) -> Manifest:
        metadata = {"name": key.name, "namespace": key.namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}

    optional = unstructured.StaticBuilder(manifest(key.api_version, key.kind))
    builder = component.Builder("web", condition_type="WebReady").with_resource(optional, only_if_served=True)
    return builder.with_resource(configmap.Builder(manifest("v1", "ConfigMap", data={"a": "1"}))).build()


def components_of(owner: Shop) -> Component:
    return monitored(thing_of("late")._replace(name=owner.metadata.name))


@pytest.mark.promise("optional-kinds", runs="a kind that is defined after an hour, goes, and returns after two hours")
def test_it_is_applied_within_the_interval_whenever_its_kind_is_served(run_test: RunTest) -> None:
    """No reconcile fails, the process is ready, and while nothing changes no owner is reconciled."""

    async def test(env: Env) -> None:
        env.settings = {
            "components": components_of,
            # Longer than any wait of this test.
            "rate_limiter": ExponentialBackoff(SECOND, 10 * HOUR * SECOND, jitter=0),
        }
        thing = thing_of("late")._replace(name="corner")
        await env.create(shop())

        async def message() -> str:
            owner = await env.cluster.get(key_of())
            (ready,) = [one for one in owner["status"]["conditions"] if one["type"] == "WebReady"]
            assert (ready["status"], ready["reason"]) == ("True", "Healthy")
            return str(ready["message"])

        async with env.operating() as process:
            await asyncio.sleep(HOUR)
            assert LEFT_OUT in await message()
            assert await env.cluster.get(ObjectKey("v1", "ConfigMap", "corner", NAMESPACE))
            for gap in (HOUR, 2 * HOUR):
                assert {check() for check in process.health.ready.values()} == {""}
                await env.create(definition_of("late"))
                await asyncio.sleep(CEILING + 1)
                assert await env.cluster.get(thing)
                assert await message() == "Component is healthy."
                await env.cluster.delete(crd_of("late"))
                await asyncio.sleep(gap)
                assert LEFT_OUT in await message()
            before = len(env.outcomes)
            await asyncio.sleep(HOUR)
            assert len(env.outcomes) == before
        assert [one.error for one in env.outcomes if one.error is not None] == []

    run_test(test)


@pytest.mark.promise("optional-kinds", runs="a kind that is defined, goes and returns, on a real API server")
async def test_on_a_real_server_it_comes_and_goes_with_its_definition(
    envtest: Envtest, envtest_cluster: ApiServerCluster
) -> None:
    admin, group = envtest_cluster, f"{envtest.namespace}-optional"
    thing = thing_of(group)._replace(namespace=envtest.namespace)
    owner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": envtest.namespace}}
    container = {"name": "a", "image": "a"}
    failed: list[Exception] = []

    def report(_context: Any, _owner: Manifest, outcome: Any) -> None:
        failed.extend([outcome.error] if outcome.error is not None else [])

    async def message() -> str:
        conditions = (await admin.get(ObjectKey.of(owner)))["status"].get("conditions", [])
        return next((str(one.get("message")) for one in conditions if one["type"] == "WebReady"), "")

    async def gone() -> bool:
        with suppress(NotFoundError):
            await admin.get(crd_of(group))
            return False
        return True

    operator: Operator[Manifest] = Operator(
        name="shops",
        owner=OwnerType("v1", "Pod"),
        components=lambda _: monitored(thing),
        report=report,
        rate_limiter=ExponentialBackoff(HOUR * SECOND, HOUR * SECOND, jitter=0),
        resync=None,
    )
    options = ManagerOptions(listen=None, events=False, namespaces=[envtest.namespace])
    async with running(admin, operator, options=options):
        await admin.create({**owner, "spec": {"containers": [container]}}, field_manager="admin")
        for _ in range(2):
            await eventually(message, lambda text: LEFT_OUT in text)
            await admin.create(definition_of(group), field_manager="admin")
            await eventually(lambda: admin.get(thing), ignore=(NotFoundError,))
            await eventually(message, lambda text: text == "Component is healthy.")
            await admin.delete(crd_of(group))
            await eventually(gone)
    assert failed == []


@pytest.mark.promise("woken", runs="objects of a kind that only the owner names, read by name and in a list")
@pytest.mark.parametrize("by", ["name", "list"])
async def test_a_kind_that_only_the_owner_names_is_read_and_watched(world: World, by: str) -> None:
    """The API server says how its plural is spelt; nothing of it is declared.

    Plurals that were guessed: https://github.com/kubernetes/client-go/issues/1082 and
    https://github.com/kube-rs/kube/issues/467.
    """
    await world.define()
    group, seen = f"farms.{world.group}", list[str]()
    names = {"kind": "Ox", "plural": "oxen", "singular": "ox", "listKind": "OxList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    key = ObjectKey(f"{group}/v1", "Ox", "one", world.namespace)

    async def components(owner: Any, context: ReconcileContext) -> Component:
        api_version, kind = owner.spec.motto.split()
        with suppress(NotFoundError):
            if by == "name":
                found = [await context.cluster.get(key._replace(api_version=api_version, kind=kind))]
            else:
                options = ListOptions(namespace=world.namespace)
                found = [*(await context.cluster.list(api_version, kind, options)).items]
            seen.extend(each["weight"] for each in found)
        return component.Builder("web", condition_type="WebReady").build()

    async def weights() -> list[str]:
        return seen

    async with world.operating(components=components):
        await world.create()
        await world.edit(world.owner, {"spec": {"motto": f"{group}/v1 Ox"}})
        await world.cluster.apply({**head, "metadata": {"name": f"oxen.{group}"}, "spec": spec}, field_manager="admin")
        body = {"apiVersion": key.api_version, "kind": "Ox", "metadata": {"name": "one", "namespace": world.namespace}}
        await eventually(
            lambda: world.cluster.create({**body, "weight": "1"}, field_manager="user"), ignore=(NotFoundError,)
        )
        await eventually(weights, lambda found: "1" in found)
        await world.edit(key, {"weight": "2"})
        await eventually(weights, lambda found: "2" in found)
