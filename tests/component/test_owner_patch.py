"""An operator changes the spec, labels and annotations of its own owner, in one conditional request; on both servers.

Public reports: https://github.com/kubernetes-sigs/controller-runtime/issues/403 (an update of a stale owner),
https://github.com/red-hat-data-services/rhods-operator/pull/128 (an update in each reconcile, without end),
https://github.com/nolar/kopf/issues/838 (an annotation that the operator takes back).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import InterceptingCluster, PatchOptions, PatchType, Verb
from ocf.component import reconciling
from ocf.concepts.recorder import NullRecorder
from ocf.errors import ConfigError, ConflictError, ManifestError, OcfError, ReconcileError
from ocf.objects import ObjectKey
from ocf.testing import FaultyCluster, RecordingCluster, faults

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Cluster, Request
    from ocf.concepts import Event
    from ocf.objects import Manifest
    from tests.component.conftest import Env

DOTTED: Final = "example.com/by.whom"


class Events(NullRecorder):
    """A recorder that keeps the notes of events, by reason."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, str]] = []

    def happened(self, event: Event) -> None:
        self.notes.append((event.reason, event.note))


async def patched(
    env: Env,
    patch: Any,
    *,
    owner: Manifest | None = None,
    through: Cluster | None = None,
    events: Events | None = None,
) -> tuple[bool, list[str]]:
    """Reconcile with a patch of the owner; return whether it was sent, and the requests."""
    sent = RecordingCluster(through or env.cluster)
    block = reconciling(owner or await env.owner_manifest(), sent, clock=env.clock, recorder=events)
    async with block as context:
        answer = await context.patch_owner(patch)
        context.status["size"] = (await env.owner_manifest())["spec"].get("size")
        await component.Builder("web", condition_type="WebReady").build().reconcile(context)
    return answer, [f"{one.verb}/{one.subresource or ''}" for one in sent.requests]


@pytest.mark.promise("patch-owner")
@pytest.mark.parametrize(
    ("patch", "spec", "metadata"),
    [
        pytest.param({"spec": {"replicas": 1}}, {"size": 3, "replicas": 1}, {}, id="a default"),
        pytest.param({"spec": {"size": 5}}, {"size": 5}, {}, id="another value"),
        pytest.param({"spec": {"size": None}}, {}, {}, id="a field that goes"),
        pytest.param({"spec": {"a": {"b": [1, 2]}}}, {"size": 3, "a": {"b": [1, 2]}}, {}, id="a field in a new map"),
        pytest.param({"spec": {"a": {}}}, {"size": 3, "a": {}}, {}, id="an empty map"),
        pytest.param({"spec": {"a": (1, 2)}}, {"size": 3, "a": [1, 2]}, {}, id="a tuple"),
        pytest.param(
            {"metadata": {"labels": {"a": "b"}, "annotations": {DOTTED: "me"}}},
            {"size": 3},
            {"labels": {"a": "b"}, "annotations": {DOTTED: "me"}},
            id="metadata",
        ),
    ],
)
async def test_it_is_one_request_once(env: Env, patch: Manifest, spec: Manifest, metadata: Manifest) -> None:
    """The write of the status does not conflict with it, and nothing is sent for what is there."""
    before = await env.owner_manifest()
    assert await patched(env, patch) == (True, ["patch/", "update/status"])
    live = await env.owner_manifest()
    assert live["spec"] == spec
    assert {name: live["metadata"].get(name) for name in ("labels", "annotations")} == {
        "labels": metadata.get("labels"),
        "annotations": metadata.get("annotations"),
    }
    # What was computed from the spec before the patch says so.
    generation = before["metadata"]["generation"]
    assert (await env.condition())["observedGeneration"] == generation
    assert await patched(env, patch) == (False, ["update/status"] if spec != before["spec"] else [])
    assert (await env.condition())["observedGeneration"] == live["metadata"]["generation"]
    assert await patched(env, patch) == (False, [])


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"spec": {}}, id="an empty spec"),
        pytest.param({"spec": {"size": 3}}, id="what is there"),
        pytest.param({"spec": {"absent": None}}, id="a field that is not there"),
        pytest.param({"metadata": {"annotations": {"absent": None}}}, id="an annotation that is not there"),
    ],
)
async def test_nothing_is_sent_if_nothing_changes(env: Env, patch: Manifest) -> None:
    await patched(env, {})
    assert await patched(env, patch) == (False, [])


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        pytest.param({"status": {"size": 1}}, r"status: set its fields in `context\.status`", id="status"),
        pytest.param({"metadata": {"finalizers": []}}, r"metadata\.finalizers: only labels and ann", id="finalizers"),
        pytest.param({"metadata": {"resourceVersion": "1"}}, r"metadata\.resourceVersion: only", id="version"),
        pytest.param({"kind": "Booth"}, "the kind of an object cannot be changed", id="kind"),
        pytest.param({"metadata": None}, "metadata must be a map, got a value of type NoneType", id="metadata"),
        pytest.param([], "must be a map of fields, got a value of type list", id="a JSON patch"),
    ],
)
async def test_what_is_not_its_own_to_change_is_an_error(env: Env, patch: Any, problem: str) -> None:
    sent = RecordingCluster(env.cluster)
    with pytest.raises(ConfigError, match=problem):
        await patched(env, patch, through=sent)
    assert not sent.requests.of(Verb.PATCH)


async def test_what_json_does_not_have_is_an_error(env: Env) -> None:
    with pytest.raises(ManifestError, match=r"spec\.since"):
        await patched(env, {"spec": {"since": {1, 2}}})


@pytest.mark.promise("patch-owner", runs="another client that is faster")
@pytest.mark.parametrize(
    ("change", "sent"),
    [
        pytest.param({"metadata": {"labels": {"team": "a"}}}, True, id="a label"),
        pytest.param({"metadata": {"annotations": {"seen": "1"}}}, True, id="an annotation"),
        pytest.param({"metadata": {"labels": {"tier": "x"}}}, False, id="the patched label"),
        pytest.param({"spec": {"size": 7}}, False, id="the spec"),
    ],
)
async def test_a_change_that_it_was_computed_from_is_a_conflict(env: Env, change: Manifest, *, sent: bool) -> None:
    read = await env.owner_manifest()
    await env.change(env.owner, **change)
    patch = {"spec": {"replicas": 1}, "metadata": {"labels": {"tier": "web"}}}
    if sent:
        answer, requests = await patched(env, patch, owner=read)
        assert (answer, requests) == (True, ["patch/", "get/", "patch/", "update/status"])
    else:
        with pytest.raises(ConflictError):
            await patched(env, patch, owner=read)
    live = await env.owner_manifest()
    assert live["spec"].get("replicas") == (1 if sent else None)
    assert live["spec"]["size"] == change.get("spec", {}).get("size", 3)


async def test_a_status_of_another_client_meanwhile_stays(env: Env) -> None:
    async def report() -> None:
        await env.patch_status(env.owner, {"visits": 3}, by="counter")

    meanwhile = FaultyCluster(env.cluster, [faults.meanwhile(report, verbs=[Verb.PATCH], kind="Shop", times=1)])
    assert (await patched(env, {"spec": {"replicas": 1}}, through=meanwhile))[0]
    status = await env.read_status(env.owner)
    assert (status["visits"], status["size"]) == (3, 3)


async def deleted(env: Env) -> None:
    await env.cluster.delete(env.owner)


async def replaced(env: Env) -> None:
    await env.cluster.delete(env.owner)
    await env.create(env.owner, spec={"size": 1})


@pytest.mark.parametrize("change", [deleted, replaced])
async def test_an_owner_that_is_gone_is_not_patched(env: Env, change: Callable[[Env], Awaitable[None]]) -> None:
    read = await env.owner_manifest()
    await change(env)
    async with reconciling(read, env.cluster, clock=env.clock) as context:
        assert not await context.patch_owner({"spec": {"replicas": 1}})
        assert context.is_gone
    if change is replaced:
        assert (await env.owner_manifest())["spec"] == {"size": 1}


async def test_a_paused_owner_is_not_patched(env: Env) -> None:
    await env.change(env.owner, metadata={"annotations": {"ocf.ocf.dev/paused": "true"}})
    with pytest.raises(ReconcileError, match="the owner is paused by"):
        await patched(env, {"spec": {"replicas": 1}})
    assert "replicas" not in (await env.owner_manifest())["spec"]


@pytest.mark.promise("patch-owner", runs="a user who undoes it each time, and values that differ each time")
@pytest.mark.parametrize("steady", [True, False], ids=["one value", "another value each time"])
async def test_a_fight_backs_off(env: Env, *, steady: bool) -> None:
    """Ten seconds after each patch the user sets the old value again, for an hour."""
    events, sent = Events(), 0
    for turn in range(360):
        value = 5 if steady else 100 + turn
        sent += (await patched(env, {"spec": {"size": value}}, events=events))[0]
        env.clock.advance(timedelta(seconds=5))
        if (await env.owner_manifest())["spec"]["size"] != 3:
            await env.change(env.owner, spec={"size": 3})
        env.clock.advance(timedelta(seconds=5))
    assert sent <= 10
    notes = [note for reason, note in events.notes if reason == "OwnerReverted"]
    assert notes
    assert all('spec.size: what was applied is reverted repeatedly, last changed by "kubectl-edit"' in n for n in notes)


async def test_edits_in_long_intervals_are_undone_at_once(env: Env) -> None:
    for size in range(10, 20):
        await env.change(env.owner, spec={"size": size})
        assert (await patched(env, {"spec": {"size": 5}}))[0]
        env.clock.advance(timedelta(minutes=10))


class Limiting(InterceptingCluster):
    """A cluster with a webhook that limits the size of a shop."""

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        stored = await send()
        if request.verb is Verb.PATCH and stored["spec"]["size"] > 4:
            options = PatchOptions(patch_type=PatchType.MERGE, field_manager="webhook")
            return await self._inner.patch(ObjectKey.of(stored), {"spec": {"size": 4}}, options)
        return stored


async def test_what_a_webhook_changes_again_is_an_error(env: Env) -> None:
    with pytest.raises(ReconcileError, match=r"does not store spec\.size of .*/demo as it was patched"):
        await patched(env, {"spec": {"size": 5}}, through=Limiting(env.cluster))
    assert (await env.owner_manifest())["spec"]["size"] == 4


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(faults.server_error(503, verbs=[Verb.PATCH], kind="Shop", times=1), id="refused"),
        pytest.param(faults.lost_reply(verbs=[Verb.PATCH], kind="Shop", times=1), id="lost answer"),
    ],
)
async def test_a_patch_without_an_answer_is_completed_by_the_next_reconcile(env: Env, fault: Any) -> None:
    through = FaultyCluster(env.cluster, [fault])
    with pytest.raises(OcfError):
        await patched(env, {"spec": {"replicas": 1}}, through=through)
    await patched(env, {"spec": {"replicas": 1}}, through=through)
    assert (await env.owner_manifest())["spec"] == {"size": 3, "replicas": 1}
    await patched(env, {"spec": {"replicas": 1}})
    assert await patched(env, {"spec": {"replicas": 1}}) == (False, [])
