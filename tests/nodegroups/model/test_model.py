"""Groups and their status."""

from datetime import timedelta
from typing import Any

import pytest

from ocf.nodegroups.model import LONGEST_BACKOFF, GroupStatus, ScaleDownPolicy, assign_nodes
from ocf.nodegroups.snapshot import ClusterSnapshot
from tests.nodegroups.groups import NOW, group
from tests.nodegroups.manifests import node


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        pytest.param({}, "", id="valid"),
        pytest.param({"min_nodes": 3, "max_nodes": 2}, "minNodes 3 is above maxNodes 2", id="bounds"),
        pytest.param({"min_nodes": -1}, "must not be negative", id="negative"),
        pytest.param({"instance_types": ()}, "no instance types", id="no types"),
        pytest.param({"preferred": "huge"}, "huge is not one of the group", id="preferred"),
        pytest.param({"member_labels": {}}, "no labels for its nodes", id="no labels"),
    ],
)
def test_problems_of_a_group(parts: dict[str, Any], problem: str) -> None:
    assert problem in "; ".join(group(**parts).problems())


def test_a_node_of_two_groups_belongs_to_none() -> None:
    nodes = [node("n1", labels={"pool": "a"}), node("n2", labels={"pool": "a", "team": "b"}), node("n3")]
    found = assign_nodes((group("a"), group("b", member_labels={"team": "b"})), ClusterSnapshot.of(nodes=nodes))
    assert found.nodes == {"a": ("n1",), "b": ()}
    assert found.contested == {"n2": ("a", "b")}


@pytest.mark.parametrize(
    ("cooldown", "expected"),
    [
        pytest.param(None, 600, id="default"),
        pytest.param(timedelta(0), 0, id="none"),
        pytest.param(timedelta(60), 5184000, id="set"),
    ],
)
def test_an_absent_cooldown_is_the_default_and_zero_is_none(cooldown: timedelta | None, expected: int) -> None:
    assert ScaleDownPolicy(cooldown=cooldown).effective_cooldown.total_seconds() == expected


def test_a_refused_type_is_left_alone_for_longer_each_time_up_to_a_limit() -> None:
    status, waits = GroupStatus(), []
    for _ in range(5):
        status = status.refused("small", "a", NOW)
        waits.append(status.refusals[0].until - NOW)
    assert [wait.total_seconds() / 60 for wait in waits] == [5, 10, 20, 30, 30]
    assert status.backed_off(NOW) == {("small", "a")}
    assert not status.backed_off(NOW + LONGEST_BACKOFF)
    assert status.accepted("small", "a").refusals == ()


def test_a_clock_that_is_set_back_moves_the_status_to_now() -> None:
    future = NOW + timedelta(days=365)
    status = GroupStatus(last_scale_up=future, low_since={"n1": future}).refused("small", "a", future)
    moved = status.until(NOW)
    assert moved.last_scale == NOW
    assert moved.low_since == {"n1": NOW}
    assert not moved.backed_off(NOW + LONGEST_BACKOFF)
