"""The page of a report in a browser: width, contrast, hovering, zooming and printing."""

import html
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.simulation.report import to_html
from tests.browser import DARK, LIGHT, SUFFICIENT_CONTRAST, complaints, contrast, luminance, measured, run
from tests.simulation.runs import day, reported, with_nodes

HARNESS: Final = """\
<!doctype html><meta charset="utf-8"><body style="margin:0">
<iframe style="border:0;width:800px;height:900px" srcdoc="{page}"></iframe><pre id="found"></pre>
<script>
onload = () => {{
  const view = document.querySelector("iframe").contentWindow, page = view.document, found = {{}};
  const plots = [...page.querySelectorAll("svg.plot[tabindex]")], range = page.getElementById("range");
  const point = (type, share, svg = plots[0]) => {{
    const box = svg.getBoundingClientRect(), left = 46 * box.width / svg.viewBox.baseVal.width;
    const right = box.width - 10 * box.width / svg.viewBox.baseVal.width;
    const options = {{clientX: box.left + left + share * (right - left), clientY: box.top + 50, bubbles: true}};
    svg.dispatchEvent(new view.PointerEvent(type, options));
  }};
  const key = (name) => plots[0].dispatchEvent(new view.KeyboardEvent("keydown", {{key: name}}));
  const command = (name) => page.querySelector(`[data-command=${{name}}]`).click();
  const steps = () => plots[0].querySelector("path.series").getAttribute("d").match(/H/g).length;
  const outputs = (which) =>
    [...plots[which].closest("figure").querySelectorAll("output")].map((one) => one.textContent);
  const state = () => ({{range: range.textContent, rows: page.querySelectorAll("#actions tbody tr").length,
    first: page.querySelector("#actions tbody td")?.textContent, shown: page.getElementById("shown")?.textContent}});

  found.whole = state();
  point("pointermove", 0.5);
  found.hover = [0, 1, 5].map(outputs);
  point("pointerdown", 0.25); point("pointermove", 0.4); point("pointerup", 0.5);
  found.dragged = state();
  found.steps = steps();
  plots[2].dispatchEvent(new view.MouseEvent("dblclick"));
  found.back = state();
  point("pointerleave", 0.5);
  command("in"); found.in = range.textContent;
  command("later"); found.later = range.textContent;
  command("all"); key("+"); found.plus = range.textContent;
  key("0"); found.zero = range.textContent;
  key("ArrowRight"); found.arrow = outputs(0)[0];
  const button = plots[0].closest("figure").querySelector("button[data-series]"), lines = () =>
    plots[0].querySelectorAll("path.series").length;
  found.lines = [lines()]; button.click(); found.lines.push(lines(), button.getAttribute("aria-pressed"));
  document.getElementById("found").textContent = JSON.stringify(found);
}};
</script>
"""


@pytest.fixture(scope="module")
def found(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the steps have found on the page of an hour."""
    folder = tmp_path_factory.mktemp("browser")
    harness = folder / "harness.html"
    harness.write_text(HARNESS.format(page=html.escape(to_html([reported(day())]))), encoding="utf-8")
    dom = run(chromium, folder, "--dump-dom", harness.as_uri())
    [texts] = re.findall(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    return json.loads(html.unescape(texts))


@pytest.fixture(scope="module")
def dated(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of an hour with dates after its script has run."""
    folder = tmp_path_factory.mktemp("dated")
    page = folder / "page.html"
    made = replace(day(), is_dated=True, start=datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    page.write_text(to_html([reported(made)]), encoding="utf-8")
    return run(chromium, folder, "--dump-dom", page.as_uri())


def test_a_run_with_dates_has_those_of_the_range_below_the_axis_and_in_its_table(dated: str) -> None:
    axes = re.findall(r'<text class="dates"[^>]*>([^<]*)<', dated)
    assert axes == ["2026-03-01 to 2026-03-02 UTC"] * 6
    assert '<span id="range">2026-03-01 23:30:00 to 2026-03-02 00:30:00 UTC</span>' in dated
    [actions] = re.findall(r'<table id="actions">.*?</table>', dated, re.DOTALL)
    times = re.findall(r"<tr><td>([^<]*)</td>", actions)
    assert {each[:10] for each in times} == {"2026-03-01", "2026-03-02"}


def compared() -> str:
    return to_html([reported(day(name=f"{'w' * 40}+{more}", more=more)) for more in range(3)])


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("several", [False, True], ids=["one run", "compared"])
def test_nothing_scrolls_sideways_and_every_text_can_be_read(
    chromium: str, tmp_path: Path, width: int, several: bool
) -> None:
    page = compared() if several else to_html([reported(with_nodes(day()), overload_time=0.02)])
    found = measured(chromium, tmp_path, page, width, LIGHT)
    assert width - 20 < found["width"] <= width
    assert found["scrolled"] == found["width"]
    if not several:  # The table of several runs scrolls by itself.
        assert found["outside"] == []
    assert len(found["texts"]) > 100
    assert min(each["size"] for each in found["texts"]) >= 10


@pytest.mark.parametrize(("scheme", "is_dark"), [(LIGHT, False), (DARK, True)], ids=["light", "dark"])
def test_every_text_has_contrast_in_both_schemes(chromium: str, tmp_path: Path, scheme: str, *, is_dark: bool) -> None:
    page = to_html([reported(day(), overload_time=0.02, pod_hours=1000)])
    found = measured(chromium, tmp_path, page, 390, scheme)
    assert (luminance(found["paper"]) < 0.1) is is_dark
    faint = [each for each in found["texts"] if contrast(each["colour"], found["paper"]) < SUFFICIENT_CONTRAST]
    assert faint == []


def test_hovering_shows_the_values_of_all_charts(found: Any) -> None:
    columns = day().columns
    load, replicas, conditions = found["hover"]
    assert load == ["01-01 00:30:00", f"{columns.load[120]:g}", f"{columns.capacity[120]:g}"]
    assert replicas[1] == str(columns.replicas[120])
    assert conditions == [
        "01-01 00:30:00",
        "True: ReadyForNewScale",
        "False: FailedGetResourceMetric",
        "True: TooFewReplicas",
    ]


def test_dragging_zooms_all_charts_and_the_actions(found: Any) -> None:
    inside = [each for each in day().actions if 900 <= each.time <= 1800]
    assert found["whole"]["range"] == "01-01 00:00:00 to 01-01 01:00:00 UTC"
    assert found["dragged"]["range"] == "01-01 00:15:00 to 01-01 00:30:00 UTC"
    assert found["dragged"]["rows"] == len(inside)
    assert found["dragged"]["shown"] == f"{len(inside)} of {len(day().actions)} scaling actions."
    assert found["back"] == found["whole"]


def test_zooming_in_draws_every_row(found: Any) -> None:
    """A quarter of an hour has 60 rows of 15 seconds, and the end of the last one."""
    assert found["steps"] == 61


def test_buttons_and_keys_do_the_same(found: Any) -> None:
    assert found["in"] == found["plus"] == "01-01 00:15:00 to 01-01 00:45:00 UTC"
    assert found["later"] == "01-01 00:30:00 to 01-01 01:00:00 UTC"
    assert found["zero"] == found["whole"]["range"]
    assert found["arrow"] == "01-01 00:00:36"


def test_a_legend_entry_hides_its_line(found: Any) -> None:
    assert found["lines"] == [2, 1, "false"]


@pytest.mark.parametrize("several", [False, True], ids=["a long run", "compared"])
def test_the_browser_has_nothing_to_complain_about(chromium: str, tmp_path: Path, several: bool) -> None:
    page = tmp_path / "page.html"
    page.write_text(compared() if several else to_html([reported(with_nodes(day(20_000)))]), encoding="utf-8")
    dom, found = complaints(chromium, tmp_path, page.as_uri())
    assert found == []
    assert 'data-drawn="true"' in dom


def test_the_page_can_be_printed(chromium: str, tmp_path: Path) -> None:
    page, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    page.write_text(to_html([reported(day(40))]), encoding="utf-8")
    run(chromium, tmp_path, DARK, f"--print-to-pdf={printed}", page.as_uri())
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) <= 8
