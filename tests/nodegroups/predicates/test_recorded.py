"""The filters agree with those of kube-scheduler, which were recorded: the same reasons for each pod on each node."""

import json
import lzma
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ocf.nodegroups.predicates import ClusterState, explain
from ocf.nodegroups.snapshot import ClusterSnapshot

TABLE = Path(__file__).parents[1] / "data" / "scheduler.jsonl.xz"
SHARDS = 8


@cache
def situations() -> list[dict[str, Any]]:
    return [json.loads(line) for line in lzma.decompress(TABLE.read_bytes()).decode().splitlines()]


def differences(situation: dict[str, Any]) -> list[str]:
    snapshot = ClusterSnapshot.of(
        nodes=situation["nodes"],
        pods=[*situation.get("pods", ()), *situation["pending"]],
        claims=situation.get("claims", ()),
        volumes=situation.get("volumes", ()),
        storage_classes=situation.get("classes", ()),
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
