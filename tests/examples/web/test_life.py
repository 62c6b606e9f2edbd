"""Tests of the shop over its whole life: dependencies, preserved values, and no repeated writes."""

import copy
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import pytest

from examples.web import played
from examples.web.application import application
from examples.web.operator import operator
from examples.web.shop import Shop
from ocf.cluster import Cluster, DeleteOptions, PatchOptions, PatchType, Propagation, Subresource
from ocf.component import reconciling
from ocf.component.owner_deletion import cleanup_finalizer
from ocf.component.status.results import Action
from ocf.errors import InvalidError, NotFoundError, leaf_errors
from ocf.objects import Manifest, ObjectKey
from ocf.runtime.rbac import PolicyRule
from ocf.testing import VirtualClock, assert_quiet, crash_at_each_write, lint_conditions
from ocf.testing.conditions import ConditionFinding, ConditionRule
from ocf_server import EmbeddedCluster

HEALTHY: Final = ("True", "Healthy")
ALL_HEALTHY: Final = dict.fromkeys(["DatabaseReady", "ApplicationReady", "Ready"], HEALTHY)


async def conditions(cluster: Cluster) -> dict[str, tuple[str, str]]:
    """Return status and reason of each condition of the shop."""
    stored: list[Manifest] = (await cluster.get(played.SHOP))["status"]["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in stored}


async def exists(cluster: Cluster, key: ObjectKey) -> bool:
    try:
        await cluster.get(key)
    except NotFoundError:
        return False
    return True


async def container(cluster: Cluster) -> Manifest:
    found: Manifest = (await cluster.get(played.WEB))["spec"]["template"]["spec"]["containers"][0]
    return found


async def replicas(cluster: Cluster, key: ObjectKey = played.WEB) -> int:
    return int((await cluster.get(key))["spec"]["replicas"])


async def born(clock: VirtualClock) -> EmbeddedCluster:
    """Return a cluster with a shop and its Secret before the first reconcile."""
    cluster = await played.new_cluster(clock)
    await played.give_password(cluster)
    return cluster


class TestCreation:
    async def test_without_the_secret_no_object_is_created(self, clock: VirtualClock) -> None:
        cluster = await played.new_cluster(clock)
        await played.reconcile_shop(cluster, clock)

        assert await conditions(cluster) == {
            "DatabaseReady": ("False", "Blocked"),
            "ApplicationReady": ("False", "PrerequisiteNotMet"),
            "Ready": ("False", "Blocked"),
        }
        assert not await exists(cluster, played.DATABASE)

    async def test_a_secret_without_the_key_blocks_the_database(self, clock: VirtualClock) -> None:
        cluster = await born(clock)
        await cluster.patch(
            played.SECRET, {"data": None}, PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        )
        of_database, _ = await played.reconcile_shop(cluster, clock)

        assert of_database.condition.message == 'StatefulSet corner-db: Waiting for a Secret with the key "password"'
        assert not await exists(cluster, played.DATABASE)

    async def test_the_application_waits_for_a_ready_database(self, clock: VirtualClock) -> None:
        cluster = await born(clock)
        await played.reconcile_shop(cluster, clock)

        found = await conditions(cluster)
        assert found["DatabaseReady"] == ("False", "Creating")
        assert found["ApplicationReady"] == ("False", "PrerequisiteNotMet")
        assert await exists(cluster, played.DATABASE)
        assert not await exists(cluster, played.WEB)

    async def test_the_reconcile_that_finds_the_database_ready_creates_the_application(
        self, clock: VirtualClock
    ) -> None:
        cluster = await born(clock)
        await played.reconcile_shop(cluster, clock)
        await played.controllers(cluster)
        await played.reconcile_shop(cluster, clock)

        found = await conditions(cluster)
        assert (found["DatabaseReady"], found["ApplicationReady"]) == (HEALTHY, ("False", "Creating"))
        assert await exists(cluster, played.WEB)

    async def test_both_components_become_healthy(self, clock: VirtualClock) -> None:
        assert await conditions(await played.healthy_cluster(clock)) == ALL_HEALTHY


ROLE: Final = sorted(
    # One reconcile at a time neither watches nor lists, posts no events, and deletes nothing in this test.
    rule
    for rule in played.RULES
    if rule.verb not in {"list", "watch", "delete"} and rule.group != "events.k8s.io"
)


@pytest.mark.parametrize("missing", ROLE, ids=lambda rule: f"{rule.verb} {rule.resource}")
async def test_without_one_of_its_rights_the_operator_fails(missing: PolicyRule, clock: VirtualClock) -> None:
    cluster = await played.new_cluster(clock, exporter=True, rules=played.RULES - {missing})
    await played.give_password(cluster)
    with pytest.raises(Exception, match=r"forbidden|failed") as caught:
        await played.reconcile_until_in_sync(cluster, clock)
    asked = f'cannot {missing.verb} resource "{missing.resource}"'
    assert any(asked in str(error) for error in leaf_errors(caught.value))


class TestData:
    async def test_the_application_gets_the_data_of_the_database(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock)

        assert (await container(cluster))["env"] == [
            {"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"key": "password", "name": "corner-password"}}},
            {"name": "DB_HOST", "value": "corner-db.shop.svc"},
            {"name": "DB_PORT", "value": "5432"},
        ]

    async def test_the_application_follows_when_the_data_changes(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock)
        await played.give_password(cluster, "other-password")
        await played.change(cluster, passwordSecret="other-password")
        await played.reconcile_until_in_sync(cluster, clock)

        password = (await container(cluster))["env"][0]
        assert password["valueFrom"]["secretKeyRef"]["name"] == "other-password"

    async def test_no_password_leaves_its_secret(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock, version="1.4.2", exporter=True)
        kinds = [("v1", "ConfigMap"), ("apps/v1", "StatefulSet"), ("apps/v1", "Deployment"), ("example.com/v1", "Shop")]
        everything = [item for kind in kinds for item in (await cluster.list(*kind)).items]

        assert "battery" not in str(everything)


class TestExporter:
    async def test_it_is_created_and_deleted_with_its_gate(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock)
        seen = []
        for wanted in (True, False):
            await played.change(cluster, exporter=wanted)
            await played.reconcile_until_in_sync(cluster, clock)
            ports = [port["name"] for port in (await container(cluster))["ports"]]
            seen.append((await exists(cluster, played.EXPORTER), ports))

        assert seen == [(True, ["http", "metrics"]), (False, ["http"])]

    async def test_its_health_does_not_affect_the_condition(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock, exporter=True)
        down, part = {"status": {"readyReplicas": 0}}, Subresource.STATUS
        await cluster.patch(
            played.EXPORTER,
            down,
            PatchOptions(patch_type=PatchType.MERGE, field_manager="controller", subresource=part),
        )
        await played.reconcile_shop(cluster, clock)

        assert await conditions(cluster) == ALL_HEALTHY

    async def test_it_is_applied_while_the_others_are_blocked(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock)
        await cluster.delete(played.CONNECTION)
        await played.change(cluster, exporter=True)
        owner = await cluster.get(played.SHOP)
        async with reconciling(owner, cluster, clock=clock, operator=operator.name) as context:
            result = await application(Shop.model_validate(owner)).reconcile(context)

        assert {outcome.resource: outcome.action for outcome in result.outcomes} == {
            str(played.CONNECTION): Action.BLOCKED,
            str(played.EXPORTER): Action.CREATED,
        }


class TestSuspension:
    async def test_all_replicas_go_to_zero_and_the_autoscaler_is_deleted(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock, exporter=True)
        await played.change(cluster, suspended=True)
        await played.reconcile_until_in_sync(cluster, clock)

        assert set((await conditions(cluster)).values()) == {("True", "Suspended")}
        assert [await replicas(cluster, key) for key in (played.DATABASE, played.WEB, played.EXPORTER)] == [0, 0, 0]
        assert not await exists(cluster, played.AUTOSCALER)

    async def test_the_live_count_is_restored_at_once(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock, replicas=4)
        await played.change(cluster, suspended=True)
        await played.reconcile_until_in_sync(cluster, clock)
        await played.change(cluster, suspended=False)
        await played.reconcile_shop(cluster, clock)

        assert await replicas(cluster) == 4
        assert await exists(cluster, played.AUTOSCALER)

    async def test_a_shop_that_is_created_suspended_can_be_resumed(self, clock: VirtualClock) -> None:
        cluster = await born(clock)
        await played.change(cluster, suspended=True)
        await played.reconcile_until_in_sync(cluster, clock)
        suspended = set((await conditions(cluster)).values())
        await played.change(cluster, suspended=False)
        await played.reconcile_until_in_sync(cluster, clock)

        assert suspended == {("True", "Suspended")}
        assert await conditions(cluster) == ALL_HEALTHY


class TestUpgrade:
    async def test_it_keeps_the_live_count_and_applies_the_differences_between_versions(
        self, clock: VirtualClock
    ) -> None:
        cluster = await played.healthy_cluster(clock, version="1.4.2", replicas=4)
        before = await container(cluster)
        await played.change(cluster, version="2.3.0")
        await played.reconcile_until_in_sync(cluster, clock)
        after = await container(cluster)

        assert [one["name"] for one in before["env"]] == ["DB_PASSWORD", "DATABASE_URL"]
        assert [one["name"] for one in after["env"]] == ["DB_PASSWORD", "DB_HOST", "DB_PORT"]
        assert await replicas(cluster) == 4
        assert await conditions(cluster) == ALL_HEALTHY

    async def test_an_invalid_version_is_rejected_by_the_definition(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock)

        with pytest.raises(InvalidError, match=r"spec\.version"):
            await played.change(cluster, version="latest")


class TestDeletion:
    async def test_the_objects_of_the_operator_are_deleted_and_the_secret_stays(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock, exporter=True)
        await cluster.delete(played.SHOP)

        ours = (played.DATABASE, played.WEB, played.EXPORTER, played.AUTOSCALER, played.CONNECTION)
        assert [await exists(cluster, key) for key in ours] == [False] * 5
        assert await exists(cluster, played.SECRET)

    async def test_a_shop_that_is_being_deleted_is_not_reconciled(self, clock: VirtualClock) -> None:
        """A reconcile must not create objects again that the garbage collector has deleted."""
        cluster = await played.healthy_cluster(clock)
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await cluster.patch(played.SHOP, held, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await cluster.delete(played.SHOP, DeleteOptions(propagation=Propagation.FOREGROUND))
        cluster.requests.clear()
        results = await played.reconcile_shop(cluster, clock)

        assert (results, cluster.requests.writes) == ((), 0)
        assert not await exists(cluster, played.WEB)

    async def test_nothing_needs_a_finalizer(self, clock: VirtualClock) -> None:
        cluster = await played.healthy_cluster(clock, exporter=True)

        assert cleanup_finalizer(operator.name) not in (await cluster.get(played.SHOP))["metadata"].get(
            "finalizers", []
        )


MakeCluster = Callable[[VirtualClock], Awaitable[EmbeddedCluster]]


async def resting(clock: VirtualClock) -> EmbeddedCluster:
    return await played.healthy_cluster(clock, exporter=True)


async def being_suspended(clock: VirtualClock) -> EmbeddedCluster:
    cluster = await resting(clock)
    await played.change(cluster, suspended=True)
    return cluster


async def waking_up(clock: VirtualClock) -> EmbeddedCluster:
    cluster = await being_suspended(clock)
    await played.reconcile_until_in_sync(cluster, clock)
    await played.change(cluster, suspended=False)
    return cluster


async def upgraded(clock: VirtualClock) -> EmbeddedCluster:
    cluster = await played.healthy_cluster(clock, version="1.4.2", exporter=True)
    await played.change(cluster, version="2.3.0")
    return cluster


async def exporter_dropped(clock: VirtualClock) -> EmbeddedCluster:
    cluster = await resting(clock)
    await played.change(cluster, exporter=False)
    return cluster


STEPS: Final = [
    pytest.param(born, id="creation"),
    pytest.param(being_suspended, id="suspension"),
    pytest.param(waking_up, id="resumption"),
    pytest.param(upgraded, id="upgrade"),
    pytest.param(exporter_dropped, id="exporter dropped"),
]


@pytest.mark.parametrize("step", STEPS)
class TestEveryStep:
    async def test_ends_without_further_writes(self, step: MakeCluster, clock: VirtualClock) -> None:
        cluster = await step(clock)
        await played.reconcile_until_in_sync(cluster, clock)

        await assert_quiet(cluster, lambda seen: played.reconcile_shop(seen, clock))

    async def test_survives_a_crash_and_a_failure_at_every_write(self, step: MakeCluster, clock: VirtualClock) -> None:
        begun = await step(clock)

        async def new_cluster() -> EmbeddedCluster:
            return begun.clone()

        found = await crash_at_each_write(
            new_cluster, lambda seen: played.reconcile_shop(seen, clock), others=played.controllers
        )

        found.assert_same()

    async def test_leaves_valid_conditions_after_every_reconcile(self, step: MakeCluster, clock: VirtualClock) -> None:
        cluster = await step(clock)
        previous = (await cluster.get(played.SHOP)).get("status", {}).get("conditions", [])
        findings: list[ConditionFinding] = []
        for _ in range(6):
            clock.advance(timedelta(seconds=30))
            await played.reconcile_shop(cluster, clock)
            shop = await cluster.get(played.SHOP)
            stored = copy.deepcopy(shop["status"]["conditions"])
            findings += lint_conditions(stored, generation=shop["metadata"]["generation"], previous=previous)
            previous = stored
            await played.controllers(cluster)

        # A component's time starts anew when it got past its prerequisites, so that its grace period does.
        assert [found for found in findings if found.rule is not ConditionRule.TIME_MOVED_WITH_REASON] == []
