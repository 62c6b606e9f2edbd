"""What happens to the dependents of an object that a component deletes: one option, at each door."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, InterceptingCluster, Propagation
from ocf.component import Finalizer, reconciling
from ocf.component.owner_deletion import DeletionOrder
from ocf.concepts.recorder import NullRecorder
from ocf.errors import BuildError
from ocf.feature import BooleanGate
from ocf.objects import ObjectKey
from ocf.primitives import job, statefulset

if TYPE_CHECKING:
    from collections.abc import Callable

    from ocf.cluster import Cluster
    from ocf.cluster.protocol import Preconditions
    from ocf.component import Component, ReconcileContext, Result
    from ocf.concepts.recorder import Event
    from tests.component.conftest import Env, StaticKind

SET: Final = ObjectKey("apps/v1", "StatefulSet", "web", "shop")
JOB: Final = ObjectKey("batch/v1", "Job", "web", "shop")
ROLE: Final = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "viewer")
STOPPING: Final = {
    None: Propagation.BACKGROUND,
    Propagation.BACKGROUND: Propagation.BACKGROUND,
    Propagation.FOREGROUND: Propagation.FOREGROUND,
    Propagation.ORPHAN: Propagation.BACKGROUND,
}
AS_GIVEN: Final = {**STOPPING, Propagation.ORPHAN: Propagation.ORPHAN}


class Deletes(InterceptingCluster):
    """A cluster that keeps the options of deletes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.sent: dict[ObjectKey, DeleteOptions] = {}

    async def delete(self, key: ObjectKey, options: DeleteOptions = DeleteOptions()) -> None:  # noqa: B008
        self.sent[key] = options
        await self._inner.delete(key, options)

    def policy(self, key: ObjectKey = SET) -> Propagation | None:
        return self.sent[key].propagation


def a_set(service: str = "web", run: str = "1", name: str = "web") -> statefulset.Builder:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    spec = {"serviceName": service, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "shop", "annotations": {"example.com/run": run}}
    return statefulset.Builder({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})


def a_job() -> job.Builder:
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "web", "image": "web"}]}}}
    metadata = {"name": "web", "namespace": "shop"}
    return job.Builder({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def new() -> component.Builder:
    return component.Builder("web", condition_type="WebReady")


@dataclass
class Run:
    """Reconciles of one owner through a cluster that keeps the options of deletes."""

    env: Env
    cluster: Deletes = field(init=False)

    def __post_init__(self) -> None:
        self.cluster = Deletes(self.env.cluster)

    async def __call__(self, subject: Component) -> Result:
        async with reconciling(await self.env.owner_manifest(), self.cluster, clock=self.env.clock) as context:
            return await subject.reconcile(context)


def flagged(propagation: Any, *, made: bool) -> Component:
    return new().with_resource(a_set(), delete_when=not made, propagation=propagation).build()


def gated(propagation: Any, *, made: bool) -> Component:
    return new().with_resource(a_set(), gated_by=BooleanGate(made), propagation=propagation).build()


def switched(propagation: Any, *, made: bool) -> Component:
    return new().with_resource(a_set(), propagation=propagation).with_feature_gate(BooleanGate(made)).build()


def pruned(propagation: Any, *, made: bool) -> Component:
    # Pruned is what is not registered, so it has no option of its own.
    builder = new().with_prune() if propagation is None else new().with_prune(propagation=propagation)
    return builder.with_resource(a_set(name="web" if made else "other")).build()


def immutable(propagation: Any, *, made: bool) -> Component:
    subject = a_set("web" if made else "shop")
    return new().with_resource(subject, recreate_on_immutable_change=True, propagation=propagation).build()


def named(propagation: Any, *, made: bool) -> Component:
    name, subject = "metadata.annotations.example.com/run", a_set(run="1" if made else "2")
    return new().with_resource(subject, recreate_when_changed=[name], propagation=propagation).build()


POLICIES: Final = [pytest.param(each, id=each.lower() if each else "default") for each in (None, *Propagation)]


@pytest.mark.parametrize("propagation", POLICIES)
@pytest.mark.parametrize("door", [flagged, gated, switched, immutable, named])
async def test_a_delete_of_the_component_has_the_policy_of_its_resource(
    env: Env, door: Callable[..., Component], propagation: Propagation | None
) -> None:
    """Asked for: https://github.com/open-telemetry/opentelemetry-operator/issues/5329."""
    run = Run(env)
    await run(door(propagation, made=True))
    live = await env.cluster.get(SET)
    await run(door(propagation, made=False))
    sent = run.cluster.sent[SET]
    assert sent.propagation is AS_GIVEN[propagation]
    as_read: Preconditions | None = sent.preconditions
    assert as_read is not None
    assert (as_read.uid, as_read.resource_version) == (live["metadata"]["uid"], live["metadata"]["resourceVersion"])


@pytest.mark.parametrize("propagation", POLICIES)
async def test_pruning_has_its_own_policy(env: Env, propagation: Propagation | None) -> None:
    run = Run(env)
    await run(pruned(propagation, made=True))
    await run(pruned(propagation, made=False))
    assert run.cluster.policy() is AS_GIVEN[propagation]


@pytest.mark.parametrize("propagation", POLICIES)
async def test_a_suspension_stops_the_dependents_whatever_the_policy(env: Env, propagation: Any) -> None:
    """In the foreground, the object is there until they are gone, and the component is not suspended before."""
    run = Run(env)
    builder = a_job().with_custom_suspend_deletion_decision(lambda _live: True)
    subject = new().with_resource(builder, propagation=propagation)
    await run(subject.build())
    results = [await run(subject.suspend().build()) for _ in range(2)]
    assert run.cluster.policy(JOB) is STOPPING[propagation]
    for result in results:
        is_suspended = result.condition.reason == "Suspended"
        assert not is_suspended or not await env.exists(JOB)


@pytest.mark.parametrize("propagation", POLICIES)
@pytest.mark.parametrize("order", DeletionOrder)
async def test_the_deletion_of_an_owner_keeps_no_dependents(
    env: Env, cluster_role: StaticKind, order: DeletionOrder, propagation: Any
) -> None:
    """Components that go first go in the foreground: the clean-up follows when their pods are gone."""

    async def clean_up(_: ReconcileContext) -> None:
        return None

    run, finalizer = Run(env), Finalizer(on_delete=clean_up, order=order)
    subject = new().with_resource(cluster_role, propagation=propagation).build()

    async def reconcile() -> None:
        async with reconciling(await env.owner_manifest(), run.cluster, clock=env.clock) as context:
            if await component.finalize(context, subject, finalizer=finalizer) is None:
                await subject.reconcile(context)

    await reconcile()
    await env.cluster.delete(env.owner)
    try:
        await reconcile()
        first = order is DeletionOrder.COMPONENTS_FIRST
        assert run.cluster.policy(ROLE) is (Propagation.FOREGROUND if first else STOPPING[propagation])
        # Until the garbage collector has deleted it, the owner stays.
        assert await env.exists(env.owner) or not await env.exists(ROLE)
    finally:
        for key in (ROLE, env.owner):
            if await env.exists(key):
                await env.change(key, metadata={"finalizers": None})


async def test_an_event_names_what_stays(env: Env) -> None:
    run, notes = Run(env), list[str]()

    class Recorder(NullRecorder):
        def happened(self, event: Event) -> None:
            notes.append(event.note)

    await run(gated(Propagation.ORPHAN, made=True))
    owner = await env.owner_manifest()
    async with reconciling(owner, run.cluster, clock=env.clock, recorder=Recorder()) as context:
        await gated(Propagation.ORPHAN, made=False).reconcile(context)
    assert f"Resource {SET} deleted due to closed resource gate; its dependents are kept" in notes


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param(
            {"propagation": "orphan"},
            'propagation must be one of Background, Foreground, Orphan, got "orphan"',
            id="spelling",
        ),
        pytest.param({"propagation": True}, 'got "True"', id="bool"),
        pytest.param(
            {"propagation": "Orphan", "read_only": True},
            "propagation is mutually exclusive with read_only",
            id="read only",
        ),
    ],
)
def test_a_policy_that_is_none_is_rejected(options: Any, problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        new().with_resource(a_set(), **options).build()


def test_that_of_pruning_as_well() -> None:
    policy: Any = "Keep"
    with pytest.raises(BuildError, match=r'propagation of with_prune must be one of [^"]*, got "Keep"'):
        new().with_resource(a_set()).with_prune(propagation=policy).build()
