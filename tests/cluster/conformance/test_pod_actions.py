"""Evictions, bindings, and the graceful deletion of pods on nodes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from ocf.cluster import Subresource
from ocf.cluster.protocol import Preconditions
from ocf.objects import Manifest
from ocf.objects.timestamps import parse_time
from tests.support import eventually

if TYPE_CHECKING:
    from tests.cluster.conformance.conftest import Env

EVICT, BIND = Subresource.EVICTION, Subresource.BINDING
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
DENIED = "Cannot evict pod as it would violate the pod's disruption budget."
TARGET = "target: {apiVersion: v1, kind: Node, name: n1}"
RUNNING = "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}"
UNREADY = "status: {phase: Running, conditions: [{type: Ready, status: 'False'}]}"
ON_NODE = "metadata: {labels: {app: demo}}, spec: {nodeName: n1, containers: [{name: web, image: 'web:1'}]}"


async def pod(env: Env, status: str = RUNNING, name: str = "demo", *, body: str | None = ON_NODE) -> Manifest:
    """Create a pod with a status."""
    await env.create("Pod", body and f"{{{body}}}", name)
    return await env.merge("Pod", status, name, part=Subresource.STATUS)


async def budget(env: Env, status: str, name: str = "demo", *, spec: str = "") -> Manifest:
    """Create a budget with a status as the disruption controller would set it; it has seen the spec."""
    selector = "selector: {matchLabels: {app: demo}}"
    await env.create("PodDisruptionBudget", f"spec: {{minAvailable: 1, {selector}, {spec}}}", name)
    counts = "expectedPods: 3, currentHealthy: 3, desiredHealthy: 1, disruptionsAllowed: 2"
    patch = f"status: {{observedGeneration: 1, {counts}}}"
    await env.merge("PodDisruptionBudget", patch, name, part=Subresource.STATUS)
    return await env.merge("PodDisruptionBudget", f"status: {{{status}}}", name, part=Subresource.STATUS)


def condition(pod: Manifest, kind: str) -> dict[str, Any]:
    """Return a condition of a pod without its time."""
    found = next(each for each in pod["status"]["conditions"] if each["type"] == kind)
    return {name: value for name, value in found.items() if name != "lastTransitionTime"}


class TestEviction:
    async def test_a_pod_on_a_node_is_marked_and_deleted_gracefully(self, env: Env) -> None:
        await pod(env)
        assert await env.act(EVICT) == SUCCESS
        live = await env.get("Pod")
        assert condition(live, "DisruptionTarget") == {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastProbeTime": None,
        }
        assert live["metadata"]["deletionGracePeriodSeconds"] == 30

    async def test_a_pod_without_a_node_is_removed(self, env: Env) -> None:
        await pod(env, body=None)
        await env.act(EVICT)
        assert not await env.exists("Pod")

    async def test_the_condition_belongs_to_no_field_manager(self, env: Env) -> None:
        before = await pod(env)
        await env.act(EVICT)
        assert (await env.get("Pod"))["metadata"]["managedFields"] == before["metadata"]["managedFields"]

    async def test_a_budget_counts_the_eviction(self, env: Env) -> None:
        await pod(env)
        await budget(env, "disruptionsAllowed: 2")
        await env.act(EVICT)
        status = (await env.get("PodDisruptionBudget"))["status"]
        assert status["disruptionsAllowed"] == 1
        assert list(status["disruptedPods"]) == ["demo"]
        assert "conditions" not in status

    async def test_the_last_eviction_that_a_budget_allows_sets_its_condition(self, env: Env) -> None:
        await pod(env)
        await budget(env, "disruptionsAllowed: 1")
        await env.act(EVICT)
        status = (await env.get("PodDisruptionBudget"))["status"]
        (found,) = status["conditions"]
        found.pop("lastTransitionTime")
        assert found == {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": 1,
        }

    async def test_the_status_of_the_budget_is_written_by_the_server(self, env: Env, owned: Any) -> None:
        await pod(env)
        await budget(env, "disruptionsAllowed: 1")
        await env.act(EVICT)
        managers = owned(await env.get("PodDisruptionBudget"))
        assert ".status.disruptedPods.demo".removeprefix(".") in managers["kube-apiserver Update status"]

    @pytest.mark.parametrize(
        ("status", "cause"),
        [
            pytest.param(
                "currentHealthy: 1, desiredHealthy: 2",
                "The disruption budget demo needs 2 healthy pods and has 1 currently",
                id="too few healthy pods",
            ),
            pytest.param(
                "currentHealthy: 2",
                "The disruption budget demo does not allow evicting pods currently",
                id="without a condition",
            ),
            pytest.param(
                "conditions: [{type: DisruptionAllowed, status: 'False', reason: InsufficientPods, message: 'wait', "
                "lastTransitionTime: '2026-01-31T12:00:00Z'}]",
                "The disruption budget demo does not allow evicting pods currently (InsufficientPods): wait",
                id="with a condition",
            ),
            pytest.param(
                "currentHealthy: 1, desiredHealthy: 2, conditions: [{type: DisruptionAllowed, status: 'False', "
                "reason: SyncFailed, message: 'no scale', lastTransitionTime: '2026-01-31T12:00:00Z'}]",
                "The disruption budget demo does not allow evicting pods currently because it failed sync: no scale",
                id="not synced",
            ),
        ],
    )
    async def test_a_budget_that_allows_none_rejects_it(self, status: str, cause: str, env: Env) -> None:
        before = await pod(env)
        await budget(env, f"disruptionsAllowed: 0, {status}")
        for dry_run in (False, True):
            with env.error(429, "TooManyRequests", DENIED, f"DisruptionBudget : {cause}"):
                await env.act(EVICT, dry_run=dry_run)
        assert await env.get("Pod") == before

    async def test_a_budget_without_a_status_yet_asks_for_a_retry(self, env: Env) -> None:
        await pod(env)
        await env.create("PodDisruptionBudget")
        cause = "DisruptionBudget : The disruption budget demo is still being processed by the server."
        with env.error(429, "TooManyRequests", DENIED, cause) as caught:
            await env.act(EVICT)
        assert caught.value.retry_after == 10

    async def test_a_rejection_does_not_say_when_to_retry(self, env: Env) -> None:
        await pod(env)
        await budget(env, "disruptionsAllowed: 0, currentHealthy: 1")
        cause = "DisruptionBudget : The disruption budget demo needs 1 healthy pods and has 1 currently"
        with env.error(429, "TooManyRequests", DENIED, cause) as caught:
            await env.act(EVICT)
        assert caught.value.retry_after is None

    async def test_several_budgets_are_an_error(self, env: Env) -> None:
        await pod(env)
        for name in ("demo", "other"):
            await budget(env, "disruptionsAllowed: 2", name)
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        with env.error(500, "", message):
            await env.act(EVICT)
        assert "deletionTimestamp" not in (await env.get("Pod"))["metadata"]

    async def test_a_budget_of_other_pods_has_no_effect(self, env: Env) -> None:
        await pod(env)
        await env.create("PodDisruptionBudget", "spec: {minAvailable: 1, selector: {matchLabels: {app: other}}}")
        await env.act(EVICT)

    async def test_an_empty_selector_of_a_budget_selects_all_pods(self, env: Env) -> None:
        await pod(env)
        await env.create("PodDisruptionBudget", "spec: {minAvailable: 1, selector: {}}")
        with env.error(429, "TooManyRequests", None, *_processed()):
            await env.act(EVICT)

    async def test_a_dry_run_changes_nothing(self, env: Env) -> None:
        before, limit = await pod(env), await budget(env, "disruptionsAllowed: 1")
        assert await env.act(EVICT, dry_run=True) == SUCCESS
        assert await env.act(EVICT, "deleteOptions: {dryRun: [All]}") == SUCCESS
        assert (await env.get("Pod"), await env.get("PodDisruptionBudget")) == (before, limit)

    @pytest.mark.parametrize(
        "status",
        [
            pytest.param("status: {phase: Pending}", id="pending"),
            pytest.param("status: {phase: Succeeded}", id="succeeded"),
            pytest.param("status: {phase: Failed}", id="failed"),
        ],
    )
    async def test_a_pod_that_does_not_run_is_deleted_in_any_case(self, status: str, env: Env) -> None:
        await pod(env, status)
        await budget(env, "disruptionsAllowed: 0")
        await env.act(EVICT)
        assert (await env.get("PodDisruptionBudget"))["status"]["disruptionsAllowed"] == 0

    async def test_a_pod_that_is_being_deleted_needs_no_budget(self, env: Env) -> None:
        await pod(env)
        await budget(env, "disruptionsAllowed: 0")
        await env.delete("Pod")
        await env.act(EVICT)

    @pytest.mark.parametrize(
        ("policy", "healthy", "allowed"),
        [
            pytest.param("AlwaysAllow", 0, True, id="always"),
            pytest.param("IfHealthyBudget", 2, True, id="the other pods are healthy"),
            pytest.param("IfHealthyBudget", 1, False, id="the budget is disrupted"),
            pytest.param("", 2, True, id="by default, the other pods are healthy"),
            pytest.param("", 1, False, id="by default, the budget is disrupted"),
        ],
    )
    async def test_unready_pods_follow_their_own_policy(
        self, policy: str, healthy: int, allowed: bool, env: Env
    ) -> None:
        await pod(env, UNREADY)
        spec = f"unhealthyPodEvictionPolicy: {policy}" if policy else ""
        await budget(env, f"disruptionsAllowed: 0, desiredHealthy: 2, currentHealthy: {healthy}", spec=spec)
        if allowed:
            await env.act(EVICT)
            assert "disruptedPods" not in (await env.get("PodDisruptionBudget"))["status"]
        else:
            cause = f"DisruptionBudget : The disruption budget demo needs 2 healthy pods and has {healthy} currently"
            with env.error(429, "TooManyRequests", DENIED, cause):
                await env.act(EVICT)

    @pytest.mark.parametrize("field", ["uid", "resourceVersion"])
    async def test_preconditions_protect_another_pod(self, field: str, env: Env) -> None:
        live = await pod(env)
        what, guess = {
            "uid": ("UID", "The object might have been deleted and then recreated"),
            "resourceVersion": ("ResourceVersion", "The object might have been modified"),
        }[field]
        given, found = "12345", live["metadata"][field]
        message = (
            f'Operation cannot be fulfilled on Pod "demo": the {what} in the precondition ({given}) does not match the '
            f"{what} in record ({found}). {guess}"
        )
        with env.error(409, "Conflict", env.plain(message)):
            await env.act(EVICT, f"deleteOptions: {{preconditions: {{{field}: '{given}'}}}}")
        await env.act(EVICT, f"deleteOptions: {{preconditions: {{{field}: '{found}'}}}}")
        assert "deletionTimestamp" in (await env.get("Pod"))["metadata"]

    async def test_the_delete_options_have_a_grace_period(self, env: Env) -> None:
        await pod(env)
        await env.act(EVICT, "deleteOptions: {gracePeriodSeconds: 5}")
        assert (await env.get("Pod"))["metadata"]["deletionGracePeriodSeconds"] == 5
        await env.act(EVICT, "deleteOptions: {gracePeriodSeconds: 0}")
        assert not await env.exists("Pod")

    async def test_finalizers_block_the_removal(self, env: Env) -> None:
        await pod(env, body="metadata: {finalizers: [example.com/a]}, spec: {containers: [{name: a, image: 'a:1'}]}")
        await env.act(EVICT)
        assert (await env.get("Pod"))["metadata"]["deletionGracePeriodSeconds"] == 0

    async def test_a_pod_that_does_not_exist_is_not_found(self, env: Env) -> None:
        with env.error(404, "NotFound", 'pods "demo" not found'):
            await env.act(EVICT)

    async def test_other_kinds_cannot_be_evicted(self, env: Env) -> None:
        await env.create("ConfigMap")
        with env.error(404, "NotFound", None):
            await env.act(EVICT, kind="ConfigMap")


def _processed() -> tuple[str, ...]:
    return ("DisruptionBudget : The disruption budget demo is still being processed by the server.",)


class TestBinding:
    async def test_a_pod_is_assigned_to_a_node(self, env: Env) -> None:
        before = await env.create("Pod")
        assert await env.act(BIND, TARGET) == SUCCESS
        live = await env.get("Pod")
        assert live["spec"]["nodeName"] == "n1"
        assert condition(live, "PodScheduled") == {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        assert live["metadata"].get("generation") == before["metadata"].get("generation")
        assert live["metadata"]["managedFields"] == before["metadata"]["managedFields"]

    async def test_the_condition_that_it_is_unschedulable_is_replaced(self, env: Env) -> None:
        await pod(
            env,
            "status: {nominatedNodeName: n2, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, "
            "message: 'none', lastTransitionTime: '2026-01-31T12:00:00Z'}]}",
            body=None,
        )
        await env.act(BIND, TARGET)
        live = await env.get("Pod")
        assert condition(live, "PodScheduled") == {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
        assert live["status"]["conditions"][0]["lastTransitionTime"] != "2026-01-31T12:00:00Z"
        assert "nominatedNodeName" not in live["status"]

    async def test_its_labels_and_annotations_are_copied_to_the_pod(self, env: Env) -> None:
        await env.create("Pod")
        await env.act(BIND, f"metadata: {{annotations: {{a: b}}, labels: {{c: d}}}}\n{TARGET}")
        metadata = (await env.get("Pod"))["metadata"]
        assert (metadata["annotations"], metadata["labels"]) == ({"a": "b"}, {"app": "demo", "c": "d"})

    async def test_the_zone_and_the_region_of_the_node_become_labels_of_the_pod(self, env: Env) -> None:
        zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
        labels = f"{{{zone}: a, {region}: b, kubernetes.io/hostname: c}}"
        node = await env.create("Node", f"metadata: {{labels: {labels}}}")
        await env.create("Pod")
        target = f"target: {{kind: Node, name: {node['metadata']['name']}}}"

        async def labelled() -> bool:
            """Bind another pod, because admission may not have seen the node yet."""
            await env.delete("Pod", grace_period_seconds=0)
            await env.create("Pod")
            await env.act(BIND, f"metadata: {{labels: {{{zone}: other}}}}\n{target}")
            return bool((await env.get("Pod"))["metadata"]["labels"] == {"app": "demo", zone: "a", region: "b"})

        await eventually(labelled)
        await env.delete("Node")

    async def test_a_dry_run_changes_nothing(self, env: Env) -> None:
        before = await env.create("Pod")
        assert await env.act(BIND, TARGET, dry_run=True) == SUCCESS
        assert await env.get("Pod") == before

    async def test_a_bound_pod_stays_where_it_is(self, env: Env) -> None:
        await pod(env)
        problem = 'pod demo is already assigned to node "n1"'
        with env.error(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "demo": {problem}'):
            await env.act(BIND, TARGET)

    @pytest.mark.parametrize(
        ("body", "problem"),
        [
            pytest.param(
                "metadata: {finalizers: [example.com/a]}",
                "pod demo is being deleted, cannot be assigned to a host",
                id="being deleted",
            ),
            pytest.param(
                "spec: {schedulingGates: [{name: example.com/a}]}",
                "pod demo has non-empty .spec.schedulingGates",
                id="gated",
            ),
        ],
    )
    async def test_a_pod_that_may_not_be_scheduled_is_not_bound(self, body: str, problem: str, env: Env) -> None:
        containers = "containers: [{name: web, image: 'web:1'}]"
        whole = (
            body.replace("spec: {", f"spec: {{{containers}, ") if "spec" in body else f"{body}\nspec: {{{containers}}}"
        )
        await env.create("Pod", whole)
        if "deleted" in problem:
            await env.delete("Pod")
        with env.error(409, "Conflict", f'Operation cannot be fulfilled on pods/binding "demo": {problem}'):
            await env.act(BIND, TARGET)
        await env.merge("Pod", "metadata: {finalizers: null}")

    @pytest.mark.parametrize("field", ["uid", "resourceVersion"])
    async def test_it_may_name_the_pod_by_uid_and_version(self, field: str, env: Env) -> None:
        live = await env.create("Pod")
        what = {"uid": "UID", "resourceVersion": "ResourceVersion"}[field]
        message = (
            'Operation cannot be fulfilled on pods "demo": StorageError: invalid object, Code: 4, Key: '
            f"/registry/pods/{env.namespace}/demo, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} "
            f"in precondition: 12345, {what} in object meta: {live['metadata'][field]}"
        )
        with env.error(409, "Conflict", env.plain(message)):
            await env.act(BIND, f"metadata: {{{field}: '12345'}}\n{TARGET}")
        await env.act(BIND, f"metadata: {{{field}: '{live['metadata'][field]}'}}\n{TARGET}")

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            pytest.param("target: {kind: Node}", "target.name: Required value", id="no name"),
            pytest.param(
                "target: {kind: Pod, name: n1}",
                'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
                id="another kind",
            ),
            pytest.param(
                "target: {kind: Pod}",
                '[target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>", '
                "target.name: Required value]",
                id="both",
            ),
        ],
    )
    async def test_an_invalid_target_is_an_error(self, target: str, message: str, env: Env) -> None:
        await env.create("Pod")
        with env.error(500, "", message):
            await env.act(BIND, target)

    async def test_a_pod_that_does_not_exist_is_not_found(self, env: Env) -> None:
        with env.error(404, "NotFound", 'pods "demo" not found'):
            await env.act(BIND, TARGET)


class TestGracefulDeletion:
    async def test_a_pod_on_a_node_stays_until_its_kubelet_deletes_it(self, env: Env) -> None:
        await pod(env)
        await env.delete("Pod")
        metadata = (await env.get("Pod"))["metadata"]
        assert metadata["deletionGracePeriodSeconds"] == 30
        assert metadata["generation"] == 2
        await env.merge("Pod", "status: {phase: Succeeded}", part=Subresource.STATUS)
        assert await env.exists("Pod")
        await env.delete("Pod", grace_period_seconds=0)
        assert not await env.exists("Pod")

    async def test_a_delete_can_only_shorten_the_grace_period(self, env: Env) -> None:
        await pod(env)
        await env.delete("Pod", grace_period_seconds=60)
        first = (await env.get("Pod"))["metadata"]
        for seconds in (None, 60, 61):
            await env.delete("Pod", grace_period_seconds=seconds)
            assert (await env.get("Pod"))["metadata"] == first
        await env.delete("Pod", grace_period_seconds=20)
        second = (await env.get("Pod"))["metadata"]
        assert second["deletionGracePeriodSeconds"] == 20
        assert parse_time(second["deletionTimestamp"]) == parse_time(first["deletionTimestamp"]) - timedelta(seconds=40)
        assert second["generation"] == first["generation"]

    async def test_a_dry_run_changes_nothing(self, env: Env) -> None:
        before = await pod(env)
        await env.delete("Pod", grace_period_seconds=0, dry_run=True)
        assert await env.get("Pod") == before

    async def test_preconditions_hold_for_the_second_delete_as_well(self, env: Env) -> None:
        await pod(env)
        await env.delete("Pod")
        with env.error(409, "Conflict"):
            await env.delete("Pod", preconditions=Preconditions(uid="other"), grace_period_seconds=0)
        assert await env.exists("Pod")

    @pytest.mark.parametrize(
        ("status", "seconds"),
        [
            pytest.param("status: {phase: Failed}", None, id="a failed pod"),
            pytest.param("status: {phase: Succeeded}", 30, id="a completed pod"),
            pytest.param(RUNNING, 0, id="a grace period of zero"),
        ],
    )
    async def test_what_does_not_run_is_removed_at_once(self, status: str, seconds: int | None, env: Env) -> None:
        await pod(env, status)
        await env.delete("Pod", grace_period_seconds=seconds)
        assert not await env.exists("Pod")

    async def test_finalizers_keep_a_pod_after_its_grace_period(self, env: Env) -> None:
        await pod(env, body=ON_NODE.replace("metadata: {", "metadata: {finalizers: [example.com/a], "))
        await env.delete("Pod")
        await env.merge("Pod", "metadata: {finalizers: null}")
        assert await env.exists("Pod")
        await env.delete("Pod", grace_period_seconds=0)
        assert not await env.exists("Pod")

    async def test_other_kinds_ignore_the_grace_period(self, env: Env) -> None:
        await env.create("ConfigMap")
        await env.delete("ConfigMap", grace_period_seconds=30)
        assert not await env.exists("ConfigMap")

    async def test_a_node_is_created_with_its_status(self, env: Env) -> None:
        node = await env.create("Node", "status: {allocatable: {cpu: '4'}, capacity: {cpu: '4'}}")
        assert node["status"]["allocatable"] == {"cpu": "4"}
        await env.delete("Node")
