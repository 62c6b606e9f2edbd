"""The summary of a run as text."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from ocf.simulation.report.text import chart_lines, summary_lines
from tests.simulation.runs import day, reported, run

BERLIN = ZoneInfo("Europe/Berlin")


def test_the_chart_shows_ready_pods_and_above_them_the_missing_ones() -> None:
    """Half of the demand is missing in the first quarter; later half of the highest demand is ready, then all of it."""
    made = run([0, 100, 200], duration=400, ready=[2, 2, 4], demand=[4, 2, 4])
    lines = list(chart_lines(made))
    quarter, half = 17, 34
    margin = len("      4 │")
    for row, line in enumerate(lines[1:9]):
        cells = line[margin:].ljust(68)
        first, second, rest = cells[:quarter], cells[quarter:half], cells[half:]
        assert (set(first), set(second), set(rest)) == ({"░"}, {" "}, {"█"}) if row < 4 else ({"█"}, {"█"}, {"█"})


def test_a_row_that_is_partly_in_a_column_counts_in_part() -> None:
    made = run([0, 0.5], duration=68, ready=[8, 4], demand=[0, 0])
    top = list(chart_lines(made))[1]
    # The first column is one second: 8 pods for the half of it are 6 of 6, the others are 4 of 6.
    assert top.startswith("      6 │█")
    assert top.count("█") == 1


def test_the_summary_is_at_most_80_columns_wide() -> None:
    lines = list(summary_lines(reported(day(), overload_time=0.02, latency={"at_most": "1s"})))
    assert max(map(len, lines)) <= 80
    assert lines[0] == "web: 1 h from 2026-01-01 00:00:00, 240 syncs"
    assert "  MISSED  overload time at most 2 %: 32.9 %" in lines


def test_a_run_without_pods_has_a_chart() -> None:
    assert len(list(chart_lines(run([0], duration=60)))) == 11


def test_the_cost_is_left_out_without_prices() -> None:
    assert not any("cost" in line for line in summary_lines(reported(day())))
    priced = reported(day(), prices={"pod_hour": 2, "currency": "EUR"})
    assert any(line.split() == ["cost", "14.14", "EUR"] for line in summary_lines(priced))


def test_warnings_come_before_the_numbers() -> None:
    lines = list(summary_lines(reported(replace(day(), warnings=("the workload has no replicas",)))))
    assert lines[1:3] == ["  warning: the workload has no replicas", ""]


def test_the_chart_of_a_run_with_dates_has_those_of_its_begin_and_end() -> None:
    made = run([0], duration=7500)
    assert list(chart_lines(made))[-1].split() == ["0", "2", "h", "5", "min"]
    (*_, axis) = chart_lines(replace(made, is_dated=True, start=datetime(2026, 3, 1, 15, 5, tzinfo=BERLIN)))
    assert axis.split("  ")[-1].strip() == "2026-03-01 16:10"
    assert axis.strip().startswith("2026-03-01 14:05 ")
    assert len(axis) <= 80
