"""Servers that rewrite what is applied do not cause repeated writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import ApplyCache, PatchOptions, PatchType
from ocf.component import Component, reconciling
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import Env


class Rewriting:
    """A cluster with an admission webhook that changes what is applied."""

    def __init__(self, env: Env, rewrite: Callable[[Manifest], None]) -> None:
        self._world = env
        self._rewrite = rewrite
        self.apply_cache = ApplyCache()
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.cluster, name)

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        self.writes += 1
        sent = copy_json(manifest)
        if manifest["kind"] == "Deployment":
            self._rewrite(sent)
        return await self._world.cluster.apply(sent, **options)


def use_mirror(manifest: Manifest) -> None:
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["image"] = f"mirror/{container['image']}"


def drop_port(manifest: Manifest) -> None:
    del manifest["spec"]["template"]["spec"]["containers"][0]["ports"]


def add_sidecar_first(manifest: Manifest) -> None:
    manifest["spec"]["template"]["spec"]["containers"].insert(0, {"name": "proxy", "image": "proxy:1"})


class Disowning(Rewriting):
    """A cluster with an admission webhook that removes a field of ours from `managedFields`, and not its value."""

    def __init__(self, env: Env) -> None:
        super().__init__(env, lambda _: None)

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        answer = await super().apply(manifest, **options)
        entries = copy_json(answer["metadata"]["managedFields"])
        for entry in entries:
            entry["fieldsV1"]["f:spec"].pop("f:selector", None)
        merge = PatchOptions(patch_type=PatchType.MERGE, field_manager="webhook")
        stored: Manifest = await self._world.cluster.patch(
            ObjectKey.of(answer), {"metadata": {"managedFields": entries}}, merge
        )
        return stored


async def reconciles(env: Env, cluster: Rewriting, subject: Component, times: int) -> int:
    """Run some reconciles; return the number of writes."""
    before = cluster.writes
    for _ in range(times):
        typed: Any = cluster
        async with reconciling(await env.owner_manifest(), typed, clock=env.clock) as context:
            await subject.reconcile(context)
    return cluster.writes - before


@pytest.mark.parametrize("rewrite", [use_mirror, drop_port, add_sidecar_first])
class TestRewrites:
    async def test_are_learned_from_the_first_response(
        self, env: Env, web: deployment.Resource, rewrite: Callable[[Manifest], None]
    ) -> None:
        subject = component.Builder("web", condition_type="WebReady").with_resource(web).build()
        cluster = Rewriting(env, rewrite)
        assert await reconciles(env, cluster, subject, 5) == 1

    async def test_cost_one_write_when_the_apply_cache_is_lost(
        self, env: Env, web: deployment.Resource, rewrite: Callable[[Manifest], None]
    ) -> None:
        subject = component.Builder("web", condition_type="WebReady").with_resource(web).build()
        cluster = Rewriting(env, rewrite)
        await reconciles(env, cluster, subject, 2)
        cluster.apply_cache = ApplyCache()
        assert await reconciles(env, cluster, subject, 5) == 1


async def test_a_lost_ownership_is_learned_from_the_second_response(env: Env, web_base: Manifest) -> None:
    for normalized in ("resources", "env"):
        del web_base["spec"]["template"]["spec"]["containers"][0][normalized]
    web = deployment.Builder(web_base).build()
    subject = component.Builder("web", condition_type="WebReady").with_resource(web).build()
    assert await reconciles(env, Disowning(env), subject, 5) == 2


async def test_a_change_of_ours_is_still_written(env: Env, web_base: Manifest) -> None:
    def of(image: str) -> Component:
        base = copy_json(web_base)
        base["spec"]["template"]["spec"]["containers"][0]["image"] = image
        resource = deployment.Builder(base).build()
        return component.Builder("web", condition_type="WebReady").with_resource(resource).build()

    cluster = Rewriting(env, use_mirror)
    assert await reconciles(env, cluster, of("web:1"), 2) == 1
    assert await reconciles(env, cluster, of("web:2"), 2) == 1
    live = await env.cluster.get(env.web)
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "mirror/web:2"
