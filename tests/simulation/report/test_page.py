"""The page of a report: what it contains, and that it is bounded."""

import json
import re
from array import array
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from ocf.simulation.measures.catalog import MEASURES
from ocf.simulation.report import Reported, to_html
from ocf.simulation.report.series import MOST_ROWS
from ocf.simulation.result import ACTIVATED, ScalingAction, SimulationResult
from tests.simulation.runs import day, reported, with_nodes


def data_of(page: str) -> Any:
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found)


def test_the_page_loads_nothing_and_allows_only_its_script() -> None:
    page = to_html([reported(day())])
    assert re.findall(r'(?:src|href|action)="', page) == []
    assert set(re.findall(r"https?://[^\s\"']+", page)) == {"http://www.w3.org/2000/svg"}
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert re.fullmatch(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[\w+/]+='", policy)


def test_equal_runs_give_equal_pages() -> None:
    assert to_html([reported(day())]) == to_html([reported(day())])


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<b>", "<!--", "&amp;", '"'])
def test_text_is_never_markup(text: str) -> None:
    result = day(40)
    named = replace(result, name=text, actions=tuple(replace(each, reason=text) for each in result.actions))
    page = to_html([reported(named)])
    plain = to_html([reported(replace(result, name="web"))])
    assert page.count("<script") == plain.count("<script")
    assert page.count("<!--") == page.count("<b>") == 0
    assert text in data_of(page)["texts"]


def test_every_measure_is_shown_with_its_definition() -> None:
    result = reported(with_nodes(day()), latency={"at_most": "1s"})
    page = to_html([result])
    assert list(result.result.measures) == list(MEASURES)
    assert all(each.title in page and each.definition in page for each in MEASURES.values())


def test_objectives_have_a_verdict() -> None:
    page = to_html([reported(day(), overload_time=0.02, pod_hours=1000)])
    assert re.findall(r'<li class="(\w+)">([^<]*)</li>', page) == [
        ("missed", "overload time at most 2 %: 32.9 %, missed"),
        ("met", "pod hours at most 1 000: 7.071, met"),
    ]


def test_every_chart_has_a_title_a_description_and_a_table() -> None:
    page = to_html([reported(day())])
    titles = re.findall(r"<title id=\"chart\d+-title\">([^<]+)</title><desc [^>]*>[^<]+</desc>", page)
    assert titles == [
        "Load and capacity, load units per second",
        "Replicas",
        "Pods",
        "Utilization of the target",
        "Queue, load units",
        "Conditions",
    ]
    assert re.findall(r"<summary>(.*?) as a table</summary>", page) == titles


def test_the_table_of_a_chart_has_the_range_of_each_part() -> None:
    page = to_html([reported(replace(day(12), duration=1200.0))])
    [table] = re.findall(r"<summary>Pods as a table</summary>.*?<tbody>(.*?)</tbody>", page, re.DOTALL)
    first, *_, last = re.findall(r"<tr>(.*?)</tr>", table)
    assert re.findall(r"<td>(.*?)</td>", first) == ["01-01 00:00:00", "9 to 10", "0 to 2", "0 to 1"]
    assert re.findall(r"<td>(.*?)</td>", last)[0] == "01-01 00:18:20"


def test_tables_of_a_run_with_dates_have_the_year() -> None:
    page = to_html([reported(replace(day(), is_dated=True))])
    cells = re.findall(r"<td>(\d[\d-]* \d\d:\d\d:\d\d)</td>", page)
    assert "2026-01-01 00:00:00" in cells
    assert {each[:5] for each in cells} == {"2026-"}
    assert data_of(page)["dated"]
    assert not data_of(to_html([reported(day())]))["dated"]


def test_actions_have_their_reason_and_explanation() -> None:
    data = data_of(to_html([reported(day())]))
    time, before, after, reason, _, lines = data["actions"][0]
    action = day().actions[0]
    assert (time, before, after, data["texts"][reason]) == (action.time, action.before, action.after, action.reason)
    assert [data["texts"][each] for each in lines] == list(action.explanation)


def test_a_long_run_stays_small() -> None:
    """Every part has more than a page keeps, and every value is long, so that a longer run is not larger."""
    made = day(20_000)
    numbers = Random(1)  # noqa: S311 (not for secrets)
    noise: dict[str, Any] = {
        name: array("d", [numbers.random() * 1000 for _ in made.columns.time])
        for name in ("load", "capacity", "queue", "dropped", "utilization")
    }
    pods: dict[str, Any] = {
        name: array("q", [numbers.randrange(100) for _ in made.columns.time])
        for name in ("demand", "replicas", "starting", "ready", "terminating", "wanted", "stabilized", "desired")
    }
    changes = tuple(made.condition_changes[0]._replace(time=time, reason=f"R{time % 7}") for time in made.columns.time)
    noisy = replace(made, columns=replace(made.columns, **noise, **pods), condition_changes=changes)
    page = to_html([Reported(name="web", result=noisy)])
    assert len(page.encode()) < 2_000_000
    data = data_of(page)
    assert len(data["runs"][0]["times"]) == MOST_ROWS
    assert (len(data["actions"]), data["count"]) == (10_000, len(made.actions))


def compared(*more: int) -> str:
    return to_html([reported(day(name=f"web+{each}", more=each)) for each in more])


def test_compared_runs_share_charts() -> None:
    data = data_of(compared(0, 1, 3))
    assert [[(each["run"], each["key"]) for each in chart["series"]] for chart in data["charts"]] == [
        [(0, "load")],
        *([(run, key) for run in range(3)] for key in ("replicas", "ready", "utilization", "queue")),
    ]
    assert [sorted(run["low"]) for run in data["runs"]] == [
        ["load", "queue", "ready", "replicas", "utilization"],
        ["queue", "ready", "replicas", "utilization"],
        ["queue", "ready", "replicas", "utilization"],
    ]


def test_compared_runs_that_start_at_different_instants_say_whose_times_are_shown() -> None:
    note = "<p>The runs start at different instants: times are those of web.</p>"
    later = replace(day(name="other"), start=day().start + timedelta(days=1))
    assert note in to_html([reported(day()), reported(later)])
    assert note not in to_html([reported(day()), reported(day(name="other"))])


def test_the_best_of_compared_runs_is_marked() -> None:
    page = compared(0, 1, 3)
    [row] = re.findall(r"<tr><th scope=\"row\">pod-hours.*?</tr>", page)
    assert [bool(each) for each in re.findall(r"<td( class=best)?>", row)] == [True, False, False]
    [row] = re.findall(r"<tr><th scope=\"row\">longest queue.*?</tr>", page)
    assert [bool(each) for each in re.findall(r"<td( class=best)?>", row)] == [False, True, True]


def test_runs_under_different_loads_show_both() -> None:
    other: SimulationResult = replace(day(), columns=replace(day().columns, load=day().columns.capacity))
    data = data_of(to_html([reported(day()), reported(other)]))
    assert [(each["run"], each["key"]) for each in data["charts"][0]["series"]] == [(0, "load"), (1, "load")]


def test_actions_of_node_groups_stand_beside_those_of_the_hpa() -> None:
    made = with_nodes(day())
    page = to_html([reported(made)])
    data = data_of(page)
    found = [(time, data["texts"][source]) for time, _, _, _, source, *_ in data["actions"]]
    assert data["sources"]
    assert [each for each in found if each[1] != "HPA"] == [
        (90, "node group spot"),
        (600, "node group spot"),
        (900, "node group workers"),
    ]
    assert found == sorted(found, key=lambda each: each[0])
    assert data["count"] == len(made.actions) + 3
    assert "<td>node group spot</td><td>4 → 6</td><td>3 pods wait for a node: add 2 small</td>" in page
    assert f"of {data['count']} scaling actions" in page


def test_node_groups_have_charts_and_totals() -> None:
    page = to_html([reported(with_nodes(day()))])
    titles = re.findall(r"<h2>([^<]*)</h2>\n<figure", page)
    assert titles[3:6] == ["Nodes", "Pods that wait for a node", "Requests of the nodes"]
    assert "ready: workers" in page
    [table] = re.findall(r'<table id="groups">.*?</table>', page)
    assert [re.findall(r"<td>([^<]*)</td>", row)[2:] for row in table.split("<tr>")[2:]] == [
        ["6", "0", "0", "1"],
        ["6", "2", "1", "0"],
    ]


def test_runs_without_node_groups_show_none() -> None:
    page = to_html([reported(day())])
    assert not data_of(page)["sources"]
    assert "ode group" not in page


def test_compared_runs_with_node_groups_share_their_charts() -> None:
    page = to_html([reported(with_nodes(day())), reported(day(name="other"))])
    titles = re.findall(r"<h2>([^<]*)</h2>\n<figure", page)
    assert titles[-2:] == ["Ready nodes", "Pods that wait for a node"]
    assert "<small>Node-hours times the price of the instance type.</small>" in page


def test_actions_of_the_activator_are_named() -> None:
    action = ScalingAction(time=90, before=0, after=1, reason="trigger jobs is 30, active above 29", rule=ACTIVATED)
    made = day()
    page = to_html([reported(replace(made, actions=(*made.actions[:3], action)))])
    assert "<td>activator</td><td>0 → 1</td><td>trigger jobs is 30, active above 29</td>" in page
    assert data_of(page)["sources"] is True
    assert data_of(to_html([reported(made)]))["sources"] is False


@pytest.mark.parametrize("count", [1, 2])
def test_warnings_are_in_the_page(count: int) -> None:
    warned = reported(replace(day(), warnings=("no <replicas>",)))
    page = to_html([warned, reported(day())][:count])
    prefix = "web: " if count > 1 else ""
    assert f"<strong>Warning:</strong> {prefix}no &lt;replicas&gt;" in page
