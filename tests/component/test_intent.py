"""An intent is stored in the owner's status before the step that it is about, or no step is taken; on both servers.

Public reports: https://github.com/operator-framework/java-operator-sdk/issues/1906,
https://github.com/kubernetes-sigs/controller-runtime/issues/1464,
https://github.com/kubernetes-sigs/controller-runtime/issues/741 (the next reconcile reads an older status),
https://github.com/bluek8s/kubedirector/issues/207 (objects are made twice because of it),
https://github.com/rook/rook/issues/16088 (a status write makes the object in hand stale),
https://github.com/nolar/kopf/issues/574 (a status that a schema drops is reported as stored).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Cluster, Subresource, Verb
from ocf.component import reconciling
from ocf.errors import ApiError, ConflictError, ManifestError, OcfError, ReconcileError, ServerError
from ocf.testing import FaultyCluster, RecordingCluster, faults

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.objects import Manifest
    from tests.component.conftest import Env

DONE: Final = {
    "type": "Backup",
    "status": "True",
    "reason": "Done",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


async def intend(
    env: Env, fields: Manifest, *, through: Cluster | None = None, owner: Manifest | None = None
) -> list[str]:
    """Reconcile: store fields of the status, then act; return the acts."""
    acts: list[str] = []
    read = owner or await env.owner_manifest()
    async with reconciling(read, through or env.cluster, clock=env.clock) as context:
        context.set_condition("Busy", status="True", reason="Moving", message="")
        context.status.update(fields)
        try:
            await context.write_status()
        except OcfError:
            assert not acts
            raise
        acts.append((await env.read_status(env.owner))["victim"])
    return acts


async def set_by_others(env: Env, status: Manifest) -> None:
    await env.patch_status(env.owner, status, by="kubectl-edit")


@pytest.mark.promise("intent")
async def test_it_is_stored_before_the_act_and_read_by_the_next_reconcile(env: Env) -> None:
    assert await intend(env, {"victim": "web-2"}) == ["web-2"]
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        assert context.status["victim"] == "web-2"


async def test_nothing_is_sent_twice_and_no_write_conflicts(env: Env) -> None:
    sent = RecordingCluster(env.cluster)
    await intend(env, {"victim": "web-2"}, through=sent)
    assert [str(one.verb) for one in sent.requests] == ["update"]
    again = RecordingCluster(env.cluster)
    await intend(env, {"victim": "web-2"}, through=again)
    assert list(again.requests) == []


@pytest.mark.promise("intent", runs="an intent that the same reconcile clears, changes and completes")
@pytest.mark.parametrize(
    ("later", "stored"),
    [
        pytest.param(lambda status: status.pop("victim"), {}, id="cleared"),
        pytest.param(lambda status: status.update(victim="web-3"), {"victim": "web-3"}, id="changed"),
        pytest.param(lambda status: status.clear(), {}, id="everything cleared"),
    ],
)
async def test_the_same_reconcile_may_end_it(
    env: Env, later: Callable[[dict[str, Any]], object], stored: Manifest
) -> None:
    """What is set and cleared again differs from nothing that was read, but from what is stored."""
    sent = RecordingCluster(env.cluster)
    async with reconciling(await env.owner_manifest(), sent, clock=env.clock) as context:
        context.status["victim"] = "web-2"
        await context.write_status()
        later(context.status)
    assert await env.read_status(env.owner) == stored
    assert [str(one.verb) for one in sent.requests] == ["update", "update"]


async def test_maps_that_the_author_holds_stay_those_of_the_status(env: Env) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        moves = context.status.setdefault("moves", {"web-1": {"tries": (1, 2)}})
        await context.write_status()
        moves["web-2"] = {"tries": []}
        moves["web-1"]["tries"] = [3]
    assert await env.read_status(env.owner) == {"moves": {"web-1": {"tries": [3]}, "web-2": {"tries": []}}}


async def test_several_follow_each_other(env: Env) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        for step in range(3):
            context.status["step"] = step
            await context.write_status()
            assert (await env.read_status(env.owner))["step"] == step
        await component.Builder("web", condition_type="WebReady").build().reconcile(context)
    assert (await env.read_status(env.owner))["step"] == 2
    assert (await env.condition())["status"] == "True"


@pytest.mark.parametrize(
    ("change", "size", "conditions"),
    [
        pytest.param(lambda env: env.change(env.owner, spec={"size": 7}), 7, [], id="the spec"),
        pytest.param(lambda env: env.change(env.owner, metadata={"labels": {"a": "b"}}), 3, [], id="a label"),
        pytest.param(lambda env: set_by_others(env, {"conditions": [DONE]}), 3, ["Backup"], id="a condition"),
        pytest.param(lambda env: set_by_others(env, {"victim": "web-2"}), 3, [], id="the same intent"),
    ],
)
async def test_what_it_does_not_depend_on_may_change_meanwhile(
    env: Env, change: Callable[[Env], Awaitable[object]], size: int, conditions: list[str]
) -> None:
    read = await env.owner_manifest()
    await change(env)
    assert await intend(env, {"victim": "web-2"}, owner=read) == ["web-2"]
    changed = await env.owner_manifest()
    assert changed["spec"]["size"] == size
    assert {one["type"] for one in changed["status"]["conditions"]} == {"Busy", *conditions}


async def test_a_condition_of_another_client_after_it_stays(env: Env) -> None:
    async with reconciling(await env.owner_manifest(), env.cluster, clock=env.clock) as context:
        context.set_condition("Busy", status="True", reason="Moving", message="")
        context.status["victim"] = "web-2"
        await set_by_others(env, {"conditions": [DONE]})
        await context.write_status()
        context.set_condition("Busy", status="False", reason="Moved", message="")
    found = await env.read_conditions(env.owner)
    assert (found["Backup"], found["Busy"]["status"]) == (DONE, "False")


@pytest.mark.promise("intent", runs="a status that another process has changed since it was read")
@pytest.mark.parametrize(
    ("stored", "read"),
    [
        pytest.param({"victim": "web-1"}, {}, id="an intent that was not read"),
        pytest.param({"victim": "web-1"}, {"victim": "web-0"}, id="a newer one"),
        pytest.param({}, {"victim": "web-0"}, id="one that has ended"),
        pytest.param({"index": 4}, {"index": 3}, id="a field that it was computed from"),
        pytest.param({"moves": {"a": 1, "b": 1}}, {"moves": {"a": 1}}, id="a key of a map"),
    ],
)
async def test_one_that_was_computed_from_an_older_status_is_not_stored(
    env: Env, stored: Manifest, read: Manifest
) -> None:
    if read:
        await set_by_others(env, read)
    stale = await env.owner_manifest()
    await set_by_others(env, {**dict.fromkeys(read), **stored})
    with pytest.raises(ConflictError, match=r"another writer has changed status\.\w+ since the owner was read"):
        await intend(env, {"victim": "web-2"}, owner=stale)
    status = await env.read_status(env.owner)
    assert {name: value for name, value in status.items() if name != "conditions"} == stored


async def deleted(env: Env) -> None:
    await env.cluster.delete(env.owner)


async def replaced(env: Env) -> None:
    await env.cluster.delete(env.owner)
    await env.create(env.owner, spec={"size": 1})


@pytest.mark.promise("intent", runs="an owner that is deleted, replaced or paused")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        pytest.param(deleted, "was deleted before its status was stored", id="deleted"),
        pytest.param(replaced, "was deleted before its status was stored", id="replaced"),
    ],
)
async def test_without_its_owner_no_step_is_taken(
    env: Env, change: Callable[[Env], Awaitable[None]], problem: str
) -> None:
    read = await env.owner_manifest()
    await change(env)
    with pytest.raises(ReconcileError, match=problem):
        await intend(env, {"victim": "web-2"}, owner=read)


async def test_while_the_owner_is_paused_no_step_is_taken(env: Env) -> None:
    await env.change(env.owner, metadata={"annotations": {"ocf.ocf.dev/paused": "true"}})
    with pytest.raises(ReconcileError, match="the owner is paused by"):
        await intend(env, {"victim": "web-2"})
    assert "victim" not in await env.read_status(env.owner)


@pytest.mark.promise("intent", runs="writes that are refused, lost, or reverted by another writer")
@pytest.mark.parametrize(
    ("fault", "stored"),
    [
        pytest.param(faults.server_error(503, verbs=[Verb.UPDATE], subresource="status", times=1), None, id="refused"),
        pytest.param(faults.timeout(verbs=[Verb.UPDATE], subresource="status", times=1), None, id="lost"),
        pytest.param(faults.lost_reply(verbs=[Verb.UPDATE], subresource="status", times=1), "web-2", id="lost answer"),
    ],
)
async def test_a_write_without_an_answer_raises_and_is_not_completed_by_the_end(
    env: Env, fault: Any, stored: str | None
) -> None:
    """The error that ends the block is stored in a condition, and the intent of which nothing is known is not."""
    through = FaultyCluster(env.cluster, [fault])
    with pytest.raises(ServerError):
        await intend(env, {"victim": "web-2"}, through=through)
    through.assert_all_injected()
    status = await env.read_status(env.owner)
    assert status.get("victim") == stored
    assert status["conditions"][0]["type"] == "Busy"
    # The next reconcile that reads it late finds another one stored, or stores its own.
    assert await intend(env, {"victim": "web-2"}) == ["web-2"]


async def test_one_that_another_writer_reverts_again_and_again_raises(env: Env) -> None:
    for _ in range(3):
        assert await intend(env, {"victim": "web-2"}) == ["web-2"]
        await set_by_others(env, {"victim": "web-0"})
    with pytest.raises(ReconcileError, match=r"status\.victim of .*/demo cannot be stored now, because another writer"):
        await intend(env, {"victim": "web-2"})
    assert (await env.read_status(env.owner))["victim"] == "web-0"


async def test_what_json_does_not_have_raises_before_anything_is_sent(env: Env) -> None:
    sent = RecordingCluster(env.cluster)
    with pytest.raises(ManifestError, match=r"status\.since"):
        await intend(env, {"victim": "web-2", "since": {1, 2}}, through=sent)
    assert "victim" not in await env.read_status(env.owner)


async def test_an_author_who_catches_the_error_has_the_fields_that_were_read(env: Env) -> None:
    await set_by_others(env, {"victim": "web-0"})
    refused = FaultyCluster(env.cluster, [faults.server_error(500, subresource=Subresource.STATUS, times=1)])
    async with reconciling(await env.owner_manifest(), refused, clock=env.clock) as context:
        context.status.update(victim="web-2", step=1)
        with pytest.raises(ApiError):
            await context.write_status()
        assert context.status == {"victim": "web-0"}
    assert await env.read_status(env.owner) == {"victim": "web-0"}
