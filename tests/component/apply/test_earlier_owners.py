"""Takeover of what components of an earlier owner have applied: with another uid, or with none that exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from ocf import component
from ocf.cluster import DeleteOptions, Propagation, Verb
from ocf.component import Adoption
from ocf.component.model.ownership import Owner
from ocf.errors import ForbiddenError
from ocf.objects import ObjectKey
from ocf.primitives import deployment, hpa
from ocf.testing import FaultyCluster, faults
from tests.component.apply.test_takeover import SETTINGS, managers, of, reconcile, settings
from tests.component.conftest import SHOP

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.component.conftest import Env, StaticKind

EARLIER: Final = "earlier-uid"
OTHER_SHOP: Final = ObjectKey("example.com/v1", "Shop", "other", "shop")


async def restore(env: Env, *, refers: bool) -> None:
    """Write the ConfigMap as a restore from a backup leaves it: as a component of an earlier owner has applied it."""
    made = settings(a="1", b="2")
    if refers:
        owner = {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": EARLIER}
        made["metadata"]["ownerReferences"] = [owner | {"controller": True, "blockOwnerDeletion": True}]
    await env.cluster.apply(made, field_manager=f"ocf/Shop/web/{EARLIER}")


class TestEarlierOwners:
    @staticmethod
    async def recreate_owner(env: Env) -> None:
        """Delete the owner, keep its objects, and create it again."""
        await env.cluster.delete(env.owner, DeleteOptions(propagation=Propagation.ORPHAN))
        live = await env.cluster.get(env.owner) if await env.exists(env.owner) else None
        if live is not None and live["metadata"].get("finalizers"):
            # Without the garbage collector, the finalizer of the orphaning stays.
            await env.change(env.owner, metadata={"finalizers": None})
        await env.cluster.create(SHOP, field_manager="user")

    @pytest.mark.promise(
        "former-writers", runs="an owner with another uid, with and without a reference to the old one"
    )
    @pytest.mark.parametrize("refers", [True, False], ids=["with a reference to the old uid", "without any reference"])
    async def test_what_an_earlier_uid_has_set_becomes_ours(
        self, env: Env, config_map: Callable[..., StaticKind], refers: bool
    ) -> None:
        await restore(env, refers=refers)
        events = await reconcile(env, of(config_map(a="1")))
        live = await env.cluster.get(SETTINGS)
        assert live["data"] == {"a": "1"}
        (reference,) = live["metadata"]["ownerReferences"]
        assert reference["uid"] == (await env.owner_manifest())["metadata"]["uid"]
        assert list(await managers(env, SETTINGS)) == [("ocf/Shop/web", "Apply")]
        assert len(events.notes) == 1
        assert f"taken over from ocf/Shop/web/{EARLIER}" in events.notes[0]
        env.cluster.requests.clear()
        await reconcile(env, of(config_map(a="1")))
        assert env.cluster.requests.writes == 0

    @pytest.mark.parametrize("refers", [True, False], ids=["with a reference to the old uid", "without any reference"])
    async def test_without_the_right_to_list_owners_a_reference_shows_that_the_old_one_is_gone(
        self, env: Env, config_map: Callable[..., StaticKind], refers: bool
    ) -> None:
        await restore(env, refers=refers)
        forbidden = ForbiddenError("shops is forbidden", code=403, reason="Forbidden")
        denied = faults.rejected(forbidden, kind="Shop", verbs=[Verb.LIST])
        await reconcile(env, of(config_map(a="1")), cluster=FaultyCluster(env.cluster, [denied]))
        assert (await env.cluster.get(SETTINGS))["data"] == ({"a": "1"} if refers else {"a": "1", "b": "2"})

    async def test_another_component_of_the_earlier_owner_is_taken_over(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await reconcile(env, of(config_map(a="1", b="2"), name="old"))
        await self.recreate_owner(env)
        await reconcile(env, of(config_map(a="1")))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_another_owner_that_exists_keeps_its_fields(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        other = await env.other_owner()
        theirs = f"ocf/Shop/web/{other['uid']}"
        await env.cluster.apply(settings(theirs="1"), field_manager=theirs)
        events = await reconcile(env, of(config_map(a="1")))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "theirs": "1"}
        assert (theirs, "Apply") in await managers(env, SETTINGS)
        assert events.notes == []
        await env.cluster.delete(OTHER_SHOP)
        await env.change(SETTINGS, metadata={"labels": {"seen": "again"}})
        await reconcile(env, of(config_map(a="1")))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    @pytest.mark.promise("former-writers", runs="an unowned object, of a deleted owner and of one that exists")
    async def test_an_unowned_object_is_taken_over_once_its_owner_exists_nowhere(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """Owners of all namespaces may share it."""
        theirs = f"ocf/Shop/web/{(await env.other_owner())['uid']}"
        await env.cluster.apply(settings(theirs="1"), field_manager=theirs)
        await reconcile(env, of(config_map(a="1"), unowned=True))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "theirs": "1"}
        await env.cluster.delete(OTHER_SHOP)
        await env.change(SETTINGS, metadata={"labels": {"seen": "again"}})
        await reconcile(env, of(config_map(a="1"), unowned=True))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    @pytest.mark.promise("former-writers", runs="a cluster-scoped object, of a deleted owner and of one that exists")
    async def test_a_cluster_scoped_object_is_taken_over_once_its_owner_exists_nowhere(
        self, env: Env, cluster_role: StaticKind
    ) -> None:
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "viewer"}}
        theirs = role | {"metadata": {"name": "viewer", "labels": {"theirs": "1"}}}
        manager = f"ocf/Shop/web/{(await env.other_owner())['uid']}"
        key = ObjectKey.of(role)
        await env.cluster.apply(theirs, field_manager=manager)
        await reconcile(env, of(cluster_role))
        assert (await env.cluster.get(key))["metadata"]["labels"] == {"theirs": "1"}
        await env.cluster.delete(OTHER_SHOP)
        await env.change(key, metadata={"annotations": {"seen": "again"}})
        await reconcile(env, of(cluster_role))
        assert "labels" not in (await env.cluster.get(key))["metadata"]

    async def test_owners_are_read_in_pages_and_a_missing_right_takes_nothing(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """An operator of some namespaces may not list the owners of all."""
        await env.cluster.apply(settings(theirs="1"), field_manager=f"ocf/Shop/web/{EARLIER}")
        forbidden = ForbiddenError("shops is forbidden", code=403, reason="Forbidden")
        denied = faults.rejected(forbidden, kind="Shop", verbs=[Verb.LIST])
        made = of(config_map(a="1"), unowned=True)
        await reconcile(env, made, cluster=FaultyCluster(env.cluster, [denied]))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "theirs": "1"}
        await env.change(SETTINGS, metadata={"labels": {"seen": "again"}})
        await reconcile(env, made)
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}

    async def test_hashed_managers_of_an_owner_to_which_the_object_refers_are_taken_over(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """What was handed over stays, as it does for the owner that lives."""
        name = "x" * 200
        earlier = Owner(env.owner, EARLIER)
        first, second = earlier.field_manager(name), earlier.field_manager(name, "left")
        assert name not in first + second
        made = settings(a="1", b="2")
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": "example.com/v1", "kind": "Shop", "name": "demo", "uid": EARLIER, "controller": True}
        ]
        await env.cluster.apply(made, field_manager=first)
        await env.cluster.apply(settings(c="3"), field_manager=second)
        await reconcile(env, of(config_map(a="1"), name=name))
        owner = Owner.of(await env.owner_manifest())
        assert {name for name, _ in await managers(env, SETTINGS)} == {
            owner.field_manager(name),
            owner.field_manager(name, "left"),
        }
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "c": "3"}

    async def test_the_replicas_that_an_earlier_owner_handed_over_stay(
        self, env: Env, fixed_web: deployment.Resource, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        await reconcile(env, of(fixed_web))
        await reconcile(env, of(web, web_hpa))
        assert await env.replicas() == 4
        await self.recreate_owner(env)
        await reconcile(env, of(web, web_hpa))
        assert await env.replicas() == 4
        assert sorted(name for name, _ in await managers(env, env.web)) == ["ocf/Shop/web", "ocf/Shop/web/left"]

    async def test_the_values_saved_by_a_suspension_of_an_earlier_owner_are_restored(
        self, env: Env, web: deployment.Resource, web_hpa: hpa.Resource
    ) -> None:
        builder = component.Builder("web", condition_type="WebReady").with_resource(web).with_resource(web_hpa)
        await reconcile(env, builder.build())
        await env.scale(6)
        await reconcile(env, builder.suspend().build())
        await self.recreate_owner(env)
        await reconcile(env, builder.suspend().build())
        assert await env.replicas() == 0
        await reconcile(env, builder.suspend(False).build())
        assert await env.replicas() == 6

    async def test_what_no_resource_names_any_more_stays_until_it_was_registered(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        await restore(env, refers=False)
        other = component.Builder("web", condition_type="WebReady").with_resource(config_map("other")).with_prune()
        await reconcile(env, other.build())
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1", "b": "2"}
        await reconcile(env, of(config_map(a="1")))
        await reconcile(env, of(config_map(a="1"), delete_when=True))
        assert not await env.exists(SETTINGS)

    async def test_what_owners_may_share_is_not_adopted_against_the_policy(
        self, env: Env, config_map: Callable[..., StaticKind]
    ) -> None:
        """That its owner is gone does not show that it had the name of this one."""
        await env.cluster.apply(settings(theirs="1"), field_manager=f"ocf/Shop/web/{EARLIER}")
        await reconcile(env, of(config_map(a="1"), unowned=True, adopt=Adoption.NEVER))
        assert (await env.cluster.get(SETTINGS))["data"] == {"theirs": "1"}
        assert (await env.condition())["reason"] == "Blocked"
        await reconcile(env, of(config_map(a="1"), unowned=True))
        assert (await env.cluster.get(SETTINGS))["data"] == {"a": "1"}
