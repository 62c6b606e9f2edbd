"""Components beside the real controllers: in sync for a hundred reconciles, without a change of the replicas.

There are no nodes, so pods stay pending and there are no metrics. The autoscaler then only raises replicas below its
minimum and lowers replicas above its maximum, which is all that these tests need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ocf import component
from ocf.cluster import ListOptions
from ocf.component import BEFORE_SUSPENSION, Reason
from ocf.concepts import StatusReport, SuspensionStatus
from ocf.errors import ConflictError, ReconcileError
from ocf.objects import ObjectKey
from ocf.primitives import cronjob, deployment, hpa, job, replicaset, statefulset
from ocf.testing.envtest import ControllerName
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ocf.component import Component, Result
    from ocf.objects import Manifest
    from tests.component.conftest import Env

CONTROLLERS = (
    ControllerName.DEPLOYMENT,
    ControllerName.REPLICA_SET,
    ControllerName.GARBAGE_COLLECTOR,
    ControllerName.HORIZONTAL_POD_AUTOSCALER,
)

pytestmark = pytest.mark.parametrize("new_env", ["envtest"], indirect=True)


async def until(env: Env, key: ObjectKey, reached: Callable[[Manifest], bool]) -> Manifest:
    """Wait until the controller of an object has brought it to a state."""
    return await eventually(lambda: env.cluster.get(key), reached)


def is_active(live: Manifest) -> bool:
    """Return whether the autoscaler has evaluated its target."""
    return any(one["type"] == "ScalingActive" for one in live.get("status", {}).get("conditions", []))


def is_disabled(live: Manifest) -> bool:
    conditions = live.get("status", {}).get("conditions", [])
    return any(one["type"] == "ScalingActive" and one["reason"] == "ScalingDisabled" for one in conditions)


def counts(number: int) -> Callable[[Manifest], bool]:
    return lambda live: bool(live["spec"].get("replicas") == number)


def observed(live: Manifest) -> bool:
    return bool(live.get("status", {}).get("observedGeneration") == live["metadata"]["generation"])


def is_empty(live: Manifest) -> bool:
    return observed(live) and not live["status"].get("replicas")


async def reconciles(env: Env, subject: Component, number: int, *, count: int) -> list[Result]:
    """Run reconciles that must not write an object, and between which the replicas stay the same."""
    results = []
    for _ in range(number):
        result = await env.reconcile(subject)
        assert (result.writes, await env.replicas()) == (0, count)
        results.append(result)
    return results


async def succeeds(env: Env, subject: Component) -> bool:
    """Reconcile; return False if another controller wrote the status of an object that is to be deleted meanwhile."""
    try:
        await env.reconcile(subject)
    except ReconcileError as error:
        if not isinstance(error.__cause__, ConflictError):
            raise
        return False
    return True


@pytest.mark.promise("real-controllers", runs="100 reconciles")
async def test_a_hundred_reconciles_write_nothing_and_keep_the_replicas(
    env: Env,
    scaled: Callable[..., Component],
    envtest_controllers: Callable[..., AbstractContextManager[None]],
) -> None:
    with envtest_controllers(*CONTROLLERS):
        await env.reconcile(scaled())
        await until(env, env.web, counts(2))  # the autoscaler's minimum: a new Deployment begins with 1
        await until(env, env.hpa, is_active)
        await until(env, env.web, observed)
        await env.reconcile(scaled())
        env.cluster.requests.clear()
        await reconciles(env, scaled(), 40, count=2)
        await env.scale(7)
        await until(env, env.web, lambda live: counts(7)(live) and observed(live))
        await reconciles(env, scaled(), 30, count=7)
        await eventually(lambda: succeeds(env, scaled(suspended=True)), bool)
        await until(env, env.web, is_empty)
        suspended = await env.reconcile(scaled(suspended=True))
        assert suspended.condition.reason is Reason.SUSPENDED
        for result in await reconciles(env, scaled(suspended=True), 10, count=0):
            assert result.condition.reason is Reason.SUSPENDED
        await env.reconcile(scaled())
        assert await env.replicas() == 7
        await until(env, env.hpa, is_active)
        await reconciles(env, scaled(), 20, count=7)
    statuses = [request for request in env.cluster.requests if request.kind == "Shop" and not request.verb.is_read]
    assert len(statuses) <= 10  # one per change of the condition, none for a reconcile without changes


async def test_a_kept_autoscaler_does_not_scale_a_target_at_zero(
    env: Env,
    web_base: Manifest,
    hpa_base: Manifest,
    envtest_controllers: Callable[..., AbstractContextManager[None]],
) -> None:
    """It reports `ScalingDisabled`, does not scale up, and resumes by itself once the target has replicas."""
    fine = StatusReport(SuspensionStatus.SUSPENDED, "kept")
    kept = (
        hpa.Builder(hpa_base)
        .with_custom_suspend_deletion_decision(lambda _base: False)
        .with_custom_suspend_status(lambda _live: fine)
        .build()
    )

    def subject(*, suspended: bool = False) -> Component:
        builder = component.Builder("web", condition_type="WebReady").with_resource(
            deployment.Builder(web_base).build()
        )
        return builder.with_resource(kept).suspend(suspended).build()

    with envtest_controllers(*CONTROLLERS):
        await env.reconcile(subject())
        await until(env, env.web, counts(2))
        await until(env, env.hpa, is_active)
        await env.reconcile(subject(suspended=True))
        disabled = await until(env, env.hpa, is_disabled)
        assert message(disabled) == "scaling is disabled since the replica count of the target is zero"
        await until(env, env.web, is_empty)
        await env.reconcile(subject(suspended=True))
        await reconciles(env, subject(suspended=True), 10, count=0)
        annotations = (await env.cluster.get(env.web))["metadata"]["annotations"]
        assert annotations[BEFORE_SUSPENSION] == '{"spec.replicas":2}'
        await env.reconcile(subject())
        assert await env.replicas() == 2
        await until(env, env.hpa, lambda live: not is_disabled(live))
        assert await env.replicas() == 2


def message(live: Manifest) -> Any:
    return next(one["message"] for one in live["status"]["conditions"] if one["type"] == "ScalingActive")


TASKS = (
    ControllerName.CRON_JOB,
    ControllerName.JOB,
    ControllerName.REPLICA_SET,
    ControllerName.GARBAGE_COLLECTOR,
)
POD: Manifest = {"restartPolicy": "Never", "containers": [{"name": "web", "image": "web:1"}]}
WORKER: Manifest = {"metadata": {"labels": {"app": "worker"}}, "spec": {"containers": POD["containers"]}}
JOB = ObjectKey("batch/v1", "Job", "migration", "shop")
CRON_JOB = ObjectKey("batch/v1", "CronJob", "backup", "shop")
REPLICA_SET = ObjectKey("apps/v1", "ReplicaSet", "worker", "shop")


def base(key: ObjectKey, **spec: Any) -> Manifest:
    metadata = {"name": key.name, "namespace": key.namespace}
    return {"apiVersion": key.api_version, "kind": key.kind, "metadata": metadata, "spec": spec}


def tasks(*, suspended: bool = False) -> Component:
    """Return a component of a Job, a CronJob and a ReplicaSet."""
    scheduled = base(CRON_JOB, schedule="0 0 1 1 *", jobTemplate={"spec": {"template": {"spec": POD}}})
    replicas = base(REPLICA_SET, replicas=2, selector={"matchLabels": {"app": "worker"}}, template=WORKER)
    return (
        component.Builder("web", condition_type="WebReady")
        .with_resource(job.Builder(base(JOB, template={"spec": POD})))
        .with_resource(cronjob.Builder(scheduled))
        .with_resource(replicaset.Builder(replicas))
        .suspend(suspended)
        .build()
    )


async def until_no_pods(env: Env) -> None:
    """Wait until no pod is left; those of a deleted Job wait for its controller."""
    await eventually(
        lambda: env.cluster.list("v1", "Pod", ListOptions(namespace="shop")), lambda found: not found.items
    )


async def until_suspended(env: Env) -> None:
    """Reconcile until the component is suspended; a delete conflicts if the controller changes the Job meanwhile."""

    async def is_suspended() -> bool:
        result = await env.reconcile(tasks(suspended=True))
        return result.condition.reason is Reason.SUSPENDED and not await env.exists(JOB)

    await eventually(is_suspended, ignore=(ReconcileError,))


@pytest.mark.promise("real-controllers", runs="a Job, a CronJob and a ReplicaSet")
async def test_tasks_beside_their_controllers_are_quiet_suspended_and_resumed(
    env: Env, envtest_controllers: Callable[..., AbstractContextManager[None]]
) -> None:
    with envtest_controllers(*TASKS):
        for _ in range(2):
            await env.reconcile(tasks())
            await until(env, JOB, lambda live: live["status"].get("active") == 1)
            await until(env, REPLICA_SET, lambda live: live["status"].get("replicas") == 2 and observed(live))
            running = [await env.reconcile(tasks()) for _ in range(10)]
            assert {result.writes for result in running} == {0}

            await env.reconcile(tasks(suspended=True))
            await until(env, REPLICA_SET, lambda live: live["status"].get("replicas") == 0 and observed(live))
            stopped = await until(env, JOB, lambda live: not live["status"].get("active"))
            assert stopped["spec"]["suspend"] is True
            await until_suspended(env)
            await until_no_pods(env)
            suspended = [await env.reconcile(tasks(suspended=True)) for _ in range(10)]
            assert {(result.writes, result.condition.reason) for result in suspended} == {(0, Reason.SUSPENDED)}
            assert (await env.cluster.get(CRON_JOB))["spec"]["suspend"] is True
        for key in (CRON_JOB, REPLICA_SET):
            await env.cluster.delete(key)


TEMPLATE: Manifest = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
}


def a_stateful_set() -> statefulset.Resource:
    spec = {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    metadata = {"name": "web", "namespace": "shop"}
    base = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    return statefulset.Builder(base).build()


def a_job() -> job.Resource:
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
    metadata = {"name": "web", "namespace": "shop"}
    base = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    return job.Builder(base).build()


@pytest.mark.promise("cause-in-condition", runs="pods that a quota refuses, beside the real controllers")
@pytest.mark.parametrize(
    ("resource", "text"),
    [
        pytest.param(
            a_stateful_set(),
            "StatefulSet web: FailedCreate: Create Pod web-0 in StatefulSet web failed error: pods is forbidden: ",
            id="of a StatefulSet",
        ),
        pytest.param(a_job(), "Job web: FailedCreate: Error creating: pods is forbidden: ", id="of a Job"),
    ],
)
async def test_a_quota_that_refuses_pods_is_the_cause(
    env: Env, envtest_controllers: Callable[..., AbstractContextManager[None]], resource: Any, text: str
) -> None:
    """Their controllers set no condition; the events that they post have it."""
    quota = ObjectKey("v1", "ResourceQuota", "small", "shop")
    await env.create(quota, spec={"hard": {"pods": "0"}})
    # The controller of quotas, which does not run, would report this.
    await env.report(quota, {"hard": {"pods": "0"}, "used": {"pods": "0"}})
    made = component.Builder("web", condition_type="WebReady").with_resource(resource).with_pod_causes().build()
    try:
        with envtest_controllers(ControllerName.STATEFUL_SET, ControllerName.JOB):
            await env.reconcile(made)
            env.clock.advance(made.poll_interval)

            async def message() -> str:
                return (await env.reconcile(made)).condition.message

            # The event may come before the controller has reported that it has observed the spec.
            found = await eventually(message, lambda seen: "FailedCreate" in seen and "observe" not in seen)
            assert found.startswith(text)
            assert "exceeded quota: small" in found
            # The controller tries again, for a Job with another name of the pod.
            events = ListOptions(namespace="shop", field_selector="reason=FailedCreate")

            async def count() -> int:
                return sum(one.get("count", 1) for one in (await env.cluster.list("v1", "Event", events)).items)

            before = await count()
            await eventually(count, lambda seen: seen > before)
            assert await message() == found
    finally:
        await env.cluster.delete(quota)
