"""The built-in controllers as a whole: when they act, and what they survive."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ocf.cluster import DeleteOptions, ListOptions, PatchOptions, PatchType, Propagation, WatchOptions
from ocf.errors import ConfigError
from ocf.objects import Manifest, ObjectKey
from ocf.objects.conditions import is_condition_true
from ocf.testing import LoopClock, VirtualClock, run_in_virtual_time
from ocf_server import ControllerSettings, EmbeddedCluster
from ocf_server.controllers.kubelet import EXIT_CODE, FINISH_AFTER, READY_AFTER
from ocf_server.controllers.replicas import resolve_fenceposts

RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
WEBHOOK = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "pods"},
    "webhooks": [
        {
            "name": "pods.example.com",
            "clientConfig": {"url": "https://127.0.0.1/pods"},
            "rules": [RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
    ],
}
WATCH = WatchOptions(resource_version="0")
DEPLOYMENT = ObjectKey("apps/v1", "Deployment", "web", "default")


def template(app: str = "web", **annotations: str) -> dict[str, Any]:
    container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"labels": {"app": app}, "annotations": annotations}, "spec": {"containers": [container]}}


def workload(kind: str = "Deployment", **spec: Any) -> Manifest:
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web", "namespace": "default"}, "spec": body}


def job(annotations: Mapping[str, str], **spec: Any) -> Manifest:
    pod = template(**annotations)
    pod["spec"]["restartPolicy"] = "Never"
    metadata = {"name": "task", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": pod, **spec}}


class Rejecting:
    """A webhook that rejects pods until it is changed."""

    allowed = False

    async def ask(self, webhook: Mapping[str, Any], review: Manifest, *, seconds: float) -> Any:
        assert (webhook["name"], seconds > 0) == ("pods.example.com", True)
        status = {} if self.allowed else {"status": {"message": "no pods today", "code": 403}}
        return {**review, "response": {"uid": review["request"]["uid"], "allowed": self.allowed, **status}}


class Bench:
    """A cluster with controllers on a clock that the test advances."""

    def __init__(self, **chosen: Any) -> None:
        self.clock = VirtualClock()
        self.cluster = EmbeddedCluster(now=self.clock.now)
        self.controllers = self.cluster.controllers(ControllerSettings(**chosen))

    async def after(self, seconds: float) -> None:
        """Let time pass, with all that the controllers do meanwhile."""
        end = self.clock.elapsed() + timedelta(seconds=seconds)
        while True:
            delay = await self.controllers.settle()
            left = end - self.clock.elapsed()
            if delay is None or delay > left:
                self.clock.advance(left)
                await self.controllers.settle()
                return
            self.clock.advance(delay)

    async def create(self, *manifests: Manifest) -> None:
        for manifest in manifests:
            await self.cluster.create(manifest, field_manager="user")

    async def scale(self, replicas: int) -> None:
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
        await self.cluster.patch(DEPLOYMENT, {"spec": {"replicas": replicas}}, options)

    async def names(self, kind: str = "Pod", api_version: str = "v1") -> list[str]:
        found = await self.cluster.list(api_version, kind, ListOptions(namespace="default"))
        return [each["metadata"]["name"] for each in found.items]

    async def status(self, key: ObjectKey = DEPLOYMENT) -> dict[str, Any]:
        found: dict[str, Any] = (await self.cluster.get(key))["status"]
        return found


async def test_pods_are_ready_after_the_delay_and_not_before() -> None:
    bench = Bench(ready_after=timedelta(seconds=10))
    await bench.create(workload(replicas=2))
    await bench.after(9.5)
    assert "readyReplicas" not in await bench.status()
    await bench.after(0.5)
    assert (await bench.status())["readyReplicas"] == 2


async def test_a_ready_pod_is_unready_while_its_annotation_says_never() -> None:
    """As the probes of its containers fail: they go on to run, and nothing is restarted."""
    bench = Bench()
    await bench.create(workload(replicas=2))
    await bench.after(5)
    key = ObjectKey("v1", "Pod", (await bench.names())[0], "default")
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    before = await bench.status(key)

    def parts(status: Manifest) -> tuple[dict[str, str], list[tuple[bool, int]]]:
        found = {one["type"]: one["status"] for one in status["conditions"]}
        return found, [(one["ready"], one["restartCount"]) for one in status["containerStatuses"]]

    for value, ready, count in (("never", "False", 1), (None, "True", 2), ("never", "False", 1), ("1s", "True", 2)):
        await bench.cluster.patch(key, {"metadata": {"annotations": {READY_AFTER: value}}}, options)
        await bench.after(5)
        status, (conditions, containers) = await bench.status(key), parts(before)
        wanted = {**conditions, "Ready": ready, "ContainersReady": ready}
        assert parts(status) == (wanted, [(ready == "True", number) for _, number in containers])
        assert status["phase"] == "Running"
        assert [one["state"] for one in status["containerStatuses"]] == [
            one["state"] for one in before["containerStatuses"]
        ]
        assert (await bench.status()).get("readyReplicas", 0) == count
        version = (await bench.cluster.get(key))["metadata"]["resourceVersion"]
        await bench.after(600)
        assert (await bench.cluster.get(key))["metadata"]["resourceVersion"] == version, "at rest"


async def test_pods_are_available_only_after_the_minimum_of_ready_seconds() -> None:
    bench = Bench(ready_after=timedelta(0))
    await bench.create(workload(replicas=1, minReadySeconds=30))
    await bench.after(29)
    status = await bench.status()
    assert (status["readyReplicas"], status.get("availableReplicas")) == (1, None)
    await bench.after(1)
    assert (await bench.status())["availableReplicas"] == 1


@pytest.mark.parametrize(
    ("propagation", "left"),
    [
        pytest.param(Propagation.BACKGROUND, [], id="in the background"),
        pytest.param(Propagation.FOREGROUND, [], id="in the foreground"),
        pytest.param(Propagation.ORPHAN, [None], id="orphaned"),
    ],
)
async def test_pods_of_a_deleted_job_lose_the_finalizer_that_tracks_them(
    propagation: Propagation, left: list[Any]
) -> None:
    bench = Bench(finish_after=timedelta(hours=1))
    await bench.create(job({}))
    await bench.after(10)
    await bench.cluster.delete(ObjectKey("batch/v1", "Job", "task", "default"), DeleteOptions(propagation=propagation))
    await bench.after(60)
    pods = await bench.cluster.list("v1", "Pod", ListOptions(namespace="default"))
    assert [pod["metadata"].get("finalizers") for pod in pods.items] == left


async def test_nothing_is_written_once_all_is_at_rest() -> None:
    bench = Bench()
    await bench.create(workload(replicas=3), workload("StatefulSet", serviceName="web"), workload("DaemonSet"))
    await bench.after(60)
    version = bench.cluster.resource_version
    await bench.after(3600)
    assert bench.cluster.resource_version == version


async def test_new_controllers_find_nothing_to_do_in_a_cluster_at_rest() -> None:
    bench = Bench()
    await bench.create(workload(replicas=3))
    await bench.after(60)
    version = bench.cluster.resource_version
    bench.controllers = bench.cluster.controllers()
    await bench.after(60)
    assert bench.cluster.resource_version == version


async def test_they_find_all_objects_when_the_history_was_compacted() -> None:
    bench = Bench()
    await bench.after(1)
    await bench.create(workload(replicas=2))
    bench.cluster.compact()
    await bench.after(5)
    assert (await bench.status())["readyReplicas"] == 2


async def test_only_the_chosen_controllers_act() -> None:
    bench = Bench(names=("deployment-controller",))
    await bench.create(workload(replicas=2))
    await bench.after(5)
    assert len(await bench.names("ReplicaSet", "apps/v1")) == 1
    assert await bench.names() == []


@given(
    replicas=st.integers(1, 6),
    surge=st.sampled_from([0, 1, 3, "25%", "100%"]),
    unavailable=st.sampled_from([1, 2, "0%", "50%", "100%"]),
)
@settings(max_examples=10)
async def test_a_rollout_keeps_to_its_bounds_and_ends(replicas: int, surge: int | str, unavailable: int | str) -> None:
    bench = Bench(ready_after=timedelta(seconds=2))
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    assume((surge, unavailable) != (0, "0%"))
    most, missing = resolve_fenceposts(surge, unavailable, replicas)
    await bench.create(workload(replicas=replicas, strategy=strategy))
    await bench.after(10)
    new = template(version="2")
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    await bench.cluster.patch(DEPLOYMENT, {"spec": {"template": new}}, options)
    for _ in range(60):
        pods = (await bench.cluster.list("v1", "Pod")).items
        ready = sum(is_condition_true(pod["status"].get("conditions"), "Ready") for pod in pods)
        assert ready >= replicas - missing
        assert len(pods) <= replicas + most
        await bench.after(0.5)
    status = await bench.status()
    assert [status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")] == [replicas] * 3


async def test_a_pod_without_a_node_waits_and_says_why() -> None:
    bench = Bench(nodes=2, capacity={"cpu": "2", "memory": "1Gi", "pods": "10"})
    await bench.create(workload(replicas=5))
    await bench.after(5)
    assert (await bench.status())["readyReplicas"] == 4
    pods = (await bench.cluster.list("v1", "Pod")).items
    problems = [each["message"] for pod in pods for each in pod["status"]["conditions"] if each["status"] == "False"]
    assert problems == ["0/2 nodes are available: 2 Insufficient cpu."]
    await bench.scale(4)
    await bench.after(5)
    assert [pod["spec"].get("nodeName") is None for pod in (await bench.cluster.list("v1", "Pod")).items] == [False] * 4


async def test_a_scale_down_deletes_the_pods_of_the_lowest_deletion_cost_first() -> None:
    bench = Bench()
    await bench.create(workload(replicas=3))
    await bench.after(5)
    cheap = (await bench.names())[1]
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    annotation = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
    await bench.cluster.patch(ObjectKey("v1", "Pod", cheap, "default"), annotation, options)
    await bench.scale(2)
    await bench.after(5)
    left = await bench.names()
    assert (len(left), cheap in left) == (2, False)


async def test_a_deleted_pod_stays_for_the_configured_delay_and_is_replaced() -> None:
    bench = Bench(stop_after=timedelta(seconds=20))
    await bench.create(workload(replicas=1))
    await bench.after(5)
    (first,) = await bench.names()
    await bench.cluster.delete(ObjectKey("v1", "Pod", first, "default"), DeleteOptions(grace_period_seconds=30))
    await bench.after(19)
    assert len(await bench.names()) == 2
    await bench.after(1)
    (second,) = await bench.names()
    assert second != first


@pytest.mark.parametrize(
    ("annotations", "spec", "expected"),
    [
        pytest.param({}, {"completions": 3}, ("Complete", 3, 0), id="all pods succeed"),
        pytest.param({EXIT_CODE: "1"}, {"backoffLimit": 2}, ("Failed", 0, 3), id="each retry fails"),
        pytest.param({FINISH_AFTER: "2h"}, {"activeDeadlineSeconds": 60}, ("Failed", 0, 1), id="the deadline passes"),
    ],
)
async def test_a_job_ends(
    annotations: Mapping[str, str], spec: Mapping[str, Any], expected: tuple[str, int, int]
) -> None:
    bench = Bench()
    await bench.create(job(annotations, **spec))
    await bench.after(600)
    status = await bench.status(ObjectKey("batch/v1", "Job", "task", "default"))
    (final,) = [each["type"] for each in status["conditions"] if each["type"] in ("Complete", "Failed")]
    assert (final, status.get("succeeded", 0), status.get("failed", 0)) == expected


async def test_failed_pods_of_a_job_are_replaced_with_backoff() -> None:
    bench = Bench(ready_after=timedelta(0), finish_after=timedelta(seconds=1))
    await bench.create(job({EXIT_CODE: "1"}, backoffLimit=5))
    counts = []
    for seconds in (1, 9, 1, 21, 41):
        await bench.after(seconds)
        counts.append(len(await bench.names()))
    assert counts == [1, 1, 2, 3, 4]


async def test_the_claims_of_a_stateful_set_are_bound_and_outlive_its_pods() -> None:
    bench = Bench()
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": storage}]
    await bench.create(workload("StatefulSet", serviceName="web", replicas=2, volumeClaimTemplates=claims))
    await bench.after(10)
    found = (await bench.cluster.list("v1", "PersistentVolumeClaim")).items
    assert {each["metadata"]["name"]: each["status"]["phase"] for each in found} == {
        "data-web-0": "Bound",
        "data-web-1": "Bound",
    }
    assert await bench.names() == ["web-0", "web-1"]
    await bench.cluster.delete(ObjectKey("apps/v1", "StatefulSet", "web", "default"))
    await bench.after(10)
    assert (await bench.names(), len(await bench.names("PersistentVolumeClaim"))) == ([], 2)


@pytest.mark.parametrize(
    ("priority", "first"), [pytest.param(1000, "b", id="higher"), pytest.param(0, "a", id="equal: the older one")]
)
async def test_the_scheduler_binds_pods_by_priority_and_then_by_age(priority: int, first: str) -> None:
    bench = Bench(nodes=0)
    for name, value in (("a", 0), ("b", priority)):
        container = {"name": "main", "image": "web:1", "resources": {"requests": {"cpu": "1"}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
        await bench.create({**pod, "spec": {"containers": [container], "priority": value}})
    await bench.after(1)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    await bench.create({**node, "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "9"}}})
    await bench.after(1)
    pods = (await bench.cluster.list("v1", "Pod")).items
    assert [each["metadata"]["name"] for each in pods if each["spec"].get("nodeName")] == [first]


async def images(bench: Bench) -> dict[str, str]:
    found = await bench.cluster.list("v1", "Pod", ListOptions(namespace="default"))
    return {each["metadata"]["name"]: each["spec"]["containers"][0]["image"] for each in found.items}


async def set_image(bench: Bench, image: str) -> None:
    options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    await bench.cluster.patch(ObjectKey("apps/v1", "StatefulSet", "web", "default"), patch, options)


async def test_the_partition_of_a_stateful_set_counts_from_its_first_ordinal() -> None:
    bench = Bench()
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    numbers = {"replicas": 3, "ordinals": {"start": 5}}
    await bench.create(workload("StatefulSet", serviceName="web", updateStrategy=strategy, **numbers))
    await bench.after(30)
    await set_image(bench, "web:2")
    await bench.after(60)
    version = bench.cluster.resource_version
    await bench.after(60)
    assert await images(bench) == {"web-5": "web:1", "web-6": "web:1", "web-7": "web:2"}
    assert bench.cluster.resource_version == version


@pytest.mark.parametrize(
    ("strategy", "image"),
    [
        pytest.param({}, "web:2", id="default, which has a partition of 0"),
        pytest.param({"updateStrategy": {"type": "RollingUpdate"}}, "web:1", id="without a partition"),
    ],
)
async def test_a_stateful_pod_lost_before_the_update_reaches_it_is_made_anew(strategy: Any, image: str) -> None:
    bench = Bench(ready_after=timedelta(seconds=10))
    await bench.create(workload("StatefulSet", serviceName="web", replicas=2, **strategy))
    await bench.after(30)
    await set_image(bench, "web:2")
    await bench.after(5)
    await bench.cluster.delete(ObjectKey("v1", "Pod", "web-0", "default"), DeleteOptions(grace_period_seconds=0))
    await bench.after(1)
    assert await images(bench) == {"web-0": image, "web-1": "web:2"}


async def test_hashes_in_names_have_the_letters_of_a_real_cluster() -> None:
    bench = Bench()
    await bench.create(*(workload() | {"metadata": {"name": f"web{n}", "namespace": "default"}} for n in range(20)))
    await bench.create(workload("StatefulSet", serviceName="web"))
    await bench.after(30)
    names = [*await bench.names("ReplicaSet", "apps/v1"), *await bench.names("ControllerRevision", "apps/v1")]
    assert {*"".join(name.rpartition("-")[2] for name in names)} <= {*"456789bcdf"}


async def test_pods_that_cannot_be_created_are_reported_and_retried() -> None:
    bench = Bench()
    rejecting = Rejecting()
    bench.cluster = EmbeddedCluster(now=bench.clock.now, admission=rejecting)
    bench.controllers = bench.cluster.controllers()
    await bench.create(WEBHOOK, workload(replicas=1))
    await bench.after(5)
    conditions = {each["type"]: each for each in (await bench.status())["conditions"]}
    assert conditions["ReplicaFailure"]["reason"] == "FailedCreate"
    assert "no pods today" in conditions["ReplicaFailure"]["message"]
    rejecting.allowed = True
    await bench.after(60)
    assert (await bench.status())["readyReplicas"] == 1
    assert "ReplicaFailure" not in {each["type"] for each in (await bench.status())["conditions"]}


async def test_a_namespace_reports_what_keeps_it() -> None:
    bench = Bench()
    held = {"name": "held", "namespace": "shop", "finalizers": ["example.com/hold"]}
    await bench.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    await bench.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    await bench.cluster.delete(ObjectKey("v1", "Namespace", "shop"))
    await bench.after(1)
    status = await bench.status(ObjectKey("v1", "Namespace", "shop"))
    found = {each["type"]: each["message"] for each in status["conditions"] if each["status"] == "True"}
    assert (status["phase"], found) == (
        "Terminating",
        {
            "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
            "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining: "
            "example.com/hold in 1 resource instances",
        },
    )


async def test_their_requests_are_not_in_the_log_of_the_cluster() -> None:
    bench = Bench()
    await bench.create(workload(replicas=1))
    bench.cluster.requests.clear()
    await bench.after(10)
    assert not list(bench.cluster.requests)


def test_they_run_beside_other_tasks() -> None:
    async def main() -> int:
        cluster = EmbeddedCluster(now=LoopClock().now)
        await cluster.create(workload(replicas=2), field_manager="user")
        async with cluster.controllers(ControllerSettings(ready_after=timedelta(minutes=1))).running():
            async for event in cluster.watch("apps/v1", "Deployment", WATCH):
                count: int = event.object.get("status", {}).get("availableReplicas", 0)  # a bookmark has no status
                if count == 2:
                    return count
        return 0

    assert run_in_virtual_time(main()) == 2


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        pytest.param(
            {"names": ("deployments",)}, 'unknown controller "deployments": must be one of all, daemonset-', id="name"
        ),
        pytest.param(
            {"names": ("horizontal-pod-autoscaler-controller",)},
            "; autoscalers need metrics, run `ocf hpa-controller` beside it",
            id="a controller that runs on its own",
        ),
        pytest.param({"nodes": -1}, "the number of nodes must be 0 or more, got -1", id="nodes"),
        pytest.param({"ready_after": timedelta(-1)}, "ready_after must be 0 or more", id="delay"),
    ],
)
def test_invalid_settings_are_rejected(wrong: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ControllerSettings(**wrong)
    assert problem in str(caught.value)
