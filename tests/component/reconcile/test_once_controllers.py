"""A Job that runs once beside the real Job, TTL and garbage collector controllers."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ListOptions
from ocf.component import Component
from ocf.errors import ReconcileError
from ocf.objects import ObjectKey
from ocf.primitives import job
from ocf.testing.envtest import ControllerName
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ocf.objects import Manifest
    from tests.component.conftest import Env

CONTROLLERS: Final = (ControllerName.JOB, ControllerName.GARBAGE_COLLECTOR, "ttl-after-finished-controller")
JOB: Final = ObjectKey("batch/v1", "Job", "migration", "shop")
POD: Final[Manifest] = {"restartPolicy": "Never", "containers": [{"name": "migration", "image": "migration:1"}]}

pytestmark = pytest.mark.parametrize("new_env", ["envtest"], indirect=True)


def subject(key: str) -> Component:
    base = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migration", "namespace": "shop"}}
    spec = {"template": {"spec": POD}, "backoffLimit": 0}
    builder = job.Builder({**base, "spec": spec}).run_once(key, ttl=timedelta(0))
    return component.Builder("web", condition_type="WebReady").with_resource(builder).build()


async def pods(env: Env) -> list[Manifest]:
    return list((await env.cluster.list("v1", "Pod", ListOptions(namespace="shop"))).items)


async def end(env: Env, phase: str) -> str:
    """Let the pod of the Job end, as the kubelet does; return its name."""
    (pod,) = await eventually(lambda: pods(env), lambda found: len(found) == 1)
    code = 0 if phase == "Succeeded" else 1
    ended = {"exitCode": code, "startedAt": "2026-01-31T12:00:00Z", "finishedAt": "2026-01-31T12:00:01Z"}
    containers = [{"name": "migration", "image": "a", "imageID": "a", "ready": False, "restartCount": 0}]
    state: Any = [{**containers[0], "state": {"terminated": ended}}]
    await env.report(ObjectKey.of(pod), {**pod["status"], "phase": phase, "containerStatuses": state})
    return str(pod["metadata"]["name"])


@pytest.mark.promise("run-once", runs="two keys, beside the real Job, TTL and garbage collector controllers")
@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        pytest.param("Succeeded", "Healthy", id="that succeeds"),
        pytest.param("Failed", "TaskFailing", id="that fails"),
    ],
)
async def test_a_run_is_not_repeated_after_its_ttl(
    env: Env, envtest_controllers: Callable[..., AbstractContextManager[None]], phase: str, reason: str
) -> None:
    """https://github.com/ansible/awx-resource-operator/issues/49, with a time to live of nothing."""
    names = set()
    with envtest_controllers(*CONTROLLERS):
        for key in ("1", "2"):
            await eventually(partial(env.reconcile, subject(key)), ignore=(ReconcileError,))
            await eventually(lambda: env.exists(JOB))
            names.add(await end(env, phase))

            async def is_gone(key: str = key) -> bool:
                await env.reconcile(subject(key))
                return not await env.exists(JOB)

            await eventually(is_gone, ignore=(ReconcileError,))
            await eventually(lambda: pods(env), lambda found: not found)
            results = [await env.reconcile(subject(key)) for _ in range(5)]
            assert {(str(one.condition.reason), one.writes) for one in results} == {(reason, 0)}
            assert not await env.exists(JOB)
    assert len(names) == 2


async def test_the_run_of_another_key_begins_when_the_pods_of_the_earlier_one_are_gone(
    env: Env, envtest_controllers: Callable[..., AbstractContextManager[None]]
) -> None:
    with envtest_controllers(*CONTROLLERS):
        await env.reconcile(subject("1"))
        (first,) = await eventually(lambda: pods(env), lambda found: len(found) == 1)

        async def runs() -> bool:
            await env.reconcile(subject("2"))
            found = await pods(env)
            assert len(found) <= 1
            return bool(found) and found[0]["metadata"]["name"] != first["metadata"]["name"]

        await eventually(runs, ignore=(ReconcileError,))
        assert (await env.cluster.get(JOB))["metadata"]["labels"]["ocf.dev/run"] == "2"
