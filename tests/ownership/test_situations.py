"""The first sentence of an explanation names the cause, in situations from public reports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest

from ocf.objects import Manifest, ObjectKey
from ocf.ownership import OwnerSnapshot
from ocf.ownership.explanation import explain_owners
from ocf.primitives.pod_causes import pod_cause
from tests.ownership.owner_situations import JOBS_AND_NETWORKS, OPERATORS, VOLUMES
from tests.ownership.pod_situations import PODS, REFUSED
from tests.ownership.situations import Situation
from tests.ownership.workload_situations import ENDED, GATEWAY_API, IMAGES, NODES, REJECTED
from tests.ownership.world import NOW, Town, shop

WORKLOADS: Final = [*NODES, *IMAGES, *REJECTED, *ENDED, *GATEWAY_API]
SITUATIONS: Final = [*PODS, *REFUSED, *VOLUMES, *JOBS_AND_NETWORKS, *OPERATORS, *WORKLOADS]


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.name) for each in SITUATIONS])
def test_the_first_sentence_names_the_cause(situation: Situation) -> None:
    found = asyncio.run(Town(situation.objects).explain())
    rest = found.sentence
    for part in situation.expected:
        assert part in rest, f"{part!r} is not in {found.sentence!r}"
        rest = rest.partition(part)[2]
    assert found.sentence.startswith(situation.expected[0])


OF_PODS: Final = frozenset({"DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "Shop", "StatefulSet"})


def has_only_pods(situation: Situation) -> bool:
    """Return whether a reconcile that reads the pods of its workloads has all objects of a situation."""
    kinds = {one["kind"] for one in situation.objects}
    return "Pod" in kinds and kinds <= OF_PODS


@pytest.mark.parametrize("situation", [pytest.param(one, id=one.name) for one in SITUATIONS if has_only_pods(one)])
def test_a_condition_names_the_cause_that_the_explanation_names(situation: Situation) -> None:
    """So that a reader does not have to find out which of the two is right."""
    in_condition = pod_cause([one for one in situation.objects if one["kind"] == "Pod"])
    cause = in_condition.rpartition(" (pod ")[0].removeprefix("Unschedulable: ")
    [found] = explain_owners(OwnerSnapshot(objects=situation.objects, now=NOW), [ObjectKey.of(situation.objects[0])])
    assert cause
    assert cause in found.cause[0].text


def test_there_are_situations_enough() -> None:
    assert len(SITUATIONS) >= 60
    assert len({each.name for each in SITUATIONS}) == len(SITUATIONS)
    assert all(each.report.startswith("https://github.com/") for each in SITUATIONS)


class _Counted(list[Manifest]):
    """Objects that count how often all of them are read."""

    times = 0

    def __iter__(self) -> Iterator[Manifest]:
        self.times += 1
        return super().__iter__()


def test_the_objects_are_indexed_once_for_all_owners() -> None:
    """So that the owners of a cluster cost as much as they are, and not their square."""
    objects = _Counted(shop(name=f"shop-{number}") for number in range(5))
    found = [*explain_owners(OwnerSnapshot(objects=objects, now=NOW), [ObjectKey.of(one) for one in objects])]
    assert (len(found), objects.times) == (5, 2)
