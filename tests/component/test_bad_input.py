"""Failing handlers: error and condition name the resource, and other components are not affected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import reconcile_all, reconciling
from ocf.concepts import Data, StatusReport
from ocf.errors import ManifestError, ReconcileError
from ocf.objects import ObjectKey, copy_json
from ocf.primitives import deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.objects import Manifest
    from tests.component.conftest import Env, StaticKind

WEB = "apps/v1/Deployment/shop/web"
UNSET = Data[str]("host")


def crash(*_seen: Any) -> Any:
    raise LookupError("no idea")


def unknown(*_seen: Any) -> Any:
    word: Any = "Splendid"
    return StatusReport(word, "x")


def nothing(*_seen: Any) -> Any:
    return None


def read_unset(*_seen: Any) -> Any:
    UNSET.require()


class AnotherKind:
    """A custom resource that renders another object than its key."""

    key = ObjectKey("apps/v1", "Deployment", "web", "shop")
    identity = WEB

    def render(self, **_options: Any) -> Manifest:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}}


def with_status(handler: Any) -> Callable[[Manifest], Any]:
    return lambda base: deployment.Builder(base).with_custom_converge_status(handler).build()


def with_guard(handler: Any) -> Callable[[Manifest], Any]:
    return lambda base: deployment.Builder(base).with_guard(handler).build()


def with_mutation(handler: Any) -> Callable[[Manifest], Any]:
    return lambda base: deployment.Builder(base).with_mutation(deployment.Mutation("m", handler)).build()


BAD = [
    pytest.param(with_status(crash), "status handler failed: LookupError: no idea", id="status raises"),
    pytest.param(with_status(unknown), 'returned "Splendid", must be one of', id="unknown status"),
    pytest.param(with_status(nothing), "must return a StatusReport", id="status returns None"),
    pytest.param(with_guard(crash), "LookupError: no idea", id="guard raises"),
    pytest.param(with_guard(unknown), 'returned "Splendid", must be one of', id="unknown guard status"),
    pytest.param(with_guard(nothing), "must return a StatusReport", id="guard returns None"),
    pytest.param(with_mutation(crash), "mutation intent for m: LookupError: no idea", id="mutation raises"),
    pytest.param(with_mutation(read_unset), 'data "host": data not extracted', id="cell read before it is set"),
    pytest.param(
        lambda _base: AnotherKind(),
        "rendered v1/ConfigMap/shop/web, expected apps/v1/Deployment/shop/web",
        id="another kind",
    ),
]


@pytest.mark.parametrize(("make", "problem"), BAD)
async def test_the_error_names_the_resource_and_does_not_affect_others(
    env: Env,
    web_base: Manifest,
    config_map: Callable[..., StaticKind],
    make: Callable[[Manifest], Any],
    problem: str,
) -> None:
    bad = component.Builder("web", condition_type="WebReady").with_resource(make(copy_json(web_base))).build()
    good = component.Builder("settings", condition_type="SettingsReady").with_resource(config_map().build()).build()
    with pytest.raises(ExceptionGroup) as caught:
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            await reconcile_all(context, bad, good)
    (error,) = caught.value.exceptions
    assert isinstance(error, ReconcileError)
    assert (error.component, error.resource) == ("web", WEB)
    assert problem in error.problem
    condition = await env.condition()
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Error", error.problem)
    assert (await env.condition("SettingsReady"))["status"] == "True"


@pytest.mark.parametrize("uid", [None, "", 7])
async def test_an_owner_without_uid_is_rejected_before_anything_is_done(env: Env, uid: Any) -> None:
    owner = await env.owner_manifest()
    owner["metadata"]["uid"] = uid
    env.cluster.requests.clear()
    with pytest.raises(ManifestError, match=r"metadata\.uid: required value: an owner must be read from"):
        async with reconciling(owner, env.cluster, clock=env.clock):
            pytest.fail("the context must not be created without a valid owner")
    assert len(env.cluster.requests) == 0
