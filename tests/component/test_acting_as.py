"""A component that acts as another user has the rights of that user, in each request about its objects, and no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import ApplyCache, Cluster, Request, ServiceAccount, Verb
from ocf.cluster.cache import CachedCluster
from ocf.cluster.interceptor import InterceptingCluster, key_of
from ocf.component import Adoption, Component, Conflicts, DeletionOrder, Finalizer, finalize, reconciling
from ocf.component.diff import diff
from ocf.component.owner_deletion import SKIP_CLEANUP
from ocf.errors import BuildError, ReconcileError, api_error
from ocf.feature import BooleanGate
from ocf.objects import Manifest, ObjectKey
from ocf.primitives import clusterrole, configmap, deployment, hpa
from ocf.testing import FaultyCluster, RecordingCluster, faults
from ocf_server import CustomKind, EmbeddedCluster
from tests.component.conftest import SHOP

if TYPE_CHECKING:
    from tests.component.conftest import Env

DEPLOYER: Final = ServiceAccount("deployer", "shop")
MASTERS: Final = ("system:masters",)
CONFIG: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
ROLE: Final = ObjectKey("rbac.authorization.k8s.io/v1", "ClusterRole", "viewer")
AUTOSCALER: Final = {
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 3},
}
_PLURALS: Final = {"ConfigMap": ("", "configmaps"), "ClusterRole": ("rbac.authorization.k8s.io", "clusterroles")}


def settings(name: str = "settings", **data: str) -> configmap.Builder:
    return configmap.Builder({"metadata": {"name": name, "namespace": "shop"}, "data": data})


def viewer() -> clusterrole.Builder:
    return clusterrole.Builder({"metadata": {"name": "viewer"}, "rules": []})


def built(*resources: Any, user: str | ServiceAccount | None = DEPLOYER, **options: Any) -> Component:
    made = component.Builder("web", condition_type="WebReady").with_prune(kinds=[("v1", "ConfigMap")])
    if user is not None:
        made.acting_as(user, groups=() if isinstance(user, ServiceAccount) else MASTERS)
    for resource in resources:
        made.with_resource(resource, **options)
    return made.build()


class Authorizing(InterceptingCluster):
    """A cluster that rejects, with the text of the API server, the requests that no role of the user allows.

    Attributes:
        allowed: Verb, resource and user of what is allowed, beside everything for the user of the operator.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.allowed: set[tuple[str, str, str]] = set()

    def allow(self, user: ServiceAccount, *verbs: str, resource: str = "configmaps") -> None:
        self.allowed |= {(verb, resource, user.username) for verb in verbs}

    async def intercept(self, request: Request, send: Callable[[], Awaitable[Any]]) -> Any:
        group, plural = _PLURALS.get(request.kind, ("", ""))
        verb = "patch" if request.verb is Verb.APPLY else str(request.verb)
        if request.user and (verb, plural, request.user) not in self.allowed:
            where = f'in the namespace "{request.namespace}"' if request.namespace else "at the cluster scope"
            raise api_error(
                f'{plural} "{request.name}" is forbidden: User "{request.user}" cannot {verb} resource "{plural}" in'
                f' API group "{group}" {where}',
                code=403,
                reason="Forbidden",
            )
        return await send()


class World:
    """An owner whose components act as other users, on a cluster that authorizes them, behind a cache or not."""

    def __init__(self) -> None:
        self.server = EmbeddedCluster(kinds=[CustomKind("example.com", "v1", "Shop")], namespaces=("shop",))
        self.authorizing = Authorizing(self.server)
        self.cluster = RecordingCluster(self.authorizing, apply_cache=ApplyCache())
        self.owner = ObjectKey.of(SHOP)

    async def reconcile(
        self, *components: Component, cluster: Cluster | None = None, finalizer: Finalizer | None = None
    ) -> None:
        async with reconciling(await self.server.get(self.owner), cluster or self.cluster) as context:
            if await finalize(context, *components, finalizer=finalizer) is None:
                for one in components:
                    await one.reconcile(context)

    async def condition(self, name: str = "WebReady") -> Manifest:
        conditions = (await self.server.get(self.owner))["status"]["conditions"]
        return next(one for one in conditions if one["type"] == name)

    def sent(self, *verbs: Verb, user: str | None = None) -> list[str]:
        """Return the requests since the last call of these verbs, with the name of their object."""
        found = [f"{one.verb} {one.name}" for one in self.cluster.requests.of(*verbs) if user in (None, one.user)]
        self.cluster.requests.clear()
        return found


@pytest.fixture
async def world() -> World:
    made = World()
    await made.server.create(SHOP, field_manager="user")
    return made


def users_of(cluster: RecordingCluster, owner: ObjectKey) -> dict[bool, set[str]]:
    """Return the users of the requests about owners (True), and about all other objects (False)."""
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for request in cluster.requests:
        found[request.kind == owner.kind].add(request.user)
    return found


async def test_owners_that_change_the_account_have_no_rival(world: World) -> None:
    """What the operator has written as one account and writes as another one is its own write, not that of a rival."""
    accounts = [ServiceAccount(name, "shop") for name in ("first", "second")]
    for account in accounts:
        world.authorizing.allow(account, "get", "list", "create", "patch", "delete")
    for turn in range(10):
        await world.reconcile(built(settings(turn=str(turn % 2)), user=accounts[turn % 2]))
        assert (await world.server.get(CONFIG))["data"] == {"turn": str(turn % 2)}


class TestLifecycle:
    """Each request about an object of the component is the other user's, each about the owner is the operator's."""

    async def check(self, env: Env, *steps: Callable[[], Awaitable[object]] | Component) -> list[Verb]:
        cluster = RecordingCluster(env.cluster, apply_cache=ApplyCache())
        for step in steps:
            if not isinstance(step, Component):
                await step()
                continue
            async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
                if await finalize(context, step) is None:
                    await step.reconcile(context)
        assert users_of(cluster, env.owner) == {True: {""}, False: {"jane"}}
        return [request.verb for request in cluster.writes if key_of(request) != env.owner]

    async def test_create_change_and_prune(self, env: Env) -> None:
        first = built(settings(a="1"), settings("other"), user="jane")
        changed = built(settings(a="2"), user="jane")
        assert await self.check(env, first, changed)
        assert not await env.exists(ObjectKey("v1", "ConfigMap", "other", "shop"))

    async def test_suspension_and_resumption(self, env: Env, web_base: Manifest) -> None:
        """With a scaler, whose target is handed over, deleted on suspension and made again."""

        def of(*, suspended: bool) -> Component:
            made = component.Builder("web", condition_type="WebReady").acting_as("jane", groups=MASTERS)
            made.with_resource(deployment.Builder(web_base)).with_resource(hpa.Builder(AUTOSCALER))
            return made.suspend(suspended).build()

        running, suspended = of(suspended=False), of(suspended=True)
        verbs = await self.check(env, running, lambda: env.scale(2), running, suspended, suspended, running)
        assert {Verb.APPLY, Verb.DELETE} <= set(verbs)
        assert await env.replicas() == 2

    async def test_recreation(self, env: Env) -> None:
        when = ["data.a"]
        first, second = (built(settings(a=value), user="jane", recreate_when_changed=when) for value in "12")
        verbs = await self.check(env, first, second, second)
        assert Verb.DELETE in verbs
        assert (await env.cluster.get(CONFIG))["data"] == {"a": "2"}

    async def test_recreation_after_an_immutable_change(self, env: Env, web_base: Manifest) -> None:
        """Which is tried before anything is deleted."""
        template = {**web_base["spec"]["template"], "metadata": {"labels": {"app": "other"}}}
        other = {**web_base, "spec": {"selector": {"matchLabels": {"app": "other"}}, "template": template}}
        option = "recreate_on_immutable_change"
        first, second = (built(deployment.Builder(base), user="jane", **{option: True}) for base in (web_base, other))
        assert Verb.DELETE in await self.check(env, first, second, second)
        assert (await env.cluster.get(env.web))["spec"]["selector"] == {"matchLabels": {"app": "other"}}

    async def test_an_object_that_another_client_creates_first(self, env: Env) -> None:
        """The latest state is read as the user, too, where no cache has it."""

        async def create() -> None:
            await env.create(CONFIG, data={"a": "0"})

        between = FaultyCluster(env.cluster, [faults.meanwhile(create, verbs=[Verb.CREATE], times=1)])
        cluster = RecordingCluster(between, apply_cache=ApplyCache())
        async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
            result = await built(settings(a="1"), user="jane", adopt=Adoption.NEVER).reconcile(context)
        between.assert_all_injected()
        assert result.condition.reason == "Blocked"
        assert users_of(cluster, env.owner)[False] == {"jane"}

    async def test_a_kind_that_may_be_missing(self, env: Env) -> None:
        await self.check(env, built(settings(), user="jane", only_if_served=True))

    async def test_adoption_and_takeover(self, env: Env) -> None:
        await env.create(CONFIG, data={"a": "0", "b": "0"})
        made = component.Builder("web", condition_type="WebReady").acting_as("jane", groups=MASTERS)
        adopting = made.with_former_managers("kubectl-edit").with_resource(settings(a="1")).build()
        await self.check(env, adopting, adopting)
        assert (await env.cluster.get(CONFIG))["data"] == {"a": "1"}

    async def test_values_that_are_set_once(self, env: Env) -> None:
        first = built(settings(a="1"), user="jane")
        await self.check(env, first, built(settings(a="1"), user="jane", set_once=["data.a"]))
        assert (await env.cluster.get(CONFIG))["data"] == {"a": "1"}

    @pytest.mark.parametrize(
        "options", [{"gated_by": BooleanGate(False)}, {"orphan_when": True}, {"delete_when": True}]
    )
    async def test_deletion_and_orphaning(self, env: Env, options: dict[str, Any]) -> None:
        assert await self.check(env, built(settings(), user="jane"), built(settings(), user="jane", **options))

    async def test_fields_of_an_object_of_another_writer(self, env: Env) -> None:
        await env.create(CONFIG, data={"a": "0"})
        only = {"writes": "update-only"}
        setting, done = built(settings(b="1"), user="jane", **only), built(user="jane")
        dropped = built(settings(b="1"), user="jane", **only, gated_by=BooleanGate(False))
        assert await self.check(env, setting, dropped, done)
        assert (await env.cluster.get(CONFIG))["data"] == {"a": "0"}

    async def test_what_the_garbage_collector_leaves_behind(self, env: Env) -> None:
        subject = built(viewer(), settings("copy"), user="jane")
        await self.check(env, subject, lambda: env.cluster.delete(env.owner), subject)
        assert not await env.exists(ROLE)

    async def test_a_diff_sends_dry_runs_as_the_user(self, env: Env) -> None:
        await env.reconcile(built(settings(a="1"), settings("other"), user="jane"))
        cluster = RecordingCluster(env.cluster, apply_cache=ApplyCache())
        found = await diff([built(settings(a="2"), user="jane")], await env.owner_manifest(), cluster)
        assert [one.verb for one in found[0].objects] == ["update", "delete"]
        assert all(request.dry_run for request in cluster.requests if not request.verb.is_read)
        assert users_of(cluster, env.owner)[False] == {"jane"}

    @pytest.mark.embedded_only("there is no garbage collector beside the real API server to end a foreground deletion")
    async def test_objects_that_are_deleted_before_on_delete(self, env: Env) -> None:
        subject, cluster = built(settings(), user="jane"), RecordingCluster(env.cluster, apply_cache=ApplyCache())

        async def on_delete(_: object) -> None:
            assert not await env.exists(CONFIG)

        finalizer = Finalizer(on_delete=on_delete, order=DeletionOrder.COMPONENTS_FIRST)
        for _ in range(4):
            async with reconciling(await env.owner_manifest(), cluster, clock=env.clock) as context:
                done = await finalizer.begin(context) and await finalize(context, subject, finalizer=finalizer) is None
                if done:
                    await subject.reconcile(context)
            if not await env.exists(env.owner):
                break
            if not context.is_ending:
                await env.cluster.delete(env.owner)
        assert not await env.exists(env.owner)
        assert users_of(cluster, env.owner) == {True: {""}, False: {"jane"}}


class TestReads:
    async def test_cached_kinds_are_read_by_the_operator_and_written_as_the_user(self, world: World) -> None:
        """The account needs no right to read, nor to list and watch in all namespaces."""
        world.authorizing.allow(DEPLOYER, "patch", "create")
        async with CachedCluster(world.cluster) as cached:
            for value in "12":
                await world.reconcile(built(settings(a=value)), cluster=cached)
        assert {one.user for one in world.cluster.requests.of(Verb.GET, Verb.LIST, Verb.WATCH)} == {""}
        assert world.sent(Verb.APPLY, user=DEPLOYER.username) == ["apply settings", "apply settings"]

    async def test_a_quiet_component_stays_quiet_when_it_begins_to_act_as_a_user(self, world: World) -> None:
        """It has the same field manager, so nothing is handed over."""
        await world.reconcile(built(settings(a="1"), user=None))
        world.authorizing.allow(DEPLOYER, "get", "list")
        world.cluster.requests.clear()
        await world.reconcile(built(settings(a="1")))
        assert world.cluster.writes == ()


class TestRights:
    async def test_a_refused_write_names_the_account_and_the_missing_rule(self, world: World) -> None:
        world.authorizing.allow(DEPLOYER, "get", "list")
        with pytest.raises(ReconcileError):
            await world.reconcile(built(settings(a="1")))
        condition = await world.condition()
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        assert condition["message"].endswith(
            'User "system:serviceaccount:shop:deployer" cannot patch resource "configmaps" in API group "" in the'
            ' namespace "shop"; allow it with the rule {"apiGroups": [""], "resources": ["configmaps"],'
            ' "resourceNames": ["settings"], "verbs": ["patch"]} of a Role in the namespace "shop" that is bound to'
            " this user, as printed by kubectl create role patch-configmaps --namespace=shop --verb=patch"
            " --resource=configmaps --resource-name=settings --dry-run=client --output=yaml"
        )

    async def test_a_granted_right_is_used_without_a_change_of_the_owner(self, world: World) -> None:
        world.authorizing.allow(DEPLOYER, "get", "list")
        with pytest.raises(ReconcileError):
            await world.reconcile(built(settings(a="1")))
        world.authorizing.allow(DEPLOYER, "patch")
        await world.reconcile(built(settings(a="1")))
        assert (await world.condition())["status"] == "True"

    async def test_another_user_is_refused_what_the_first_one_may_write(self, world: World) -> None:
        other = ServiceAccount("other", "shop")
        world.authorizing.allow(DEPLOYER, "get", "list", "patch")
        world.authorizing.allow(other, "get", "list")
        await world.reconcile(built(settings(a="1")))
        with pytest.raises(ReconcileError, match="system:serviceaccount:shop:other"):
            await world.reconcile(built(settings(a="2"), user=other))
        assert (await world.server.get(CONFIG))["data"] == {"a": "1"}

    @pytest.mark.parametrize("conflicts", Conflicts)
    async def test_an_object_that_the_user_may_not_write_is_not_adopted(
        self, world: World, conflicts: Conflicts
    ) -> None:
        """Also by force: an owner that names the object of another tenant does not get it."""
        theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
        before = await world.server.create({**theirs, "data": {"a": "0"}}, field_manager="them")
        world.authorizing.allow(DEPLOYER, "get", "list")
        with pytest.raises(ReconcileError, match="is forbidden"):
            await world.reconcile(built(settings(a="1"), on_conflict=conflicts))
        assert await world.server.get(CONFIG) == before

    @pytest.mark.parametrize(
        "options",
        [
            pytest.param({"gated_by": BooleanGate(False)}, id="by a gate"),
            pytest.param({"delete_when": True}, id="on request"),
            pytest.param(None, id="by pruning"),
        ],
    )
    async def test_what_the_user_may_not_delete_stays(self, world: World, options: dict[str, Any] | None) -> None:
        """The operator does not delete it in the user's place, whose object may only look like one of the component."""
        world.authorizing.allow(DEPLOYER, "get", "list", "patch", "create")
        await world.reconcile(built(settings(a="1")))
        later = built() if options is None else built(settings(a="1"), **options)
        with pytest.raises(ReconcileError, match='cannot delete resource "configmaps"'):
            await world.reconcile(later)
        assert (await world.server.get(CONFIG))["data"] == {"a": "1"}

    async def test_components_of_one_owner_act_as_different_users(self, world: World) -> None:
        other = ServiceAccount("other", "shop")
        for user in (DEPLOYER, other):
            world.authorizing.allow(user, "get", "list", "patch")
        await world.reconcile(
            built(settings("one")),
            component.Builder("api", condition_type="ApiReady").acting_as(other).with_resource(settings("two")).build(),
            component.Builder("own", condition_type="OwnReady").with_resource(settings("three")).build(),
        )
        users = {request.name: request.user for request in world.cluster.writes if request.kind == "ConfigMap"}
        assert users == {"one": DEPLOYER.username, "two": other.username, "three": ""}


# Flux was stuck while its account was gone, and then skipped what the account had made:
# https://github.com/fluxcd/flux2/issues/997, https://github.com/fluxcd/helm-controller/issues/270,
# https://github.com/fluxcd/helm-controller/issues/536
class TestDeletion:
    @pytest.fixture
    async def ending(self, world: World) -> World:
        """An owner that is being deleted, after its account has lost its rights."""
        allowed = ("get", "list", "patch", "create", "delete")
        world.authorizing.allow(DEPLOYER, *allowed, resource="clusterroles")
        world.authorizing.allow(DEPLOYER, "list")
        await world.reconcile(built(viewer()))
        world.authorizing.allowed.clear()
        await world.server.delete(world.owner)
        return world

    async def test_the_owner_waits_and_says_which_right_its_account_lacks(self, ending: World) -> None:
        with pytest.raises(ReconcileError):
            await ending.reconcile(built(viewer()))
        condition = await ending.condition("ocf/CleanedUp")
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        assert "allow it with the rule" in condition["message"]
        assert DEPLOYER.username in condition["message"]
        assert SKIP_CLEANUP in condition["message"]
        assert await ending.server.get(ROLE)

    async def test_it_is_cleaned_up_once_the_right_is_back(self, ending: World) -> None:
        with pytest.raises(ReconcileError):
            await ending.reconcile(built(viewer()))
        ending.authorizing.allow(DEPLOYER, "get", "list", "delete", resource="clusterroles")
        ending.authorizing.allow(DEPLOYER, "list")
        await ending.reconcile(built(viewer()))
        live = await ending.server.list("rbac.authorization.k8s.io/v1", "ClusterRole")
        assert "viewer" not in {one["metadata"]["name"] for one in live.items}

    async def test_a_user_can_give_the_objects_up(self, ending: World) -> None:
        live = await ending.server.get(ending.owner)
        metadata = {**live["metadata"], "annotations": {SKIP_CLEANUP: "true"}}
        await ending.server.update({**live, "metadata": metadata}, field_manager="user")
        async with reconciling(await ending.server.get(ending.owner), ending.cluster) as context:
            await Finalizer().begin(context)
        assert ending.owner not in [
            ObjectKey.of(one) for one in (await ending.server.list("example.com/v1", "Shop")).items
        ]
        assert await ending.server.get(ROLE)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({"user": None}, "must be a name or a ServiceAccount, got None", id="a field that is not set"),
        pytest.param({"user": ""}, "without a user", id="an empty name"),
        pytest.param(
            {"user": ServiceAccount("", "shop")}, 'name of a service account: ""', id="an account without name"
        ),
        pytest.param({"user": "jane", "groups": "dev"}, "groups must be a list of texts", id="a text as groups"),
    ],
)
def test_what_is_no_user_is_an_error_and_never_the_operator(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(BuildError, match=problem):
        component.Builder("web").acting_as(**arguments).with_resource(settings()).build()


def test_an_object_that_is_held_for_the_clean_up_is_the_operators() -> None:
    builder = component.Builder("web").acting_as(DEPLOYER).with_resource(settings(), held_for_cleanup=True)
    with pytest.raises(BuildError, match="held_for_cleanup is mutually exclusive with acting_as"):
        builder.build()
