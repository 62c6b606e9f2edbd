"""The recorded decisions of the scheduler are complete: `predicates/test_recorded.py` compares the predicate with them.

`scripts/record/scheduler.py` describes the data.
"""

import json
import lzma
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.nodegroups.scheduler_cases import Maker

DATA = Path(__file__).parent / "data" / "scheduler.jsonl.xz"
Json = dict[str, Any]


@cache
def rows() -> list[Json]:
    with lzma.open(DATA, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def counted(message: str) -> Counter[str]:
    """Return the count of each reason in a message of the scheduler."""
    total, _, reasons = message.partition(" nodes are available: ")
    if not re.match(r"\d", reasons):  # it gave one reason for all nodes before it looked at any
        return Counter({reasons.removesuffix("."): int(total.removeprefix("0/"))})
    parts = re.split(r", (?=\d+ )", reasons.removesuffix("."))
    return Counter({reason: int(count) for count, _, reason in (part.partition(" ") for part in parts)})


def test_the_text_counts_the_reasons_of_the_nodes() -> None:
    """So a predicate with the same reasons for each node has the same count for each reason."""
    for row in rows():
        for answer in row["answers"]:
            if "message" in answer:
                reasons = Counter(reason for each in answer["nodes"].values() for reason in each)
                assert reasons == counted(answer["message"])
            else:
                assert not all(answer["nodes"].values())


def test_the_situations_are_those_of_the_generator() -> None:
    maker = Maker(seed=1)
    for row in rows()[:500]:
        assert maker.make() == {name: part for name, part in row.items() if name not in ("answers", "real")}


@pytest.mark.parametrize("feature", sorted(Maker(seed=1).features))
def test_each_feature_alone_decides_often(feature: str) -> None:
    alone = [row for row in rows() if row["features"] == [feature]]
    rejected = [answer for row in alone for answer in row["answers"] if any(answer["nodes"].values())]
    assert len(rejected) >= 50


def test_there_are_enough_situations_also_of_the_real_scheduler() -> None:
    assert len(rows()) >= 5000
    assert sum("real" in row for row in rows()) >= 250
