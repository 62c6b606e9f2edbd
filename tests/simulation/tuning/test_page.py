"""The page of a search: what it shows, and that it is self-contained."""

import html
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ocf.simulation.tuning import tune
from ocf.simulation.tuning.front_chart import Axis
from ocf.simulation.tuning.page import to_html
from ocf.simulation.tuning.tuned import Tuned
from tests.browser import DARK, LIGHT, SUFFICIENT_CONTRAST, complaints, contrast, measured
from tests.simulation.tuning.cases import UTILIZATION, problem, target


@cache
def tuned(*objectives: str) -> Tuned:
    return tune(problem(), target(*objectives, require=("overload_time < 60%",)))


@cache
def infeasible() -> Tuned:
    return tune(problem(), target(require=("pod_hours < 0.1",)))


def test_the_page_loads_nothing_and_allows_only_its_script() -> None:
    page = to_html(tuned())
    assert re.findall(r'(?:src|href|action)="', page) == []
    assert re.findall(r"https?://[^\s\"']+", page) == []
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', page)
    assert re.fullmatch(r"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-[\w+/]+='", policy)


def test_equal_results_give_equal_pages() -> None:
    assert to_html(tuned()) == to_html(tune(problem(), target(require=("overload_time < 60%",))))


def test_each_member_of_the_front_is_a_point_with_its_values_as_text() -> None:
    found = tuned()
    points = re.findall(r'<circle class="(\w+)" tabindex="0" role="img" aria-label="([^"]*)"', to_html(found))
    assert len(points) == len(found.front)
    assert [style for style, _ in points].count("winner") == 1
    last = points[-1][1]  # drawn last, so that no other point covers it
    values = found.winner.values
    assert last.startswith("rank 1: overload time ")
    assert last.endswith(f"; averageUtilization {values[UTILIZATION]}, minReplicas {values['spec.minReplicas']}")


@pytest.mark.parametrize(
    ("objectives", "charts"), [(("pod_hours",), 0), ((), 1), (("pod_hours", "overload_time", "flaps"), 2)]
)
def test_there_is_a_chart_for_each_further_objective(objectives: tuple[str, ...], charts: int) -> None:
    page = to_html(tuned(*objectives))
    assert page.count("<figure>") == page.count("<desc ") == charts


def test_without_allowed_settings_the_page_says_so_and_shows_no_front() -> None:
    page = to_html(infeasible())
    assert "<p class='warning'>No settings meet the requirements. The closest ones violate: pod_hours &lt; 0.1." in page
    assert "<figure>" not in page
    assert "<td class=bad>VIOLATED</td>" in page
    # In the table of effects, no column names the requirement.
    assert "<td class=bad>VIOLATED: pod_hours &lt; 0.1</td>" in page


def test_text_is_never_markup() -> None:
    name = "</script><script>alert(1)</script><b>"
    page = to_html(replace(tuned(), traces=(name,)))
    assert page.count("<script") == to_html(tuned()).count("<script")
    assert "<b>" not in page


@given(low=st.floats(0, 1e6), span=st.floats(1e-6, 1e6))
def test_an_axis_has_a_few_round_values_within_the_chart(low: float, span: float) -> None:
    axis = Axis.of("cost", [low, low + span], 60, 330)
    places = [at for at, _ in axis.ticks("")]
    assert 2 <= len(places) <= 7
    assert places == sorted(places)
    assert all(60 <= at <= 330 for at in places)


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_nothing_scrolls_sideways_and_every_text_can_be_read(
    chromium: str, tmp_path: Path, width: int, scheme: str
) -> None:
    page = to_html(tuned())
    found = measured(chromium, tmp_path, page, width, scheme)
    assert width - 20 < found["width"] <= width
    assert found["scrolled"] == found["width"]
    assert len(found["texts"]) > 50
    assert min(each["size"] for each in found["texts"]) >= 10
    assert [each for each in found["texts"] if contrast(each["colour"], found["paper"]) < SUFFICIENT_CONTRAST] == []


@pytest.mark.parametrize(
    ("width", "least"),
    [pytest.param(1200, 16, id="as the body's"), pytest.param(390, 14, id="on a phone, as the legend's")],
)
def test_the_texts_of_the_axes_are_as_large_as_those_around_them(
    chromium: str, tmp_path: Path, width: int, least: float
) -> None:
    page = to_html(tuned())
    [chart] = re.findall(r"<svg .*?</svg>", page[page.index("<figure>") : page.index("<figcaption>")], re.DOTALL)
    texts = set(re.findall(r"<text[^>]*>([^<]*)</text>", chart)) - set(re.findall(r"<t[hd][^>]*>([^<]*)<", page))
    found = [
        each["size"] for each in measured(chromium, tmp_path, page, width, LIGHT)["texts"] if each["text"] in texts
    ]
    assert len(found) >= 3
    assert min(found) >= least
    assert max(found) < least + 1


HARNESS: Final = """\
<!doctype html><meta charset="utf-8"><body><iframe style="width:600px;height:600px" srcdoc="{page}"></iframe>
<pre id="found"></pre><script>
onload = () => {{
  const page = document.querySelector("iframe").contentDocument, points = [...page.querySelectorAll("[data-point]")];
  points[0].dispatchEvent(new PointerEvent("pointerenter"));
  const output = page.querySelector("output.seen"), found = {{first: output.textContent}};
  points.at(-1).dispatchEvent(new FocusEvent("focus"));
  found.last = output.textContent;
  found.shown = points.map((each) => each.classList.contains("shown"));
  document.getElementById("found").textContent = JSON.stringify(found);
}};
</script>
"""


def test_pointing_at_a_candidate_shows_its_settings(chromium: str, tmp_path: Path) -> None:
    harness = tmp_path / "harness.html"
    harness.write_text(HARNESS.format(page=html.escape(to_html(tuned()))), encoding="utf-8")
    dom, complained = complaints(chromium, tmp_path, harness.as_uri())
    [text] = re.findall(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    found = json.loads(html.unescape(text))
    count = len(tuned().front)
    assert found["first"].startswith(f"rank {count}: ")
    assert found["last"].startswith("rank 1: ")
    assert found["shown"] == [False] * (count - 1) + [True]
    assert complained == []
