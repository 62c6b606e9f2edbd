"""The first sentence of an explanation names the cause, in situations from public reports."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from tests.ownership.owner_situations import JOBS_AND_NETWORKS, OPERATORS, VOLUMES
from tests.ownership.pod_situations import PODS, REFUSED
from tests.ownership.situations import Situation
from tests.ownership.world import Town

SITUATIONS: Final = [*PODS, *REFUSED, *VOLUMES, *JOBS_AND_NETWORKS, *OPERATORS]


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.name) for each in SITUATIONS])
def test_the_first_sentence_names_the_cause(situation: Situation) -> None:
    found = asyncio.run(Town(situation.objects).explain())
    rest = found.sentence
    for part in situation.expected:
        assert part in rest, f"{part!r} is not in {found.sentence!r}"
        rest = rest.partition(part)[2]
    assert found.sentence.startswith(situation.expected[0])


def test_there_are_situations_enough() -> None:
    assert len(SITUATIONS) >= 40
    assert len({each.name for each in SITUATIONS}) == len(SITUATIONS)
    assert all(each.report.startswith("https://github.com/") for each in SITUATIONS)
