"""Snapshots: parsing, invalid objects, and copies that share what did not change."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.errors import ManifestError
from ocf.nodegroups.snapshot import ClusterSnapshot, DaemonSet, Node, Overlay, Resources, SnapshotPod
from tests.nodegroups.manifests import node, pod

GI = 2**30


def container(requests: dict[str, str], **parts: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests}, **parts}


SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": [container({"cpu": "250m"}), container({"cpu": "0.5"})]}, (750, 0), id="sum"),
        pytest.param({"containers": [container({"cpu": "0.1m"})]}, (1, 0), id="rounded up"),
        pytest.param(
            # As the API server stores them (SetDefaults_ResourceList).
            {"containers": [container({"cpu": "0.4m"}), container({"cpu": "0.4m"})], "overhead": {"cpu": "0.1m"}},
            (3, 0),
            id="each is rounded up",
        ),
        pytest.param(
            {"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "2", "memory": "1Gi"})]},
            (2000, GI),
            id="an init container raises",
        ),
        pytest.param(
            {"containers": [container({"cpu": "1"})], "initContainers": [container({"cpu": "1"}, **SIDECAR)]},
            (2000, 0),
            id="a sidecar adds",
        ),
        pytest.param(
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [container({"cpu": "1"}, **SIDECAR), container({"cpu": "3"})],
            },
            (4000, 0),
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [container({"cpu": "3"}), container({"cpu": "1"}, **SIDECAR)],
            },
            (3000, 0),
            id="an init container runs without the sidecars after it",
        ),
        pytest.param(
            {"containers": [container({"cpu": "1"})], "overhead": {"cpu": "100m", "memory": "1Gi"}},
            (1100, GI),
            id="overhead adds",
        ),
        pytest.param(
            {
                "containers": [container({"cpu": "1"})],
                "resources": {"requests": {"cpu": "3"}},
                "overhead": {"cpu": "1"},
            },
            (4000, 0),
            id="pod-level requests replace",
        ),
        pytest.param({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, (2000, 0), id="a limit is the request"),
        # https://github.com/kubernetes-sigs/karpenter/issues/2325
        pytest.param(
            {
                "containers": [container({"cpu": "1"}), container({"cpu": "500m", "memory": "1"})],
                "resources": {"limits": {"cpu": "3", "memory": "2"}, "requests": {"memory": "2"}},
            },
            (1500, 2),
            id="a pod-level limit is no request where containers request",
        ),
        pytest.param(
            {"containers": [{}], "resources": {"limits": {"cpu": "3"}}}, (3000, 0), id="a pod-level limit otherwise"
        ),
        pytest.param(
            {
                "initContainers": [container({"cpu": "2"})],
                "containers": [container({"cpu": "1"})],
                "resources": {"limits": {"cpu": "3"}},
            },
            (2000, 0),
            id="also for containers that start",
        ),
    ],
)
def test_requests_are_those_that_the_scheduler_reserves(spec: dict[str, Any], expected: tuple[int, int]) -> None:
    requests = SnapshotPod.of({"metadata": {"name": "p"}, "spec": spec}).shape.requests
    assert (requests.cpu, requests.memory, requests.pods) == (*expected, 1)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [pytest.param("Deferred", 3000, id="deferred"), pytest.param("Infeasible", 2000, id="never")],
)
def test_a_resize_under_way_counts_the_largest_amount(reason: str, expected: int) -> None:
    manifest = pod(cpu="3", on="n1")
    manifest["status"] |= {
        "conditions": [{"type": "PodResizePending", "reason": reason}],
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}
        ],
    }
    assert SnapshotPod.of(manifest).shape.requests.cpu == expected


def test_equal_pods_share_one_shape() -> None:
    snapshot = ClusterSnapshot.of(pods=[pod(f"p{number}") for number in range(3)] + [pod("other", cpu="2")])
    assert len({id(each.shape) for each in snapshot.pods.values()}) == 2


def test_daemon_pods_tolerate_cordoned_nodes() -> None:
    template = {"spec": {"containers": [container({"cpu": "1"})]}}
    shape = DaemonSet.of({"metadata": {"name": "d"}, "spec": {"template": template}}).shape
    assert "node.kubernetes.io/unschedulable" in {each.key for each in shape.tolerations}


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        pytest.param(pod(cpu="x"), "spec.containers[0].resources.requests.cpu", id="quantity"),
        pytest.param(pod(labels={"app": 1}), "metadata.labels[app]", id="label"),
        pytest.param(pod(nodeSelector=["a"]), "spec.nodeSelector", id="not a map"),
        pytest.param(pod(tolerations=[{"key": 3}]), "spec.tolerations[0].key", id="not a string"),
        pytest.param(pod(hostNetwork="yes"), "spec.hostNetwork", id="not a boolean"),
        pytest.param(pod(containers="none"), "spec.containers", id="not a list"),
        pytest.param(
            pod(
                affinity={
                    "podAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "z", "labelSelector": {"matchLabels": {"a b": "c"}}}
                        ]
                    }
                }
            ),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchLabels.key",
            id="selector",
        ),
    ],
)
def test_an_invalid_field_is_named_with_its_path(manifest: dict[str, Any], path: str) -> None:
    with pytest.raises(ManifestError) as caught:
        SnapshotPod.of(manifest)
    assert [problem.path for problem in caught.value.problems] == [path]


def test_an_invalid_object_does_not_keep_the_others_from_being_read() -> None:
    snapshot = ClusterSnapshot.of(
        nodes=[node("n1"), node("n2", cpu="four")], pods=[pod("good", on="n1"), pod("bad", cpu="?", on="n1")]
    )
    assert list(snapshot.nodes) == ["n1"]
    assert list(snapshot.pods) == ["default/good"]
    assert [each.subject for each in snapshot.rejected] == ["Node n2", "Pod default/bad"]
    assert snapshot.unknown_nodes == {"n1", "n2"}


def test_finished_pods_are_left_out() -> None:
    done = pod("done", on="n1")
    done["status"]["phase"] = "Succeeded"
    assert not ClusterSnapshot.of(nodes=[node()], pods=[done]).pods


def test_a_node_in_flight_counts_until_the_node_is_ready() -> None:
    ordered = Node(name="n1", allocatable=Resources(cpu=4000, pods=110))
    assert ClusterSnapshot.of(in_flight=[ordered]).nodes["n1"].in_flight
    assert ClusterSnapshot.of(nodes=[node("n1", ready=False)], in_flight=[ordered]).nodes["n1"].in_flight
    assert not ClusterSnapshot.of(nodes=[node("n1")], in_flight=[ordered]).nodes["n1"].in_flight


def test_placing_a_pod_leaves_the_snapshot_as_it_was() -> None:
    before = ClusterSnapshot.of(nodes=[node("n1"), node("n2")], pods=[pod("a"), pod("b", on="n2")])
    after = before.place(before.pods["default/a"], "n2").place(before.pods["default/b"], "n1")
    assert [each.name for each in after.pods_on("n1")] == ["b"]
    assert [each.name for each in after.pods_on("n2")] == ["a"]
    assert [each.name for each in before.pods_on("n2")] == ["b"]
    assert before.pods["default/a"].node_name == ""
    assert after.without_pod("default/b").pods_on("n1") == ()
    assert after.without_pod("default/none") is after


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | st.integers())),
    st.dictionaries(st.text(), st.integers()),
)
def test_an_overlay_is_a_map(changes: list[tuple[str, int | None]], start: dict[str, int]) -> None:
    expected = dict(start)
    overlay = first = Overlay(dict(start))
    for key, value in changes:
        if value is None:
            expected.pop(key, None)
            overlay = overlay.remove(key)
        else:
            expected[key] = value
            overlay = overlay.set(key, value)
        assert dict(overlay) == expected
        assert len(overlay) == len(expected)
    assert dict(first) == start
