"""Time series as tables."""

from dataclasses import replace
from math import nan

from ocf.simulation.report.rows import COLUMN_NAMES, NODE_COLUMN_NAMES, csv_lines, run_values, text_rows
from tests.simulation.runs import day, reported, run, with_nodes


def test_rows_have_shortest_texts_and_no_value_is_empty() -> None:
    made = run([0, 0.1], duration=1, load=[1e6, 1 / 3], utilization=[nan, 0.5], wanted=[-1, 3], ready=[2, 0])
    first, second = (dict(zip(COLUMN_NAMES, row, strict=True)) for row in text_rows(made, COLUMN_NAMES))
    assert (first["time"], first["load"], first["utilization"], first["wanted"], first["ready"]) == (
        "0",
        "1000000",
        "",
        "",
        "2",
    )
    assert (second["time"], second["load"], second["utilization"], second["wanted"]) == (
        "0.1",
        "0.3333333333333333",
        "0.5",
        "3",
    )


def test_columns_have_none_where_there_is_no_value() -> None:
    made = run([0, 1], duration=2, utilization=[nan, 0.5], wanted=[-1, 3])
    assert run_values(made, "utilization") == [None, 0.5]
    assert run_values(made, "wanted") == [None, 3]


def test_node_groups_have_columns_in_all_and_for_each_group() -> None:
    head, first, *_ = csv_lines([reported(with_nodes(day()))])
    of_groups = [
        f"{name}.{group}"
        for group in ("workers", "spot")
        for name in ("nodes_booting", "nodes_ready", "nodes_draining", "node_price")
    ]
    assert head.rstrip().split(",") == [*COLUMN_NAMES, *NODE_COLUMN_NAMES, *of_groups]
    row = dict(zip(head.rstrip().split(","), first.rstrip().split(","), strict=True))
    assert (row["pending"], row["node_cpu"], row["nodes_ready"], row["nodes_ready.spot"]) == ("0", "", "4", "2")


def test_compared_runs_have_the_columns_of_all_of_them() -> None:
    head, *lines = csv_lines([reported(day()), reported(with_nodes(day(name="nodes")))])
    names = head.rstrip().split(",")
    rows = [dict(zip(names, line.rstrip("\n").split(","), strict=True)) for line in lines]
    assert {row["nodes_ready"] == "" for row in rows if row["run"] == "web"} == {True}
    assert {row["nodes_ready"] == "" for row in rows if row["run"] == "nodes"} == {False}


def test_only_runs_whose_dates_mean_something_have_instants() -> None:
    dated = reported(replace(day(3, name="recorded"), is_dated=True))
    head, *lines = csv_lines([reported(day(3)), dated])
    assert head.startswith("run,at,time,")
    assert [line.split(",")[:3] for line in lines[2:5]] == [
        ["web", "", "30"],
        ["recorded", "2026-01-01T00:00:00+00:00", "0"],
        ["recorded", "2026-01-01T00:00:15+00:00", "15"],
    ]
    assert next(csv_lines([reported(day(3))])).startswith("time,")
