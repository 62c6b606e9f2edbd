"""Groups, nodes and their status as values: conversions in both directions, names, and backoffs."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.controllers.nodegroup.group_status import count_refusals
from ocf.controllers.nodegroup.groups import backoffs, to_group, to_group_status, unneeded
from ocf.controllers.nodegroup.model import NodeGroupStatus
from ocf.controllers.nodegroup.objects import GroupObject, NodeObject, member_value, node_name, read_group, read_node
from ocf.nodegroups.model import LONGEST_GAP, GroupStatus, TypeChoice, TypeGap
from ocf.nodegroups.model.gaps import next_gaps

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
SPEC: Final = {"minNodes": 1, "maxNodes": 5, "datacenterID": "fra", "offeringIDs": ["small", "large"]}


def group(spec: Any = None, **status: Any) -> GroupObject:
    metadata = {"name": "workers", "namespace": "default", "uid": "u-1", "generation": 3}
    manifest = {
        "apiVersion": "autoscaling.ocf.dev/v1alpha1",
        "kind": "NodeGroup",
        "metadata": metadata,
        "spec": SPEC if spec is None else spec,
        "status": status,
    }
    return read_group(manifest)


def node(phase: str, instance_type: str = "small", **status: Any) -> NodeObject:
    spec = {"nodeGroupName": "workers", "instanceType": instance_type, "datacenterID": "fra"}
    metadata = {"name": "workers-1", "namespace": "default"}
    return read_node({"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}})


def test_all_settings_reach_the_algorithm() -> None:
    spec = {
        **SPEC,
        "preferredInstanceType": "large",
        "instanceSelection": "Cheapest",
        "labels": {"tier": "web"},
        "taints": [{"key": "dedicated", "effect": "NoSchedule"}],
        "scaleUpBatchSize": 2,
        "scaleUpCooldown": "1m",
        "scaleDownCooldown": "0s",
        "scaleUpPolicy": {"enabled": False},
        "scaleDownPolicy": {
            "enabled": False,
            "cpuThreshold": 40,
            "memoryThreshold": 30,
            "underutilizedFor": "1m30s",
            "maxEmpty": 3,
            "maxDrained": 2,
            "consolidate": True,
            "savingThreshold": 25,
            "replaceAfter": "2h",
        },
    }
    found = group(spec)
    assert found.spec is not None
    made, down = to_group(found, found.spec), to_group(found, found.spec).scale_down
    assert (made.name, made.min_nodes, made.max_nodes, made.zones) == ("default/workers", 1, 5, ("fra",))
    assert (made.instance_types, made.preferred, made.choice) == (("small", "large"), "large", TypeChoice.CHEAPEST)
    assert (made.batch_size, made.scale_up_cooldown, made.grows) == (2, timedelta(minutes=1), False)
    assert made.member_labels == {"autoscaling.ocf.dev/node-group": "default.workers"}
    assert (made.labels, made.taints[0].key) == ({"tier": "web"}, "dedicated")
    assert (down.enabled, down.cpu_threshold, down.memory_threshold) == (False, 40, 30)
    assert (down.duration, down.cooldown) == (timedelta(seconds=90), timedelta(0))
    assert (down.most_empty, down.most_with_pods, down.consolidate) == (3, 2, True)
    assert (down.saving_threshold, down.replace_after) == (25, timedelta(hours=2))


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({}, "spec.minNodes: required value", id="empty"),
        pytest.param("text", "spec: ", id="not a mapping"),
        pytest.param({**SPEC, "maxNodes": "many"}, "spec.maxNodes: must be a valid integer", id="not a number"),
        pytest.param(
            {**SPEC, "scaleUpCooldown": "9" * 20 + "h"}, "spec.scaleUpCooldown: must be a duration", id="long"
        ),
        pytest.param({**SPEC, "labels": {"kubernetes.io/x": "y"}}, "spec: 'kubernetes.io/x'", id="reserved"),
    ],
)
def test_a_spec_that_is_not_valid_is_a_problem_with_its_path(spec: Any, problem: str) -> None:
    found = group(spec)
    assert found.spec is None
    assert problem in "; ".join(map(str, found.problems))


GAP: Final = {"instanceType": "large", "resources": {"cpu": "1800m"}}
BACKOFF: Final = {"instanceType": "large", "until": "2026-01-01T12:30:00Z"}


def test_a_list_with_two_items_for_one_type_is_left_out_as_a_whole() -> None:
    assert group(typeGaps=[GAP, GAP], backoffs=[BACKOFF]).status == group(backoffs=[BACKOFF]).status


@pytest.mark.parametrize(
    ("odd", "problem"),
    [
        pytest.param({"typeGaps": [{**GAP, "resources": {"cpu": "lots"}}]}, "typeGaps[0].resources", id="gap"),
        pytest.param({"typeGaps": [{**GAP, "overhead": {"memory": "much"}}]}, "typeGaps[0].overhead", id="overhead"),
        pytest.param({"backoffs": [{**BACKOFF, "until": "0001-01-01T00:00:00Z"}]}, "backoffs[0].until", id="year 1"),
        pytest.param({"backoffs": [{**BACKOFF, "until": "9999-12-31T23:59:59Z"}]}, "backoffs[0].until", id="year 9999"),
        pytest.param({"backoffs": [{**BACKOFF, "until": "2026-01-01T12:30:00"}]}, "backoffs[0].until", id="no zone"),
        pytest.param({"lastScaleUpTime": "9999-12-31T23:59:59Z"}, "lastScaleUpTime", id="last scale-up"),
        pytest.param({"lastScaleDownTime": "soon"}, "lastScaleDownTime", id="last scale-down"),
        pytest.param({"unneeded": "n1"}, "unneeded", id="not a list"),
        pytest.param({"conditions": [{"type": "Ready"}]}, "conditions[0]", id="condition"),
        pytest.param({"currentNodes": "many"}, "currentNodes", id="not a number"),
    ],
)
def test_the_rest_of_a_status_counts_and_what_cannot_be_read_is_logged(
    caplog: pytest.LogCaptureFixture, odd: dict[str, Any], problem: str
) -> None:
    good: dict[str, Any] = {"typeGaps": [GAP], "backoffs": [BACKOFF], "replaced": ["n1"]}
    mixed = {name: [*part, *good.get(name, ())] if isinstance(part, list) else part for name, part in odd.items()}
    found = group(**{**good, **mixed})
    assert found.status == group(**good).status
    (text,) = caplog.messages
    assert f"NodeGroup default/workers: what cannot be read of the status is left out: status.{problem}" in text
    assert found.spec is not None
    to_group_status(found, found.spec)


def test_a_status_that_is_no_mapping_counts_as_empty() -> None:
    assert read_group({"metadata": {"name": "workers"}, "spec": SPEC, "status": "text"}).status == NodeGroupStatus()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: (
            st.lists(each)
            | st.dictionaries(st.sampled_from([*SPEC, "labels", "taints", "scaleDownPolicy", "phase", "drain"]), each)
        ),
    )
)
def test_no_object_makes_reading_fail(value: Any) -> None:
    metadata = {"name": "a", "namespace": "b"}
    for read in (read_group, read_node):
        read({"metadata": metadata, "spec": value, "status": value})


@given(st.lists(st.tuples(st.sampled_from(["small", "large"]), st.integers(0, 5000)), max_size=8))
def test_what_steers_scaling_survives_being_stored(refusals: list[tuple[str, int]]) -> None:
    status = GroupStatus(last_scale_up=NOW, low_since={"n1": NOW}, replaced=frozenset({"n2", "n3"}))
    stored = NodeGroupStatus(replaced=["n2", "n3"])
    at = NOW
    for instance_type, seconds in refusals:
        at += timedelta(seconds=seconds)
        status = status.refused(instance_type, "fra", at)
        changes = {"backoffs": backoffs(status, stored, {instance_type: "sold out"}), "unneeded": unneeded(status)}
        stored = stored.model_copy(update={**changes, "last_scale_up_time": status.last_scale_up})
    found = group(**stored.model_dump(mode="json", by_alias=True, exclude_none=True))
    assert found.spec is not None
    if refusals:
        assert to_group_status(found, found.spec) == status


def test_names_are_valid_and_differ() -> None:
    found = group()
    names = {node_name(found, NOW + timedelta(seconds=second), number) for second in range(3) for number in range(3)}
    assert len(names) == 9
    assert node_name(found, NOW, 0) == node_name(group(), NOW, 0)
    assert all(len(name) <= 63 and name.startswith("workers-") for name in names)


def test_labels_of_long_names_differ() -> None:
    values = {member_value("default", "w" * 70 + end) for end in "ab"}
    assert {len(value) for value in values} == {63}
    assert len(values) == 2


FAILED: Final = {"failedAt": "2026-01-01T12:00:00Z", "lastError": "sold out"}


@pytest.mark.parametrize(
    ("nodes", "failures"),
    [
        pytest.param([node("Failed", **FAILED)], 1, id="a refusal"),
        pytest.param([node("Failed", **FAILED), node("Failed", **FAILED)], 1, id="two at once are one"),
        pytest.param([node("Failed", **FAILED, readyAt="2026-01-01T11:00:00Z")], 0, id="it had been ready"),
        pytest.param([node("Ready", readyAt="2026-01-01T11:00:00Z")], 0, id="no failure"),
    ],
)
def test_a_failure_is_counted_once(nodes: list[NodeObject], failures: int) -> None:
    once, messages = count_refusals(GroupStatus(), nodes, NOW)
    assert [each.instance_type for each in once.refusals] == ["small"] * failures
    assert messages == ({"small": "sold out"} if failures else {})
    assert count_refusals(once, nodes, NOW + timedelta(minutes=1)) == (once, {})


def test_a_node_that_became_ready_after_a_refusal_ends_it() -> None:
    refused = GroupStatus().refused("small", "fra", NOW)
    later = (NOW + timedelta(minutes=1)).isoformat()
    earlier = (NOW - timedelta(minutes=1)).isoformat()
    assert count_refusals(refused, [node("Ready", readyAt=later)], NOW)[0].refusals == ()
    assert count_refusals(refused, [node("Ready", readyAt=earlier)], NOW)[0] == refused
    assert count_refusals(refused, [node("Ready", "large", readyAt=later)], NOW)[0] == refused


def test_failures_are_counted_up_to_the_largest_number_that_the_api_server_stores() -> None:
    most = 2**31 - 1
    stored = group(backoffs=[{"instanceType": "small", "until": "2026-01-01T11:00:00Z", "failures": most}]).status
    found = backoffs(GroupStatus().refused("small", "fra", NOW), stored, {"small": "sold out"})
    assert found is not None
    (backoff,) = found
    last = TypeGap(instance_type="small", zone="fra", labels={"disk": "ssd"}, failures=most, until=NOW)
    (gap,) = next_gaps([last], {last.kind: replace(last, failures=1, until=None)}, NOW + LONGEST_GAP)
    assert (backoff.failures, gap.failures) == (most, most)
    assert (gap.until, backoff.message) == (None, "sold out")
