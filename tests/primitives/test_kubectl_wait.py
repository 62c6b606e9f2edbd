"""Our verdict of states of built-in kinds beside what `kubectl wait` waits for, with the real kubectl on both servers.

The states are those that kstatus is compared in. Rebuilt from public reports:
https://github.com/kubernetes/kubectl/issues/962 and https://github.com/kubernetes/kubectl/issues/1414 (an older
generation), https://github.com/kubernetes/kubernetes/issues/101842 (a Deployment has no condition for a complete
rollout), https://github.com/kubernetes/kubectl/issues/1451 (a pod that has succeeded is never Ready).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest
import pytest_asyncio

from ocf.cluster import PatchOptions, PatchType, Subresource
from ocf.objects import ObjectKey, copy_json
from ocf.testing.envtest.binaries import Program, Programs
from ocf_server import EmbeddedCluster
from ocf_server.http import serving, write_kubeconfig
from tests.kubectl import Kubectl
from tests.primitives.test_kstatus import STATES, verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ocf.cluster import Cluster
    from ocf.objects import Manifest
    from ocf.testing.envtest import ControlPlane

BY_USER: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="user")
AS_STATUS: Final = PatchOptions(patch_type=PatchType.MERGE, field_manager="controller", subresource=Subresource.STATUS)
# What a user waits for. A kind without a condition has a field that shows the same.
WAITS: Final = {
    "Deployment": "condition=Available",
    "Job": "condition=Complete",
    "Pod": "condition=Ready",
    "HorizontalPodAutoscaler": "condition=ScalingActive",
    "PersistentVolumeClaim": "jsonpath={.status.phase}=Bound",
    "Service": "jsonpath={.status.loadBalancer.ingress}",
    "Ingress": "jsonpath={.status.loadBalancer.ingress}",
    "StatefulSet": "jsonpath={.status.readyReplicas}=3",
    "DaemonSet": "jsonpath={.status.numberReady}=2",
    "ReplicaSet": "jsonpath={.status.readyReplicas}=2",
}
LABELS: Final = {"app": "web"}
TEMPLATE: Final[Manifest] = {
    "metadata": {"labels": LABELS},
    "spec": {"containers": [{"name": "app", "image": "app:1"}]},
}
WORKLOAD: Final = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
NEVER: Final = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
# What a recorded object leaves out, and the API server requires.
REQUIRED: Final[dict[str, Manifest]] = {
    "Deployment": WORKLOAD,
    "StatefulSet": {**WORKLOAD, "serviceName": "web"},
    "DaemonSet": WORKLOAD,
    "ReplicaSet": WORKLOAD,
    "Job": {"template": NEVER},
    "PersistentVolumeClaim": CLAIM,
    "Service": {"selector": LABELS, "ports": [{"port": 80}]},
    "Ingress": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}},
}
REPORTED: Final = {"job, complete": {"completionTime": "2026-01-31T12:01:00Z"}}


class Server(NamedTuple):
    """An API server: its client, its kubectl, and a namespace of the tests."""

    cluster: Cluster
    kubectl: Kubectl
    namespace: str


@pytest_asyncio.fixture(params=["embedded", "envtest"])
async def server(request: pytest.FixtureRequest, envtest_programs: Programs, tmp_path: Path) -> AsyncIterator[Server]:
    program, kubeconfig = envtest_programs.path(Program.KUBECTL), tmp_path / "kubeconfig"
    if request.param == "embedded":
        cluster = EmbeddedCluster(namespaces=["shop"])
        async with serving(cluster) as running:
            write_kubeconfig(running.kubeconfig(), kubeconfig)
            yield Server(cluster, Kubectl(program, kubeconfig, tmp_path, "shop"), "shop")
        return
    plane: ControlPlane = request.getfixturevalue("envtest_plane")
    with plane.namespace() as namespace:
        async with await plane.cluster() as client:
            yield Server(client, Kubectl(program, plane.kubeconfig, tmp_path, namespace), namespace)


async def stage(server: Server, state: str) -> Manifest:
    """Store a recorded state as a user and a controller would; return it as the API server has it."""
    recorded = copy_json(STATES[state][0])
    kind = recorded["kind"]
    spec = {**REQUIRED.get(kind, {}), **{key: value for key, value in recorded["spec"].items() if key != "clusterIP"}}
    metadata = {"name": re.sub(r"[^a-z]+", "-", state), "namespace": server.namespace, "labels": LABELS}
    if kind == "HorizontalPodAutoscaler":
        spec["scaleTargetRef"] = {**spec["scaleTargetRef"], "apiVersion": "apps/v1"}
    made = {"apiVersion": recorded["apiVersion"], "kind": kind, "metadata": metadata, "spec": spec}
    key = ObjectKey.of(made)
    status = {**recorded["status"], **REPORTED.get(state, {})}
    if "observedGeneration" in status:
        # The recorded object is of its second generation.
        bumped = "minReadySeconds" if kind == "ReplicaSet" else "revisionHistoryLimit"
        await server.cluster.create({**made, "spec": {**spec, bumped: 4}}, field_manager="user")
        await server.cluster.patch(key, {"spec": {bumped: 5}}, BY_USER)
    else:
        await server.cluster.create(made, field_manager="user")
    await server.cluster.patch(key, {"status": status}, AS_STATUS)
    return await server.cluster.get(key)


class Difference(NamedTuple):
    """Whether `kubectl wait` returns at once, and why our verdict is another one."""

    returns: bool
    why: str


DIFFERENCES: Final = {
    "deployment, rolling out": Difference(True, "`Available` is about the old pods, too"),
    "deployment, old pods left": Difference(True, "`Available` is about the old pods, too"),
    "deployment, deadline exceeded with old pods ready": Difference(True, "`Available` is about the old pods, too"),
    "statefulset, older spec observed": Difference(True, "a field does not show which generation it is about"),
    "statefulset, rolling out": Difference(True, "the count does not show which revision the pods have"),
    "statefulset, surplus pods": Difference(True, "the count does not show that a pod is left to be deleted"),
    "daemonset, older spec observed": Difference(True, "a field does not show which generation it is about"),
    "daemonset, rolling out": Difference(True, "the count does not show which revision the pods have"),
    "daemonset, no matching node": Difference(False, "there is no pod to wait for"),
    "pvc, resize under way": Difference(True, "the claim is bound, and the requested capacity is not there"),
    "service, cluster address": Difference(False, "only a load balancer has an address to wait for"),
    "pod, succeeded": Difference(False, "a pod that has ended is not `Ready`; its containers have succeeded"),
}


@pytest.mark.promise("kubectl-wait", runs="49 states with the real kubectl, on both servers")
@pytest.mark.parametrize("kind", WAITS)
async def test_kubectl_returns_when_we_are_ready_but_for_the_documented_differences(server: Server, kind: str) -> None:
    states = [state for state, (recorded, _) in STATES.items() if recorded["kind"] == kind]
    stored = {state: await stage(server, state) for state in states}
    names = {state: live["metadata"]["name"] for state, live in stored.items()}
    arguments = [f"{kind.lower()}/{name}" for name in names.values()]
    done = await server.kubectl("wait", f"--for={WAITS[kind]}", "--timeout=0s", *arguments, code=None)
    returned = set(re.findall(r"/(\S+) condition met", done.out))
    seen = {state: name in returned for state, name in names.items()}
    expected = {
        state: DIFFERENCES[state].returns if state in DIFFERENCES else verdict(live) == "Current"
        for state, live in stored.items()
    }
    assert seen == expected
    assert [
        state for state in states if state in DIFFERENCES and seen[state] == (verdict(stored[state]) == "Current")
    ] == []
    # What the API server has stored is what was recorded.
    assert {state: verdict(live) for state, live in stored.items()} == {
        state: verdict(STATES[state][0]) for state in states
    }


def test_each_difference_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "kinds.md").read_text(encoding="utf-8")
    rows = [
        f"| {state} | {'returns' if one.returns else 'waits'} | {verdict(STATES[state][0])} | {one.why} |"
        for state, one in DIFFERENCES.items()
    ]
    assert [row for row in rows if row not in page] == []
    assert [text for text in WAITS.values() if f"`--for={text}`" not in page] == []
