"""Data of charts."""

import re
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.report.charts import Chart, Series
from ocf.simulation.report.series import Sampled, sampled
from ocf.simulation.report.tables import chart_table
from tests.simulation.runs import columns, reported, run


def test_few_rows_are_kept() -> None:
    found = sampled(columns([0, 7, 9], load=[1.23456, 2, 3], wanted=[-1, 2, 3], utilization=[nan, 1, 0.5]), 12)
    assert found.times == (0, 7, 9)
    assert found.low["load"] == (1.235, 2, 3)
    assert (found.low["wanted"], found.low["utilization"]) == ((None, 2, 3), (None, 1, 0.5))
    assert found.high == {}


@given(
    loads=st.lists(st.integers(0, 999), min_size=1, max_size=60),
    most=st.integers(1, 20),
    step=st.floats(0.5, 30),
)
def test_merged_rows_keep_every_peak_and_trough(loads: list[int], most: int, step: float) -> None:
    times = [number * step for number in range(len(loads))]
    found = sampled(columns(times, load=loads), len(loads) * step, most=most)
    ends = (*found.times[1:], float("inf"))
    highs = found.high.get("load", found.low["load"])
    assert len(found.times) <= most
    for begin, end, low, high in zip(found.times, ends, found.low["load"], highs, strict=True):
        inside = [load for time, load in zip(times, loads, strict=True) if begin <= time < end]
        assert (low, high) == (min(inside), max(inside))


def test_a_missing_value_does_not_hide_the_others() -> None:
    found = sampled(columns([0, 1, 2, 3], utilization=[1, nan, nan, nan], wanted=[2, -1, -1, -1]), 4, most=2)
    assert (found.low["utilization"], found.high.get("utilization", found.low["utilization"])) == ((1, None), (1, None))
    assert (found.low["wanted"], found.high.get("wanted", found.low["wanted"])) == ((2, None), (2, None))


@pytest.mark.parametrize("name", ["wanted", "utilization"])
def test_a_row_of_nothing_but_missing_values_has_none(name: str) -> None:
    none = nan if name == "utilization" else -1
    assert sampled(columns([0, 1], **{name: [none, none]}), 2, most=1).low[name] == (None,)


@pytest.mark.parametrize(("at", "text"), [(599, "30 to 42"), (600, "30"), (601, "30")])
def test_a_part_of_a_table_has_the_values_before_its_end(at: float, text: str) -> None:
    """The second of twelve parts of an hour ends at 600 s; the value that begins there is that of the third one."""
    report = reported(run([0, at], duration=3600, load=[30, 42]))
    chart = Chart(title="Load", description="", series=(Series(0, "load", "load", "s0"),))
    sample = Sampled((0, at), {"load": (30, 42)}, {})
    cells = re.findall("<td>([^<]*)</td>", chart_table(chart, [report], [sample]))
    assert cells[3] == text
