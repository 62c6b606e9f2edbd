"""The page of migrations, on both servers: an operator in use is handed over and back, without a restart of a pod.

Rebuilt from public reports: https://github.com/kptdev/kpt/issues/1731 (field managers with any name),
https://github.com/kubernetes/kubernetes/issues/99003 (operators that change from updates to server-side apply).
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ListOptions
from ocf.component import Component, diff
from ocf.errors import AlreadyExistsError, ConflictError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import deployment
from ocf.testing.envtest import ControllerName
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractContextManager

    from tests.component.conftest import Env

PAGE: Final = Path(__file__).parents[2] / "docs/operators/migrate.md"
KOPF: Final = "OpenAPI-Generator"
GO: Final = "manager"
_TRIES: Final = 20


async def with_kopf(env: Env, desired: Manifest) -> None:
    """Create the Deployment, or patch it, as a handler of kopf does."""
    desired["metadata"]["labels"] = {"by": "kopf"}
    try:
        await env.cluster.create(desired, field_manager=KOPF)
    except AlreadyExistsError:
        patch = {"metadata": {"labels": desired["metadata"]["labels"]}, "spec": desired["spec"]}
        await env.merge_patch(env.web, patch, by=KOPF)


async def with_controller_runtime(env: Env, desired: Manifest) -> None:
    """Create the Deployment, or read, change and update it: all that the server defaulted is in the update."""
    desired["metadata"]["labels"] = {"by": "go"}
    owner = await env.owner_manifest()
    reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": owner["metadata"]["uid"]}
    controller = reference | {"controller": True, "blockOwnerDeletion": True}
    with suppress(AlreadyExistsError):
        await env.cluster.create(desired, field_manager=GO)
    for _ in range(_TRIES):
        # The Deployment controller writes annotations and the status meanwhile.
        with suppress(ConflictError):
            live = await env.cluster.get(env.web)
            labels = {**live["metadata"].get("labels", {}), "by": "go"}
            metadata = {**live["metadata"], "labels": labels, "ownerReferences": [controller]}
            await env.cluster.update({**live, "metadata": metadata}, field_manager=GO)
            return
    raise AssertionError("the Deployment changed before each of the updates")


FORMER: Final = [pytest.param(with_kopf, id="kopf"), pytest.param(with_controller_runtime, id="controller-runtime")]


def ours(base: Manifest) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_former_managers(KOPF, GO)
    return builder.with_resource(deployment.Builder(base)).build()


class Moves:
    """The steps of the page for one Deployment, each of which leaves its pods alone."""

    def __init__(self, env: Env, base: Manifest, former: Callable[[Env, Manifest], Awaitable[None]]) -> None:
        self.env = env
        self.base = base
        self.former = former

    async def state(self) -> tuple[str, Any, list[str]]:
        """Return the pod template, the generation, and the ReplicaSets with their own generations."""
        live = await self.env.cluster.get(self.env.web)
        found = await self.env.cluster.list("apps/v1", "ReplicaSet", ListOptions(namespace="shop"))
        sets = sorted(f"{one['metadata']['uid']} {one['metadata']['generation']}" for one in found.items)
        return json.dumps(live["spec"], sort_keys=True), live["metadata"]["generation"], sets

    async def start(self) -> None:
        await self.former(self.env, copy_json(self.base))

    async def hand_over(self) -> None:
        before = await self.state()
        (found,) = await diff([ours(self.base)], await self.env.owner_manifest(), self.env.cluster)
        assert found.problem == ""
        assert not [change for each in found.objects for change in each.fields if change.path.startswith("spec")]
        await self.env.reconcile(ours(self.base))
        assert await self.state() == before
        live = await self.env.cluster.get(self.env.web)
        assert "by" not in live["metadata"]["labels"]
        assert await self.env.owners(self.env.web) == ["demo"]
        assert (await self.env.reconcile(ours(self.base))).writes == 0

    async def back(self) -> None:
        before = await self.state()
        forget = {f"ocf.dev/taken-over.{name}": None for name in (KOPF, GO)}
        await self.env.merge_patch(self.env.web, {"metadata": {"labels": forget}}, by="kubectl-label")
        await self.start()
        assert await self.state() == before
        assert "by" in (await self.env.cluster.get(self.env.web))["metadata"]["labels"]


@pytest.mark.promise(
    "former-writers", runs="operators with kopf and with controller-runtime, handed over, back and over again"
)
@pytest.mark.parametrize("former", FORMER)
async def test_an_operator_is_handed_over_and_back_without_another_pod_template(
    env: Env, web_base: Manifest, former: Callable[[Env, Manifest], Awaitable[None]]
) -> None:
    web_base["spec"]["replicas"] = 2
    moves = Moves(env, web_base, former)
    await moves.start()
    await moves.hand_over()
    await moves.back()
    await moves.hand_over()


@pytest.mark.parametrize("new_env", ["envtest"], indirect=True)
@pytest.mark.parametrize("former", FORMER)
async def test_beside_the_real_controllers_no_replica_set_changes(
    env: Env,
    web_base: Manifest,
    former: Callable[[Env, Manifest], Awaitable[None]],
    envtest_controllers: Callable[..., AbstractContextManager[None]],
) -> None:
    web_base["spec"]["replicas"] = 2
    moves = Moves(env, web_base, former)
    with envtest_controllers(ControllerName.DEPLOYMENT, ControllerName.REPLICA_SET, ControllerName.GARBAGE_COLLECTOR):
        await moves.start()

        def rolled_out(live: Manifest) -> bool:
            return bool(live.get("status", {}).get("observedGeneration") == live["metadata"]["generation"])

        async def read() -> Manifest:
            return await env.cluster.get(env.web)

        await eventually(read, lambda live: rolled_out(live) and live["status"].get("replicas") == 2)
        for step in (moves.hand_over, moves.back, moves.hand_over):
            await step()
            await eventually(read, rolled_out)
        assert len((await moves.state())[2]) == 1


def test_the_page_names_what_the_test_does() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in (KOPF, GO, "kopf.zalando.org/KopfFinalizerMarker") if f"`{name}`" not in text] == []
    key = ObjectKey("apps/v1", "Deployment", "corner", "town")
    assert re.search(rf"kubectl label deployment {key.name} -n {key.namespace} ocf\.dev/taken-over\.{KOPF}-", text)
