"""Adoption of objects that another client has created: always, with a label, or never.

Rebuilt from public reports: https://github.com/NVIDIA/cluster-readiness-engine/pull/239 (a user's own object is taken
and deleted with the owner), https://github.com/Azure/azure-service-operator/pull/2067 and
https://github.com/Azure/azure-service-operator/issues/2703 (a policy of adoption),
https://github.com/helm/helm/pull/7649 (only with the labels of the release),
https://github.com/stolostron/backplane-operator/pull/3025 (only with a label that names the owner, also for deletion),
https://github.com/ai-dynamo/dynamo/issues/13474 (the object of another owner),
https://github.com/kubernetes/kubernetes/issues/116156 (an apply cannot say that the object must not exist),
https://github.com/pulumi/pulumi-kubernetes/issues/2926 (an apply that should create changes what exists),
https://github.com/kubernetes-sigs/cluster-api/pull/6742 (an object that is deleted and made again before the apply).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf import component
from ocf.cluster import Verb
from ocf.component import Adoption, Component, Conflicts, Writes, diff
from ocf.component.apply.adoption import ADOPTABLE_BY, adoption_label
from ocf.component.status.results import Action
from ocf.concepts.recorder import Why
from ocf.errors import BuildError, ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.managed_fields import ManagedFields
from ocf.objects.name_validation import label_value
from ocf.primitives import deployment
from ocf.testing import FaultyCluster, RecordingCluster, faults
from tests.component.apply.test_takeover import Events, managers, reconcile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.component.conftest import Env, StaticKind

SETTINGS: Final = ObjectKey("v1", "ConfigMap", "settings", "shop")
ALLOWED: Final = {ADOPTABLE_BY: "Shop.example.com_shop_demo"}


def of(*resources: Any, adoption: Any = None, suspended: bool = False, **options: Any) -> Component:
    builder = component.Builder("web", condition_type="WebReady").suspend(suspended)
    if adoption is not None:
        builder.with_adoption(adoption)
    for resource in resources:
        builder.with_resource(resource, **options)
    return builder.build()


def adopted(events: Events) -> list[str]:
    return [event.note for event in events.found if event.reason == "ResourceAdopted"]


async def by_hand(env: Env, labels: dict[str, str] | None = None, **metadata: Any) -> Manifest:
    return await env.create(SETTINGS, data={"mine": "1"}, metadata={"labels": labels or {}, **metadata})


class TestPolicies:
    @pytest.mark.promise(
        "foreign-object", runs="3 policies by a component and by a resource, with 4 labels, on both servers"
    )
    @pytest.mark.parametrize("by_resource", [True, False], ids=["of the resource", "of the component"])
    @pytest.mark.parametrize(
        ("adoption", "labels", "adopts"),
        [
            pytest.param(Adoption.ALWAYS, {}, True, id="always"),
            pytest.param(Adoption.LABELLED, ALLOWED, True, id="with the label"),
            pytest.param(Adoption.LABELLED, {}, False, id="without the label"),
            pytest.param(
                Adoption.LABELLED, {ADOPTABLE_BY: "Shop.example.com_shop_other"}, False, id="with another owner's label"
            ),
            pytest.param(
                Adoption.LABELLED,
                {ADOPTABLE_BY: "Shop.other.example.com_shop_demo"},
                False,
                id="with the label of an owner of another group",
            ),
            pytest.param(Adoption.NEVER, ALLOWED, False, id="never, whatever the label"),
        ],
    )
    async def test_what_another_client_created_is_adopted_by_policy_only(
        self,
        env: Env,
        config_map: Callable[..., StaticKind],
        *,
        adoption: Adoption,
        labels: dict[str, str],
        adopts: bool,
        by_resource: bool,
    ) -> None:
        before = await by_hand(env, labels)
        made = of(config_map(), adopt=adoption) if by_resource else of(config_map(), adoption=adoption)
        events = await reconcile(env, made)
        live = await env.cluster.get(SETTINGS)
        condition = await env.condition()
        assert (live == before) is not adopts
        assert condition["reason"] == ("Healthy" if adopts else "Blocked")
        assert len(adopted(events)) == adopts
        if not adopts:
            assert "v1/ConfigMap/shop/settings exists, and was not created for Shop shop/demo: " in condition["message"]

    async def test_a_resource_wins_over_its_component(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_hand(env)
        await reconcile(env, of(config_map(), adoption=Adoption.NEVER, adopt=Adoption.ALWAYS))
        assert await env.owners(SETTINGS) == ["demo"]

    @pytest.mark.parametrize("options", [{"adopt": Adoption.NEVER}, {"writes": Writes.CREATE_ONLY}], ids=str)
    async def test_a_create_takes_two_requests(
        self, env: Env, config_map: Callable[..., StaticKind], options: dict[str, Any]
    ) -> None:
        recording = RecordingCluster(env.cluster)
        await reconcile(env, of(config_map(), **options), cluster=recording)
        sent = [one.verb for one in recording.requests if one.kind == "ConfigMap" and not one.verb.is_read]
        assert sent == [Verb.CREATE, Verb.PATCH]

    async def test_what_the_condition_says_is_what_helps(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_hand(env, {ADOPTABLE_BY: "Shop.demo"})
        made = of(config_map(a="1"), adopt=Adoption.LABELLED)
        await reconcile(env, made)
        message = (await env.condition())["message"]
        assert message.endswith(
            "v1/ConfigMap/shop/settings exists, and was not created for Shop shop/demo: to let it be adopted, set its "
            "label ocf.dev/adoptable-by to 'Shop.example.com_shop_demo', which is 'Shop.demo'; or delete it, "
            "or rename the resource"
        )
        await env.change(SETTINGS, metadata={"labels": ALLOWED})
        events = await reconcile(env, made)
        assert (await env.condition())["reason"] == "Healthy"
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "mine": "1"}
        assert adopted(events) == [
            "Adopted ConfigMap 'settings', which kubectl-edit had written; it is deleted with its owner"
        ]

    async def test_a_deleted_object_is_created_instead(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_hand(env)
        made = of(config_map(a="1"), adopt=Adoption.NEVER)
        await reconcile(env, made)
        await env.cluster.delete(SETTINGS)
        events = await reconcile(env, made)
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}
        assert adopted(events) == []

    async def test_an_adoption_is_reported_once(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_hand(env)
        notes: list[str] = []
        for value in ("1", "1", "2"):
            notes += adopted(await reconcile(env, of(config_map(a=value))))
        assert len(notes) == 1

    async def test_an_unowned_object_is_adopted_likewise(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        before = await by_hand(env)
        await reconcile(env, of(config_map(), unowned=True, adopt=Adoption.NEVER))
        assert await env.cluster.get(SETTINGS) == before
        notes = adopted(await reconcile(env, of(config_map(), unowned=True)))
        assert notes == [
            "Adopted ConfigMap 'settings', which kubectl-edit had written; it stays when its owner is deleted"
        ]
        assert adopted(await reconcile(env, of(config_map(a="3"), unowned=True, adopt=Adoption.NEVER))) == []
        assert (await env.cluster.get(SETTINGS))["data"]["a"] == "3"

    async def test_a_later_resource_is_not_reached(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_hand(env)
        await reconcile(env, of(config_map(), config_map("other"), adoption=Adoption.NEVER))
        assert not await env.exists(ObjectKey("v1", "ConfigMap", "other", "shop"))

    async def test_nothing_is_written_while_it_waits(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await by_hand(env)
        made = of(config_map(), adopt=Adoption.NEVER)
        await reconcile(env, made)
        env.cluster.requests.clear()
        await reconcile(env, made)
        assert env.cluster.requests.writes == 0

    @pytest.mark.parametrize("adoption", ["sometimes", None])
    def test_an_unknown_policy_is_refused(self, adoption: Any) -> None:
        with pytest.raises(BuildError, match="with_adoption must be one of always, labelled, never"):
            component.Builder("web", condition_type="WebReady").with_adoption(adoption).build()


class TestOwnObjects:
    @pytest.mark.promise(
        "foreign-object", runs="objects that are the component's own, in 4 ways, with the strictest policy"
    )
    async def test_what_the_component_created_is_changed_after_the_policy_is_set(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await reconcile(env, of(config_map(a="1")))
        events = await reconcile(env, of(config_map(a="2"), adoption=Adoption.NEVER))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "2"}
        assert adopted(events) == []

    async def test_what_refers_to_the_owner_is_its_own(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        owner = await env.owner_manifest()
        reference = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": owner["metadata"]["uid"]}
        await by_hand(env, ownerReferences=[reference | {"controller": True}])
        await reconcile(env, of(config_map(a="2"), adoption=Adoption.NEVER))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "2", "mine": "1"}

    async def test_an_orphaned_object_is_its_own(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        await reconcile(env, of(config_map(a="1")))
        await reconcile(env, of(config_map(a="1"), orphan_when=True))
        assert await env.owners(SETTINGS) == []
        await reconcile(env, of(config_map(a="2"), adoption=Adoption.NEVER))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "2"}

    async def test_an_object_of_an_earlier_owner_of_the_name_is_its_own(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}
        await env.cluster.apply({**manifest, "data": {"a": "1"}}, field_manager="ocf/Shop/web/earlier-uid")
        await reconcile(env, of(config_map(a="2"), adoption=Adoption.NEVER))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "2"}

    async def test_an_object_of_another_owner_is_not(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        before = await by_hand(env, ownerReferences=[await env.other_owner()])
        await reconcile(env, of(config_map(), adoption=Adoption.LABELLED))
        assert await env.cluster.get(SETTINGS) == before
        assert (await env.condition())["reason"] == "Blocked"


class TestInterplay:
    async def test_conflicts_that_fail_are_not_reached(self, env: Env, config_map: Callable[..., StaticKind]) -> None:
        before = await by_hand(env)
        made = of(config_map(mine="2"), adopt=Adoption.NEVER, on_conflict=Conflicts.FAIL)
        await reconcile(env, made)
        assert (await env.cluster.get(SETTINGS), (await env.condition())["reason"]) == (before, "Blocked")

    @pytest.mark.parametrize("option", ["delete_when", "orphan_when"])
    async def test_what_was_not_adopted_is_neither_deleted_nor_orphaned(
        self, env: Env, config_map: Callable[..., StaticKind], option: str
    ) -> None:
        before = await by_hand(env)
        made: dict[str, Any] = {option: True}
        await reconcile(env, of(config_map(), adopt=Adoption.NEVER))
        await reconcile(env, of(config_map(), adopt=Adoption.NEVER, **made))
        assert await env.cluster.get(SETTINGS) == before

    async def test_a_suspended_component_leaves_it_as_it_is(
        self, env: Env, web_base: Manifest, web: deployment.Resource
    ) -> None:
        web_base["spec"]["replicas"] = 3
        before = await env.cluster.create(web_base, field_manager="kubectl")
        result = await env.reconcile(of(web, adopt=Adoption.NEVER, suspended=True))
        assert await env.cluster.get(env.web) == before
        assert [(one.action, one.why) for one in result.outcomes] == [(Action.KEPT, Why.NOT_ADOPTED)]
        assert (await env.condition())["reason"] == "Suspended"

    async def test_a_diff_shows_an_adoption_and_a_refusal(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await by_hand(env)
        owner = await env.owner_manifest()
        (found,) = await diff([of(config_map())], owner, env.cluster)
        assert found.objects[0].reasons[-1] == "adopted"
        (refused,) = await diff([of(config_map(), adopt=Adoption.NEVER)], owner, env.cluster)
        assert refused.objects == ()
        assert refused.result is not None
        assert "was not created for Shop shop/demo" in refused.result.condition.message


class TestRaces:
    """Another client creates an object between our read and our write."""

    @pytest.mark.promise(
        "foreign-object",
        runs="an object that appears before the write, of 4 contents and under 3 policies, on both servers",
    )
    @pytest.mark.parametrize("unowned", [True, False], ids=["unowned", "owned"])
    @pytest.mark.parametrize(
        "data",
        [
            pytest.param({"a": "mine"}, id="with another value"),
            pytest.param({"a": "1"}, id="with the same value"),
            pytest.param({"b": "mine"}, id="with other fields only"),
            pytest.param({}, id="without fields"),
        ],
    )
    @pytest.mark.parametrize(
        ("adoption", "labels", "adopts"),
        [
            pytest.param(Adoption.NEVER, ALLOWED, False, id="never"),
            pytest.param(Adoption.LABELLED, {}, False, id="without the label"),
            pytest.param(Adoption.LABELLED, ALLOWED, True, id="with the label"),
            pytest.param(Adoption.ALWAYS, {}, True, id="always"),
        ],
    )
    async def test_what_appears_before_the_write_is_adopted_by_policy_only(
        self,
        env: Env,
        config_map: Callable[..., StaticKind],
        *,
        adoption: Adoption,
        labels: dict[str, str],
        adopts: bool,
        data: dict[str, str],
        unowned: bool,
    ) -> None:
        theirs: list[Manifest] = []

        async def create() -> None:
            theirs.append(await env.create(SETTINGS, data=data, metadata={"labels": labels}))

        made = of(config_map(a="1"), adopt=adoption, unowned=unowned)
        await reconcile(env, made, cluster=FaultyCluster(env.cluster, [before_write(create)]))
        live = await env.cluster.get(SETTINGS)
        assert (live == theirs[0]) is not adopts
        assert (await env.condition())["reason"] == ("Healthy" if adopts else "Blocked")

    @pytest.mark.parametrize("unowned", [True, False], ids=["unowned", "owned"])
    @pytest.mark.parametrize("verb", [Verb.APPLY, Verb.PATCH], ids=["before the apply", "before the takeover"])
    async def test_what_replaces_our_object_is_not_adopted(
        self, env: Env, config_map: Callable[..., StaticKind], *, verb: Verb, unowned: bool
    ) -> None:
        await reconcile(env, of(config_map(a="1"), adopt=Adoption.NEVER, unowned=unowned))
        former = ("kubectl-edit",) if verb is Verb.PATCH else ()
        if former:
            await env.change(SETTINGS, data={"b": "theirs"})
        theirs: list[Manifest] = []

        async def replace() -> None:
            await env.cluster.delete(SETTINGS)
            theirs.append(await env.create(SETTINGS, data={"b": "mine"}))

        cluster = FaultyCluster(env.cluster, [before_write(replace, verb)])
        made = of(config_map(a="2"), adopt=Adoption.NEVER, unowned=unowned)
        await reconcile(env, made, former=former, cluster=cluster)
        assert await env.cluster.get(SETTINGS) == theirs[0]
        assert (await env.condition())["reason"] == "Blocked"

    async def test_what_is_deleted_before_the_apply_is_created(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await reconcile(env, of(config_map(a="1"), adopt=Adoption.NEVER))
        cluster = FaultyCluster(env.cluster, [before_write(lambda: env.cluster.delete(SETTINGS), Verb.APPLY)])
        await reconcile(env, of(config_map(a="2"), adopt=Adoption.NEVER), cluster=cluster)
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "2"}

    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(faults.lost_reply(kind="ConfigMap", verbs=[Verb.CREATE], times=1), id="the answer is lost"),
            pytest.param(
                faults.server_error(kind="ConfigMap", verbs=[Verb.PATCH], times=1), id="the ownership is not changed"
            ),
        ],
    )
    async def test_an_interrupted_creation_is_completed(
        self, env: Env, config_map: Callable[..., StaticKind], fault: Any
    ) -> None:
        made = of(config_map(a="1", b="1"), adopt=Adoption.NEVER, unowned=True)
        with pytest.raises(ReconcileError):
            await reconcile(env, made, cluster=FaultyCluster(env.cluster, [fault]))
        events = await reconcile(env, made)
        assert adopted(events) == events.notes == []
        assert set(await managers(env, SETTINGS)) == {("ocf/Shop/web", "Apply")}
        await reconcile(env, of(config_map(a="1"), adopt=Adoption.NEVER, unowned=True))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_a_creation_leaves_what_an_apply_leaves(self, env: Env, web: deployment.Resource) -> None:
        """Defaults are not owned, and the next reconcile writes nothing."""
        made = of(web, adopt=Adoption.NEVER)
        result = await env.reconcile(made)
        assert [(one.action, one.writes) for one in result.outcomes] == [(Action.CREATED, 2)]
        created = owned(await env.cluster.get(env.web))
        env.cluster.requests.clear()
        await env.reconcile(made)
        assert env.cluster.requests.writes == 0
        await env.cluster.delete(env.web)
        await env.reconcile(of(web))
        assert created == owned(await env.cluster.get(env.web))


def before_write(hook: Callable[[], Awaitable[object]], *verbs: Verb) -> faults.Fault:
    return faults.meanwhile(hook, kind="ConfigMap", verbs=verbs or [Verb.APPLY, Verb.CREATE], times=1)


def owned(live: Manifest) -> dict[Any, frozenset[str]]:
    return dict(ManagedFields.of(live).paths())


def test_no_two_owners_have_the_same_label() -> None:
    """Kinds of other groups have the same name, and a name may have dots or, as that of a ClusterRole, colons."""
    places = [
        ("example.com/v1", "Shop", "corner", "town"),
        ("other.example.com/v1", "Shop", "corner", "town"),
        ("v1", "Shop", "corner", "town"),
        ("example.com/v1", "Shop", "corner", "city"),
        ("example.com/v1", "Shop", "town.corner", ""),
        ("example.com.town/v1", "Shop", "corner", ""),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "system:node", ""),
        ("example.com/v1", "Shop", "x" * 253, "town"),
        ("example.com/v1", "Shop", "x" * 252, "town"),
    ]
    values = [adoption_label(ObjectKey(*place)) for place in places]
    assert len({*values}) == len(places)
    assert [problem for value in values for problem in label_value(value)] == []
    assert adoption_label(ObjectKey("example.com/v2", "Shop", "corner", "town")) == values[0]
