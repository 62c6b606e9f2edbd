"""Each situation of a scaler and its target, for an HPA, a ScaledObject and a scaler of the user's own.

What other operators have got wrong: the count is reset (https://github.com/apache/superset-kubernetes-operator/pull/152,
https://github.com/envoyproxy/gateway/pull/9594, https://github.com/vllm-project/semantic-router/issues/4058,
https://github.com/StarRocks/starrocks-kubernetes-operator/pull/247), and the autoscaler stays when it is switched off
(https://github.com/streamnative/function-mesh/issues/725, https://github.com/Yelp/paasta/pull/2734).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
import pytest_asyncio

from ocf import component
from ocf.cluster import ListOptions, PatchOptions, PatchType, Subresource, Verb, WatchOptions
from ocf.component import Component, Reason
from ocf.component.block import reconciling
from ocf.component.reconcile_components import reconcile_all
from ocf.component.status.results import Action
from ocf.concepts import OperationalStatus, ScaleTarget, StatusReport, SuspensionStatus
from ocf.concepts.recorder import Why
from ocf.editors import Editor
from ocf.errors import TooManyRequestsError
from ocf.objects import Manifest, ObjectKey, copy_json
from ocf.objects.paths import get_field, with_field
from ocf.objects.third_party.base import ApiModel, ApiObject
from ocf.primitives import deployment, hpa, scaledobject
from ocf.primitives.builder import IntegrationBuilder
from ocf.primitives.kind import Handlers, Kind
from ocf.primitives.mutator import BaseMutator, Edits
from ocf.primitives.resource import ScalerResource
from tests.primitives.third_party_definitions import third_party_definitions
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import Env

COUNT: Final = 7
API: Final = ObjectKey("apps/v1", "Deployment", "api", "shop")


class TunerSpec(ApiModel):
    """What is scaled, and how far."""

    target: str
    most: int
    off: bool | None = None


class Tuner(ApiObject):
    """A scaler of the user's own."""

    spec: TunerSpec


class TunerMutator(BaseMutator):
    """Records edits of its spec."""

    edit_spec = Edits(Editor[TunerSpec], "spec")


def _switch_off(mutator: TunerMutator) -> None:
    @mutator.edit_spec
    def _(spec: Editor[TunerSpec]) -> None:
        spec.raw.off = True


def _suspension_status(live: Tuner) -> StatusReport[SuspensionStatus]:
    return StatusReport(SuspensionStatus.SUSPENDED if live.spec.off else SuspensionStatus.SUSPENDING, "off")


class TunerResource(ScalerResource[Tuner, TunerMutator]):
    """It names its target in its own way."""

    def scale_target(self, rendered: Manifest | None = None) -> ScaleTarget:
        name = (rendered or self.render())["spec"]["target"]
        return ScaleTarget(ObjectKey("apps/v1", "Deployment", name, "shop"))


class TunerBuilder(IntegrationBuilder[Tuner, TunerMutator]):
    """Builds it; a suspension switches it off and keeps it."""

    kind = Kind("example.com/v1", "Tuner", f"{__name__}:Tuner", TunerMutator)
    handlers = Handlers(
        status=lambda _operation, _live: StatusReport(OperationalStatus.OPERATIONAL, "tunes"),
        suspend=_switch_off,
        suspension=_suspension_status,
    )

    def build(self) -> TunerResource:
        return self._build(TunerResource)


TUNERS: Final[Manifest] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "tuners.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Tuner", "plural": "tuners", "singular": "tuner", "listKind": "TunerList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
KEDA: Final[Manifest] = next(
    each for each in third_party_definitions() if each["spec"]["names"]["kind"] == "ScaledObject"
)


@dataclass(frozen=True)
class Scaler:
    """A kind of scaler.

    Args:
        base: An object of it, named `web`.
        target: Where the object names its target.
        most: Where it has its upper limit.
        build: Makes a resource.
        is_kept: Whether it is kept while it is suspended.
    """

    base: Manifest
    target: tuple[str, ...]
    most: tuple[str, ...]
    build: Callable[[Manifest], Any]
    is_kept: bool

    def resource(self, name: str = "web", *, target: str = "web", most: int = 10) -> Any:
        base = {**self.base, "metadata": {"name": name, "namespace": "shop"}}
        return self.build(with_field(with_field(base, self.target, target), self.most, most))

    def key(self, name: str = "web") -> ObjectKey:
        return ObjectKey(self.base["apiVersion"], self.base["kind"], name, "shop")


HPA: Final = Scaler(
    {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment"}, "minReplicas": 2},
    },
    ("spec", "scaleTargetRef", "name"),
    ("spec", "maxReplicas"),
    lambda base: hpa.Builder(base).build(),
    is_kept=False,
)
SCALED_OBJECT: Final = Scaler(
    {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "spec": {"scaleTargetRef": {}, "triggers": [{"type": "cron", "metadata": {"timezone": "UTC"}}]},
    },
    ("spec", "scaleTargetRef", "name"),
    ("spec", "maxReplicaCount"),
    lambda base: scaledobject.Builder(base).build(),
    is_kept=True,
)
OWN: Final = Scaler(
    {"apiVersion": "example.com/v1", "kind": "Tuner", "spec": {}},
    ("spec", "target"),
    ("spec", "most"),
    lambda base: TunerBuilder(base).build(),
    is_kept=True,
)
SCALERS: Final = [
    pytest.param(HPA, id="HPA"),
    pytest.param(SCALED_OBJECT, id="ScaledObject"),
    pytest.param(OWN, id="scaler of the user's own"),
]


@pytest_asyncio.fixture(loop_scope="session")
async def world(env: Env, request: pytest.FixtureRequest) -> Env:
    """The environment, in which the kinds of all scalers are served and none of their objects exists."""
    if request.node.callspec.params["new_env"] == "envtest":
        options = ListOptions(namespace="shop")
        for kind in (SCALED_OBJECT, OWN):
            api_version, name = kind.key()[:2]
            # While a busy server fills its cache of a kind anew, lists of it are answered with 429.
            read = partial(env.cluster.list, api_version, name, options)
            page = await eventually(read, lambda page: page is not None, ignore=(TooManyRequestsError,))
            for live in page.items:
                await env.cluster.delete(ObjectKey.of(live))
    else:
        for definition in (KEDA, TUNERS):
            await env.cluster.create(definition, field_manager="user")
    env.cluster.requests.clear()
    return env


@pytest.fixture(autouse=True)
def served(request: pytest.FixtureRequest) -> None:
    """Install the definitions on the real server, outside of the event loop."""
    if request.node.callspec.params["new_env"] == "envtest":
        request.getfixturevalue("shop_plane").install_crds(KEDA, TUNERS)


@pytest.fixture
def api_base(web_base: Manifest) -> Manifest:
    """Another Deployment, `api`."""
    return {**web_base, "metadata": {"name": "api", "namespace": "shop"}}


def of(*resources: Any, name: str = "web", suspended: bool = False, **options: Any) -> Component:
    """Build a component; the options are those of the scalers."""
    builder = component.Builder(name, condition_type=f"{name.capitalize()}Ready").suspend(suspended).with_prune()
    for resource in resources:
        chosen: Any = {} if resource.key.kind == "Deployment" else options
        builder.with_resource(resource, **chosen)
    return builder.build()


def written(env: Env) -> list[str]:
    verbs = (Verb.APPLY, Verb.CREATE, Verb.DELETE, Verb.PATCH, Verb.UPDATE)
    return [
        f"{request.verb} {request.kind} {request.name}"
        for request in env.cluster.requests.of(*verbs)
        if not request.dry_run and request.kind != "Shop"
    ]


async def scaled(env: Env, count: int, key: ObjectKey | None = None) -> None:
    """Set the count as the scaler's controller does."""
    await env.set_scale(key or env.web, count, by="autoscaler")


async def paused(env: Env, key: ObjectKey) -> None:
    """Report the pause as KEDA does."""
    conditions = [{"type": "Paused", "status": "True"}, {"type": "Ready", "status": "True"}]
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="keda", subresource=Subresource.STATUS)
    await env.cluster.patch(key, {"status": {"conditions": conditions}}, options)


async def counts_since(env: Env, version: str) -> set[int]:
    """Return the counts that a watcher has seen since a version of the target."""
    last = (await env.cluster.get(env.web))["metadata"]["resourceVersion"]
    watch = env.cluster.watch("apps/v1", "Deployment", WatchOptions(resource_version=version, namespace="shop"))
    seen = set()
    async for event in watch:
        seen.add(event.object["spec"]["replicas"])
        if event.object["metadata"]["resourceVersion"] == last:
            break
    await watch.aclose()
    return seen


async def assert_in_sync(env: Env, *components: Component) -> None:
    env.cluster.requests.clear()
    await env.reconcile(*components)
    assert written(env) == []


@pytest.mark.promise("scalers", runs="11 situations, on both servers")
@pytest.mark.parametrize("scaler", SCALERS)
class TestScalers:
    """The target declares 4 replicas, which are the count until the scaler takes over."""

    async def test_created(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        subject = of(fixed_web, scaler.resource())
        await world.reconcile(subject)
        await scaled(world, COUNT)
        await assert_in_sync(world, subject)
        assert await world.replicas() == COUNT

    async def test_added_to_a_running_target(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        """The count is handed over without a jump, and the scaler's first write needs no force."""
        await world.reconcile(of(fixed_web))
        before = (await world.cluster.get(world.web))["metadata"]["resourceVersion"]
        subject = of(fixed_web, scaler.resource())
        await world.reconcile(subject)
        await assert_in_sync(world, subject)
        assert await counts_since(world, before) == {4}

    async def test_adopted(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        await world.reconcile(of(fixed_web))
        await world.cluster.create(scaler.resource(most=99).render(), field_manager="kubectl-create")
        await scaled(world, COUNT)
        subject = of(fixed_web, scaler.resource())
        result = await world.reconcile(subject)
        assert result.outcomes[-1].reasons[-1].why is Why.ADOPTED
        live = await world.cluster.get(scaler.key())
        assert get_field(live, scaler.most) == 10
        assert await world.owners(scaler.key()) == ["demo"]
        assert await world.replicas() == COUNT
        await assert_in_sync(world, subject)

    async def test_suspended_and_resumed(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        subject = of(fixed_web, scaler.resource())
        await world.reconcile(subject)
        await scaled(world, COUNT)
        world.cluster.requests.clear()
        await world.reconcile(of(fixed_web, scaler.resource(), suspended=True))
        first = "apply" if scaler.is_kept else "delete"
        assert written(world) == [f"{first} {scaler.key().kind} web", "apply Deployment web"]
        assert await world.replicas() == 0
        assert await world.exists(scaler.key()) is scaler.is_kept
        if scaler is SCALED_OBJECT:
            assert "Waiting for KEDA" in (await world.condition())["message"]
            await paused(world, scaler.key())
        await world.run(0)
        result = await world.reconcile(of(fixed_web, scaler.resource(), suspended=True))
        assert result.condition.reason is Reason.SUSPENDED
        await assert_in_sync(world, of(fixed_web, scaler.resource(), suspended=True))

        before = (await world.cluster.get(world.web))["metadata"]["resourceVersion"]
        world.cluster.requests.clear()
        await world.reconcile(subject)
        kinds = [each.split()[1] for each in written(world)]
        assert kinds[0] == scaler.key().kind
        assert "Deployment" in kinds
        assert await counts_since(world, before) == {COUNT}
        await assert_in_sync(world, subject)

    async def test_renamed(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        await world.reconcile(of(fixed_web, scaler.resource()))
        await scaled(world, COUNT)
        world.cluster.requests.clear()
        subject = of(fixed_web, scaler.resource("new"))
        await world.reconcile(subject)
        kind = scaler.key().kind
        assert written(world) == [f"delete {kind} web", f"apply {kind} new"]
        assert await world.replicas() == COUNT
        await assert_in_sync(world, subject)

    async def test_renamed_while_a_finalizer_holds_the_old_one(
        self, world: Env, fixed_web: deployment.Resource, scaler: Scaler
    ) -> None:
        await world.reconcile(of(fixed_web, scaler.resource()))
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="keda")
        await world.cluster.patch(scaler.key(), {"metadata": {"finalizers": ["finalizer.keda.sh/x"]}}, options)
        subject = of(fixed_web, scaler.resource("new"))
        for _ in range(2):
            assert (await world.reconcile(subject)).condition.reason is Reason.BLOCKED
            assert not await world.exists(scaler.key("new"))
        await world.cluster.patch(scaler.key(), {"metadata": {"finalizers": None}}, options)
        await world.reconcile(subject)
        assert (await world.exists(scaler.key()), await world.exists(scaler.key("new"))) == (False, True)

    async def test_retargeted(
        self, world: Env, fixed_web: deployment.Resource, api_base: Manifest, scaler: Scaler
    ) -> None:
        """The old target has the declared count again, the new one is handed over without a jump."""
        base = copy_json(api_base)
        base["spec"]["replicas"] = 3
        api = deployment.Builder(base).build()
        await world.reconcile(of(fixed_web, api, scaler.resource()))
        await scaled(world, COUNT)
        subject = of(fixed_web, api, scaler.resource(target="api"))
        await world.reconcile(subject)
        assert (await world.replicas(), await world.read_replicas(API)) == (4, 3)
        await scaled(world, COUNT, API)
        await assert_in_sync(world, subject)
        assert await world.read_replicas(API) == COUNT

    @pytest.mark.parametrize("declares", [True, False], ids=["the target declares a count", "it does not"])
    async def test_deleted(
        self,
        world: Env,
        fixed_web: deployment.Resource,
        web: deployment.Resource,
        scaler: Scaler,
        *,
        declares: bool,
    ) -> None:
        """A declared count is taken back, after the scaler is gone; any other one stays."""
        target = fixed_web if declares else web
        await world.reconcile(of(target, scaler.resource()))
        await scaled(world, COUNT)
        world.cluster.requests.clear()
        subject = of(target, scaler.resource(), delete_when=True)
        await world.reconcile(subject)
        assert written(world)[0] == f"delete {scaler.key().kind} web"
        assert await world.replicas() == (4 if declares else COUNT)
        await assert_in_sync(world, subject)

    async def test_the_target_was_deleted(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        """It is made again, and its scaler is not touched."""
        subject = of(fixed_web, scaler.resource())
        await world.reconcile(subject)
        await scaled(world, COUNT)
        await world.cluster.delete(world.web)
        world.cluster.requests.clear()
        await world.reconcile(subject)
        assert written(world) == ["apply Deployment web"]
        await scaled(world, COUNT)
        await assert_in_sync(world, subject)
        assert await world.replicas() == COUNT

    async def test_the_scaler_was_deleted(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        subject = of(fixed_web, scaler.resource())
        await world.reconcile(subject)
        await scaled(world, COUNT)
        await world.cluster.delete(scaler.key())
        result = await world.reconcile(subject)
        assert [outcome.action for outcome in result.outcomes] == [Action.UNCHANGED, Action.CREATED]
        assert await world.replicas() == COUNT

    async def test_at_zero(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        """A target that another client has scaled to zero stays at zero while the component is not suspended."""
        subject = of(fixed_web, scaler.resource())
        await world.reconcile(subject)
        await scaled(world, 0)
        await assert_in_sync(world, subject)
        assert await world.replicas() == 0

    async def test_its_limits_change(self, world: Env, fixed_web: deployment.Resource, scaler: Scaler) -> None:
        await world.reconcile(of(fixed_web, scaler.resource()))
        await scaled(world, COUNT)
        world.cluster.requests.clear()
        await world.reconcile(of(fixed_web, scaler.resource(most=20)))
        assert written(world) == [f"apply {scaler.key().kind} web"]
        assert await world.replicas() == COUNT

    async def test_moved_to_another_component(self, world: Env, web_base: Manifest, scaler: Scaler) -> None:
        """The target names the ignored field then, because a scaler is only known in its own component."""
        target = deployment.Builder(web_base).build()
        await world.reconcile(of(target, scaler.resource()))
        await scaled(world, COUNT)
        uid = (await world.cluster.get(scaler.key()))["metadata"]["uid"]
        old = (
            component.Builder("web", condition_type="WebReady")
            .with_prune()
            .with_resource(target, ignore_fields=["spec.replicas"])
            .build()
        )
        new = of(scaler.resource(), name="scaling")
        for _ in range(2):
            async with reconciling(await world.owner_manifest(), world.cluster, clock=world.clock) as context:
                await reconcile_all(context, old, new)
        assert (await world.cluster.get(scaler.key()))["metadata"]["uid"] == uid
        assert await world.replicas() == COUNT
        world.cluster.requests.clear()
        async with reconciling(await world.owner_manifest(), world.cluster, clock=world.clock) as context:
            await reconcile_all(context, old, new)
        assert written(world) == []


@pytest.mark.promise("scalers", runs="an HPA replaced by a ScaledObject and by a scaler of the user's own, and back")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(HPA, SCALED_OBJECT, id="HPA, ScaledObject"),
        pytest.param(SCALED_OBJECT, HPA, id="ScaledObject, HPA"),
        pytest.param(HPA, OWN, id="HPA, own"),
        pytest.param(OWN, HPA, id="own, HPA"),
    ],
)
async def test_replaced_by_one_of_another_kind(
    world: Env, fixed_web: deployment.Resource, before: Scaler, after: Scaler
) -> None:
    """KEDA rejects a ScaledObject whose target has an HPA: https://github.com/kedacore/keda/issues/5825."""

    def build(*, switched: bool) -> Component:
        builder = component.Builder("web", condition_type="WebReady").with_resource(fixed_web)
        builder.with_resource(after.resource(), delete_when=not switched)
        return builder.with_resource(before.resource(), delete_when=switched).build()

    await world.reconcile(build(switched=False))
    await scaled(world, COUNT)
    world.cluster.requests.clear()
    await world.reconcile(build(switched=True))
    assert written(world) == [f"delete {before.key().kind} web", f"apply {after.key().kind} web"]
    assert await world.replicas() == COUNT
    await assert_in_sync(world, build(switched=True))
