"""Charts that are drawn without a script: every value is in them, and they are bounded."""

import re
from array import array
from dataclasses import replace
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.report.bands import Band
from ocf.simulation.report.charts import Chart, Mark, Series
from ocf.simulation.report.reported import Reported
from ocf.simulation.report.series import sampled
from ocf.simulation.report.static_charts import HEIGHT, static_chart
from ocf.simulation.result import Columns, SimulationResult
from tests.simulation.runs import day, reported

PARTS = 400
LINE = Chart(title="", description="", series=(Series(0, "utilization", "", "s0"),))


def drawn(result: SimulationResult, chart: Chart = LINE, *, most: int = 8000) -> str:
    run = Reported(name="web", result=result)
    return static_chart(chart, [run], [sampled(result.columns, result.duration, most=most)])


def of(values: list[float], times: list[float], duration: float) -> SimulationResult:
    columns = Columns(time=array("d", times), utilization=array("d", values))
    return replace(day(1), columns=columns, duration=duration)


def covered(svg: str) -> dict[int, tuple[float, float]]:
    """Return the lowest and the highest place of the line at each part of the time."""
    found: dict[int, tuple[float, float]] = {}
    [path] = re.findall(r'<path class="series s0" d="([^"]*)"', svg)
    part, y = 0, 0.0
    for command, first, second in re.findall(r"([MHV])([\d.]+)(?: ([\d.]+))?", path):
        if command == "M":
            part, y = int(first), float(second)
        elif command == "V":
            y = float(first)
        else:
            for each in range(part, int(first)):
                low, high = found.get(each, (y, y))
                found[each] = min(low, y), max(high, y)
            part = int(first)
        low, high = found.get(part, (y, y))
        found[part] = min(low, y), max(high, y)
    return found


def places(svg: str) -> dict[float, float]:
    """Return the place of each labelled value."""
    return {float(value): float(y) + 3 for y, value in re.findall(r'<text x="0" y="([\d.]+)">([\d.]+)</text>', svg)}


@pytest.mark.parametrize(
    ("most", "fewest", "earlier"),
    [
        pytest.param(8000, 1, 0, id="each row is drawn"),
        # A merged row is drawn where it begins: up to one of the 30 parts of the time before the value.
        pytest.param(30, 40, PARTS // 30 + 1, id="rows are merged"),
    ],
)
@given(data=st.data())
def test_every_value_is_on_the_line_at_its_time(most: int, fewest: int, earlier: int, data: st.DataObject) -> None:
    value = st.one_of(st.just(float("nan")), st.integers(0, 8))
    times = st.sets(st.integers(1, 3 * PARTS - 1), min_size=fewest, max_size=2 * fewest + 60)
    rows = [(0, 8.0), *((time, data.draw(value)) for time in sorted(data.draw(times)))]
    svg = drawn(of([value for _, value in rows], [float(time) for time, _ in rows], 3.0 * PARTS), most=most)
    label, found = places(svg), covered(svg)
    unit = (label[0] - label[8]) / 8
    for time, value_there in rows:
        if not isnan(value_there):
            y = label[0] - value_there * unit
            near = range(max(0, time // 3 - earlier), time // 3 + 1)
            assert any(low - 0.11 <= y <= high + 0.11 for low, high in (found.get(each, (999, -1)) for each in near))


def test_a_line_holds_until_the_next_value_and_ends_where_there_is_none() -> None:
    svg = drawn(of([2, 4, float("nan"), 4], [0, 100, 200, 300], 400.0))
    label = places(svg)
    [path] = re.findall(r' d="([^"]*)"', svg)
    assert path == f"M0 {label[2]:g}V{label[2]:g}H100V{label[4]:g}H200M300 {label[4]:g}V{label[4]:g}H400"


@pytest.mark.parametrize(
    ("values", "marks", "labels"),
    [
        pytest.param([0.0], (), [0, 0.5], id="nothing but zero"),
        pytest.param([7.0], (), [0, 2, 4, 6, 8], id="above the highest value"),
        pytest.param([0.3], (), [0, 0.1, 0.2, 0.3], id="fractions"),
        pytest.param([7.0], (Mark(9, ""),), [0, 5, 10], id="a mark that is near"),
        pytest.param([7.0], (Mark(90, ""),), [0, 2, 4, 6, 8], id="a mark that is far away"),
    ],
)
def test_the_values_of_the_axis_are_round(values: list[float], marks: tuple[Mark, ...], labels: list[float]) -> None:
    svg = drawn(of(values, [0.0], 60.0), replace(LINE, marks=marks))
    assert sorted(places(svg)) == labels


def test_whole_numbers_have_whole_numbers_at_the_axis() -> None:
    assert sorted(places(drawn(of([2.0], [0.0], 60.0), replace(LINE, whole=True)))) == [0, 1, 2]


def test_bands_fill_the_time() -> None:
    bands = (Band("Ready <now>", ((0.0, "good", "a"), (30.0, "bad", "b"))), Band("Able", ((10.0, "off", "c"),)))
    svg = drawn(of([1.0], [0.0], 40.0), Chart(title="", description="", bands=bands))
    found = re.findall(r'class="band (\w+)" x="([\d.]+)%" y="[\d.]+" width="([\d.]+)%"', svg)
    assert found == [("good", "0", "75"), ("bad", "75", "25"), ("off", "25", "75")]
    assert "Ready &lt;now&gt;" in svg


@pytest.mark.parametrize(
    ("duration", "times"),
    [
        (3600.0, ["00:00", "00:15", "00:30", "00:45", "01:00"]),
        (259_200.0, ["01-01 00:00", "01-02 00:00", "01-03 00:00", "01-04 00:00"]),
    ],
)
def test_the_axis_has_days_where_there_are_several(duration: float, times: list[str]) -> None:
    svg = drawn(of([1.0], [0.0], duration))
    assert re.findall(rf'y="{HEIGHT - 6}" text-anchor="\w+">([^<]*)<', svg) == times


@pytest.mark.parametrize(
    ("duration", "times"),
    [
        (3600.0, ["2026-01-01 00:00", "2026-01-01 00:30", "2026-01-01 01:00"]),
        (345_600.0, ["2026-01-01 00:00", "2026-01-03 00:00", "2026-01-05 00:00"]),
    ],
)
def test_the_axis_of_a_run_with_dates_has_those(duration: float, times: list[str]) -> None:
    svg = drawn(replace(of([1.0], [0.0], duration), is_dated=True))
    assert re.findall(rf'y="{HEIGHT - 6}" text-anchor="\w+">([^<]*)<', svg) == times


def test_a_long_run_has_bounded_charts() -> None:
    """Each of 400 parts has one vertical line in each of five lines."""
    run = reported(day(20_000))
    sample = sampled(run.result.columns, run.result.duration)
    keys = ("replicas", "wanted", "stabilized", "desired", "demand")
    chart = replace(LINE, series=tuple(Series(0, key, "", "s0") for key in keys))
    assert 10_000 < len(static_chart(chart, [run], [sample])) < 5 * PARTS * 25
