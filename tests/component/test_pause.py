"""A pause in a reconcile function without an operator, on both servers; and what counts as a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.component import Component, finalize, reconcile_all, reconciling
from ocf.component.pause import find_pause, invalid_pause
from ocf.errors import ConfigError, ReconcileError
from ocf.testing import RecordingCluster, VirtualClock
from ocf_server import EmbeddedCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.component import FinalizationResult
    from ocf.objects import Manifest
    from tests.component.conftest import Env, StaticKind

PAUSED = {"annotations": {"ocf.ocf.dev/paused": "true"}}


@pytest.fixture
def subject(cluster_role: StaticKind, config_map: Callable[..., StaticKind]) -> Component:
    builder = component.Builder("web", condition_type="WebReady").with_resource(config_map().build())
    return builder.with_resource(cluster_role.build()).build()


async def run(env: Env, subject: Component) -> tuple[FinalizationResult | None, list[str]]:
    """Reconcile as a function of a user's own does; return what was written."""
    cluster = RecordingCluster(env.cluster)
    async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
        context.status["phase"] = "reconciled"
        if (ended := await finalize(context, subject)) is None:
            await reconcile_all(context, subject)
    return ended, [f"{one.verb} {one.kind}" for one in cluster.writes]


@pytest.mark.promise("pause", runs="a reconcile function without an operator, on both servers")
async def test_only_the_condition_is_written_and_only_once(env: Env, subject: Component) -> None:
    await env.change(env.owner, metadata=PAUSED)
    _, written = await run(env, subject)
    assert written == ["update Shop"]
    owner = await env.owner_manifest()
    [condition] = owner["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("ocf/Paused", "True")
    assert 'set by "kubectl-edit"' in condition["message"]
    assert "phase" not in owner["status"]
    assert "finalizers" not in owner["metadata"]
    assert (await run(env, subject))[1] == []


async def test_a_diff_of_a_paused_owner_does_not_log_that_the_pause_has_ended(
    env: Env, subject: Component, caplog: pytest.LogCaptureFixture
) -> None:
    await env.change(env.owner, metadata=PAUSED)
    await run(env, subject)
    caplog.clear()
    (found,) = await component.diff([subject], await env.owner_manifest(), env.cluster, clock=env.clock)
    assert len(found.objects) == 2
    assert caplog.messages == []


async def test_the_end_of_a_pause_is_a_reconcile_like_any_other(env: Env, subject: Component) -> None:
    await env.change(env.owner, metadata=PAUSED)
    await run(env, subject)
    await env.change(env.owner, metadata={"annotations": {"ocf.ocf.dev/paused": None}})
    await run(env, subject)
    conditions = (await env.owner_manifest())["status"]["conditions"]
    assert [one["type"] for one in conditions] == ["WebReady"]


@pytest.mark.promise("pause", runs="the deletion of a paused owner, on both servers")
async def test_the_finalizer_of_a_paused_owner_stays(env: Env, subject: Component) -> None:
    await run(env, subject)
    await env.change(env.owner, metadata=PAUSED)
    await env.cluster.delete(env.owner)
    assert (await run(env, subject))[1] == ["update Shop"]
    owner = await env.owner_manifest()
    assert owner["metadata"]["finalizers"] == ["ocf.ocf.dev/cleanup"]
    assert owner["status"]["conditions"][-1]["reason"] == "DeletionPaused"
    assert (await run(env, subject))[1] == []
    await env.change(env.owner, metadata={"annotations": {"ocf.ocf.dev/paused": None}})
    await run(env, subject)
    assert not await env.exists(env.owner)


async def test_a_write_of_the_authors_own_is_rejected_and_names_the_pause(env: Env) -> None:
    await env.change(env.owner, metadata=PAUSED)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
    with pytest.raises(ReconcileError, match=r"the owner is paused by the annotation ocf\.ocf\.dev/paused"):
        async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
            await context.cluster.create(settings, field_manager="me")
    assert (await env.condition("ocf/Paused"))["status"] == "True"


async def test_a_field_that_pauses_must_be_one_of_the_spec() -> None:
    owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": {"name": "corner", "uid": "1"}}
    with pytest.raises(ConfigError, match=r'must be a field of the spec, such as "spec\.paused", got "status\.paused"'):
        async with reconciling(owner, EmbeddedCluster(), clock=VirtualClock(), pause_field="status.paused"):
            pass


def owner(annotation: str | None = None, **spec: Any) -> Manifest:
    annotations = {} if annotation is None else {"shops.ocf.dev/paused": annotation}
    return {"metadata": {"name": "corner", "annotations": annotations}, "spec": spec}


ANNOTATION = 'the annotation shops.ocf.dev/paused: "true"'
FIELD = "the field spec.paused: true"


@pytest.mark.parametrize(
    ("given", "pause", "invalid"),
    [
        pytest.param(owner(), "", "", id="nothing"),
        pytest.param(owner("true"), ANNOTATION, "", id="the annotation"),
        pytest.param(owner(paused=True), FIELD, "", id="the field"),
        pytest.param(owner("true", paused=False), ANNOTATION, "", id="the annotation, and a field that is false"),
        pytest.param(owner("false", paused=True), FIELD, "", id="the field, and an annotation that is false"),
        pytest.param(owner("no", paused=True), FIELD, 'got "no"', id="the field, and an annotation of another value"),
        pytest.param(owner(paused=False), "", "", id="a field that is false"),
        pytest.param(owner(paused=None), "", "", id="a field that is null"),
        pytest.param(owner(paused="true"), "", "of type str", id="a field that is a text"),
        pytest.param(owner(paused=1), "", "of type int", id="a field that is a number"),
        pytest.param(owner("1"), "", 'got "1"', id="a number"),
        pytest.param(owner("x" * 1000), "", 'got "' + "x" * 63 + '"', id="a long text"),
        pytest.param(owner(" true"), "", 'got " true"', id="with a space"),
    ],
)
def test_what_pauses_an_owner(given: Manifest, pause: str, invalid: str) -> None:
    found = find_pause(given, "shops", ("spec", "paused"))
    assert ("" if found is None else str(found)) == pause
    assert invalid_pause(given, "shops", ("spec", "paused")).endswith(invalid)
    # Another operator, and one without a field.
    assert find_pause(given, "malls") is None
