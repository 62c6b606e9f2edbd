"""The predicate agrees with the real scheduler: the same verdict for each node, the same count per reason.

`scripts/record_scheduler.py` recorded what the scheduler decides, and describes the data.
"""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ocf.nodegroups.predicates import ClusterState, explain
from ocf.nodegroups.snapshot import Pod, Snapshot

DATA = Path(__file__).parent / "data" / "scheduler.jsonl.xz"
Json = dict[str, Any]


@cache
def rows() -> list[Json]:
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def verdicts(row: Json) -> Iterator[tuple[Json, Json, dict[str, list[str]]]]:
    """Return for each pending pod its manifest, the answer of the scheduler, and our reasons of each node."""
    snapshot = Snapshot.of(
        nodes=row["nodes"],
        pods=row.get("pods", []),
        claims=row.get("claims", []),
        volumes=row.get("volumes", []),
        storage_classes=row.get("classes", []),
        namespaces=row["namespaces"],
    )
    assert snapshot.rejected == ()
    state = ClusterState(snapshot)
    for manifest, answer in zip(row["pending"], row["answers"], strict=True):
        pod = Pod.of(manifest)
        found = {name: explain(pod.shape, index, state) for name, index in state.index.items()}
        yield manifest, answer, {name: list(each.reasons) if each else [] for name, each in found.items()}


def counted(message: str) -> Counter[str]:
    """Return the count of each reason in a message of the scheduler."""
    total, _, reasons = message.partition(" nodes are available: ")
    if not re.match(r"\d", reasons):  # it gave one reason for all nodes before it looked at any
        return Counter({reasons.removesuffix("."): int(total.removeprefix("0/"))})
    parts = re.split(r", (?=\d+ )", reasons.removesuffix("."))
    return Counter({reason: int(count) for count, _, reason in (part.partition(" ") for part in parts)})


def differences() -> Iterator[str]:
    for number, row in enumerate(rows()):
        for manifest, answer, ours in verdicts(row):
            theirs = {name: sorted(reasons) for name, reasons in answer["nodes"].items()}
            if {name: sorted(reasons) for name, reasons in ours.items()} != theirs:
                yield f"{number} {manifest['metadata']['name']}: {theirs} by the scheduler, {ours} by us"


def test_the_same_nodes_are_rejected_for_the_same_reasons() -> None:
    found = list(differences())
    assert not found, "\n".join([f"{len(found)} differ, the first ones:", *found[:10]])


def test_the_reasons_have_the_same_counts_as_in_the_text_of_the_scheduler() -> None:
    for row in rows():
        for _, answer, ours in verdicts(row):
            reasons = Counter(reason for each in ours.values() for reason in each)
            if "message" in answer:
                assert reasons == counted(answer["message"])
            else:
                assert not all(ours.values())


@pytest.mark.parametrize("count", [pytest.param(5000, id="at least 5000 situations")])
def test_there_are_enough_situations(count: int) -> None:
    assert len(rows()) >= count
