"""A namespace that is being deleted: what is in it is left to Kubernetes, and what is refused is not a failure.

Publicly reported of other operators: errors and retries without end until the namespace is gone
(https://github.com/redpanda-data/redpanda/issues/1043, https://github.com/open-telemetry/opentelemetry-operator/pull/1233,
https://github.com/kubernetes-sigs/agent-sandbox/pull/1617, https://github.com/ansible/awx-operator/issues/228).
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

import pytest
import pytest_asyncio

from ocf import component
from ocf.cluster import ApplyCache
from ocf.component import (
    Component,
    DeletionOrder,
    Finalizer,
    Reason,
    ReconcileContext,
    finalize,
    reconcile_all,
    reconciling,
)
from ocf.feature import BooleanGate
from ocf.objects import ObjectKey
from ocf.primitives import configmap, deployment, hpa, networkpolicy
from ocf.testing import RecordingCluster
from ocf_server import CustomKind, EmbeddedCluster
from tests.component.conftest import Env

if TYPE_CHECKING:
    from ocf.cluster import Cluster
    from ocf.component import FinalizationResult, Result
    from ocf.objects import Manifest
    from ocf.testing import VirtualClock

NUMBERS: Final = count()
POLICY: Final = ("networking.k8s.io/v1", "NetworkPolicy")


@pytest.fixture(params=["embedded", "envtest"])
def server(request: pytest.FixtureRequest, clock: VirtualClock) -> Cluster:
    """A cluster in which no controller deletes what is in a namespace."""
    if request.param == "embedded":
        return EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], now=clock.now, collect=False)
    found: Cluster = request.getfixturevalue("shop_server")
    return found


@pytest_asyncio.fixture(loop_scope="session")
async def ending(server: Cluster, clock: VirtualClock) -> Env:
    """An owner in a namespace of its own."""
    namespace = f"ending-{next(NUMBERS)}"
    await server.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}, field_manager="user"
    )
    metadata = {"name": "demo", "namespace": namespace}
    owner = {"apiVersion": "example.com/v1", "kind": "Shop", "metadata": metadata}
    await server.create(owner, field_manager="user")
    return Env(RecordingCluster(server, apply_cache=ApplyCache()), ObjectKey.of(owner), clock)


def key(env: Env, api_version: str, kind: str) -> ObjectKey:
    return ObjectKey(api_version, kind, "web", env.owner.namespace)


def base(env: Env, api_version: str, kind: str, **content: object) -> Manifest:
    metadata = {"name": "web", "namespace": env.owner.namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def policy(env: Env) -> networkpolicy.Resource:
    spec = {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}
    return networkpolicy.Builder(base(env, "networking.k8s.io/v1", "NetworkPolicy", spec=spec)).build()


def settings(env: Env) -> configmap.Resource:
    return configmap.Builder(base(env, "v1", "ConfigMap", data={"motto": "open"})).build()


def workload(env: Env) -> tuple[deployment.Resource, hpa.Resource]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaled = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}
    return (
        deployment.Builder(base(env, "apps/v1", "Deployment", spec=spec)).build(),
        hpa.Builder(base(env, "autoscaling/v2", "HorizontalPodAutoscaler", spec=scaled)).build(),
    )


async def end(env: Env) -> None:
    await env.cluster.delete(ObjectKey("v1", "Namespace", env.owner.namespace))


async def writes(env: Env, subject: Component) -> tuple[Result, list[str]]:
    """Reconcile, and return what was written."""
    before = len(env.cluster.requests)
    result = await env.reconcile(subject)
    sent = list(env.cluster.requests)[before:]
    return result, [f"{one.verb} {one.kind}" for one in sent if not (one.verb.is_read or one.dry_run)]


def web() -> component.Builder:
    return component.Builder("web", condition_type="WebReady")


def later(env: Env) -> dict[str, Component]:
    """Return forms of the component that delete the policy or the autoscaler, by why."""
    other = {"name": "other", "namespace": env.owner.namespace}
    renamed = networkpolicy.Builder({**policy(env).render(), "metadata": other}).build()
    return {
        "delete_when": web().with_resource(policy(env), delete_when=True).build(),
        "gate": web().with_resource(policy(env), gated_by=BooleanGate(False)).build(),
        "disabled": web().with_resource(policy(env)).with_feature_gate(BooleanGate(False)).build(),
        "pruned": web().with_resource(renamed, delete_when=True).with_prune().build(),
        "suspended": web().with_resource(workload(env)[0]).with_resource(workload(env)[1]).suspend().build(),
    }


@pytest.mark.promise("ending-namespace", runs="5 reasons to delete an object, on both servers")
@pytest.mark.parametrize("why", ["delete_when", "gate", "disabled", "pruned", "suspended"])
async def test_an_object_in_a_namespace_that_ends_is_left_to_kubernetes(ending: Env, why: str) -> None:
    first = web()
    for one in (policy(ending), *workload(ending)):
        first = first.with_resource(one)
    await ending.reconcile(first.build())
    await end(ending)
    _, written = await writes(ending, later(ending)[why])
    assert [one for one in written if one.startswith("delete")] == []
    assert "deletionTimestamp" not in (await ending.cluster.get(key(ending, *POLICY)))["metadata"]


@pytest.mark.parametrize("why", ["delete_when", "gate", "disabled", "pruned", "suspended"])
async def test_in_any_other_namespace_it_is_deleted(ending: Env, why: str) -> None:
    first = web()
    for one in (policy(ending), *workload(ending)):
        first = first.with_resource(one)
    await ending.reconcile(first.build())
    _, written = await writes(ending, later(ending)[why])
    kind = "HorizontalPodAutoscaler" if why == "suspended" else "NetworkPolicy"
    assert [one for one in written if one.startswith("delete")] == [f"delete {kind}"]


@pytest.mark.promise("ending-namespace", runs="a clean-up that stops the pods first, on both servers")
async def test_a_clean_up_that_deletes_objects_first_waits_until_kubernetes_has(ending: Env) -> None:
    """The namespace is deleted, and with it the owner; the policy must not go before the pods that it protects."""
    calls: list[str] = []

    async def on_delete(context: ReconcileContext) -> None:
        calls.append(context.owned_by.key.name)

    finalizer = Finalizer(on_delete=on_delete, order=DeletionOrder.COMPONENTS_FIRST)

    async def run() -> FinalizationResult | None:
        owner = await ending.owner_manifest()
        subject = web().with_resource(policy(ending)).build()
        async with reconciling(owner, ending.cluster, clock=ending.clock) as context:
            if (ended := await finalize(context, subject, finalizer=finalizer)) is None:
                await reconcile_all(context, subject)
        return ended

    await run()
    await end(ending)
    await ending.cluster.delete(ending.owner)
    waiting = await run()
    assert waiting is not None
    assert (waiting.remaining, calls) == ((key(ending, *POLICY),), [])
    assert "deletionTimestamp" not in (await ending.cluster.get(key(ending, *POLICY)))["metadata"]
    # The namespace controller deletes it.
    await ending.cluster.delete(key(ending, *POLICY))
    await run()
    assert calls == ["demo"]
    assert not await ending.exists(ending.owner)


@pytest.mark.promise("ending-namespace", runs="a create that is refused, on both servers")
async def test_what_cannot_be_created_any_more_is_not_a_failure(ending: Env) -> None:
    subject = web().with_resource(settings(ending)).with_resource(policy(ending)).build()
    await ending.reconcile(subject)
    await end(ending)
    await ending.cluster.delete(key(ending, "v1", "ConfigMap"))
    result, written = await writes(ending, subject)
    identity = f"v1/ConfigMap/{ending.owner.namespace}/web"
    assert (result.condition.reason, result.condition.message) == (
        Reason.BLOCKED,
        f'namespace "{ending.owner.namespace}" is being deleted: {identity} is not created',
    )
    assert result.requeue_after == subject.poll_interval
    # The refused apply, and the condition, once.
    assert written == ["apply ConfigMap", "update Shop"]
    assert (await writes(ending, subject))[1] == ["apply ConfigMap"]


async def test_a_suspension_in_a_namespace_that_ends_waits(ending: Env) -> None:
    await end(ending)
    subject = web().with_resource(workload(ending)[0]).suspend().build()
    result, _ = await writes(ending, subject)
    assert result.condition.reason == Reason.SUSPENDING
    assert "is being deleted" in result.condition.message


async def clean_up(env: Env, owner: Manifest, found: list[bool]) -> FinalizationResult | None:
    """Reconcile an owner whose clean-up needs the ConfigMap."""

    async def on_delete(context: ReconcileContext) -> None:
        del context
        found.append(await env.exists(key(env, "v1", "ConfigMap")))

    subject = web().with_resource(settings(env), held_for_cleanup=True).build()
    async with reconciling(owner, env.cluster, clock=env.clock) as context:
        if (ended := await finalize(context, subject, finalizer=Finalizer(on_delete=on_delete))) is None:
            await reconcile_all(context, subject)
    return ended


@pytest.mark.promise("held-objects", runs="an object that goes before its owner, on both servers")
async def test_a_held_object_that_the_namespace_controller_deletes_before_its_owner_stays(ending: Env) -> None:
    found: list[bool] = []
    await clean_up(ending, await ending.owner_manifest(), found)
    await end(ending)
    await ending.cluster.delete(key(ending, "v1", "ConfigMap"))
    for _ in range(2):
        await clean_up(ending, await ending.owner_manifest(), found)
        assert await ending.exists(key(ending, "v1", "ConfigMap"))
    assert "is held for the clean-up" in (await ending.condition())["message"]
    await ending.cluster.delete(ending.owner)
    await clean_up(ending, await ending.owner_manifest(), found)
    assert found == [True]
    assert not await ending.exists(key(ending, "v1", "ConfigMap"))
    assert not await ending.exists(ending.owner)


@pytest.mark.promise("held-objects", runs="a deletion that is seen at the object first, on both servers")
async def test_a_held_object_stays_if_the_deletion_of_its_owner_is_not_seen_yet(ending: Env) -> None:
    """Each kind has a watch of its own, so the cache may know of the one before it knows of the other."""
    found: list[bool] = []
    await clean_up(ending, await ending.owner_manifest(), found)
    stale = await ending.owner_manifest()
    await ending.cluster.delete(ending.owner)
    await ending.cluster.delete(key(ending, "v1", "ConfigMap"))
    await clean_up(ending, stale, found)
    assert await ending.exists(key(ending, "v1", "ConfigMap"))
    await clean_up(ending, await ending.owner_manifest(), found)
    assert found == [True]
    assert not await ending.exists(ending.owner)


async def test_a_held_object_that_a_user_deletes_is_released_and_made_again(ending: Env) -> None:
    found: list[bool] = []
    await clean_up(ending, await ending.owner_manifest(), found)
    before = await ending.cluster.get(key(ending, "v1", "ConfigMap"))
    before_requests = len(ending.cluster.requests)
    await clean_up(ending, await ending.owner_manifest(), found)
    # Nothing is written for what is held already.
    assert [one for one in list(ending.cluster.requests)[before_requests:] if not one.verb.is_read] == []
    await ending.cluster.delete(key(ending, "v1", "ConfigMap"))
    for _ in range(2):
        await clean_up(ending, await ending.owner_manifest(), found)
    after = await ending.cluster.get(key(ending, "v1", "ConfigMap"))
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["metadata"]["finalizers"] == ["ocf.ocf.dev/held-for-cleanup"]
