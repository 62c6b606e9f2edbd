"""The page of a report in a browser that runs no scripts: on a phone, and in print."""

import asyncio
import base64
import re
from pathlib import Path
from typing import Any, Final

import pytest

from ocf.simulation.report import to_html
from tests.browser import SUFFICIENT_CONTRAST, contrast
from tests.devtools import opened_tab
from tests.simulation.runs import day, reported

FOUND: Final = """(() => {
  const page = document.documentElement, box = (each) => each.getBoundingClientRect();
  const seen = (each) => box(each).width > 0 && box(each).height > 0;
  const texts = [...document.querySelectorAll("body *")].filter((each) => seen(each) && !each.closest("title, desc")
    && [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return {
    width: page.clientWidth, scrolled: page.scrollWidth, paper: getComputedStyle(document.body).backgroundColor,
    outside: texts.filter((each) => box(each).right > page.clientWidth + 0.5).map((each) => each.textContent),
    small: texts.filter((each) => parseFloat(getComputedStyle(each).fontSize) < 10).map((each) => each.textContent),
    colours: texts.map((each) => getComputedStyle(each)[each instanceof SVGElement ? "fill" : "color"]),
    charts: [...document.querySelectorAll("figure > svg.plot")].map((each) => [box(each).width, box(each).height,
      [...each.querySelectorAll("path.series, rect.band")].filter((line) => box(line).width > 300).length]),
    names: [...document.querySelectorAll("figure > svg.plot")].map((each) => each.getAttribute("aria-labelledby")
      .split(" ").map((id) => document.getElementById(id).textContent).join(": ")),
    buttons: [...document.querySelectorAll("button")].filter(seen).length,
    tables: document.querySelectorAll("details table").length,
    actions: document.querySelectorAll("#actions tbody tr").length,
    drawn: "drawn" in page.dataset,
  };
})()"""


async def _visited(chromium: str, folder: Path) -> dict[str, Any]:
    page = folder / "page.html"
    page.write_text(to_html([reported(day(), overload_time=0.02)]), encoding="utf-8")
    async with opened_tab(chromium, folder) as tab:
        await tab.send("Emulation.setScriptExecutionDisabled", value=True)
        await tab.open(page.as_uri(), width=390, dark=True)
        found = {"phone": await tab.evaluate(FOUND), "complaints": tab.complaints}
        found["printed"] = base64.b64decode((await tab.send("Page.printToPDF"))["data"])
        return found


@pytest.fixture(scope="module")
def found(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return asyncio.run(_visited(chromium, tmp_path_factory.mktemp("browser")))


def test_every_chart_is_drawn_in_the_width_of_the_screen(found: dict[str, Any]) -> None:
    phone = found["phone"]
    assert not phone["drawn"]
    assert len(phone["charts"]) == 6
    for width, height, lines in phone["charts"]:
        assert 300 < width < 390
        assert height == 190
        assert lines > 0


def test_nothing_scrolls_sideways_and_every_text_can_be_read(found: dict[str, Any]) -> None:
    phone = found["phone"]
    assert 370 <= phone["width"] == phone["scrolled"] <= 390
    assert (phone["outside"], phone["small"]) == ([], [])
    assert len(phone["colours"]) > 100
    assert min(contrast(each, phone["paper"]) for each in phone["colours"]) >= SUFFICIENT_CONTRAST


def test_charts_have_a_text_alternative_and_a_table(found: dict[str, Any]) -> None:
    phone = found["phone"]
    assert phone["tables"] == len(phone["names"]) == 6
    assert phone["names"][1].startswith("Replicas: Replicas of the scale, ")
    assert phone["actions"] == 100


def test_no_control_is_shown_that_does_nothing(found: dict[str, Any]) -> None:
    assert found["phone"]["buttons"] == 0


def test_the_page_can_be_printed(found: dict[str, Any]) -> None:
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", found["printed"])) <= 12


def test_the_browser_has_nothing_to_complain_about(found: dict[str, Any]) -> None:
    assert found["complaints"] == []
