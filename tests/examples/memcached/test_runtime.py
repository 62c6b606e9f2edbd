"""The reconciles of a cache: autoscaling, drift, enabling and disabling features, and objects of other owners."""

from http import HTTPStatus
from typing import ClassVar

import pytest

from examples.memcached.samples import AUTOSCALED, EVERYTHING, PLAIN
from examples.memcached.secrets import SECRET_HASH
from ocf.cluster import DeleteOptions, PatchOptions, PatchType, Propagation, Verb, WatchOptions
from ocf.component.status.results import Action
from ocf.errors import ReconcileError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import FaultyCluster, assert_quiet
from ocf.testing.faults import server_error
from tests.examples.memcached.env import Env

HPA = "HorizontalPodAutoscaler"
OPTIONAL = (HPA, "PodDisruptionBudget", "ServiceMonitor", "NetworkPolicy")
SCALING: Manifest = {"enabled": True, "minReplicas": 2, "maxReplicas": 10}


def cpu(percent: int) -> Manifest:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


async def everything(env: Env) -> None:
    await env.secret("my-cache-sasl", **{"password-file": "user:password"})
    await env.secret("my-cache-tls", **{"tls.crt": "a", "tls.key": "b", "ca.crt": "c"})
    await env.create(EVERYTHING)
    await env.settle()


async def counts(env: Env, since: str) -> list[int]:
    """Return every count that the Deployment has asked for since a version."""
    found, key = [], env.own("Deployment")
    last = (await env.cluster.get(key))["metadata"]["resourceVersion"]
    async for event in env.cluster.watch(
        key.api_version, key.kind, WatchOptions(namespace=key.namespace, resource_version=since)
    ):
        found.append(int(event.object["spec"]["replicas"]))
        if event.object["metadata"]["resourceVersion"] == last:
            break
    return found


class TestTable:
    """The rows of the table, in order."""

    async def test_enable(self, env: Env) -> None:
        await env.create(PLAIN)
        await env.settle()
        await env.change(autoscaling=SCALING)
        result = await env.reconcile()
        owned = (await env.get("Deployment"))["metadata"]["managedFields"]
        ours = next(
            one
            for one in owned
            if one["manager"].startswith("memcached-operator/Memcached/") and "left" not in one["manager"]
        )

        assert await env.exists(HPA)
        assert "f:replicas" not in ours["fieldsV1"]["f:spec"]
        assert await env.replicas() == 3
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
    async def test_change(self, env: Env, change: Manifest, path: str) -> None:
        await env.create(AUTOSCALED)
        await env.settle()
        before = (await env.get(HPA))["spec"]
        scaling = (await env.get("Memcached"))["spec"]["autoscaling"]
        await env.change(autoscaling={**scaling, **change})
        env.cluster.requests.clear()
        await env.reconcile()
        after = (await env.get(HPA))["spec"]

        assert [request.kind for request in env.cluster.requests.of(Verb.APPLY)] == [HPA]
        assert {name for name in after if after[name] != before.get(name)} == {path}

    @pytest.mark.parametrize("off", [{"enabled": False, "maxReplicas": 10}, None], ids=["disable", "remove"])
    async def test_disable(self, env: Env, off: Manifest | None) -> None:
        await env.create(AUTOSCALED)
        await env.settle()
        await env.scale(5)
        await env.settle()
        await env.change(autoscaling=off)
        await env.reconcile()

        assert not await env.exists(HPA)
        assert await env.replicas() == 3

    async def test_delete_the_cache(self, env: Env) -> None:
        await everything(env)
        await env.cluster.delete(env.owner, DeleteOptions(propagation=Propagation.BACKGROUND))
        for kind in ("Deployment", "Service", *OPTIONAL):
            await env.gone(kind)

        assert await env.cluster.get(env.own("Secret", "my-cache-sasl"))

    async def test_twice_with_the_same_spec(self, env: Env) -> None:
        await env.create(AUTOSCALED)
        await env.settle()
        before = (await env.get(HPA))["metadata"]["resourceVersion"]
        env.heard.events.clear()
        await env.reconcile()

        assert (await env.get(HPA))["metadata"]["resourceVersion"] == before
        assert env.heard.events == []

    async def test_edited_by_hand(self, env: Env) -> None:
        await env.create(AUTOSCALED)
        await env.settle()
        await env.meddle(HPA, spec={"maxReplicas": 99, "minReplicas": 1})
        await env.reconcile()
        spec = (await env.get(HPA))["spec"]

        assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 10)


class TestCount:
    async def test_every_write_of_ours_leaves_the_autoscalers_count(self, env: Env) -> None:
        """The autoscaler scales through the scale subresource; the operator goes on writing the same object."""
        await env.create(autoscaling=SCALING, image="memcached:1.6")
        await env.settle()
        seen = []
        for count, image in ((4, "memcached:1.6.1"), (7, "memcached:1.6.2"), (3, "memcached:1.6.3")):
            await env.scale(count)
            await env.change(image=image)
            result = await env.reconcile()
            assert result is not None
            seen.append((result.outcomes[0].action, await env.replicas()))
            await env.meddle("Deployment", metadata={"labels": {"app.kubernetes.io/managed-by": "me"}})
            await env.reconcile()
            seen.append((Action.UPDATED, await env.replicas()))

        assert seen == [(Action.UPDATED, count) for count in (4, 4, 7, 7, 3, 3)]

    async def test_on_off_on_never_passes_through_one(self, env: Env) -> None:
        await env.create(PLAIN)
        await env.settle()
        since = (await env.get("Deployment"))["metadata"]["resourceVersion"]
        await env.change(autoscaling=SCALING)
        await env.settle()
        await env.scale(6)
        await env.settle()
        await env.change(autoscaling={"enabled": False})
        await env.settle()
        await env.change(autoscaling=SCALING, replicas=None)
        await env.settle()
        await env.scale(5)
        await env.settle()
        await env.change(autoscaling=None, replicas=4)
        await env.settle()
        seen = await counts(env, since)

        assert list(dict.fromkeys(seen)) == [3, 6, 5, 4]
        assert seen[-1] == 4

    async def test_a_count_set_by_hand_is_reverted_without_autoscaling(self, env: Env) -> None:
        await env.create(PLAIN)
        await env.settle()
        await env.scale(9)
        await env.reconcile()

        assert await env.replicas() == 3

    async def test_suspend_and_resume(self, env: Env) -> None:
        await env.create(AUTOSCALED)
        await env.settle()
        await env.scale(6)
        await env.settle()
        await env.change(suspended=True)
        await env.settle()
        suspended = (await env.replicas(), await env.exists(HPA), (await env.conditions())["Available"])
        await env.change(suspended=False)
        await env.reconcile()
        resumed = (await env.replicas(), await env.exists(HPA))
        await env.settle()

        assert suspended == (0, False, ("False", "Unavailable", "0/0 replicas are ready"))
        assert resumed == (6, True)
        assert (await env.conditions())["Ready"][2] == "All 6 replicas are ready"

    async def test_suspend_and_resume_without_autoscaler(self, env: Env) -> None:
        await env.create(PLAIN)
        await env.settle()
        await env.change(suspended=True)
        await env.settle()
        suspended = await env.replicas()
        await env.change(suspended=False)
        await env.settle()

        assert (suspended, await env.replicas()) == (0, 3)

    async def test_created_suspended_it_can_be_resumed(self, env: Env) -> None:
        """An autoscaler ignores a target with zero replicas, so the operator has to set the first count."""
        await env.create(AUTOSCALED, suspended=True)
        await env.settle()
        suspended = await env.replicas()
        await env.change(suspended=False)
        await env.settle()

        assert suspended == 0
        assert await env.replicas() >= 1
        assert (await env.conditions())["Ready"][0] == "True"

    async def test_autoscaling_changed_while_suspended(self, env: Env) -> None:
        await env.create(PLAIN)
        await env.settle()
        await env.change(suspended=True)
        await env.settle()
        await env.change(autoscaling=SCALING)
        await env.settle()
        suspended = (await env.replicas(), await env.exists(HPA))
        await env.change(suspended=False)
        await env.settle()

        assert suspended == (0, False)
        assert (await env.replicas(), await env.exists(HPA)) == (3, True)


class TestQuiet:
    @pytest.mark.parametrize("sample", [PLAIN, AUTOSCALED, EVERYTHING], ids=["plain", "autoscaled", "everything"])
    async def test_without_a_change_there_is_no_write_and_no_event(self, env: Env, sample: str) -> None:
        await env.secret("my-cache-sasl", **{"password-file": "user:password"})
        await env.secret("my-cache-tls", **{"tls.crt": "a", "tls.key": "b", "ca.crt": "c"})
        await env.create(sample)
        await env.settle()
        env.heard.events.clear()

        await assert_quiet(env.cluster, env.pass_over)
        assert env.heard.events == []

    async def test_what_is_off_costs_no_request_but_a_look(self, env: Env) -> None:
        await env.create(PLAIN)
        await env.settle()
        env.cluster.requests.clear()
        await env.reconcile()

        assert {request.verb for request in env.cluster.requests} == {Verb.GET}


DRIFT: dict[str, Manifest] = {
    "Deployment": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}},
    HPA: {"metadata": {"labels": {"app.kubernetes.io/name": "mine"}}},
    "Service": {"spec": {"selector": {"app.kubernetes.io/name": "mine"}}},
    "PodDisruptionBudget": {"spec": {"maxUnavailable": 5}},
    "ServiceMonitor": {"spec": {"endpoints": []}},
    "NetworkPolicy": {"spec": {"ingress": []}},
}


class TestDrift:
    async def test_a_changed_object_is_reverted_by_the_next_reconcile(self, env: Env) -> None:
        await everything(env)
        for kind, patch in DRIFT.items():
            before = await env.get(kind)
            changed = await env.meddle(kind, **patch)
            await env.reconcile()
            after = await env.get(kind)

            assert (changed["spec"], changed["metadata"]["labels"]) != (before["spec"], before["metadata"]["labels"])
            assert (after["spec"], after["metadata"]["labels"]) == (before["spec"], before["metadata"]["labels"]), kind

    async def test_a_deleted_object_is_created_again(self, env: Env) -> None:
        await everything(env)
        for kind in DRIFT:
            uid = (await env.get(kind))["metadata"]["uid"]
            await env.cluster.delete(env.own(kind))
            await env.reconcile()

            assert (await env.get(kind))["metadata"]["uid"] != uid

    async def test_fields_of_other_managers_stay(self, env: Env) -> None:
        await everything(env)
        await env.meddle("Service", metadata={"annotations": {"example.com/cost": "12"}})
        await env.change(service={"annotations": {"example.com/team": "other"}})
        await env.reconcile()

        annotations = (await env.get("Service"))["metadata"]["annotations"]
        assert annotations == {"example.com/cost": "12", "example.com/team": "other"}


class TestOptional:
    async def test_what_is_switched_off_goes_with_one_delete(self, env: Env) -> None:
        await everything(env)
        await env.change(autoscaling=None, highAvailability=None, monitoring=None, security=None)
        env.cluster.requests.clear()
        await env.retried()
        requests = env.cluster.requests.of(Verb.DELETE)
        deleted = [request.kind for request in requests if request.code != HTTPStatus.CONFLICT]
        await env.settle()
        env.cluster.requests.clear()
        await env.reconcile()

        assert sorted(deleted) == sorted(OPTIONAL)
        assert not env.cluster.requests.of(Verb.DELETE)
        assert not any([await env.exists(kind) for kind in OPTIONAL])

    async def test_objects_of_other_owners_with_the_same_name_stay(self, env: Env) -> None:
        foreign: dict[str, Manifest] = {
            HPA: {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}, "maxReplicas": 3},
            "PodDisruptionBudget": {"minAvailable": 1, "selector": {"matchLabels": {"app": "other"}}},
            "ServiceMonitor": {"endpoints": []},
            "NetworkPolicy": {"podSelector": {}, "policyTypes": ["Ingress"]},
        }
        await env.create(PLAIN)
        for kind, spec in foreign.items():
            key = env.own(kind)
            metadata = {"name": key.name, "namespace": key.namespace}
            manifest = {"apiVersion": key.api_version, "kind": kind, "metadata": metadata, "spec": spec}
            await env.cluster.create(manifest, field_manager="another")
        result = await env.reconcile()
        await env.cluster.delete(env.owner)  # and the garbage collector has nothing to do with them
        await env.gone("Deployment")

        assert result is not None
        assert [outcome.action for outcome in result.outcomes].count(Action.KEPT) == len(foreign)
        assert [kind for kind in foreign if not await env.exists(kind)] == []


class TestSecrets:
    SASL: ClassVar[Manifest] = {"sasl": {"enabled": True, "credentialsSecretRef": {"name": "sasl"}}}

    async def annotation(self, env: Env) -> str:
        template = (await env.get("Deployment"))["spec"]["template"]
        return str(template["metadata"].get("annotations", {}).get(SECRET_HASH, ""))

    async def test_a_missing_one_is_reported_and_does_not_stop_the_reconcile(self, env: Env) -> None:
        await env.create(replicas=1, security=self.SASL)
        await env.settle()
        missing = await env.conditions()
        before = await self.annotation(env)
        await env.secret("sasl", **{"password-file": "a"})
        await env.settle()

        assert missing["Degraded"] == ("True", "SecretNotFound", "Referenced Secrets not found: sasl")
        assert missing["Ready"][0] == "True"
        assert (await env.conditions())["Degraded"][1] == "NotDegraded"
        assert (before, len(await self.annotation(env))) == ("", 64)

    async def test_a_changed_one_replaces_the_pods(self, env: Env) -> None:
        await env.secret("sasl", **{"password-file": "a"})
        await env.create(replicas=1, security=self.SASL)
        await env.settle()
        before = await self.annotation(env)
        await env.secret("sasl", **{"password-file": "b"})
        result = await env.reconcile()

        assert await self.annotation(env) not in {before, ""}
        assert result is not None
        assert result.writes == 1


class TestFailure:
    async def test_the_conditions_are_written_after_a_failed_step(self, env: Env) -> None:
        """Without webhooks an autoscaler without upper limit reaches the API server, which rejects it."""
        await env.create(PLAIN)
        await env.settle()
        bad = {"spec": {"autoscaling": {"enabled": True}}}
        await env.cluster.patch(env.owner, bad, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        with pytest.raises(ReconcileError, match="maxReplicas"):
            await env.reconcile()
        found, generation = await env.conditions(), (await env.get("Memcached"))["metadata"]["generation"]

        assert list(found) == ["Available", "Progressing", "Degraded", "Ready"]
        assert found["Degraded"][:2] == ("True", "Degraded")
        assert "failed to apply resource autoscaling/v2/HorizontalPodAutoscaler" in found["Degraded"][2]
        assert found["Available"] == ("True", "Available", "3/3 replicas are ready (HPA-managed)")
        assert (await env.status())["observedGeneration"] == generation
        assert await env.replicas() == 3

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

    async def test_a_cache_that_another_finalizer_holds_is_reported_and_nothing_is_made_for_it(
        self, embedded: Env
    ) -> None:
        await embedded.create(PLAIN)
        await embedded.settle()
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await embedded.cluster.patch(
            embedded.owner, held, PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        )
        await embedded.cluster.delete(embedded.owner)
        await embedded.change(image="memcached:1.6.1")
        await embedded.reconcile()

        cache = await embedded.cluster.get(embedded.owner)
        assert cache["status"]["observedGeneration"] == cache["metadata"]["generation"]
        template = (await embedded.get("Deployment"))["spec"]["template"]
        assert template["spec"]["containers"][0]["image"] == "memcached:1.6"


async def test_two_caches_side_by_side(env: Env) -> None:
    await env.create(AUTOSCALED)
    await env.settle()
    other = ObjectKey("memcached.c5c3.io/v1alpha1", "Memcached", "other", env.namespace)
    manifest = {
        "apiVersion": other.api_version,
        "kind": "Memcached",
        "metadata": {"name": "other", "namespace": env.namespace},
        "spec": {"replicas": 2},
    }
    await env.cluster.create(manifest, field_manager="user")
    before = await env.versions()
    await env.pass_over(env.cluster, other)

    assert await env.versions() == before
    assert (await env.cluster.get(env.own("Deployment", "other")))["spec"]["replicas"] == 2
