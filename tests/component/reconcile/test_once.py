"""Tasks that run once: remembered in the owner, whichever client deletes the Job; another key is another run.

Reports of operators that ran a Job again: https://github.com/ansible/awx-resource-operator/issues/49 and
https://github.com/openshift/pagerduty-operator/pull/402 (the TTL deletes it),
https://github.com/openstack-k8s-operators/lib-common/pull/78 (the end of the run is not stored before the Job goes, or
the cache of the owner is older than that of its Jobs), https://github.com/alexandrevilain/temporal-operator/issues/134.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, Propagation, Verb
from ocf.component import Adoption, Component, diff, reconciling
from ocf.component.apply.adoption import ADOPTABLE_BY, adoption_label
from ocf.concepts import Data
from ocf.errors import NotFoundError, ReconcileError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.primitives import job
from ocf.testing import InterceptingCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ocf.cluster import Request
    from tests.component.conftest import Env

JOB: Final = ObjectKey("batch/v1", "Job", "migration", "shop")
BASE: Final[Manifest] = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "migration", "namespace": "shop"},
    "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "migration", "image": "migration:1"}]}}
    },
}
TTL: Final = timedelta(minutes=10)


def migration(
    key: str = "1", *, image: str = "", ttl: timedelta | None = TTL, suspended: bool = False, **options: Any
) -> Component:
    """Return a component with a Job that runs once; with an image other than that of the baseline."""
    base = copy_json(BASE)
    if image:
        base["spec"]["template"]["spec"]["containers"][0]["image"] = image
    builder = component.Builder("migration", condition_type="WebReady").suspend(suspended)
    return builder.with_resource(job.Builder(base).run_once(key, ttl=ttl), **options).build()


def remembered(key: str) -> str:
    return f"ocf/Completed_shop_migration_{key}"


async def live(env: Env) -> Manifest | None:
    try:
        return await env.cluster.get(JOB)
    except NotFoundError:
        return None


async def present(env: Env) -> Manifest:
    found = await live(env)
    assert found is not None
    return found


async def uid(env: Env) -> str:
    return str((await present(env))["metadata"]["uid"])


async def finish(env: Env, *, failed: bool = False) -> None:
    """Report the end of the run as the Job controller does."""
    now = "2026-01-31T12:00:00Z"
    common = {"status": "True", "lastTransitionTime": now, "lastProbeTime": now}
    if failed:
        why = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
        ends = [{"type": kind, **common, **why} for kind in ("FailureTarget", "Failed")]
        status: Manifest = {"startTime": now, "failed": 1, "conditions": ends}
    else:
        ends = [{"type": kind, **common, "reason": "CompletionsReached"} for kind in ("SuccessCriteriaMet", "Complete")]
        status = {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": ends}
    await env.report(JOB, {**status, "uncountedTerminatedPods": {}})


async def vanish(env: Env) -> None:
    """Delete the Job as the TTL controller or a user does; no garbage collector runs on the real server here."""
    await env.cluster.delete(JOB, DeleteOptions(propagation=Propagation.BACKGROUND))
    await released(env)


async def released(env: Env) -> None:
    """Remove a finalizer that the garbage collector or the Job controller would remove."""
    found = await live(env)
    if found is not None:
        await env.merge_patch(JOB, {"metadata": {"finalizers": None}}, by="garbage-collector")


async def outcome(env: Env, subject: Component) -> tuple[str, str]:
    result = await env.reconcile(subject)
    return str(result.condition.reason), str(result.outcomes[0].action)


class TestAFinishedRun:
    @pytest.mark.parametrize(
        ("failed", "status", "reason", "ready"),
        [
            pytest.param(False, "True", "Completed", "Healthy", id="that succeeded"),
            pytest.param(True, "False", "Failed", "TaskFailing", id="that failed"),
        ],
    )
    async def test_is_remembered_and_not_repeated(
        self, env: Env, failed: bool, status: str, reason: str, ready: str
    ) -> None:
        assert await outcome(env, migration()) == ("TaskPending", "Created")
        await finish(env, failed=failed)
        assert await outcome(env, migration()) == (ready, "Unchanged")

        record = await env.condition(remembered("1"))
        assert (record["status"], record["reason"]) == (status, reason)
        before = await env.condition()
        await vanish(env)
        for _ in range(3):
            assert await outcome(env, migration()) == (ready, "Absent")
        assert await env.condition() == before
        assert await live(env) is None

    async def test_gets_its_ttl_only_after_it_is_remembered(self, env: Env) -> None:
        """Otherwise the TTL controller could delete the Job before its end is stored."""
        await env.reconcile(migration())
        assert "ttlSecondsAfterFinished" not in (await present(env))["spec"]
        await finish(env)
        result = await env.reconcile(migration())
        assert "ttlSecondsAfterFinished" not in (await present(env))["spec"]
        assert result.requeue_after == timedelta(seconds=1)

        assert await outcome(env, migration()) == ("Healthy", "Updated")
        assert (await present(env))["spec"]["ttlSecondsAfterFinished"] == 600
        env.cluster.requests.clear()
        result = await env.reconcile(migration())
        assert (result.writes, result.requeue_after, env.cluster.requests.writes) == (0, None, 0)

    async def test_without_a_ttl_keeps_its_job_and_writes_nothing(self, env: Env) -> None:
        await env.reconcile(migration(ttl=None))
        await finish(env)
        result = await env.reconcile(migration(ttl=None))
        assert result.requeue_after is None
        env.cluster.requests.clear()
        assert await outcome(env, migration(ttl=None)) == ("Healthy", "Unchanged")
        assert env.cluster.requests.writes == 0

    async def test_is_not_changed_by_another_template(self, env: Env) -> None:
        """A release changes the image of the Job, and not what it migrates to: nothing is rejected, nothing runs."""
        await env.reconcile(migration())
        await finish(env)
        first = await uid(env)
        for _ in range(3):
            assert (await env.reconcile(migration(image="migration:2"))).condition.reason == "Healthy"
        assert (await present(env))["spec"]["ttlSecondsAfterFinished"] == 600
        assert await uid(env) == first

    async def test_is_not_replaced_for_another_template_before_it_is_remembered(self, env: Env) -> None:
        """The Job ended while no process ran, and the next process has another image."""
        await env.reconcile(migration())
        await finish(env)
        first = await uid(env)
        changed = migration(image="migration:2", recreate_on_immutable_change=True)
        assert await outcome(env, changed) == ("Healthy", "Unchanged")
        assert await uid(env) == first

    async def test_of_a_job_from_before_it_ran_once_is_remembered(self, env: Env) -> None:
        """It has no label with a key; a new image in the same release is no reason to run again."""
        plain = component.Builder("migration", condition_type="WebReady").with_resource(job.Builder(BASE)).build()
        await env.reconcile(plain)
        await finish(env)
        assert await outcome(env, migration(image="migration:2")) == ("Healthy", "Unchanged")
        await vanish(env)
        assert await outcome(env, migration(image="migration:2")) == ("Healthy", "Absent")

    async def test_that_still_ran_before_it_ran_once_goes_on(self, env: Env) -> None:
        plain = component.Builder("migration", condition_type="WebReady").with_resource(job.Builder(BASE)).build()
        await env.reconcile(plain)
        first = await uid(env)
        assert await outcome(env, migration()) == ("TaskPending", "Updated")
        assert await uid(env) == first

    async def test_fills_data_cells_while_its_job_exists(self, env: Env) -> None:
        cell = Data[str]("ended")

        def subject() -> Component:
            builder = job.Builder(BASE).run_once("1")
            builder.extract_into(cell, lambda found: str(found.metadata and found.metadata.name))
            return component.Builder("migration", condition_type="WebReady").with_resource(builder).build()

        await env.reconcile(subject())
        await finish(env)
        await env.reconcile(subject())
        assert (await env.reconcile(subject())).condition.reason == "Healthy"

    async def test_does_not_depend_on_a_condition_that_was_not_stored(self, env: Env) -> None:
        """The status could not be written: the Job is still there, and is asked again."""

        class Refusing(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                if request.subresource:
                    raise ReconcileError("status", "no answer")
                return await send()

        await env.reconcile(migration())
        await finish(env)
        owner = await env.owner_manifest()
        with pytest.raises(ReconcileError, match="no answer"):
            async with reconciling(owner, Refusing(env.cluster), clock=env.clock) as context:
                await migration().reconcile(context)
        assert "ttlSecondsAfterFinished" not in (await present(env))["spec"]
        assert await outcome(env, migration()) == ("Healthy", "Unchanged")
        assert (await env.condition(remembered("1")))["status"] == "True"

    async def test_is_asked_for_at_the_api_server_before_the_job_is_created(self, env: Env) -> None:
        """The cache of the owner is older than that of its Jobs: the end of the run is not in it."""
        await env.reconcile(migration())
        old = await env.owner_manifest()
        await finish(env)
        await env.reconcile(migration())
        await vanish(env)
        async with reconciling(old, env.cluster, clock=env.clock) as context:
            result = await migration().reconcile(context)
        assert (result.condition.reason, result.outcomes[0].action) == ("Healthy", "Absent")
        assert await live(env) is None

    async def test_of_another_owner_counts_for_that_one_alone(self, env: Env) -> None:
        reference = await env.other_owner()
        await env.create(
            JOB, spec=BASE["spec"], metadata={"labels": {"ocf.dev/run": "1"}, "ownerReferences": [reference]}
        )
        await finish(env)
        assert await outcome(env, migration()) == ("Blocked", "Blocked")

    async def test_shows_its_ttl_in_the_diff(self, env: Env) -> None:
        await env.reconcile(migration())
        await finish(env)
        await env.reconcile(migration())
        (found,) = await diff([migration()], await env.owner_manifest(), env.cluster, clock=env.clock)
        (changed,) = found.objects
        assert (changed.verb, [each.path for each in changed.fields]) == ("update", ["spec.ttlSecondsAfterFinished"])
        await env.reconcile(migration())
        (found,) = await diff([migration()], await env.owner_manifest(), env.cluster, clock=env.clock)
        assert found.is_empty


class TestAnotherKey:
    async def test_runs_again_and_forgets_the_earlier_run(self, env: Env) -> None:
        await env.reconcile(migration())
        await finish(env)
        await env.reconcile(migration())
        await vanish(env)
        assert await outcome(env, migration("2")) == ("TaskPending", "Created")
        assert (await present(env))["metadata"]["labels"]["ocf.dev/run"] == "2"
        assert remembered("1") not in await env.read_conditions(env.owner)
        await finish(env)
        await env.reconcile(migration("2"))
        assert (await env.condition(remembered("2")))["status"] == "True"

    @pytest.mark.parametrize(
        "finished", [pytest.param(True, id="that has finished"), pytest.param(False, id="that runs")]
    )
    async def test_replaces_the_job_of_an_earlier_run(self, env: Env, finished: bool) -> None:
        """In the foreground, so that the pods of both never run at the same time."""
        await env.reconcile(migration())
        if finished:
            await finish(env)
            await env.reconcile(migration())
        first = await uid(env)
        assert await outcome(env, migration("2")) == ("Blocked", "Blocked")
        message = (await env.condition())["message"]
        assert "because it is another run of the task" in message
        await released(env)
        assert await outcome(env, migration("2")) == ("TaskPending", "Created")
        assert await uid(env) != first

    async def test_that_comes_back_runs_again(self, env: Env) -> None:
        for key in ("1", "2", "1"):
            await env.reconcile(migration(key))
            await released(env)
            assert await outcome(env, migration(key)) in (("TaskPending", "Created"), ("TaskPending", "Unchanged"))
            assert (await present(env))["metadata"]["labels"]["ocf.dev/run"] == key
            await finish(env)
            await env.reconcile(migration(key))
        assert [name for name in await env.read_conditions(env.owner) if "Completed_" in name] == [remembered("1")]

    async def test_of_one_job_leaves_that_of_another_job(self, env: Env) -> None:
        other = copy_json(BASE)
        other["metadata"]["name"] = "migration-2"

        def both(key: str) -> Component:
            return (
                component.Builder("migration", condition_type="WebReady")
                .with_resource(job.Builder(BASE).run_once(key))
                .with_resource(job.Builder(other).run_once("1"))
                .build()
            )

        await env.reconcile(both("1"))
        await finish(env)
        await env.report(JOB._replace(name="migration-2"), (await present(env))["status"])
        await env.reconcile(both("1"))
        await vanish(env)
        await env.reconcile(both("2"))
        names = {name for name in await env.read_conditions(env.owner) if "Completed_" in name}
        assert names == {"ocf/Completed_shop_migration-2_1"}


class TestSuspension:
    async def test_leaves_a_finished_run_and_resuming_does_not_repeat_it(self, env: Env) -> None:
        await env.reconcile(migration())
        await finish(env)
        assert (await env.reconcile(migration(suspended=True))).condition.reason == "Suspended"
        assert await live(env) is not None
        await vanish(env)
        assert (await env.reconcile(migration(suspended=True))).condition.reason == "Suspended"
        assert await outcome(env, migration()) == ("Healthy", "Absent")

    async def test_leaves_a_run_that_ends_just_before_the_write(self, env: Env) -> None:
        """The reconcile has read a Job that runs; the answer to its own apply shows that the run has finished."""
        ended = False

        class Meanwhile(InterceptingCluster):
            async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
                nonlocal ended
                if not ended and request.kind == "Job" and request.verb is Verb.APPLY:
                    ended = True
                    await finish(env)
                return await send()

        await env.reconcile(migration())
        async with reconciling(await env.owner_manifest(), Meanwhile(env.cluster), clock=env.clock) as context:
            result = await migration(suspended=True).reconcile(context)
        assert ended
        assert result.condition.reason == "Suspended"
        assert (await env.condition(remembered("1")))["status"] == "True"
        assert await live(env) is not None
        assert await outcome(env, migration()) == ("Healthy", "Updated"), "the TTL alone is set"

    async def test_of_a_run_that_goes_on_deletes_it_and_resuming_begins_it_again(self, env: Env) -> None:
        await env.reconcile(migration())
        first = await uid(env)
        for _ in range(2):
            await env.reconcile(migration(suspended=True))
            await released(env)
        assert await live(env) is None
        assert await outcome(env, migration()) == ("TaskPending", "Created")
        assert await uid(env) != first

    async def test_costs_no_request_for_a_run_that_is_not_there(self, env: Env) -> None:
        await env.reconcile(migration(suspended=True))
        env.cluster.requests.clear()
        await env.reconcile(migration(suspended=True))
        assert [request.verb for request in env.cluster.requests if request.kind == "Shop"] == ["get"]


async def test_a_gate_deletes_the_job_and_not_the_memory_of_its_run(env: Env) -> None:
    await env.reconcile(migration())
    await finish(env)
    await env.reconcile(migration())
    await env.reconcile(migration(delete_when=True))
    await released(env)
    assert await outcome(env, migration()) == ("Healthy", "Absent")


async def test_a_job_that_is_deleted_while_it_runs_runs_again(env: Env) -> None:
    await env.reconcile(migration())
    await vanish(env)
    assert await outcome(env, migration()) == ("TaskPending", "Created")


async def test_a_ttl_that_another_writer_changes_again_and_again_waits(env: Env) -> None:
    """Such as a policy that caps the TTL of all Jobs."""
    await env.reconcile(migration())
    await finish(env)
    writes = 0
    for _ in range(40):
        writes += (await env.reconcile(migration())).writes
        if "ttlSecondsAfterFinished" in (await present(env))["spec"]:
            await env.merge_patch(JOB, {"spec": {"ttlSecondsAfterFinished": 60}}, by="policy")
    result = await env.reconcile(migration())
    assert 2 <= writes <= 5
    assert result.requeue_after is not None
    assert result.requeue_after >= timedelta(minutes=1)

    env.clock.advance(result.requeue_after)
    assert (await env.reconcile(migration())).writes == 1, "and is repaired later"


@pytest.mark.promise("recreate-war", runs="a Job that runs once, with two keys")
async def test_two_versions_of_an_operator_do_not_replace_the_runs_of_each_other_for_ever(env: Env) -> None:
    """Both run during its own rollout: after three runs each waits, longer each time."""
    old, new = env.process(), env.process()
    deletes = 0
    for _ in range(40):
        for process, key in ((old, "1"), (new, "2")):
            await process.reconcile(migration(key))
            await released_if_ending(env)
    for process in (old, new):
        deletes += sum(request.verb == "delete" for request in process.cluster.requests)
    assert 2 < deletes <= 12


async def released_if_ending(env: Env) -> None:
    found = await live(env)
    if found is not None and "deletionTimestamp" in found["metadata"]:
        await released(env)


@pytest.mark.parametrize(
    ("adopt", "labelled", "expected"),
    [
        pytest.param(None, False, ("Healthy", "Unchanged"), id="always"),
        pytest.param(Adoption.NEVER, False, ("Blocked", "Blocked"), id="never"),
        pytest.param(Adoption.LABELLED, False, ("Blocked", "Blocked"), id="labelled, and it is not"),
        pytest.param(Adoption.LABELLED, True, ("Healthy", "Unchanged"), id="labelled"),
    ],
)
async def test_a_finished_job_of_another_client_counts_as_the_run_only_where_it_may_be_adopted(
    env: Env, adopt: Adoption | None, labelled: bool, expected: tuple[str, str]
) -> None:
    made = copy_json(BASE)
    made["metadata"]["labels"] = {"ocf.dev/run": "1"}
    if labelled:
        made["metadata"]["labels"][ADOPTABLE_BY] = adoption_label(env.owner)
    await env.cluster.create(made, field_manager="another")
    await finish(env)
    assert await outcome(env, migration(adopt=adopt)) == expected
