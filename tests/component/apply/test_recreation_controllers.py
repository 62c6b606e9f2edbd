"""Recreated workloads beside the real controllers and garbage collector: which pods go, which stay, and in which order.

There are no nodes, so pods stay pending, and end at once when they are deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ListOptions, Propagation
from ocf.objects import ObjectKey
from ocf.primitives import statefulset
from ocf.testing.envtest import ControllerName
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ocf.component import Component
    from ocf.objects import Manifest
    from tests.component.conftest import Env

    RunControllers = Callable[..., AbstractContextManager[None]]

pytestmark = pytest.mark.parametrize("new_env", ["envtest"], indirect=True)

CONTROLLERS: Final = (ControllerName.STATEFUL_SET, ControllerName.GARBAGE_COLLECTOR)
SET: Final = ObjectKey("apps/v1", "StatefulSet", "web", "shop")
LABELS: Final = {"app": "web"}


def claim(name: str, size: str) -> Manifest:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": spec}


def subject(propagation: Propagation, *claims: Manifest, **spec: Any) -> Component:
    mounts = [{"name": each["metadata"]["name"], "mountPath": f"/{each['metadata']['name']}"} for each in claims]
    pod = {"containers": [{"name": "web", "image": "web", "volumeMounts": mounts}]}
    template = {"metadata": {"labels": LABELS}, "spec": pod}
    common: Manifest = {
        "replicas": 2,
        "podManagementPolicy": "Parallel",
        "serviceName": "web",
        "selector": {"matchLabels": LABELS},
        "template": template,
        "volumeClaimTemplates": list(claims),
    }
    metadata = {"name": "web", "namespace": "shop"}
    base = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": common | spec}
    return (
        component.Builder("web", condition_type="WebReady")
        .with_resource(statefulset.Builder(base), recreate_on_immutable_change=True, propagation=propagation)
        .build()
    )


async def pods(env: Env) -> dict[str, tuple[str, str]]:
    """Return the uid of each pod and of its controller."""
    found = await env.cluster.list("v1", "Pod", ListOptions(namespace="shop", label_selector="app=web"))
    return {
        live["metadata"]["name"]: (
            live["metadata"]["uid"],
            next((one["uid"] for one in live["metadata"].get("ownerReferences", [])), ""),
        )
        for live in found.items
    }


async def until_controlled(env: Env, uid: str) -> dict[str, tuple[str, str]]:
    """Wait until both pods belong to the StatefulSet with a uid."""
    return await eventually(lambda: pods(env), lambda found: [one for _, one in sorted(found.values())] == [uid, uid])


async def until_recreated(env: Env, changed: Component, before: str) -> tuple[Manifest, list[str]]:
    """Reconcile until there is a new object; return it, and the messages of the conditions on the way."""
    messages: list[str] = []

    async def live() -> Manifest:
        result = await env.reconcile(changed)
        if result.condition.message not in messages:
            messages.append(result.condition.message)
        found = await env.cluster.list("apps/v1", "StatefulSet", ListOptions(namespace="shop"))
        return next(iter(found.items), {"metadata": {"uid": before}})

    return await eventually(live, lambda found: found["metadata"]["uid"] != before), messages


SMALL: Final = claim("data", "1Gi")
CHANGES: Final[list[Any]] = [
    pytest.param([SMALL], {"serviceName": "shop"}, id="service"),
    pytest.param([claim("data", "2Gi")], {}, id="size of a claim"),
    pytest.param([SMALL], {"podManagementPolicy": "OrderedReady"}, id="order of pods"),
]


@pytest.mark.promise("recreate-orphan")
@pytest.mark.parametrize(("claims", "changed"), CHANGES)
async def test_the_pods_keep_running_and_belong_to_the_new_object(
    env: Env, envtest_controllers: RunControllers, claims: list[Manifest], changed: Manifest
) -> None:
    """Asked for: https://github.com/pulumi/pulumi-kubernetes/issues/1831."""
    with envtest_controllers(*CONTROLLERS):
        await env.reconcile(subject(Propagation.ORPHAN, SMALL))
        old = (await env.cluster.get(SET))["metadata"]["uid"]
        before = await until_controlled(env, old)
        made, _ = await until_recreated(env, subject(Propagation.ORPHAN, *claims, **changed), old)
        after = await until_controlled(env, made["metadata"]["uid"])
        assert {name: uid for name, (uid, _) in after.items()} == {name: uid for name, (uid, _) in before.items()}
        assert await env.owners(SET) == ["demo"]
        again = await env.reconcile(subject(Propagation.ORPHAN, *claims, **changed))
        assert again.writes == 0
        # Not even later: the new object has taken over the revision of the pods, too.
        await eventually(lambda: env.cluster.get(SET), lambda live: live["status"].get("updatedReplicas") == 2)
        assert await pods(env) == after
        await env.cluster.delete(SET)


async def test_in_the_foreground_the_new_object_comes_when_the_pods_are_gone(
    env: Env, envtest_controllers: RunControllers
) -> None:
    """Nothing is deleted twice meanwhile: https://github.com/prometheus-operator/prometheus-operator/issues/4519."""
    changed = subject(Propagation.FOREGROUND, SMALL, serviceName="shop")
    with envtest_controllers(*CONTROLLERS):
        await env.reconcile(subject(Propagation.FOREGROUND, SMALL))
        old = (await env.cluster.get(SET))["metadata"]["uid"]
        before = await until_controlled(env, old)
        pod = ObjectKey("v1", "Pod", "web-0", "shop")
        await env.change(pod, metadata={"finalizers": ["example.com/hold"]})
        # The delete may be sent twice: the StatefulSet controller may write the status between the read and the delete.
        assert (await env.reconcile(changed)).writes == 1
        env.cluster.requests.clear()
        await eventually(lambda: pods(env), lambda found: list(found) == ["web-0"])
        waiting = [await env.reconcile(changed) for _ in range(5)]
        assert {one.writes for one in waiting} == {0}
        assert waiting[-1].condition.message.endswith(
            "the garbage collector deletes its dependents first, and waits for their finalizers"
        )
        assert (await env.cluster.get(SET))["metadata"]["uid"] == old
        assert "delete" not in {request.verb for request in env.cluster.requests}
        await env.change(pod, metadata={"finalizers": None})
        made, _ = await until_recreated(env, changed, old)
        after = await until_controlled(env, made["metadata"]["uid"])
        assert not {uid for uid, _ in before.values()} & {uid for uid, _ in after.values()}
        await env.cluster.delete(SET)


async def test_a_pod_without_an_added_claim_stays_as_it_is_until_it_is_deleted(
    env: Env, envtest_controllers: RunControllers
) -> None:
    """What the page about the kind says of https://github.com/kubernetes/kubernetes/issues/141876."""
    changed = subject(Propagation.ORPHAN, SMALL, claim("logs", "1Gi"))
    with envtest_controllers(*CONTROLLERS):
        await env.reconcile(subject(Propagation.ORPHAN, SMALL))
        before = await until_controlled(env, (await env.cluster.get(SET))["metadata"]["uid"])
        made, _ = await until_recreated(env, changed, (await env.cluster.get(SET))["metadata"]["uid"])
        await until_controlled(env, made["metadata"]["uid"])
        events = ListOptions(namespace="shop", field_selector="reason=FailedUpdate")
        await eventually(lambda: env.cluster.list("v1", "Event", events), lambda found: bool(found.items))
        after = await pods(env)
        assert {uid for uid, _ in after.values()} == {uid for uid, _ in before.values()}
        for name in before:
            await env.cluster.delete(ObjectKey("v1", "Pod", name, "shop"))
        await eventually(
            lambda: pods(env),
            lambda found: (
                len(found) == 2 and not {uid for uid, _ in found.values()} & {uid for uid, _ in before.values()}
            ),
        )
        volumes = (await env.cluster.get(ObjectKey("v1", "Pod", "web-0", "shop")))["spec"]["volumes"]
        assert {"data", "logs"} <= {each["name"] for each in volumes}
        await env.cluster.delete(SET)
