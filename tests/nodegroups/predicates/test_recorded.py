"""The filters agree with those of kube-scheduler, which were recorded: the same reasons for each pod on each node."""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ocf.nodegroups.predicates import ClusterState, explain
from ocf.nodegroups.predicates.reasons import VOLUME_COUNT
from ocf.nodegroups.snapshot import ClusterSnapshot
from tests.nodegroups.attach_cases import attach_cases

TABLE = Path(__file__).parents[1] / "data" / "scheduler.jsonl.xz"
ATTACH_LIMITS = TABLE.with_name("attach_limits.jsonl.xz")
SHARDS = 8


@cache
def situations(table: Path = TABLE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lzma.decompress(table.read_bytes()).decode().splitlines()]


def differences(situation: dict[str, Any]) -> list[str]:
    snapshot = ClusterSnapshot.of(
        nodes=situation["nodes"],
        pods=[*situation.get("pods", ()), *situation["pending"]],
        claims=situation.get("claims", ()),
        volumes=situation.get("volumes", ()),
        storage_classes=situation.get("classes", ()),
        csi_nodes=situation.get("csiNodes", ()),
        namespaces=situation["namespaces"],
    )
    state = ClusterState(snapshot)
    found = [str(each) for each in snapshot.rejected]
    for pending, answer in zip(situation["pending"], situation["answers"], strict=True):
        metadata = pending["metadata"]
        pod = snapshot.pods[f"{metadata['namespace']}/{metadata['name']}"]
        for name, expected in answer["nodes"].items():
            misfit = explain(pod.shape, state.index[name], state)
            reasons = sorted(misfit.reasons) if misfit else []
            if reasons != sorted(expected):
                found.append(f"{pod.key} on {name}: {reasons}, the scheduler: {expected}")
    return found


@pytest.mark.promise("node-groups-fits", runs="5 000 recorded situations of nodes and pods")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_the_reasons_are_those_of_the_scheduler(shard: int) -> None:
    assert len(situations()) >= 5_000
    assert {
        number: found
        for number in range(shard, len(situations()), SHARDS)
        if (found := differences(situations()[number]))
    } == {}


@pytest.mark.promise("node-groups-fits", runs="500 recorded situations with limits of attached volumes")
def test_the_limits_of_attached_volumes_are_those_of_the_scheduler() -> None:
    table = situations(ATTACH_LIMITS)
    assert [{key: part for key, part in row.items() if key != "answers"} for row in table[:50]] == attach_cases(50)
    reasons = [
        reason
        for row in table
        for answer in row["answers"]
        for rejected in answer["nodes"].values()
        for reason in rejected
    ]
    assert reasons.count(VOLUME_COUNT) > len(table) // 2
    assert {number: found for number, row in enumerate(table) if (found := differences(row))} == {}
