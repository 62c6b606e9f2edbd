"""Controllers compare owners by group, kind, name and uid: kinds of other groups have the names of built-in ones.

Public reports of comparisons by kind alone, or of owners that a budget does not find:
https://github.com/kubernetes-sigs/agent-sandbox/pull/945, https://github.com/elastic/cloud-on-k8s/issues/1703 and
https://github.com/ray-project/kuberay/issues/2662.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.errors import NotFoundError, TooManyRequestsError
from ocf.objects import Manifest, ObjectKey
from ocf.testing import VirtualClock
from ocf.testing.envtest import ControllerName
from ocf_server import ControllerSettings, EmbeddedCluster
from tests.support import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ocf.cluster import Cluster
    from ocf.testing.envtest.fixtures import Envtest, RunControllers

TEMPLATE: Final[Manifest] = {
    "metadata": {"labels": {"app": "none"}},
    "spec": {"containers": [{"name": "main", "image": "web:1"}]},
}
DISRUPTION: Final = ControllerName.DISRUPTION


@dataclass
class Place:
    """A namespace in which workloads and pods are created by hand, and only the disruption controller runs."""

    cluster: Cluster
    namespace: str
    budgets: dict[str, ObjectKey] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return f"{self.namespace}.example.com"

    async def define(self, kind: str, *, scaled: bool = False, namespaced: bool = True) -> None:
        plural = f"{kind.lower()}s"
        paths = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        version["subresources"] = {"status": {}} | ({"scale": paths} if scaled else {})
        spec = {"group": self.group, "names": {"kind": kind, "plural": plural}, "versions": [version]}
        spec["scope"] = "Namespaced" if namespaced else "Cluster"
        head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        metadata = {"name": f"{plural}.{self.group}"}
        await self.cluster.create({**head, "metadata": metadata, "spec": spec}, field_manager="user")
        await eventually(
            lambda: self.cluster.list(f"{self.group}/v1", kind),
            lambda _: True,
            ignore=(NotFoundError, TooManyRequestsError),
        )

    async def create(
        self, kind: str, name: str, owner: Manifest | None = None, *, namespaced: bool = True, **spec: Any
    ) -> Manifest:
        """Create an object of the group of a kind that `define` has defined, or of a built-in one; return it."""
        home = {"namespace": self.namespace} if namespaced else {}
        metadata: Manifest = {"name": name, **home}
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        given = {"apiVersion": spec.pop("api_version", f"{self.group}/v1"), "kind": kind, "metadata": metadata}
        if given["apiVersion"] == "apps/v1":
            spec |= {"selector": {"matchLabels": TEMPLATE["metadata"]["labels"]}, "template": TEMPLATE}
            spec |= {"serviceName": "none"} if kind == "StatefulSet" else {}
        return await self.cluster.create({**given, "spec": spec}, field_manager="user")

    async def budget(self, name: str, reference: Manifest) -> None:
        """Create a pod with a controller, and the budget of this pod."""
        labels = {"situation": name}
        metadata = {"name": name, "namespace": self.namespace, "labels": labels, "ownerReferences": [reference]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}
        await self.cluster.create(pod, field_manager="user")
        head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
        spec = {"selector": {"matchLabels": labels}, "maxUnavailable": 1}
        named = {"name": name, "namespace": self.namespace}
        created = await self.cluster.create({**head, "metadata": named, "spec": spec}, field_manager="user")
        self.budgets[name] = ObjectKey.of(created)

    async def results(self) -> dict[str, int | str]:
        """Return the number of pods that each budget expects, or why it is not known; empty until it is reported."""
        found: dict[str, int | str] = {}
        for name, key in self.budgets.items():
            status = (await self.cluster.get(key)).get("status") or {}
            problems = [one["message"] for one in status.get("conditions") or () if one["reason"] == "SyncFailed"]
            known = status["expectedPods"] if status.get("observedGeneration") else ""
            found[name] = problems[0].replace(self.group, "GROUP") if problems else known
        return found


def reference(owner: Manifest, **changed: str) -> Manifest:
    metadata = owner["metadata"]
    head = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**head, "controller": True, **changed}


@pytest.fixture(params=["embedded", "envtest"])
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "embedded":
        return Place(EmbeddedCluster(namespaces=["town"]), "town")
    envtest: Envtest = request.getfixturevalue("envtest")
    return Place(request.getfixturevalue("envtest_cluster"), envtest.namespace)


@asynccontextmanager
async def disruption_controller(place: Place, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        if isinstance(place.cluster, EmbeddedCluster):
            settings = ControllerSettings(names=(DISRUPTION,), nodes=0)
            await stack.enter_async_context(place.cluster.controllers(settings).running())
        else:
            run: RunControllers = request.getfixturevalue("envtest_controllers")
            stack.enter_context(run(DISRUPTION))
        yield


EXPECTED: Final[dict[str, int | str]] = {
    "replica-set": 4,
    "replica-set-of-custom-resource": 4,
    "replica-set-of-former-deployment": 4,
    "replica-set-of-foreign-deployment": 4,
    "deployment-of-custom-resource": 5,
    "deployment-itself": 5,
    "stateful-set-of-custom-resource": 6,
    "former-stateful-set": 'found no controllers for pod "former-stateful-set"',
    "foreign-stateful-set": "statefulsets.GROUP does not implement the scale subresource",
    "daemon-set": "daemonsets.apps does not implement the scale subresource",
    "config-map": "configmaps does not implement the scale subresource",
    "custom-resource-with-scale": 7,
    "former-custom-resource": 'found no controllers for pod "former-custom-resource"',
    "cluster-scoped-with-scale": 'found no controllers for pod "cluster-scoped-with-scale"',
    "unknown-kind": 'no matches for kind "Nothing" in version "GROUP/v1"',
}


async def test_a_budget_counts_the_workload_that_controls_the_pod(place: Place, request: pytest.FixtureRequest) -> None:
    await place.define("StatefulSet")
    await place.define("Deployment")
    await place.define("Fleet", scaled=True)
    await place.define("Navy", scaled=True, namespaced=False)
    fleet = await place.create("Fleet", "north", replicas=7)
    navy = await place.create("Navy", f"{place.namespace}-navy", namespaced=False, replicas=8)
    foreign = {kind: await place.create(kind, "north", replicas=9) for kind in ("StatefulSet", "Deployment")}
    deployment = await place.create("Deployment", "north", reference(fleet), api_version="apps/v1", replicas=5)
    owners = {
        "replica-set": None,
        "replica-set-of-custom-resource": reference(fleet),
        "replica-set-of-former-deployment": reference(deployment, uid="former"),
        "replica-set-of-foreign-deployment": reference(foreign["Deployment"]),
        "deployment-of-custom-resource": reference(deployment),
    }
    for name, owner in owners.items():
        made = await place.create("ReplicaSet", name, owner, api_version="apps/v1", replicas=4)
        await place.budget(name, reference(made))
    stateful = await place.create("StatefulSet", "north", reference(fleet), api_version="apps/v1", replicas=6)
    head = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "north", "namespace": place.namespace}}
    settings = await place.cluster.create(head, field_manager="user")
    others = {
        "deployment-itself": reference(deployment),
        "stateful-set-of-custom-resource": reference(stateful),
        "former-stateful-set": reference(stateful, uid="former"),
        "foreign-stateful-set": reference(foreign["StatefulSet"]),
        "daemon-set": reference(stateful, kind="DaemonSet"),
        "config-map": reference({"apiVersion": "v1", "kind": "ConfigMap", **settings}),
        "custom-resource-with-scale": reference(fleet),
        "former-custom-resource": reference(fleet, uid="former"),
        "cluster-scoped-with-scale": reference(navy),
        "unknown-kind": reference(fleet, kind="Nothing"),
    }
    for name, owner in others.items():
        await place.budget(name, owner)
    async with disruption_controller(place, request):
        found = await eventually(place.results, lambda results: "" not in results.values())
    assert found == EXPECTED


async def test_objects_of_a_kind_that_is_named_like_a_built_in_one_are_like_any_other(place: Place) -> None:
    """They are deleted although they have `spec.finalizers` or a subresource that is not theirs."""
    for kind in ("Namespace", "Pod", "Job"):
        await place.define(kind)
        key = ObjectKey.of(await place.create(kind, "north", finalizers=["kubernetes"]))
        status = {"status": {"phase": "Active"}}
        options = PatchOptions(patch_type=PatchType.MERGE, field_manager="user", subresource=Subresource.STATUS)
        await place.cluster.patch(key, status, options)
        held = {"metadata": {"finalizers": ["example.com/held"]}}
        await place.cluster.patch(key, held, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        await place.cluster.delete(key)
        ending = await place.cluster.get(key)
        assert ending["status"] == {"phase": "Active"}
        assert ending["metadata"]["deletionGracePeriodSeconds"] == 0
        free = {"metadata": {"finalizers": None}}
        await place.cluster.patch(key, free, PatchOptions(patch_type=PatchType.MERGE, field_manager="user"))
        with pytest.raises(NotFoundError):
            await place.cluster.get(key)


@pytest.mark.parametrize(
    ("owner", "phase"),
    [
        pytest.param({"apiVersion": "batch/v1", "kind": "Job"}, "Succeeded", id="a Job"),
        pytest.param({"apiVersion": "jobs.example.com/v1", "kind": "Job"}, "Running", id="a Job of another group"),
        pytest.param({"apiVersion": "v1", "kind": "Job"}, "Running", id="a Job of the core group"),
        pytest.param({"apiVersion": "batch/v1", "kind": "CronJob"}, "Running", id="another kind of the group"),
    ],
)
async def test_the_simulated_kubelet_ends_pods_of_jobs_only(owner: Manifest, phase: str) -> None:
    clock = VirtualClock()
    cluster = EmbeddedCluster(now=clock.now)
    controllers = cluster.controllers(ControllerSettings(names=(DISRUPTION,)))
    references = [{**owner, "name": "task", "uid": "1", "controller": True}]
    metadata = {"name": "task", "namespace": "default", "ownerReferences": references}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}
    pod["spec"] = {**TEMPLATE["spec"], "restartPolicy": "Never"}
    created = await cluster.create(pod, field_manager="user")
    while (delay := await controllers.settle()) is not None:
        clock.advance(delay)
    assert (await cluster.get(ObjectKey.of(created)))["status"]["phase"] == phase


async def test_a_changed_pod_concerns_the_workload_that_controls_it() -> None:
    """The pod of another group's ReplicaSet is neither counted nor adopted by the built-in one of the same name."""
    cluster = EmbeddedCluster()
    place = Place(cluster, "default")
    await place.define("ReplicaSet")
    foreign = await place.create("ReplicaSet", "north")
    labels = TEMPLATE["metadata"]["labels"]
    metadata = {"name": "one", "namespace": "default", "labels": labels, "ownerReferences": [reference(foreign)]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": TEMPLATE["spec"]}
    await cluster.create(pod, field_manager="user")
    made = await place.create("ReplicaSet", "north", api_version="apps/v1", replicas=0)
    await cluster.controllers(ControllerSettings(nodes=0)).settle()
    live = await cluster.get(ObjectKey("v1", "Pod", "one", "default"))
    assert live["metadata"]["ownerReferences"] == [reference(foreign)]
    assert (await cluster.get(ObjectKey.of(made)))["status"]["replicas"] == 0
