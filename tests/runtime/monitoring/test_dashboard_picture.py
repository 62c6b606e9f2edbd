"""The picture of the dashboard: up to date, complete, and drawn from a run that is the same every time.

Draw it anew with `python -m scripts.record.dashboard_picture` after a change of the dashboard.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from ocf.runtime.monitoring import dashboard
from scripts.record.dashboard_parts.chart import chart
from scripts.record.dashboard_parts.drawing import COLUMN, HEADER, MARGIN, ROW, draw
from scripts.record.dashboard_parts.panels import Line, Panel, Place, digest, filled
from scripts.record.dashboard_parts.prometheus import Series
from scripts.record.dashboard_parts.run import SCRAPE_INTERVAL, START, Scrape, record
from scripts.record.dashboard_picture import PICTURE
from tests.runtime.monitoring.queries import PANELS

SVG: Final = "{http://www.w3.org/2000/svg}"
ROOT: Final = ET.fromstring(PICTURE.read_text(encoding="utf-8"))  # noqa: S314 (our own file)
SHOWN: Final = {str(group.findtext(f"{SVG}text")): group for group in ROOT.iter(f"{SVG}g")}
FIRST: Final = int(START.timestamp())
STEP: Final = round(SCRAPE_INTERVAL.total_seconds())


def texts(element: ET.Element) -> list[str]:
    return [str(each.text) for each in element.iter(f"{SVG}text")]


def lines_of(element: ET.Element) -> list[ET.Element]:
    return [each for each in element.iter(f"{SVG}path") if "series" in str(each.get("class"))]


class TestPicture:
    def test_it_is_drawn_from_the_panels_of_today(self) -> None:
        drawn_from = ROOT.get("data-panels")

        assert drawn_from == digest(PANELS), "run `python -m scripts.record.dashboard_picture`"

    @pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
    def test_each_panel_is_at_its_place_with_its_unit(self, panel: Mapping[str, Any]) -> None:
        shown, place = SHOWN[panel["title"]], Place(**panel["gridPos"])

        assert shown.get("transform") == f"translate({MARGIN + place.x * COLUMN:g} {HEADER + place.y * ROW:g})"
        assert shown.get("data-unit") == panel["fieldConfig"]["defaults"]["unit"]
        assert shown.findtext(f"{SVG}title") == f"{panel['title']}: {panel['description']}"

    @pytest.mark.parametrize("panel", PANELS, ids=lambda panel: str(panel["title"]))
    def test_each_panel_has_values(self, panel: Mapping[str, Any]) -> None:
        shown = SHOWN[panel["title"]]

        assert "No data" not in texts(shown)
        if panel["type"] == "table":
            header = panel["transformations"][1]["options"]["renameByName"]
            assert len(texts(shown)) >= 1 + 2 * len(header)
        else:
            assert len(lines_of(shown)) >= 2  # a line, and its entry in the legend

    def test_it_shows_no_other_panel(self) -> None:
        assert SHOWN.keys() == {panel["title"] for panel in PANELS}

    def test_it_can_be_read_without_being_seen(self) -> None:
        title, text = ROOT.findtext(f"{SVG}title"), str(ROOT.findtext(f"{SVG}desc"))

        assert title == f"Dashboard {dashboard()['title']}"
        assert [panel["title"] for panel in PANELS if f"{panel['title']}: " not in text] == []

    def test_it_is_complete_in_itself_and_follows_the_scheme_of_the_reader(self) -> None:
        picture = PICTURE.read_text(encoding="utf-8")

        assert set(re.findall(r"https?://[^\"' )]+", picture)) == {"http://www.w3.org/2000/svg"}
        assert "prefers-color-scheme:dark" in picture


class TestRun:
    def test_two_runs_export_the_same(self) -> None:
        """Retries included; so a picture changes only when the dashboard, the operator or a metric does."""
        first, second = (_exported(record(timedelta(minutes=25))) for _ in range(2))

        assert first == second
        assert "ocf_resource_apply_errors_total{" in first

    def test_it_is_scraped_until_its_end(self) -> None:
        scrapes = record(timedelta(minutes=1))

        assert [each.at - FIRST for each in scrapes] == [0, 15, 30, 45, 60]


def _exported(scrapes: list[Scrape]) -> str:
    """Return the metrics of `ocf` at each scrape; others have the wall clock."""
    return "\n".join(line for each in scrapes for line in each.text.splitlines() if line.startswith("ocf_"))


def panel_of(*lines: Line, is_stacked: bool = False) -> Panel:
    return Panel("Owners", "Number of owners.", "short", Place(0, 0, 12, 8), lines, is_stacked=is_stacked)


def paths(panel: Panel, style: str = "series") -> list[str]:
    """Return the paths of the lines of a chart, without its legend."""
    drawn = "".join(chart(panel, 400, 240))
    return re.findall(rf'<path class="{style} c\d" d="(M[^h"]+)"', drawn)


def points(*values: float, begin: int = 0) -> dict[int, float]:
    return {FIRST + (begin + number) * STEP: value for number, value in enumerate(values)}


class TestChart:
    def test_a_step_without_a_value_is_a_gap(self) -> None:
        (path,) = paths(panel_of(Line("all", {**points(1, 2), **points(2, 1, begin=3)})))

        assert path.count("M") == 2

    def test_a_single_value_is_a_dot(self) -> None:
        (path,) = paths(panel_of(Line("all", points(4))))
        begin, end = path.removeprefix("M").split("L")

        assert begin == end

    def test_the_highest_value_is_highest(self) -> None:
        (path,) = paths(panel_of(Line("all", points(1, 3, 2))))
        heights = [float(point.split()[1]) for point in path.removeprefix("M").split("L")]

        assert heights[1] < heights[2] < heights[0]

    def test_stacked_lines_stand_on_the_sum_of_those_before(self) -> None:
        lines = Line("a", points(1, 1)), Line("b", points(1, begin=1)), Line("c", points(1, 1))
        stacked, single = (
            paths(panel_of(*lines, is_stacked=True)),
            paths(panel_of(Line("a", points(1, 1)), Line("b", points(2, begin=1)), Line("c", points(2, 3)))),
        )

        assert stacked == single
        assert len(paths(panel_of(*lines, is_stacked=True), "area")) == 3

    def test_a_panel_without_a_series_says_so(self) -> None:
        assert ">No data</text>" in draw("shops", [panel_of()], "")


class TestValues:
    def test_a_legend_has_the_values_of_labels(self) -> None:
        panel = next(each for each in PANELS if each["title"] == "Writes, by reason")
        labels = {"component": "web", "kind": "Deployment", "resource": "front", "why": "changed"}
        found = filled(panel, [Series(labels, points(1))])

        assert found.lines == [Line("web Deployment front: changed", points(1))]

    def test_a_table_has_the_columns_of_the_dashboard(self) -> None:
        labels = {"kind": "Shop", "id": "town/corner", "condition": "WebReady", "status": "False", "reason": "Blocked"}
        found = filled(PANELS[0], [Series({**labels, "controller": "shops", "instance": "10.0.0.1:80"}, points(90))])

        assert found.header == ["Kind", "Owner", "Condition", "Status", "Reason", "Controller", "Age"]
        assert found.rows == [["Shop", "town/corner", "WebReady", "False", "Blocked", "shops", "1 min 30 s"]]
