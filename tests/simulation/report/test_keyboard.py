"""The keyboard: each control of a report, and of the page of a search, has a name, and each key that is shown works."""

import html
import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.simulation.report import to_html
from ocf.simulation.tuning.page import to_html as tuning_page
from tests.browser import run
from tests.simulation.runs import day, reported
from tests.simulation.tuning.test_page import tuned

EVENTS: Final = {"←": "ArrowLeft", "→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown", "Esc": "Escape"}
HARNESS: Final = """\
<!doctype html><meta charset="utf-8">
<iframe style="border:0;width:800px;height:900px" srcdoc="{page}"></iframe><pre id="found"></pre>
<script>
onload = () => {{
  const view = document.querySelector("iframe").contentWindow, page = view.document, events = {events};
  const text = (ids) => (ids ?? "").split(" ").map((id) => page.getElementById(id)?.textContent ?? "").join(" ");
  const controls = page.querySelectorAll("button, select, input, textarea, summary, a[href], [tabindex]");
  const name = (each) => each.getAttribute("aria-label") || text(each.getAttribute("aria-labelledby")).trim()
    || each.labels?.[0]?.textContent || each.textContent.trim();
  const range = page.getElementById("range"), plot = page.querySelector("svg.plot[tabindex]");
  const state = () => [range?.textContent, plot?.closest("figure").querySelector("output.moment").textContent];
  const press = (key) =>
    plot.dispatchEvent(new view.KeyboardEvent("keydown", {{key: events[key] ?? key, cancelable: true}}));
  const changes = {{}};
  for (const each of page.querySelectorAll(".hint kbd")) {{
    // In the middle of a part of the time, in which each key has something to change.
    press("0"); press("+"); press("→"); press("→");
    const before = String(state());
    const taken = !press(each.textContent);
    changes[each.textContent] = [taken, String(state()) !== before];
  }}
  document.getElementById("found").textContent = JSON.stringify({{
    names: [...controls].map((each) => [each.nodeName.toLowerCase(), name(each)]), changes,
    shown: page.querySelector(".hint")?.hidden === false,
  }});
}};
</script>
"""


def opened(chromium: str, folder: Path, page: str) -> Any:
    harness = folder / "harness.html"
    harness.write_text(HARNESS.format(page=html.escape(page), events=json.dumps(EVENTS)), encoding="utf-8")
    dom = run(chromium, folder, "--dump-dom", harness.as_uri())
    [text] = re.findall(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    return json.loads(html.unescape(text))


@pytest.fixture(scope="module")
def report(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return opened(chromium, tmp_path_factory.mktemp("keyboard"), to_html([reported(day())]))


def test_each_key_that_a_report_shows_does_something(report: Any) -> None:
    assert report["shown"]
    assert report["changes"] == {key: [True, True] for key in ("←", "→", "+", "-", "0", "Esc")}


def test_each_control_of_a_report_has_a_name(report: Any) -> None:
    names = [tuple(each) for each in report["names"]]
    assert {kind for kind, _ in names} == {"button", "svg", "summary"}
    assert [each for each in names if not each[1].strip()] == []
    assert ("button", "Zoom in") in names


def test_each_control_of_the_page_of_a_search_has_a_name(chromium: str, tmp_path: Path) -> None:
    names = opened(chromium, tmp_path, tuning_page(tuned()))["names"]
    assert {kind for kind, _ in names} == {"circle"}
    assert [each for each in names if not each[1].strip()] == []
