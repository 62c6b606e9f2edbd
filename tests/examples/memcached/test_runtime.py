"""The reconciles of a cache: autoscaling, drift, enabling and disabling features, and objects of other owners."""

from http import HTTPStatus
from typing import ClassVar

import pytest

from examples.memcached.samples import AUTOSCALED, EVERYTHING, PLAIN
from examples.memcached.secrets import SECRET_HASH
from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Propagation, Verb, WatchOptions
from ocf.component import Action
from ocf.errors import ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, assert_quiet
from ocf.testing.faults import server_error
from tests.examples.memcached.worlds import Env

HPA = "HorizontalPodAutoscaler"
OPTIONAL = (HPA, "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy")
SCALING: Manifest = {"enabled": True, "minReplicas": 2, "maxReplicas": 10}


def cpu(percent: int) -> Manifest:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


async def everything(world: Env) -> None:
    await world.secret("my-cache-sasl", **{"password-file": "user:password"})
    await world.secret("my-cache-tls", **{"tls.crt": "a", "tls.key": "b", "ca.crt": "c"})
    await world.create(EVERYTHING)
    await world.settle()


async def counts(world: Env, since: str) -> list[int]:
    """Return every count that the Deployment has asked for since a version."""
    found, key = [], world.own("Deployment")
    last = (await world.cluster.get(key))["metadata"]["resourceVersion"]
    async for event in world.cluster.watch(
        key.api_version, key.kind, WatchOptions(namespace=key.namespace, resource_version=since)
    ):
        found.append(int(event.object["spec"]["replicas"]))
        if event.object["metadata"]["resourceVersion"] == last:
            break
    return found


class TestTable:
    """The rows of the table, in order."""

    async def test_enable(self, world: Env) -> None:
        await world.create(PLAIN)
        await world.settle()
        await world.change(autoscaling=SCALING)
        result = await world.reconcile()
        owned = (await world.get("Deployment"))["metadata"]["managedFields"]
        ours = next(one for one in owned if one["manager"].startswith("Memcached/") and "left" not in one["manager"])

        assert await world.exists(HPA)
        assert "f:replicas" not in ours["fieldsV1"]["f:spec"]
        assert await world.replicas() == 3
        assert result is not None
        assert result.outcomes[0].reason_texts == ("spec.replicas: handed over", "spec.replicas: no longer declared")

    @pytest.mark.parametrize(
        ("change", "path"),
        [
            pytest.param({"maxReplicas": 12}, "maxReplicas", id="maxReplicas"),
            pytest.param({"minReplicas": 3}, "minReplicas", id="minReplicas"),
            pytest.param(
                {"metrics": [cpu(50)]},
                "metrics",
                id="metrics",
            ),
            pytest.param({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}, "behavior", id="behavior"),
        ],
    )
    async def test_change(self, world: Env, change: Manifest, path: str) -> None:
        await world.create(AUTOSCALED)
        await world.settle()
        before = (await world.get(HPA))["spec"]
        scaling = (await world.get("Memcached"))["spec"]["autoscaling"]
        await world.change(autoscaling={**scaling, **change})
        world.cluster.requests.clear()
        await world.reconcile()
        after = (await world.get(HPA))["spec"]

        assert [request.kind for request in world.cluster.requests.of(Verb.APPLY)] == [HPA]
        assert {name for name in after if after[name] != before.get(name)} == {path}

    @pytest.mark.parametrize("off", [{"enabled": False, "maxReplicas": 10}, None], ids=["disable", "remove"])
    async def test_disable(self, world: Env, off: Manifest | None) -> None:
        await world.create(AUTOSCALED)
        await world.settle()
        await world.scale(5)
        await world.settle()
        await world.change(autoscaling=off)
        await world.reconcile()

        assert not await world.exists(HPA)
        assert await world.replicas() == 3

    async def test_delete_the_cache(self, world: Env) -> None:
        await everything(world)
        await world.cluster.delete(world.owner, DeleteOptions(propagation=Propagation.BACKGROUND))
        for kind in ("Deployment", "Service", *OPTIONAL):
            await world.gone(kind)

        assert await world.cluster.get(world.own("Secret", "my-cache-sasl"))

    async def test_twice_with_the_same_spec(self, world: Env) -> None:
        await world.create(AUTOSCALED)
        await world.settle()
        before = (await world.get(HPA))["metadata"]["resourceVersion"]
        world.heard.events.clear()
        await world.reconcile()

        assert (await world.get(HPA))["metadata"]["resourceVersion"] == before
        assert world.heard.events == []

    async def test_edited_by_hand(self, world: Env) -> None:
        await world.create(AUTOSCALED)
        await world.settle()
        await world.meddle(HPA, spec={"maxReplicas": 99, "minReplicas": 1})
        await world.reconcile()
        spec = (await world.get(HPA))["spec"]

        assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 10)


class TestCount:
    async def test_every_write_of_ours_leaves_the_autoscalers_count(self, world: Env) -> None:
        """The autoscaler scales through the scale subresource; the operator goes on writing the same object."""
        await world.create(autoscaling=SCALING, image="memcached:1.6")
        await world.settle()
        seen = []
        for count, image in ((4, "memcached:1.6.1"), (7, "memcached:1.6.2"), (3, "memcached:1.6.3")):
            await world.scale(count)
            await world.change(image=image)
            result = await world.reconcile()
            assert result is not None
            seen.append((result.outcomes[0].action, await world.replicas()))
            await world.meddle("Deployment", metadata={"labels": {"app.kubernetes.io/managed-by": "me"}})
            await world.reconcile()
            seen.append((Action.UPDATED, await world.replicas()))

        assert seen == [(Action.UPDATED, count) for count in (4, 4, 7, 7, 3, 3)]

    async def test_on_off_on_never_passes_through_one(self, world: Env) -> None:
        await world.create(PLAIN)
        await world.settle()
        since = (await world.get("Deployment"))["metadata"]["resourceVersion"]
        await world.change(autoscaling=SCALING)
        await world.settle()
        await world.scale(6)
        await world.settle()
        await world.change(autoscaling={"enabled": False})
        await world.settle()
        await world.change(autoscaling=SCALING, replicas=None)
        await world.settle()
        await world.scale(5)
        await world.settle()
        await world.change(autoscaling=None, replicas=4)
        await world.settle()
        seen = await counts(world, since)

        assert list(dict.fromkeys(seen)) == [3, 6, 5, 4]
        assert seen[-1] == 4

    async def test_a_count_set_by_hand_is_reverted_without_autoscaling(self, world: Env) -> None:
        await world.create(PLAIN)
        await world.settle()
        await world.scale(9)
        await world.reconcile()

        assert await world.replicas() == 3

    async def test_suspend_and_resume(self, world: Env) -> None:
        await world.create(AUTOSCALED)
        await world.settle()
        await world.scale(6)
        await world.settle()
        await world.change(suspended=True)
        await world.settle()
        suspended = (await world.replicas(), await world.exists(HPA), (await world.conditions())["Available"])
        await world.change(suspended=False)
        await world.reconcile()
        resumed = (await world.replicas(), await world.exists(HPA))
        await world.settle()

        assert suspended == (0, False, ("False", "Unavailable", "0/0 replicas are ready"))
        assert resumed == (6, True)
        assert (await world.conditions())["Ready"][2] == "All 6 replicas are ready"

    async def test_suspend_and_resume_without_autoscaler(self, world: Env) -> None:
        await world.create(PLAIN)
        await world.settle()
        await world.change(suspended=True)
        await world.settle()
        suspended = await world.replicas()
        await world.change(suspended=False)
        await world.settle()

        assert (suspended, await world.replicas()) == (0, 3)

    async def test_created_suspended_it_can_be_resumed(self, world: Env) -> None:
        """An autoscaler ignores a target with zero replicas, so the operator has to set the first count."""
        await world.create(AUTOSCALED, suspended=True)
        await world.settle()
        suspended = await world.replicas()
        await world.change(suspended=False)
        await world.settle()

        assert suspended == 0
        assert await world.replicas() >= 1
        assert (await world.conditions())["Ready"][0] == "True"

    async def test_autoscaling_changed_while_suspended(self, world: Env) -> None:
        await world.create(PLAIN)
        await world.settle()
        await world.change(suspended=True)
        await world.settle()
        await world.change(autoscaling=SCALING)
        await world.settle()
        suspended = (await world.replicas(), await world.exists(HPA))
        await world.change(suspended=False)
        await world.settle()

        assert suspended == (0, False)
        assert (await world.replicas(), await world.exists(HPA)) == (3, True)


class TestQuiet:
    @pytest.mark.parametrize("sample", [PLAIN, AUTOSCALED, EVERYTHING], ids=["plain", "autoscaled", "everything"])
    async def test_without_a_change_there_is_no_write_and_no_event(self, world: Env, sample: str) -> None:
        await world.secret("my-cache-sasl", **{"password-file": "user:password"})
        await world.secret("my-cache-tls", **{"tls.crt": "a", "tls.key": "b", "ca.crt": "c"})
        await world.create(sample)
        await world.settle()
        world.heard.events.clear()

        await assert_quiet(world.cluster, world.pass_over)
        assert world.heard.events == []

    async def test_what_is_off_costs_no_request_but_a_look(self, world: Env) -> None:
        await world.create(PLAIN)
        await world.settle()
        world.cluster.requests.clear()
        await world.reconcile()

        assert {request.verb for request in world.cluster.requests} == {Verb.GET}


DRIFT: dict[str, Manifest] = {
    "Deployment": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}},
    HPA: {"metadata": {"labels": {"app.kubernetes.io/name": "mine"}}},
    "Service": {"spec": {"selector": {"app.kubernetes.io/name": "mine"}}},
    "PodDisruptionBudget": {"spec": {"maxUnavailable": 5}},
    "ServiceMonitor": {"spec": {"endpoints": []}},
    "NetworkPolicy": {"spec": {"ingress": []}},
}


class TestDrift:
    async def test_a_changed_object_is_reverted_by_the_next_reconcile(self, world: Env) -> None:
        await everything(world)
        for kind, patch in DRIFT.items():
            before = await world.get(kind)
            changed = await world.meddle(kind, **patch)
            await world.reconcile()
            after = await world.get(kind)

            assert (changed["spec"], changed["metadata"]["labels"]) != (before["spec"], before["metadata"]["labels"])
            assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"]), kind

    async def test_a_deleted_object_is_created_again(self, world: Env) -> None:
        await everything(world)
        for kind in DRIFT:
            uid = (await world.get(kind))["metadata"]["uid"]
            await world.cluster.delete(world.own(kind))
            await world.reconcile()

            assert (await world.get(kind))["metadata"]["uid"] != uid

    async def test_fields_of_other_managers_stay(self, world: Env) -> None:
        await everything(world)
        await world.meddle("Service", metadata={"annotations": {"example.com/cost": "12"}})
        await world.change(service={"annotations": {"example.com/team": "other"}})
        await world.reconcile()

        annotations = (await world.get("Service"))["metadata"]["annotations"]
        assert annotations == {"example.com/cost": "12", "example.com/team": "other"}


class TestOptional:
    async def test_what_is_switched_off_goes_with_one_delete(self, world: Env) -> None:
        await everything(world)
        await world.change(autoscaling=None, highAvailability=None, monitoring=None, security=None)
        world.cluster.requests.clear()
        await world.retried()
        requests = world.cluster.requests.of(Verb.DELETE)
        deleted = [request.kind for request in requests if request.code != HTTPStatus.CONFLICT]
        await world.settle()
        world.cluster.requests.clear()
        await world.reconcile()

        assert sorted(deleted) == sorted(OPTIONAL)
        assert not world.cluster.requests.of(Verb.DELETE)
        assert not any([await world.exists(kind) for kind in OPTIONAL])

    async def test_objects_of_other_owners_with_the_same_name_stay(self, world: Env) -> None:
        foreign: dict[str, Manifest] = {
            HPA: {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}, "maxReplicas": 3},
            "PodDisruptionBudget": {"minAvailable": 1, "selector": {"matchLabels": {"app": "other"}}},
            "ServiceMonitor": {"endpoints": []},
            "NetworkPolicy": {"podSelector": {}, "policyTypes": ["Ingress"]},
        }
        await world.create(PLAIN)
        for kind, spec in foreign.items():
            key = world.own(kind)
            metadata = {"name": key.name, "namespace": key.namespace}
            manifest = {"apiVersion": key.api_version, "kind": kind, "metadata": metadata, "spec": spec}
            await world.cluster.create(manifest, field_manager="another")
        result = await world.reconcile()
        await world.cluster.delete(world.owner)  # and the garbage collector has nothing to do with them
        await world.gone("Deployment")

        assert result is not None
        assert [outcome.action for outcome in result.outcomes].count(Action.KEPT) == len(foreign)
        assert [kind for kind in foreign if not await world.exists(kind)] == []


class TestSecrets:
    SASL: ClassVar[Manifest] = {"sasl": {"enabled": True, "credentialsSecretRef": {"name": "sasl"}}}

    async def annotation(self, world: Env) -> str:
        template = (await world.get("Deployment"))["spec"]["template"]
        return str(template["metadata"].get("annotations", {}).get(SECRET_HASH, ""))

    async def test_a_missing_one_is_reported_and_does_not_stop_the_reconcile(self, world: Env) -> None:
        await world.create(replicas=1, security=self.SASL)
        await world.settle()
        missing = await world.conditions()
        before = await self.annotation(world)
        await world.secret("sasl", **{"password-file": "a"})
        await world.settle()

        assert missing["Degraded"] == ("True", "SecretNotFound", "Referenced Secrets not found: sasl")
        assert missing["Ready"][0] == "True"
        assert (await world.conditions())["Degraded"][1] == "NotDegraded"
        assert (before, len(await self.annotation(world))) == ("", 64)

    async def test_a_changed_one_replaces_the_pods(self, world: Env) -> None:
        await world.secret("sasl", **{"password-file": "a"})
        await world.create(replicas=1, security=self.SASL)
        await world.settle()
        before = await self.annotation(world)
        await world.secret("sasl", **{"password-file": "b"})
        result = await world.reconcile()

        assert await self.annotation(world) not in {before, ""}
        assert result is not None
        assert result.writes == 1


class TestFailure:
    async def test_the_conditions_are_written_after_a_failed_step(self, world: Env) -> None:
        """Without webhooks an autoscaler without upper limit reaches the API server, which rejects it."""
        await world.create(PLAIN)
        await world.settle()
        bad = {"spec": {"autoscaling": {"enabled": True}}}
        await world.cluster.patch(world.owner, bad, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        with pytest.raises(ReconcileError, match="maxReplicas"):
            await world.reconcile()
        found, generation = await world.conditions(), (await world.get("Memcached"))["metadata"]["generation"]

        assert list(found) == ["Available", "Progressing", "Degraded", "Ready"]
        assert found["Degraded"][:2] == ("True", "Degraded")
        assert "failed to apply resource autoscaling/v2/HorizontalPodAutoscaler" in found["Degraded"][2]
        assert found["Available"] == ("True", "Available", "3/3 replicas are ready (HPA-managed)")
        assert (await world.status())["observedGeneration"] == generation
        assert await world.replicas() == 3

    async def test_a_server_error_is_reported_until_the_next_success(self, embedded: Env) -> None:
        await embedded.create(PLAIN)
        await embedded.settle()
        await embedded.change(image="memcached:1.6.1")
        faulty = FaultyCluster(embedded.cluster, [server_error(verbs={Verb.APPLY})])
        with pytest.raises(ReconcileError):
            await embedded.pass_over(faulty)
        failed = (await embedded.conditions())["Degraded"]
        await embedded.settle()

        assert failed[:2] == ("True", "Degraded")
        assert (await embedded.conditions())["Degraded"][1] == "NotDegraded"

    async def test_a_cache_that_is_being_deleted_is_not_reconciled(self, embedded: Env) -> None:
        await embedded.create(PLAIN)
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await embedded.cluster.patch(
            embedded.owner, held, PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        )
        await embedded.cluster.delete(embedded.owner)
        embedded.cluster.requests.clear()

        assert await embedded.reconcile() is None
        assert embedded.cluster.requests.writes == 0


async def test_two_caches_side_by_side(world: Env) -> None:
    await world.create(AUTOSCALED)
    await world.settle()
    other = ObjectKey("memcached.c5c3.io/v1alpha1", "Memcached", "other", world.namespace)
    manifest = {
        "apiVersion": other.api_version,
        "kind": "Memcached",
        "metadata": {"name": "other", "namespace": world.namespace},
        "spec": {"replicas": 2},
    }
    await world.cluster.create(manifest, field_manager="user")
    before = await world.versions()
    await world.pass_over(world.cluster, other)

    assert await world.versions() == before
    assert (await world.cluster.get(world.own("Deployment", "other")))["spec"]["replicas"] == 2
