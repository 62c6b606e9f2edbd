"""A rollout over several StatefulSets, on both servers: who is changed when, the condition, and the function before.

Public reports: https://github.com/kubernetes/kubernetes/issues/67250 (a bad rollout cannot be repaired),
https://github.com/metacontroller/metacontroller/issues/261 (only the first of three StatefulSets is ever updated),
https://github.com/k8ssandra/cass-operator/issues/893 (one StatefulSet after the other, several pods at a time),
https://github.com/apache/solr-operator/pull/614 (a pod is deleted although its preparation has failed),
https://github.com/ai-dynamo/grove/pull/785 (a rollout is called complete while the last member still starts).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Propagation, Request, Verb
from ocf.component import Reason, ReconcileContext, Result, diff, summarize
from ocf.concepts import Data, GuardStatus, StatusReport
from ocf.concepts.recorder import Why
from ocf.errors import BuildError, ReconcileError, ServerError
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import configmap, deployment, statefulset
from ocf.testing import InterceptingCluster

if TYPE_CHECKING:
    from tests.component.conftest import Env

NAMES: Final = ("db-1", "db-2", "db-0")
"""The replicas, and then the primary."""
RUN: Final = "metadata.annotations.run"
Before = Callable[[Manifest, ReconcileContext], Awaitable[str | None]]


def key(name: str) -> ObjectKey:
    return ObjectKey("apps/v1", "StatefulSet", name, "shop")


def member(name: str, image: str, **metadata: Any) -> statefulset.Builder:
    return statefulset.Builder(manifest_of(name, image, **metadata))


def manifest_of(name: str, image: str, **metadata: Any) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": image}]}}
    spec = {"replicas": 2, "serviceName": "db", "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name, "namespace": "shop", **metadata}, "spec": spec}


def database(
    image: str = "db:1",
    names: Sequence[str] = NAMES,
    *,
    most: int = 1,
    before: Before | None = None,
    grace: timedelta = timedelta(0),
    suspended: bool = False,
    **metadata: Any,
) -> component.Component:
    return (
        component.Builder("web", condition_type="WebReady")
        .with_rollout([member(name, image, **metadata) for name in names], max_unavailable=most, before_update=before)
        .with_resource(configmap.Builder({"metadata": {"name": "after", "namespace": "shop"}}))
        .with_grace_period(grace)
        .suspend(suspended)
        .build()
    )


class Scene:
    """The members, and what their controller reports."""

    def __init__(self, env: Env) -> None:
        self.env = env

    async def report(self, name: str, ready: int = 2) -> None:
        """Report the latest spec as observed, with a number of ready pods of it."""
        live = await self.env.cluster.get(key(name))
        counts = {"replicas": live["spec"]["replicas"], "updatedReplicas": live["spec"]["replicas"]}
        status: Manifest = {"observedGeneration": live["metadata"]["generation"], **counts, "availableReplicas": ready}
        revisions = {"currentRevision": "1", "updateRevision": "1", "currentReplicas": live["spec"]["replicas"]}
        await self.env.report(key(name), {**status, **revisions, "readyReplicas": ready})

    async def settled(self, subject: component.Component, names: Sequence[str] = NAMES) -> None:
        await self.env.reconcile(subject)
        for name in names:
            await self.report(name)
        assert (await self.env.reconcile(subject)).condition.reason is Reason.HEALTHY

    async def images(self) -> dict[str, str]:
        return {
            name: (await self.env.cluster.get(key(name)))["spec"]["template"]["spec"]["containers"][0]["image"]
            for name in NAMES
        }

    async def updated(self, image: str = "db:2") -> list[str]:
        return [name for name, found in (await self.images()).items() if found == image]


@pytest.fixture
def scene(env: Env) -> Scene:
    return Scene(env)


def reasons_of(result: Result) -> list[str]:
    return [str(one.why) for one in result.outcomes]


@pytest.mark.promise("rollout")
async def test_all_are_created_at_once_and_then_changed_one_after_another(scene: Scene) -> None:
    created = await scene.env.reconcile(database())
    assert [str(one.action) for one in created.outcomes] == ["Created"] * 4
    assert created.condition.reason is Reason.CREATING
    for name in NAMES:
        await scene.report(name)
    assert (await scene.env.reconcile(database())).condition.reason is Reason.HEALTHY

    seen = []
    for done, name in enumerate(NAMES):
        result = await scene.env.reconcile(database("db:2"))
        assert await scene.updated() == list(NAMES[: done + 1])
        assert (str(result.condition.reason), result.condition.status) == ("Updating", False)
        assert f"rollout: {done} of 3 are up to date" in result.condition.message
        again = await scene.env.reconcile(database("db:2"))
        assert (again.writes, str(again.condition.reason)) == (0, "Updating")
        await scene.report(name, ready=1)
        seen.append(str((await scene.env.reconcile(database("db:2"))).condition.reason))
        await scene.report(name)
    assert seen == ["Updating"] * 3
    assert (await scene.env.reconcile(database("db:2"))).condition.reason is Reason.HEALTHY


async def test_those_that_wait_are_reached_polled_and_explained(scene: Scene) -> None:
    await scene.settled(database())
    subject = database("db:2")
    result = await scene.env.reconcile(subject)
    assert [one.why for one in result.outcomes[1:3]] == [Why.WAITING] * 2
    assert [str(one.action) for one in result.outcomes] == ["Updated", "HeldBack", "HeldBack", "Unchanged"]
    assert [one.reason_texts for one in result.outcomes[1:3]] == [
        ("spec.template.spec.containers[0].image: changed",)
    ] * 2
    assert result.requeue_after == timedelta(seconds=10)
    assert [one.because for one in summarize(subject, result)[1:3]] == [
        "other members of its rollout are changed first"
    ] * 2


async def test_as_many_as_may_be_unavailable_are_changed_at_once(scene: Scene) -> None:
    await scene.settled(database())
    await scene.env.reconcile(database("db:2", most=2))
    assert await scene.updated() == ["db-1", "db-2"]
    await scene.report("db-2")
    await scene.env.reconcile(database("db:2", most=2))
    assert await scene.updated() == list(NAMES)


@pytest.mark.promise("rollout", runs="a member that is down, on top of one that is being updated")
async def test_a_bad_change_stops_at_the_first_member_and_the_next_change_repairs_it(scene: Scene) -> None:
    await scene.settled(database())
    await scene.env.reconcile(database("db:bad"))
    await scene.report("db-1", ready=0)
    for _ in range(3):
        stuck = await scene.env.reconcile(database("db:bad"))
        assert (await scene.updated("db:bad"), str(stuck.condition.reason)) == (["db-1"], "Updating")
    await scene.env.reconcile(database("db:2"))
    assert await scene.updated() == ["db-1"]
    await scene.report("db-1")
    await scene.env.reconcile(database("db:2"))
    assert await scene.updated() == ["db-1", "db-2"]


async def test_going_back_repairs_the_broken_member_and_touches_no_other(scene: Scene) -> None:
    await scene.settled(database())
    await scene.env.reconcile(database("db:bad"))
    await scene.report("db-1", ready=0)
    result = await scene.env.reconcile(database())
    assert [str(one.action) for one in result.outcomes] == ["Updated", "Unchanged", "Unchanged", "Unchanged"]
    await scene.report("db-1")
    assert (await scene.env.reconcile(database())).condition.reason is Reason.HEALTHY


@pytest.mark.promise("rollout", runs="a primary that is down, and one of two pods of every member")
async def test_a_member_that_is_broken_already_is_changed_first(scene: Scene) -> None:
    await scene.settled(database())
    await scene.report("db-0", ready=0)
    await scene.env.reconcile(database("db:2"))
    assert await scene.updated() == ["db-0"]


async def test_of_several_that_are_partly_available_one_is_changed_at_a_time(scene: Scene) -> None:
    await scene.settled(database())
    for name in NAMES:
        await scene.report(name, ready=1)
    for done, name in enumerate(NAMES, 1):
        await scene.env.reconcile(database("db:2"))
        assert await scene.updated() == list(NAMES[:done])
        await scene.report(name)


@pytest.mark.promise("rollout", runs="a member that is deleted in the middle")
async def test_a_member_that_was_deleted_is_made_again_at_once_and_the_others_wait_for_it(scene: Scene) -> None:
    await scene.settled(database())
    await scene.env.reconcile(database("db:2"))
    await scene.report("db-1")
    await scene.env.cluster.delete(key("db-0"))
    result = await scene.env.reconcile(database("db:2"))
    assert await scene.updated() == ["db-1", "db-0"]
    assert str(result.condition.reason) == "Updating"


@pytest.mark.promise("rollout", runs="a member that another client deletes, and that a finalizer holds")
@pytest.mark.parametrize("ending", NAMES)
async def test_a_member_that_is_being_deleted_is_left_alone_and_counts_as_unavailable(
    scene: Scene, ending: str
) -> None:
    """Not even the new version is written to it, as no controller would act on that, and it is not its turn."""
    env, hook = scene.env, Hook()
    await scene.settled(database(before=hook))
    await env.change(key(ending), metadata={"finalizers": ["example.com/hold"]})
    await env.cluster.delete(key(ending))
    absent = next(name for name in NAMES if name != ending)
    await env.cluster.delete(key(absent))
    before = await env.cluster.get(key(ending))
    for _ in range(2):
        result = await env.reconcile(database("db:2", before=hook))
        assert await env.cluster.get(key(ending)) == before
        # What is down waits for nothing, also after the one that is being deleted; what is available waits.
        assert await scene.updated() == [absent]
        assert (result.condition.reason, hook.calls) == (Reason.BLOCKED, [])
        assert f"waiting for {result.outcomes[NAMES.index(ending)].resource} to be deleted; finalizer " in (
            result.condition.message
        )
    await scene.report(absent)

    await env.change(key(ending), metadata={"finalizers": None})
    await env.reconcile(database("db:2", before=hook))
    assert sorted(await scene.updated()) == sorted([absent, ending])
    assert hook.calls == []
    assert (await env.cluster.get(key(ending)))["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_member_that_is_not_registered_any_more_is_not_waited_for(scene: Scene) -> None:
    await scene.settled(database())
    await scene.report("db-1", ready=0)
    await scene.env.reconcile(database("db:2", names=NAMES[1:]))
    assert await scene.updated() == ["db-2"]


@pytest.mark.promise("rollout", runs="a suspension in the middle, and a resumption with another spec")
async def test_suspension_and_resumption_concern_all_members_at_once(scene: Scene) -> None:
    await scene.settled(database())
    await scene.env.reconcile(database("db:2"))
    await scene.env.reconcile(database("db:2", suspended=True))
    counts = [(await scene.env.cluster.get(key(name)))["spec"]["replicas"] for name in NAMES]
    assert counts == [0, 0, 0]
    for name in NAMES:
        await scene.report(name, ready=0)
    assert (await scene.env.reconcile(database("db:2", suspended=True))).condition.reason is Reason.SUSPENDED

    result = await scene.env.reconcile(database("db:2"))
    assert [str(one.action) for one in result.outcomes[:3]] == ["Updated"] * 3
    assert await scene.updated() == list(NAMES)


@pytest.mark.promise("rollout", runs="a member that is down before, and a workload beside the members that scales")
@pytest.mark.parametrize("beside", [False, True], ids=["a member that is down", "a workload that scales"])
async def test_a_rollout_is_an_update_whatever_was_reported_before_it_and_beside_it(scene: Scene, beside: bool) -> None:
    def subject(image: str) -> component.Component:
        made = component.Builder("web", condition_type="WebReady")
        made.with_rollout([member(name, image) for name in NAMES])
        return (made.with_resource(member("other", "other:1")) if beside else made).build()

    names = [*NAMES, "other"] if beside else NAMES
    await scene.settled(subject("db:1"), names)
    await scene.report(names[-1], ready=0)
    if not beside:
        assert (await scene.env.reconcile(subject("db:1"))).condition.reason is Reason.SCALING
    found = []
    for name in NAMES if beside else ("db-0", "db-1", "db-2"):
        for ready in (0, 1, 2):
            result = await scene.env.reconcile(subject("db:2"))
            found.append((str(result.condition.reason), "rollout: " in result.condition.message))
            if name in await scene.updated():
                await scene.report(name, ready)
    assert set(found) == {("Updating", True)}
    if beside:
        await scene.report("other")
    for name in NAMES:
        await scene.report(name)
    assert (await scene.env.reconcile(subject("db:2"))).condition.reason is Reason.HEALTHY


async def test_a_failing_member_is_reported_as_failing(scene: Scene) -> None:
    """Only what progresses is one update; that it is stuck must be seen."""

    def failing(name: str, image: str) -> deployment.Builder:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": image}]}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        return deployment.Builder({"metadata": {"name": name, "namespace": "shop"}, "spec": spec})

    def subject(image: str) -> component.Component:
        made = component.Builder("web", condition_type="WebReady")
        return made.with_rollout([failing(name, image) for name in NAMES]).build()

    async def report(name: str, **more: Any) -> None:
        where = ObjectKey("apps/v1", "Deployment", name, "shop")
        live = await scene.env.cluster.get(where)
        counts = {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
        await scene.env.report(where, {"observedGeneration": live["metadata"]["generation"], **counts, **more})

    await scene.env.reconcile(subject("db:1"))
    for name in NAMES:
        await report(name)
    await scene.env.reconcile(subject("db:2"))
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}
    await report("db-1", readyReplicas=0, availableReplicas=0, conditions=[late])
    result = await scene.env.reconcile(subject("db:2"))
    assert str(result.condition.reason) == "Failing"
    assert "rollout: 0 of 3 are up to date" in result.condition.message


@pytest.mark.promise("rollout", runs="a grace period that is shorter than the whole rollout")
async def test_each_member_has_the_whole_grace_period(scene: Scene) -> None:
    grace = timedelta(minutes=5)
    await scene.settled(database(grace=grace))
    for name in NAMES:
        result = await scene.env.reconcile(database("db:2", grace=grace))
        assert str(result.condition.reason) == "Updating"
        scene.env.clock.advance(timedelta(minutes=4))
        result = await scene.env.reconcile(database("db:2", grace=grace))
        assert str(result.condition.reason) == "Updating"
        await scene.report(name)
    assert (await scene.env.reconcile(database("db:2", grace=grace))).condition.reason is Reason.HEALTHY

    await scene.env.reconcile(database("db:3", grace=grace))
    await scene.report("db-1", ready=0)
    scene.env.clock.advance(timedelta(minutes=6))
    late = await scene.env.reconcile(database("db:3", grace=grace))
    assert str(late.condition.reason) == "Down"
    scene.env.cluster.requests.clear()
    await scene.env.reconcile(database("db:3", grace=grace))
    assert scene.env.cluster.requests.writes == 0


async def test_a_blocked_member_stops_later_members_and_resources(scene: Scene) -> None:
    await scene.settled(database())
    await scene.env.change(key("db-2"), metadata={"ownerReferences": [await scene.env.other_owner()]})
    result = await scene.env.reconcile(database("db:2"))
    assert str(result.condition.reason) == "Blocked"
    assert [str(one.action) for one in result.outcomes] == ["Updated", "Blocked"]
    await scene.report("db-1")
    await scene.env.reconcile(database("db:2"))
    scene.env.cluster.requests.clear()
    result = await scene.env.reconcile(database("db:2"))
    assert (str(result.condition.reason), scene.env.cluster.requests.writes) == ("Blocked", 0)
    assert await scene.updated() == ["db-1"]


class Hook:
    """The author's function before a change."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.answer: str | None = None
        self.error: Exception | None = None

    async def __call__(self, live: Manifest, context: ReconcileContext) -> str | None:
        image = live["spec"]["template"]["spec"]["containers"][0]["image"]
        self.calls.append((live["metadata"]["name"], image))
        assert context.owned_by.key.name == "demo"
        if self.error is not None:
            raise self.error
        return self.answer


def replaced(
    hook: Hook, run: str = "1", policy: str = "OrderedReady", *, sends_replicas: bool = True, **options: Any
) -> component.Component:
    """Return the members with an annotation and a field that cannot be changed."""
    members = []
    for name in NAMES:
        manifest = manifest_of(name, "db:1", annotations={"run": run})
        spec = {**manifest["spec"], "podManagementPolicy": policy}
        if not sends_replicas:
            del spec["replicas"]
        members.append(statefulset.Builder({**manifest, "spec": spec}))
    made = component.Builder("web", condition_type="WebReady")
    return made.with_rollout(members, before_update=hook, **options).build()


async def is_another(scene: Scene, name: str, uid: str) -> bool:
    """Return whether a member was replaced, or is about to be created again."""
    return not await scene.env.exists(key(name)) or (await scene.env.cluster.get(key(name)))["metadata"]["uid"] != uid


@pytest.mark.promise("rollout-hook")
async def test_the_function_is_called_before_each_change_of_an_available_member(scene: Scene) -> None:
    hook = Hook()
    await scene.settled(database(before=hook))
    assert hook.calls == []
    for name in NAMES:
        await scene.env.reconcile(database("db:2", before=hook))
        await scene.env.reconcile(database("db:2", before=hook))
        assert hook.calls[-1] == (name, "db:1")
        await scene.report(name)
    assert [name for name, _ in hook.calls] == list(NAMES)


@pytest.mark.promise("rollout-hook")
async def test_a_change_waits_until_the_function_lets_it_pass(scene: Scene) -> None:
    hook = Hook()
    await scene.settled(database(before=hook))
    hook.answer = "db-1 still has connections"
    for _ in range(2):
        result = await scene.env.reconcile(database("db:2", before=hook))
        assert (result.writes, str(result.condition.reason)) == (0, "Updating")
        assert result.condition.message == (
            "rollout: 0 of 3 are up to date; StatefulSet db-1: db-1 still has connections"
        )
        assert result.requeue_after == timedelta(seconds=10)
    hook.answer = None
    await scene.env.reconcile(database("db:2", before=hook))
    assert await scene.updated() == ["db-1"]


@pytest.mark.promise("rollout-hook")
async def test_a_function_that_fails_keeps_the_member_as_it_is(scene: Scene) -> None:
    hook = Hook()
    await scene.settled(database(before=hook))
    hook.error = ValueError("password: hunter2")
    with pytest.raises(
        ReconcileError, match=r"failed to prepare the update of resource .*db-1: unexpected ValueError$"
    ):
        await scene.env.reconcile(database("db:2", before=hook))
    assert await scene.updated() == []
    assert (await scene.env.condition())["reason"] == "Error"


@pytest.mark.parametrize("answer", [None, "later", True, 7], ids=repr)
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_a_function_that_cannot_be_awaited_or_returns_no_text_keeps_the_member(
    scene: Scene, answer: Any, *, is_async: bool
) -> None:
    async def later(*_: object) -> Any:
        return answer

    before: Any = later if is_async else lambda *_: answer
    await scene.settled(database(before=before))
    if is_async and (answer is None or isinstance(answer, str)):
        assert (await scene.env.reconcile(database("db:2", before=before))).writes == (answer is None)
        return
    with pytest.raises(ReconcileError, match="must be an `async def` function that returns a text or None"):
        await scene.env.reconcile(database("db:2", before=before))
    assert await scene.updated() == []


@pytest.mark.promise("rollout-hook", runs="members that are down, deleted and suspended")
async def test_it_is_not_called_for_a_member_of_which_nothing_is_available(scene: Scene) -> None:
    hook = Hook()
    hook.error = ValueError("nothing to connect to")
    await scene.settled(database(before=hook))
    await scene.report("db-0", ready=0)
    await scene.env.cluster.delete(key("db-1"))
    await scene.env.reconcile(database("db:2", before=hook))
    assert await scene.updated() == ["db-1", "db-0"]
    assert hook.calls == []


@pytest.mark.promise("rollout-hook", runs="a change of an annotation only, and one that the API server rejects")
async def test_it_is_not_called_for_a_change_that_touches_no_pod_or_is_rejected(scene: Scene) -> None:
    hook = Hook()
    await scene.settled(database(before=hook))
    result = await scene.env.reconcile(database(before=hook, annotations={"note": "new"}))
    assert [str(one.action) for one in result.outcomes[:3]] == ["Updated"] * 3
    assert result.condition.reason is Reason.HEALTHY
    with pytest.raises(ReconcileError, match="failed to apply"):
        await scene.env.reconcile(database("", before=hook, annotations={"note": "new"}))
    assert hook.calls == []


@pytest.mark.promise("rollout-hook", runs="members that are replaced for a named field, an immutable one, and both")
@pytest.mark.parametrize(
    ("options", "changed"),
    [
        pytest.param({"recreate_when_changed": [RUN]}, {"run": "2"}, id="named"),
        pytest.param({"recreate_when_changed": [RUN]}, {"run": "2", "policy": "Parallel"}, id="named, and immutable"),
        pytest.param({"recreate_on_immutable_change": True}, {"policy": "Parallel"}, id="immutable"),
    ],
)
async def test_the_function_is_called_before_a_member_is_replaced(
    scene: Scene, options: dict[str, Any], changed: dict[str, Any]
) -> None:
    hook = Hook()
    await scene.settled(replaced(hook, **options))
    before = {name: (await scene.env.cluster.get(key(name)))["metadata"]["uid"] for name in NAMES}
    hook.answer = "db-1 still has connections"
    for _ in range(2):
        assert (await scene.env.reconcile(replaced(hook, **changed, **options))).writes == 0
    hook.answer = None
    for done, name in enumerate(NAMES):
        for _ in range(3):
            await scene.env.reconcile(replaced(hook, **changed, **options))
            new = [one for one in NAMES if await is_another(scene, one, before[one])]
            assert new == list(NAMES[: done + 1])
            assert {called for called, _ in hook.calls} == set(new)
        await scene.report(name)
    assert (await scene.env.reconcile(replaced(hook, **changed, **options))).condition.reason is Reason.HEALTHY


@pytest.mark.promise("rollout-hook", runs="replacements that are refused, for a named and an immutable field")
@pytest.mark.parametrize(
    ("options", "changed"),
    [
        pytest.param({"recreate_when_changed": [RUN]}, {"run": "2"}, id="named"),
        pytest.param({"recreate_on_immutable_change": True}, {"policy": "Parallel"}, id="immutable"),
    ],
)
async def test_it_is_not_called_for_a_replacement_that_is_refused(
    scene: Scene, options: dict[str, Any], changed: dict[str, Any]
) -> None:
    hook = Hook()
    options = {**options, "propagation": Propagation.ORPHAN}
    await scene.settled(replaced(hook, **options))
    for _ in range(2):
        with pytest.raises(ReconcileError, match="sends none, so the new object would begin with the default"):
            await scene.env.reconcile(replaced(hook, **changed, **options, sends_replicas=False))
    assert hook.calls == []


@pytest.mark.promise("rollout-hook", runs="a dry run that fails for a moment")
async def test_a_question_that_is_not_answered_is_no_permission(scene: Scene) -> None:
    hook = Hook()
    await scene.settled(database(before=hook))

    class Failing(InterceptingCluster):
        async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
            if request.verb is Verb.APPLY and request.dry_run:
                raise ServerError("etcd is down", code=500, reason="InternalError")
            return await send()

    cluster, scene.env.cluster = scene.env.cluster, Failing(scene.env.cluster)  # type: ignore[assignment]
    with pytest.raises(ReconcileError, match="etcd is down"):
        await scene.env.reconcile(database("db:2", before=hook))
    scene.env.cluster = cluster
    assert (await scene.updated(), hook.calls) == ([], [])


async def test_a_diff_shows_the_first_change_and_calls_nothing(scene: Scene) -> None:
    hook = Hook()
    await scene.settled(database(before=hook))
    (found,) = await diff(
        [database("db:2", before=hook)], await scene.env.owner_manifest(), scene.env.cluster, clock=scene.env.clock
    )
    assert [one.resource for one in found.objects] == ["apps/v1/StatefulSet/shop/db-1"]
    assert found.result is not None
    assert str(found.result.condition.reason) == "Updating"
    assert hook.calls == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({"max_unavailable": 0}, "max_unavailable must be an integer of at least 1, got 0", id="zero"),
        pytest.param({"max_unavailable": True}, "at least 1, got True", id="a switch"),
        pytest.param({"max_unavailable": "50%"}, "at least 1, got '50%'", id="a percentage"),
        pytest.param({"before_update": 1}, "before_update must be an `async def` function, got 1", id="no function"),
        pytest.param({"recreate_when_changed": [None]}, r"list of fields .* got None in it", id="no field"),
        pytest.param({"read_only": True}, "with_rollout does not take read_only", id="read only"),
        pytest.param({"independent": True}, "with_rollout does not take independent", id="independent"),
        pytest.param({"resources": member("db-0", "db:1")}, "takes a list of resources, got Builder", id="one"),
        pytest.param({"resources": [None]}, "None registered as a resource", id="none"),
        pytest.param(
            {"resources": [configmap.Builder({"metadata": {"name": "a", "namespace": "shop"}})]},
            "cannot be in a rollout: it reports no status to wait for",
            id="without a status",
        ),
    ],
)
def test_what_is_not_possible_is_an_error(arguments: dict[str, Any], problem: str) -> None:
    given = {"resources": [member("db-0", "db:1")], **arguments}
    with pytest.raises(BuildError, match=problem):
        component.Builder("web").with_rollout(given.pop("resources"), **given).build()


def test_members_cannot_read_data_of_each_other() -> None:
    address = Data[str]("address")
    first = member("db-0", "db:1").extract_into(address, lambda live: live.kind or "")
    second = member("db-1", "db:1").with_data_guard(address)
    with pytest.raises(BuildError, match='reads data "address" of another member'):
        component.Builder("web").with_rollout([first, second]).build()


def guarded(blocked: Sequence[str], image: str = "db:1") -> component.Component:
    """Return a rollout of which some members have a guard that blocks, and a resource after it."""

    def guard(_base: object) -> StatusReport[GuardStatus]:
        return StatusReport(GuardStatus.BLOCKED, "waits for the primary")

    members = [member(name, image).with_guard(guard) if name in blocked else member(name, image) for name in NAMES]
    after = configmap.Builder({"metadata": {"name": "after", "namespace": "shop"}})
    return component.Builder("web", condition_type="WebReady").with_rollout(members).with_resource(after).build()


async def test_a_guard_of_a_member_that_does_not_exist_holds_back_its_creation_alone(env: Env, scene: Scene) -> None:
    """Replicas begin with a copy of the primary, which is the last to be updated: it must not wait for them.

    https://github.com/reactive-tech/kubegres/issues/191 is an operator that waits for a member that waits for it.
    """
    replicas = NAMES[:2]
    first = await env.reconcile(guarded(replicas))
    assert [str(one.action) for one in first.outcomes] == ["Blocked", "Blocked", "Created"]
    assert (first.condition.reason, "StatefulSet db-1: waits for the primary" in first.condition.message) == (
        Reason.BLOCKED,
        True,
    )
    await scene.report("db-0")
    # What exists is repaired and updated meanwhile, and what comes after the rollout waits.
    changed = await env.reconcile(guarded(replicas, image="db:2"))
    assert [str(one.action) for one in changed.outcomes] == ["Blocked", "Blocked", "HeldBack"]
    result = await env.reconcile(guarded((), image="db:1"))
    assert [str(one.action) for one in result.outcomes] == ["Created", "Created", "Unchanged", "Created"]


@pytest.mark.parametrize("blocked", NAMES)
async def test_a_guard_of_a_member_that_exists_stops_the_rollout_there(env: Env, scene: Scene, blocked: str) -> None:
    await scene.settled(guarded(()))
    for _ in NAMES:
        await env.reconcile(guarded([blocked], image="db:2"))
        for name in await scene.updated():
            await scene.report(name)
    assert await scene.updated() == list(NAMES[: NAMES.index(blocked)])
    assert (await env.condition())["reason"] == "Blocked"
