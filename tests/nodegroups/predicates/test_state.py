"""A state that is changed step by step equals one that is made anew."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ocf.nodegroups.predicates import ClusterState, count_reasons, explain, fits
from ocf.nodegroups.snapshot import ClusterSnapshot, Node, PodShape, Resources, Taint
from tests.nodegroups.clusters import clusters


def verdicts(state: ClusterState, shapes: list[PodShape]) -> dict[tuple[int, str], str]:
    return {
        (number, node.name): str(explain(shape, state.index[node.name], state))
        for number, shape in enumerate(shapes)
        for node in state.nodes
    }


@given(clusters(), st.data())
def test_placing_and_taking_away_is_counted_as_the_scheduler_does(cluster: dict[str, Any], data: st.DataObject) -> None:
    snapshot = ClusterSnapshot.of(**cluster)
    state = ClusterState(snapshot)
    shapes = [pod.shape for pod in snapshot.pods.values()]
    verdicts(state, shapes)
    for key in data.draw(
        st.lists(st.sampled_from(sorted(snapshot.pods)), max_size=5) if snapshot.pods else st.just([])
    ):
        pod = snapshot.pods[key]
        name = data.draw(st.sampled_from(sorted(snapshot.nodes)))
        if pod.node_name:
            state.remove(pod.shape, state.index[pod.node_name])
        state.place(pod.shape, state.index[name])
        snapshot = snapshot.place(pod, name)
        assert verdicts(state, shapes) == verdicts(ClusterState(snapshot), shapes)


@given(clusters(), st.data())
def test_a_rollback_takes_everything_back(cluster: dict[str, Any], data: st.DataObject) -> None:
    snapshot = ClusterSnapshot.of(**cluster)
    state = ClusterState(snapshot)
    shapes = [pod.shape for pod in snapshot.pods.values()]
    before = verdicts(state, shapes)
    mark = state.mark()
    zone = data.draw(st.sampled_from(["a", "d"]))
    new = Node(
        name="new",
        labels={"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": "new"},
        allocatable=Resources(cpu=4000, memory=2**33, pods=5),
    )
    index = state.add_node(new)
    verdicts(state, shapes)
    for shape in shapes:
        state.place(shape, index)
        state.place(shape, 0)
    first = state.nodes[0]
    state.replace_node(0, Node(name=first.name, labels=first.labels, taints=(Taint("x"),), unschedulable=True))
    state.close(0)
    verdicts(state, shapes)
    state.rollback(mark)
    assert verdicts(state, shapes) == before == verdicts(ClusterState(snapshot), shapes)
    assert all(
        index in state.view(shape).candidates or explain(shape, index, state)
        for shape in shapes
        for index in range(len(state.nodes))
    )


@given(clusters())
def test_a_single_question_gives_the_same_reasons(cluster: dict[str, Any]) -> None:
    snapshot = ClusterSnapshot.of(**cluster)
    state = ClusterState(snapshot)
    for pod in snapshot.pods.values():
        mark = state.mark()
        if pod.node_name in state.index:
            state.remove(pod.shape, state.index[pod.node_name])
        for name in snapshot.nodes:
            assert fits(pod, name, snapshot) == explain(pod.shape, state.index[name], state)
        state.rollback(mark)


@given(clusters())
def test_reasons_are_counted_over_all_nodes(cluster: dict[str, Any]) -> None:
    snapshot = ClusterSnapshot.of(**cluster)
    state = ClusterState(snapshot)
    for pod in snapshot.pods.values():
        misfits = [explain(pod.shape, index, state) for index in range(len(state.nodes))]
        reasons = [reason for misfit in misfits if misfit for reason in misfit.reasons]
        assert count_reasons(pod.shape, state) == {reason: reasons.count(reason) for reason in sorted(set(reasons))}
